"""What the gate finds: checks with their verdicts, and the causes that broke them."""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum

from msgspec import Struct

from ctxdoc.diagnosis.causes import CAUSES, Cause, Confidence
from ctxdoc.gate.baseline import Lock, PrefixChange, changes_of
from ctxdoc.gate.limits import Value
from ctxdoc.gate.settings import GateSettings
from ctxdoc.prompt.diff import Difference


class Verdict(StrEnum):
    """Of one check, and of the gate."""

    HELD = "held"
    BROKEN = "broken"
    UNCHECKED = "unchecked"
    """What was asked for could not be checked: never the same as held."""


class Check(Struct, frozen=True, kw_only=True):
    """One limit, and what it was held against."""

    name: str
    title: str
    unit: str
    limit: Value | None
    """None for a check without a number."""
    value: Value | None
    """None where it is not known."""
    verdict: Verdict
    where: str = ""
    why: str = ""
    """Why it could not be checked."""


class Breach(Struct, frozen=True, kw_only=True):
    """A cause that was found, with all that it was found in."""

    cause: Cause
    confidence: Confidence
    explanation: str
    breaks: bool
    """Whether the gate breaks on it; otherwise it is told and no more."""
    source: str
    """The log, or the builder's command."""
    line: int | None
    """Of the first request's record."""
    difference: Difference | None = None
    requests: tuple[int, ...] = ()
    """Numbers of the requests in the log, from 1."""
    pair: tuple[int, int] | None = None
    """The first of them and the request it is compared with, the earlier one first."""
    surroundings: tuple[str, ...] = ()
    """Ids of what changed around a builder."""
    tokens: int | None = None
    cost: Decimal | None = None
    daily: bool = False
    """Whether only a day is another one."""
    advice: str = ""
    """What to do in this case, where it is not what the cause says."""


class GateOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of the gate."""

    subject: str
    """What was looked at."""
    checks: tuple[Check, ...]
    breaches: tuple[Breach, ...]
    """Those that break it first."""
    changed: tuple[PrefixChange, ...] = ()
    """Against the baseline."""
    lock: Lock | None = None
    """What the baseline would be now; None where nothing is stable."""
    baseline: str = ""
    """Path of the lock file."""
    updated: bool = False
    allowed: frozenset[str] = frozenset()
    """Causes that the settings let pass."""
    not_checked: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Broken if any check is, else unchecked if any is."""
        found = {check.verdict for check in self.checks}
        for verdict in (Verdict.BROKEN, Verdict.UNCHECKED):
            if verdict in found:
                return verdict
        return Verdict.HELD

    @property
    def exit_code(self) -> int:
        """Of design 9: 0 held, 1 broken, 3 could not check."""
        return {Verdict.HELD: 0, Verdict.BROKEN: 1, Verdict.UNCHECKED: 3}[self.verdict]


def ids_of(names: tuple[str, ...]) -> frozenset[str]:
    """Ids of the causes that the settings name; a dash may stand for an underscore."""
    return frozenset(CAUSES[name].id for name in names)


def breaks(cause: Cause, settings: GateSettings) -> bool:
    """Whether the gate breaks on a cause."""
    if cause.id in ids_of(settings.fail_on):
        return True
    return cause.unstable and cause.id not in ids_of(settings.allow)


STABLE = "stable_prefix"
"""The name of the check that every gate makes."""


def where_of(breach: Breach) -> str:
    """Where a breach shows: file, line and JSON path, as far as they are known."""
    line = f":{breach.line}" if breach.line else ""
    pointer = f" {breach.difference.pointer}" if breach.difference else ""
    return f"{breach.source}{line}{pointer}"


def baseline_check(
    lock: Lock | None, now: Lock | None, path: str
) -> tuple[Check, tuple[PrefixChange, ...]]:
    """The check of the prefix now beside the baseline, and what is not as that one has it."""
    why = _not_compared(lock, now)
    changed = changes_of(lock, now) if lock is not None and now is not None else ()
    verdict = Verdict.BROKEN if changed else Verdict.UNCHECKED if why else Verdict.HELD
    check = Check(
        name="baseline",
        title="prefixes that are not as the baseline has them",
        unit="prefixes",
        limit=0,
        value=None if why else len(changed),
        verdict=verdict,
        where=path,
        why=why,
    )
    return check, changed


def _not_compared(lock: Lock | None, now: Lock | None) -> str:
    """Why nothing can be held against a baseline; empty where it can."""
    if now is None:
        return "no request has a body with tools or a system prompt"
    if lock is None:
        return "there is no baseline yet: --update writes it (in pytest --ctxdoc-update-baseline)"
    return ""
