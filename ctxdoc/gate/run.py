"""Runs the gate over a log, a program or a function, for the command line and for tests."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ctxdoc.diagnosis.drift import find_drift
from ctxdoc.gate.baseline import Lock, lock_of, read_lock, write_lock
from ctxdoc.gate.builder import gate_runs
from ctxdoc.gate.log import SHOWN_PLACES, gate_replay
from ctxdoc.gate.outcome import GateOutcome, Verdict
from ctxdoc.gate.process import Builder, Failed, Run, called, import_command, split_command
from ctxdoc.gate.settings import GateSettings
from ctxdoc.gate.surroundings import Surrounding, chosen_surroundings, iter_runs, unavailable
from ctxdoc.ledger.ledger import replay
from ctxdoc.request.log import Log

IN_PROCESS = (
    "the function is none that another interpreter can import: it was called again in this one a second "
    "later, and nothing else was changed"
)


def gate_log(
    read: Callable[[], Log],
    settings: GateSettings,
    lock: Lock | None = None,
    begin: Callable[[int], Callable[[int], None]] | None = None,
) -> tuple[GateOutcome, Log]:
    """The gate over a log, and the log without its requests; `read` gives it, so that nobody else holds it.

    `begin` is told how many requests will be replayed, and gives who is told of them.
    """
    log = [read()]
    progress = begin(len(log[0].requests)) if begin else None
    names = ", ".join(settings.logs[:3]) + (", …" if len(settings.logs) > 3 else "")
    found = replay(
        log.pop(), places=SHOWN_PLACES, heads=settings.baseline is not None, progress=progress
    )
    count = len(found.rows)
    subject = f"{names}: {count:,} request{'' if count == 1 else 's'}"
    return gate_replay(found, settings, subject, lock), found.log


def gate_builder(settings: GateSettings, folder: Path, lock: Lock | None = None) -> GateOutcome:
    """The gate over a program, or over a function in fresh interpreters.

    Raises InputError for what cannot be started, UncheckedError for what gives no body.
    """
    if settings.import_ is not None:
        return _in_surroundings(
            import_command(settings.import_), settings.import_, settings, folder, lock
        )
    command = settings.command or ""
    return _in_surroundings(split_command(command), command, settings, folder, lock)


def gate_function(
    build: Callable[[], Any], settings: GateSettings, folder: Path, lock: Lock | None = None
) -> GateOutcome:
    """The gate over a function of this process: in fresh interpreters where it can be imported there.

    Raises UncheckedError for a function that gives no body.
    """
    module = getattr(build, "__module__", "") or ""
    name = getattr(build, "__qualname__", "") or ""
    if _is_importable(build, module, name):
        path = [entry or str(Path.cwd()) for entry in sys.path]
        target = f"{module}:{name}"
        return _in_surroundings(
            import_command(target), target, settings, folder, lock, {"PYTHONPATH": path}
        )
    subject = name or repr(type(build))
    reference = called(build)
    pause = chosen_surroundings(settings.skip)[:1]
    runs: list[tuple[Surrounding, Run | Failed]] = []
    if pause and pause[0].id == "pause":
        runs.append((pause[0], called(build, wait=True)))
    return gate_runs(reference, runs, settings, subject, lock, (IN_PROCESS,))


def _is_importable(build: Callable[[], Any], module: str, name: str) -> bool:
    """Whether another interpreter finds the very same function: nothing that wraps it, or is bound to an
    object of this one."""
    if not module or module == "__main__" or not inspect.isfunction(build):
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is build


def _in_surroundings(
    words: Sequence[str],
    subject: str,
    settings: GateSettings,
    folder: Path,
    lock: Lock | None,
    paths: Mapping[str, Sequence[str]] | None = None,
) -> GateOutcome:
    surroundings = chosen_surroundings(settings.skip)
    builder = Builder(words, timeout=settings.timeout, folder=folder, paths=paths or {})
    reference = builder.reference()

    def is_same(run: Run) -> bool:
        return len(run.requests) == len(reference.requests) and not any(
            find_drift(one, two) is not None
            for one, two in zip(reference.requests, run.requests, strict=True)
        )

    return gate_runs(
        reference,
        iter_runs(builder, surroundings, is_same),
        settings,
        subject,
        lock,
        tuple(unavailable(builder, surroundings)),
    )


def baseline_of(settings: GateSettings, folder: Path, *, update: bool) -> Lock | None:
    """The lock that a log or a builder is held against; None where there is none, or a new one is written.

    Raises InputError for a file that cannot be read.
    """
    if settings.baseline is None or update:
        return None
    return read_lock(folder / settings.baseline)


def updated(
    gated: GateOutcome, write: Callable[[bytes], object], beside: Lock | None = None
) -> GateOutcome:
    """Writes the baseline, where there is a stable prefix to be written; with `beside`, those of it too."""
    if gated.lock is None:
        why = "not written: there is no stable prefix"
        checks = tuple(
            replace(check, verdict=Verdict.UNCHECKED, value=None, why=why)
            if check.name == "baseline"
            else check
            for check in gated.checks
        )
        return replace(gated, checks=checks)
    prefixes = (*(beside.prefixes if beside else ()), *gated.lock.prefixes)
    write(write_lock(lock_of(prefixes)))
    checks = tuple(
        replace(check, verdict=Verdict.HELD, value=0, why="") if check.name == "baseline" else check
        for check in gated.checks
    )
    return replace(gated, checks=checks, updated=True)


def shareable(path: Path) -> None:
    """Lets others read a baseline: it is meant for the repository, and holds no text."""
    with suppress(OSError):
        path.chmod(0o644)
