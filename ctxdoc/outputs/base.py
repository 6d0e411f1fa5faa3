"""What an output is."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from ctxdoc.outputs.report import Report


class Takes(Enum):
    """What of a report an output writes."""

    ALL = "all"
    ROWS = "rows"
    """Its records, where the results are rows."""
    CHECKS = "checks"
    """Its checks, where the results are such."""


class Style(Struct, frozen=True, kw_only=True):
    """What a person's screen allows."""

    width: int = 100
    color: bool = False


class Output(Struct, frozen=True, kw_only=True):
    """A way to write a report."""

    id: str
    title: str
    write: Callable[[Report, Style], str]
