"""`ctxdoc.gate`: whether a prefix stays the same, and a log keeps to its limits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.api.outcome import Outcome, collector_paused, skipped_lines
from ctxdoc.api.read import Progress, Source, check_model, names_of, read
from ctxdoc.api.rows import Row, rows_of
from ctxdoc.errors import InputError
from ctxdoc.gate.baseline import Lock
from ctxdoc.gate.outcome import GateOutcome, Verdict
from ctxdoc.gate.run import baseline_of, gate_builder, gate_function, gate_log, updated
from ctxdoc.gate.settings import TIMEOUT, GateSettings, settings_of
from ctxdoc.outputs.report import Report
from ctxdoc.reports.gate import gate_report
from ctxdoc.request.log import Log


class GateTotals(Struct, frozen=True, kw_only=True):
    """A gate in one line."""

    limits: int
    broken: int
    unchecked: int
    """Limits that could not be checked, which is never held."""


class GateVerdict(Outcome, frozen=True, kw_only=True, dict=True):
    """Whether every limit holds, and what breaks one."""

    outcome: GateOutcome

    @property
    def verdict(self) -> str:
        """held, broken or unchecked."""
        return str(self.outcome.verdict)

    @property
    def exit_code(self) -> int:
        """As the command ends: 0 held, 1 broken, 3 unchecked."""
        return self.outcome.exit_code

    @property
    def totals(self) -> GateTotals:
        """How many limits there are, and how many do not hold."""
        verdicts = [check.verdict for check in self.outcome.checks]
        return GateTotals(
            limits=len(verdicts),
            broken=verdicts.count(Verdict.BROKEN),
            unchecked=verdicts.count(Verdict.UNCHECKED),
        )

    @cached_property
    def rows(self) -> list[Row]:
        """What was found, that which breaks the gate first."""
        found: Any = self.to_dict()
        return rows_of(found["findings"])

    @property
    def findings(self) -> list[Row]:
        """The rows: each is a finding."""
        return self.rows

    def report(self, *, excerpts: bool = True, settings_file: str = "") -> Report:
        """What all outputs write; annotations that are of no file of their own belong to `settings_file`."""
        return gate_report(self.outcome, excerpts=excerpts, settings_file=settings_file)

    def accept(self, write: Callable[[bytes], object]) -> GateVerdict:
        """The gate with the baseline as it is now, which is given to `write`, as in `Path("x").write_bytes`.

        Unchecked where no prefix is stable: nothing is written then.
        """
        return replace(self, outcome=updated(self.outcome, write))


def gate(
    *logs: Source,
    build: Callable[[], Any] | None = None,
    command: str | None = None,
    import_: str | None = None,
    folder: str | PathLike[str] = "",
    baseline: str | PathLike[str] | None = None,
    update: bool = False,
    min_hit_ratio: float | None = None,
    max_lost_cost: float | None = None,
    max_lost_tokens: int | None = None,
    max_prefix_tokens: int | None = None,
    max_growth_per_turn: int | None = None,
    allow: Sequence[str] = (),
    fail_on: Sequence[str] = (),
    skip: Sequence[str] = (),
    timeout: float = TIMEOUT,
    model: str = "",
    strict: bool = False,
    progress: Progress | None = None,
) -> GateVerdict:
    """Whether a prefix stays the same to the byte, and a log keeps to its limits.

    One source of requests: logs; a function `build` that returns a body, or several; a `command` that prints
    them; `import_`, a function by name (`pkg.mod:function`). A program runs in `folder`, here without one,
    each time at most `timeout` seconds. `min_hit_ratio` is a share from 0 to 1, `max_lost_cost` USD, the
    others tokens; `allow` and `fail_on` are ids of causes, `skip` names surroundings of a builder. With
    `update` nothing is held against the baseline, so that `accept` can write it anew. No pyproject.toml is
    read.

    Raises InputError for what cannot be read or makes no sense, UncheckedError for a builder that gives no
    body.

        verdict = ctxdoc.gate("agent.jsonl", min_hit_ratio=0.8)
        assert verdict.verdict == "held", verdict.to_text()
    """
    check_model(model)
    values = {
        "logs": names_of(logs),
        "command": command,
        "import": import_,
        "baseline": None if baseline is None else str(baseline),
        "min_hit_ratio": min_hit_ratio,
        "max_lost_cost": max_lost_cost,
        "max_lost_tokens": max_lost_tokens,
        "max_prefix_tokens": max_prefix_tokens,
        "max_growth_per_turn": max_growth_per_turn,
        "allow": tuple(allow),
        "fail_on": tuple(fail_on),
        "skip": tuple(skip),
        "timeout": timeout,
    }
    # As a table of pyproject.toml is read: a wrong value is told in the same words.
    settings = settings_of(values, "gate")
    _check_one_source(settings, build)
    if update and settings.baseline is None:
        raise InputError("--update writes a baseline", "name it with --baseline FILE")
    # A baseline stands where the caller says, whatever folder a builder runs in.
    lock = baseline_of(settings, Path.cwd(), update=update)
    home = Path(folder) if folder else Path.cwd()
    if build is not None:
        return GateVerdict(outcome=gate_function(build, settings, home, lock))
    if not logs:
        return GateVerdict(outcome=gate_builder(settings, home, lock))

    def read_logs() -> Log:
        # Read where it is replayed: nobody else then holds the bodies, and they are let go one by one.
        return read(*logs, model=model, strict=strict, condense=True, progress=progress)

    return _of_log(read_logs, settings, lock, progress)


def _of_log(
    read_logs: Callable[[], Log],
    settings: GateSettings,
    lock: Lock | None,
    progress: Progress | None,
) -> GateVerdict:
    def replaying(count: int) -> Callable[[int], None]:
        assert progress is not None
        return progress("replaying", count)

    with collector_paused():
        found, log = gate_log(read_logs, settings, lock, replaying if progress else None)
    return GateVerdict(outcome=found, warnings=skipped_lines(log))


def _check_one_source(settings: GateSettings, build: Callable[[], Any] | None) -> None:
    """Raises InputError unless there is one source of requests, and for surroundings of a log."""
    sources = (settings.logs, settings.command, settings.import_, build)
    count = len([source for source in sources if source])
    if count != 1:
        raise InputError(
            "more than one source of requests" if count else "there are no requests to check",
            "name a log, or give --command or --import",
        )
    if settings.logs and settings.skip:
        raise InputError("--skip goes with --command and --import", "a log has no surroundings")
