"""What a project asks of the gate: limits, causes, and where the requests come from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.errors import InputError

TIMEOUT = 60.0
"""Seconds for one run of a request builder."""

Ratio = Annotated[float, Meta(ge=0, le=1)]
Tokens = Annotated[int, Meta(ge=0)]


class GateSettings(Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """The table `[tool.ctxdoc.gate]` of a pyproject.toml; None is no limit."""

    logs: tuple[str, ...] = ()
    command: str | None = None
    import_: str | None = msgspec.field(default=None, name="import")
    """`pkg.mod:function`."""
    baseline: str | None = None
    """Path of the lock file."""
    min_hit_ratio: Ratio | None = None
    """Share of all input that is read from the cache."""
    max_lost_cost: Annotated[float, Meta(ge=0, le=1e12)] | None = None
    """USD of avoidable misses."""
    max_lost_tokens: Tokens | None = None
    max_prefix_tokens: Tokens | None = None
    max_growth_per_turn: Tokens | None = None
    allow: tuple[str, ...] = ()
    """Causes that do not break the gate."""
    fail_on: tuple[str, ...] = ()
    """Causes that break it beside those of an unstable prefix."""
    skip: tuple[str, ...] = ()
    """Surroundings in which the builder is not run."""
    timeout: Annotated[float, Meta(gt=0, le=86_400)] = TIMEOUT


NAMES = tuple(field.encode_name for field in msgspec.structs.fields(GateSettings))


def settings_of(values: Mapping[str, object], where: str) -> GateSettings:
    """Settings by their names, with dashes or underscores.

    Raises InputError, naming `where` they stand, for a name or a value that there is not.
    """
    named = {}
    for name, value in values.items():
        key = name.replace("_", "-")
        if key not in NAMES:
            near = get_close_matches(key, NAMES, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else f"known: {', '.join(NAMES)}"
            raise InputError(f"{where}: no setting named '{name}'", hint)
        named[key] = value
    try:
        found = msgspec.convert(named, GateSettings, strict=False)
    except msgspec.ValidationError as error:
        reason = str(error).replace(" - at `$.", " for `").replace("`float | null`", "a number")
        reason = reason.replace("`int | null`", "a number").replace("`str`", "a text")
        raise InputError(
            f"{where}: {reason}", "'ctxdoc explain gate' lists the settings"
        ) from error
    for cause in (*found.allow, *found.fail_on):
        CAUSES[cause]
    return found


def read_settings(folder: Path) -> tuple[dict[str, object], Path | None]:
    """The table of the next pyproject.toml from a folder up, and that file; empty where there is none.

    Raises InputError for a file that cannot be read.
    """
    for parent in (folder, *folder.parents):
        path = parent / "pyproject.toml"
        if not path.is_file():
            continue
        try:
            text = path.read_text(encoding="utf-8")
            table = tomllib.loads(text).get("tool", {}).get("ctxdoc", {}).get("gate", {})
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError) as error:
            raise InputError(f"cannot read {path}: {error}", "mend it, or leave it out") from error
        if not isinstance(table, dict):
            raise InputError(f"{path}: tool.ctxdoc.gate is no table", "write [tool.ctxdoc.gate]")
        return table, path
    return {}, None
