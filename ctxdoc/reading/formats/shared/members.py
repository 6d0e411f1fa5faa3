"""Members of foreign objects, taken out by their type: one of an odd type is told with its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Members = Mapping[str, Any]
_NAMES = {dict: "object", list: "array", type(None): "null"}
"""Types as msgspec names them in its own errors, so that a reader sees one language."""


class OddValueError(ValueError):
    """A value of another type than a record of its format has there, or no value at all."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason)
        self.path = path
        """Where it stands in the record, such as `$.request.body`."""


def odd(wanted: str, value: Any, path: str) -> OddValueError:
    """The error of a value that is not of the wanted type."""
    kind = _NAMES.get(type(value), type(value).__name__)
    return OddValueError(f"Expected '{wanted}', got '{kind}' - at '{path}'", path)


def members_of(value: Any, path: str) -> Members:
    """The members of an object, none of a null; raises OddValueError for anything else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise odd("object", value, path)
    return value


def objects_in(value: Any) -> list[Members]:
    """The objects in a list; none where there is no list, and what is no object is passed over."""
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def required(members: Members, name: str) -> Any:
    """A member that every record of a format has; raises OddValueError where it is not there."""
    if name not in members:
        raise OddValueError(f"no '{name}'", f"$.{name}")
    return members[name]
