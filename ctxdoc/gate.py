"""The gate: whether a prefix is stable, and whether a log keeps to its limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.baseline import Changed, Lock, changes_of, lock_of, locked, marked_count
from ctxdoc.builder import Failed, Run, Surrounding
from ctxdoc.causes import CAUSES, Cause, Confidence, Group
from ctxdoc.diagnose import Drift, find_drift
from ctxdoc.diff import Place
from ctxdoc.limits import LIMITS, Limit, Value, limit_of
from ctxdoc.render import render
from ctxdoc.replay import Replay
from ctxdoc.rows import Row
from ctxdoc.settings import GateSettings

SHOWN_PLACES = 3
"""Misses of each cause of which it is kept where they differ."""


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
    place: Place | None = None
    requests: tuple[int, ...] = ()
    """Numbers of the requests in the log, from 1."""
    pair: tuple[int, int] | None = None
    """The first of them and the request it is compared with, the earlier one first."""
    surroundings: tuple[str, ...] = ()
    """Ids of what changed around a builder."""
    tokens: int | None = None
    cost: Decimal | None = None


class Gated(Struct, frozen=True, kw_only=True):
    """The outcome of the gate."""

    subject: str
    """What was looked at."""
    checks: tuple[Check, ...]
    breaches: tuple[Breach, ...]
    """Those that break it first."""
    changed: tuple[Changed, ...] = ()
    """Against the baseline."""
    lock: Lock | None = None
    """What the baseline would be now; None where nothing is stable."""
    baseline: str = ""
    """Path of the lock file."""
    updated: bool = False
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


def breaks(cause: Cause, settings: GateSettings) -> bool:
    """Whether the gate breaks on a cause."""
    if cause.id in {CAUSES[name].id for name in settings.fail_on}:
        return True
    return cause.unstable and cause.id not in {CAUSES[name].id for name in settings.allow}


STABLE = "stable_prefix"
PAUSE = "pause"


def gate_replay(
    found: Replay, settings: GateSettings, subject: str, lock: Lock | None = None
) -> Gated:
    """The gate over a replayed log; `lock` is the baseline, where there is one."""
    breaches = sorted(_of_rows(found, settings), key=lambda breach: not breach.breaks)
    now = lock_of(found.heads) if found.heads else None
    stable = _stable_of_log(found, breaches)
    has_one = sum(row.judged for row in found.rows) < 2
    checks = [*([] if has_one and settings.baseline else [stable]), *_limits(found, settings)]
    changed: tuple[Changed, ...] = ()
    if settings.baseline is not None:
        check, changed = _against(lock, now, settings.baseline)
        checks.append(check)
    return Gated(
        subject=subject,
        checks=tuple(checks),
        breaches=tuple(breaches),
        changed=changed,
        lock=now if stable.verdict is not Verdict.BROKEN else None,
        baseline=settings.baseline or "",
        not_checked=found.missing,
    )


def _stable_of_log(found: Replay, breaches: Sequence[Breach]) -> Check:
    judged = sum(row.judged for row in found.rows)
    broken = [breach for breach in breaches if breach.breaks]
    verdict = Verdict.BROKEN if broken else Verdict.HELD
    why = ""
    if judged < 2 and not broken:
        verdict = Verdict.UNCHECKED
        why = "the log holds no two requests that can be compared"
    return Check(
        name=STABLE,
        title="requests whose prefix was lost to a cause that breaks the gate",
        unit="requests",
        limit=0,
        value=None
        if verdict is Verdict.UNCHECKED
        else len({number for breach in broken for number in breach.requests}),
        verdict=verdict,
        where=_where(broken[0]) if broken else "",
        why=why,
    )


def _where(breach: Breach) -> str:
    line = f":{breach.line}" if breach.line else ""
    pointer = f" {breach.place.pointer}" if breach.place else ""
    return f"{breach.source}{line}{pointer}"


def _of_rows(found: Replay, settings: GateSettings) -> Iterator[Breach]:
    """Each cause of avoidable misses and of waste, and those that are named in the settings."""
    rows: dict[str, list[Row]] = {}
    named = {CAUSES[name].id for name in settings.fail_on}
    for row in found.rows:
        wrong = row.miss or row.waste
        if wrong is None:
            continue
        avoidable = row.miss.avoidable if row.miss is not None else True
        if avoidable or wrong.cause in named:
            rows.setdefault(wrong.cause, []).append(row)
    for name, own in rows.items():
        # A cause breaks the gate by what it lost: repeated history that is paid in full is told only.
        lost = any(row.miss is not None for row in own) or name in named
        yield _breach(CAUSES[name], own, breaks(CAUSES[name], settings) and lost)


def _breach(cause: Cause, rows: Sequence[Row], breaking: bool) -> Breach:
    first = next((row for row in rows if row.place is not None), rows[0])
    wrong = first.miss or first.waste
    assert wrong is not None
    each = [found for row in rows if (found := row.miss or row.waste)]
    costs = [found.cost for found in each]
    tokens = [found.tokens for found in each if found.tokens is not None]
    pair = None
    if first.compared is not None and first.simulated is not None and first.compared < first.number:
        pair = (first.compared, first.number)
    return Breach(
        cause=cause,
        confidence=first.miss.confidence if first.miss else Confidence.CERTAIN,
        explanation=wrong.explanation,
        breaks=breaking,
        source=first.request.source,
        line=first.request.line,
        place=first.place,
        requests=tuple(row.number for row in rows),
        pair=pair,
        tokens=sum(tokens) if tokens else None,
        cost=None if None in costs else sum((cost or Decimal(0) for cost in costs), Decimal(0)),
    )


def _limits(found: Replay, settings: GateSettings) -> Iterator[Check]:
    for limit in LIMITS:
        allowed = limit_of(limit, settings)
        if allowed is not None:
            yield _limited(limit, allowed, found)


def _limited(limit: Limit, allowed: Value, found: Replay) -> Check:
    measured = limit.measure(found)
    verdict, why = Verdict.UNCHECKED, "the log does not tell"
    if measured.value is not None:
        verdict = Verdict.HELD if limit.holds(measured.value, allowed) else Verdict.BROKEN
        why = ""
    return Check(
        name=limit.name,
        title=limit.title,
        unit=limit.unit,
        limit=allowed,
        value=measured.value,
        verdict=verdict,
        where=measured.where,
        why=why,
    )


def _against(lock: Lock | None, now: Lock | None, path: str) -> tuple[Check, tuple[Changed, ...]]:
    """The prefix now beside the baseline."""
    verdict, why = Verdict.HELD, ""
    changed: tuple[Changed, ...] = ()
    if now is None:
        verdict, why = Verdict.UNCHECKED, "no request has a body with tools or a system prompt"
    elif lock is None:
        verdict, why = (
            Verdict.UNCHECKED,
            "there is no baseline yet: --update writes it (in pytest --ctxdoc-update-baseline)",
        )
    else:
        changed = changes_of(lock, now)
        verdict = Verdict.BROKEN if changed else Verdict.HELD
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


def gate_runs(
    reference: Run,
    runs: Iterable[tuple[Surrounding, Run | Failed]],
    settings: GateSettings,
    subject: str,
    lock: Lock | None = None,
    not_checked: Sequence[str] = (),
) -> Gated:
    """The gate over the runs of a request builder, each in a changed surrounding."""
    found: dict[str, Breach] = {}
    failed: list[str] = []
    for surrounding, run in runs:
        if isinstance(run, Failed):
            failed.append(f"{surrounding.title}: {run.why}")
            continue
        for breach in _of_run(reference, run, surrounding, settings, subject):
            earlier = found.get(breach.cause.id)
            found[breach.cause.id] = _joined(earlier, breach) if earlier else breach
    breaches = sorted(found.values(), key=lambda breach: not breach.breaks)
    broken = [breach for breach in breaches if breach.breaks]
    names = dict.fromkeys(name for breach in broken for name in breach.surroundings)
    verdict = Verdict.BROKEN if broken else Verdict.UNCHECKED if failed else Verdict.HELD
    heads = [locked(prefix, marked_count(prefix)) for prefix in map(render, reference.requests)]
    now = lock_of(heads)
    checks = [
        Check(
            name=STABLE,
            title="surroundings in which the builder gave another prefix",
            unit="surroundings",
            limit=0,
            value=len(names),
            verdict=verdict,
            where=_where(broken[0]) if broken else "",
            why=f"the builder failed where surroundings were changed: {failed[0]}"
            if failed
            else "",
        )
    ]
    changed: tuple[Changed, ...] = ()
    if settings.baseline is not None:
        check, changed = _against(lock, now, settings.baseline)
        checks.append(check)
    return Gated(
        subject=subject,
        checks=tuple(checks),
        breaches=tuple(breaches),
        changed=changed,
        lock=None if broken else now,
        baseline=settings.baseline or "",
        not_checked=(*failed, *not_checked),
    )


def _of_run(
    reference: Run,
    run: Run,
    surrounding: Surrounding,
    settings: GateSettings,
    subject: str,
) -> Iterator[Breach]:
    if len(run.requests) != len(reference.requests):
        counts = f"{len(reference.requests)} bodies and then {len(run.requests)}"
        yield _built(COUNT, f"the builder printed {counts}", None, surrounding, settings, subject)
        return
    for before, after in zip(reference.requests, run.requests, strict=True):
        drift = find_drift(before, after)
        if drift is not None:
            explanation = drift.finding.match.explanation
            yield _built(drift.finding.cause, explanation, drift, surrounding, settings, subject)


COUNT = CAUSES["unexplained"]


def _built(
    cause: Cause,
    explanation: str,
    drift: Drift | None,
    surrounding: Surrounding,
    settings: GateSettings,
    subject: str,
) -> Breach:
    allowed = cause.id in {CAUSES[name].id for name in settings.allow}
    named = cause.id in {CAUSES[name].id for name in settings.fail_on}
    daily = drift is not None and drift.daily
    if daily:
        explanation += " Only the day is another one: sessions of one day share the prefix."
    return Breach(
        cause=cause,
        confidence=Confidence.CERTAIN if cause.group is not Group.HEALTHY else Confidence.LIKELY,
        explanation=explanation,
        # All of it is meant to be the same: whatever differs breaks the gate.
        breaks=named or not (allowed or daily),
        source=subject,
        line=None,
        place=drift.place if drift else None,
        surroundings=(surrounding.id,),
        tokens=drift.tokens if drift else None,
    )


def _joined(one: Breach, two: Breach) -> Breach:
    names = tuple(dict.fromkeys((*one.surroundings, *two.surroundings)))
    if PAUSE in names:
        # What differs with nothing changed says nothing of what was changed beside it.
        names = (PAUSE,)
    worse = max((one, two), key=lambda each: (each.breaks, each.tokens or 0))
    return replace(worse, surroundings=names)
