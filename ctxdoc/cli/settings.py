"""Settings of the gate: the options over the table of the next pyproject.toml."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.errors import InputError
from ctxdoc.gate.limits import LIMITS
from ctxdoc.gate.settings import GateSettings, read_settings, settings_of

SINGLE = (*(limit.name for limit in LIMITS), "timeout", "baseline")
"""Settings of one value that can be typed."""


class GateOptions(Struct, frozen=True, kw_only=True):
    """What was typed; empty is not given."""

    logs: tuple[str, ...] = ()
    command: str = ""
    import_: str = ""
    limits: Mapping[str, str] = {}
    """Settings of one value, by their names."""
    allow: tuple[str, ...] = ()
    fail_on: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    @property
    def sources(self) -> Sequence[object]:
        """Where requests come from; more than one is a mistake."""
        return [each for each in (self.logs, self.command, self.import_) if each]


def options_of(typed: Mapping[str, Any]) -> GateOptions:
    """The options of the command by the names of its parameters, which are those of the settings."""
    limits = {name.replace("_", "-"): typed[name] for name in SINGLE}
    lists = {name: tuple(typed[name] or ()) for name in ("logs", "allow", "fail_on", "skip")}
    return GateOptions(command=typed["command"], import_=typed["import_"], limits=limits, **lists)


def chosen_settings(given: GateOptions) -> tuple[GateSettings, Path]:
    """The settings, and the folder that a builder runs in.

    Raises InputError for an option or a file that makes no sense, and for more than one source of requests.
    """
    limits = settings_of(
        {name: _number(name, text) for name, text in given.limits.items() if text}, "options"
    )
    if len(given.sources) > 1:
        raise InputError("more than one source of requests", "name a log, --command or --import")
    of_file, home = _of_file(Path.cwd())
    if given.sources:
        of_file, home = _with_sources(of_file, given), Path.cwd()
    else:
        _check_one_source(of_file)
    return _joined(of_file, limits, given), home


def _with_sources(of_file: GateSettings, given: GateOptions) -> GateSettings:
    """The settings of the file for the source that was typed."""
    # The baseline of a builder is none of a log that is named here.
    is_other = given.logs and not of_file.logs
    return replace(
        of_file,
        logs=given.logs,
        command=given.command or None,
        import_=given.import_ or None,
        baseline=None if is_other else of_file.baseline,
    )


def _joined(of_file: GateSettings, limits: GateSettings, given: GateOptions) -> GateSettings:
    """The settings of the file under the options: limits replace, lists of names add up."""
    # What the file leaves out of a builder's surroundings is no mistake of a log.
    skip = () if of_file.logs else of_file.skip
    found = replace(
        of_file,
        **_changed(limits),
        allow=(*of_file.allow, *given.allow),
        fail_on=(*of_file.fail_on, *given.fail_on),
        skip=(*skip, *given.skip),
    )
    for cause in (*found.allow, *found.fail_on):
        CAUSES[cause]
    return found


def _of_file(folder: Path) -> tuple[GateSettings, Path]:
    """What the next pyproject.toml says, its paths as they are seen from a folder, and where it stands."""
    table, path = read_settings(folder)
    if not table or path is None:
        return GateSettings(), folder
    found = settings_of(table, f"{path}, [tool.ctxdoc.gate]")
    home = path.parent
    if home == folder:
        # As they are written: a report shows them.
        return found, home

    def from_here(name: str) -> str:
        return name if name == "-" else os.path.relpath(home / name, folder)

    baseline = None if found.baseline is None else from_here(found.baseline)
    return replace(found, baseline=baseline, logs=tuple(map(from_here, found.logs))), home


def _number(name: str, text: str) -> str:
    """A number as settings spell it: a share may be in percent, tokens may be grouped by underscores."""
    if name == "min-hit-ratio" and text.endswith("%"):
        try:
            return str(float(text[:-1]) / 100)
        except ValueError:
            return text
    return text.replace("_", "") if name.endswith(("-tokens", "-per-turn")) else text


def _changed(limits: GateSettings) -> dict[str, object]:
    """What the options say that is not said without them."""
    usual = GateSettings()
    fields = ((name, getattr(limits, name)) for name in limits.__struct_fields__)
    return {name: value for name, value in fields if value != getattr(usual, name)}


def _check_one_source(found: GateSettings) -> None:
    """Raises InputError for a file that names several; that there is none is said by the gate."""
    sources = [each for each in (found.command, found.import_) if each is not None]
    if len(sources) + bool(found.logs) > 1:
        raise InputError(
            "more than one source in pyproject.toml", "name a log, or give --command or --import"
        )
