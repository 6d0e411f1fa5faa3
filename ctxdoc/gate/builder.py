"""The gate over the runs of a request builder, each in a changed surrounding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec.structs import replace

from ctxdoc.diagnosis.causes import CAUSES, Cause, Confidence
from ctxdoc.diagnosis.drift import Drift, find_drift
from ctxdoc.gate.baseline import Lock, PrefixChange, lock_of
from ctxdoc.gate.outcome import (
    STABLE,
    Breach,
    Check,
    GateOutcome,
    Verdict,
    baseline_check,
    ids_of,
    where_of,
)
from ctxdoc.gate.process import Failed, Run
from ctxdoc.gate.settings import GateSettings
from ctxdoc.gate.surroundings import Surrounding
from ctxdoc.prompt.render import render
from ctxdoc.tokens.fingerprint import locked, marked_count

PAUSE = "pause"
"""The surrounding in which nothing is changed but the time."""
UNMARKED = (
    "the request has no breakpoint: nothing of it would be cached, and all of it was compared"
)


def gate_runs(
    reference: Run,
    runs: Iterable[tuple[Surrounding, Run | Failed]],
    settings: GateSettings,
    subject: str,
    lock: Lock | None = None,
    not_checked: Sequence[str] = (),
) -> GateOutcome:
    """The gate over the runs of a request builder, each in a changed surrounding."""
    found, failed = _differences(reference, runs, subject)
    settled = [_settled(breach, settings) for breach in found]
    breaches = sorted(settled, key=lambda breach: not breach.breaks)
    broken = [breach for breach in breaches if breach.breaks]
    prefixes = [render(request) for request in reference.requests]
    now = lock_of(locked(prefix, marked_count(prefix)) for prefix in prefixes)
    checks = [_stable_of_builder(broken, failed)]
    changed: tuple[PrefixChange, ...] = ()
    if settings.baseline is not None:
        check, changed = baseline_check(lock, now, settings.baseline)
        checks.append(check)
    unmarked = () if all(prefix.breakpoints for prefix in prefixes) else (UNMARKED,)
    return GateOutcome(
        subject=subject,
        checks=tuple(checks),
        breaches=tuple(breaches),
        changed=changed,
        lock=None if broken else now,
        baseline=settings.baseline or "",
        allowed=ids_of(settings.allow),
        not_checked=(*unmarked, *failed.values(), *not_checked),
    )


def _differences(
    reference: Run, runs: Iterable[tuple[Surrounding, Run | Failed]], subject: str
) -> tuple[list[Breach], dict[str, str]]:
    """What differs from the first run, one breach a cause; and the surroundings in which the builder
    failed, with why."""
    found: dict[str, Breach] = {}
    failed: dict[str, str] = {}
    for surrounding, run in runs:
        if isinstance(run, Failed):
            failed[surrounding.id] = f"{surrounding.title}: {run.why}"
            continue
        for breach in _of_run(reference, run, surrounding, subject):
            earlier = found.get(breach.cause.id)
            found[breach.cause.id] = _joined(earlier, breach) if earlier else breach
    return list(found.values()), failed


def _stable_of_builder(broken: Sequence[Breach], failed: Mapping[str, str]) -> Check:
    """The check of the prefix."""
    names = dict.fromkeys(name for breach in broken for name in breach.surroundings)
    verdict = Verdict.BROKEN if broken else Verdict.UNCHECKED if failed else Verdict.HELD
    why = ""
    if verdict is Verdict.UNCHECKED:
        surrounding, reason = next(iter(failed.items()))
        why = f"the builder failed elsewhere ({reason}); --skip {surrounding} leaves that out"
    return Check(
        name=STABLE,
        title="surroundings in which the builder gave another prefix",
        unit="surroundings",
        limit=0,
        value=len(names),
        verdict=verdict,
        where=where_of(broken[0]) if broken else "",
        why=why,
    )


def _of_run(
    reference: Run,
    run: Run,
    surrounding: Surrounding,
    subject: str,
) -> Iterator[Breach]:
    """What a run gave otherwise than the first one."""
    if len(run.requests) != len(reference.requests):
        counts = f"{len(reference.requests)} bodies and then {len(run.requests)}"
        yield _built(_unknown(), f"the builder gave {counts}", None, surrounding, subject)
        return
    for before, after in zip(reference.requests, run.requests, strict=True):
        drift = find_drift(before, after)
        if drift is None:
            continue
        cause, explanation = drift.finding.cause, drift.finding.match.explanation
        if not cause.holds_for_builders:
            # What is known of sessions says nothing of a program that was only started again.
            cause = _unknown()
            explanation = (
                f"{drift.difference.pointer} differs, and nothing else was changed than this"
            )
        yield _built(cause, explanation, drift, surrounding, subject)


@cache
def _unknown() -> Cause:
    """The cause where nothing more is known."""
    return next(cause for cause in CAUSES if cause.fallback)


def _built(
    cause: Cause, explanation: str, drift: Drift | None, surrounding: Surrounding, subject: str
) -> Breach:
    return Breach(
        cause=cause,
        confidence=Confidence.CERTAIN,
        explanation=explanation,
        breaks=True,
        source=subject,
        line=None,
        difference=drift.difference if drift else None,
        surroundings=(surrounding.id,),
        tokens=drift.tokens if drift else None,
        daily=drift is not None and drift.daily,
        advice=surrounding.advice,
    )


def _settled(breach: Breach, settings: GateSettings) -> Breach:
    """Whether a difference breaks the gate: all of it is meant to be the same, but for the day."""
    allowed = breach.cause.id in ids_of(settings.allow)
    named = breach.cause.id in ids_of(settings.fail_on)
    # A clock that is an hour off has the same day.
    daily = breach.daily and not {PAUSE, "clock"} & set(breach.surroundings)
    explanation = breach.explanation
    if daily:
        explanation += " Only the day is another one: sessions of one day share the prefix."
    return replace(
        breach, breaks=named or not (allowed or daily), daily=daily, explanation=explanation
    )


def _joined(one: Breach, two: Breach) -> Breach:
    """Two breaches of one cause as one."""
    names = tuple(dict.fromkeys((*one.surroundings, *two.surroundings)))
    if PAUSE in names:
        # What differs with nothing changed says nothing of what was changed beside it.
        names = (PAUSE,)
    worse = max((one, two), key=lambda each: (not each.daily, each.tokens or 0))
    advice = one.advice if PAUSE in one.surroundings or PAUSE not in names else two.advice
    return replace(worse, surroundings=names, daily=one.daily and two.daily, advice=advice)
