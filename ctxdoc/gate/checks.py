"""The gate: whether a prefix is stable, and whether a log keeps to its limits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.diagnosis.causes import CAUSES, Cause, Confidence
from ctxdoc.diagnosis.drift import Drift, find_drift
from ctxdoc.gate.baseline import Lock, PrefixChange, changes_of, lock_of
from ctxdoc.gate.limits import LIMITS, Limit, Value, limit_of
from ctxdoc.gate.process import Failed, Run
from ctxdoc.gate.settings import GateSettings
from ctxdoc.gate.surroundings import Surrounding
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.prompt.diff import Difference
from ctxdoc.prompt.render import render
from ctxdoc.tokens.fingerprint import locked, marked_count

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
    place: Difference | None = None
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


def breaks(cause: Cause, settings: GateSettings) -> bool:
    """Whether the gate breaks on a cause."""
    if cause.id in {CAUSES[name].id for name in settings.fail_on}:
        return True
    return cause.unstable and cause.id not in {CAUSES[name].id for name in settings.allow}


STABLE = "stable_prefix"
PAUSE = "pause"
EACH_TIME = frozenset(
    {"timestamp_in_prefix", "request_id_in_prefix", "tool_order", "json_key_order"}
)
"""Causes that tell of one agent even when every conversation begins with another prefix."""
MOST_OF = 0.8
"""Share of the conversations of a log that begin with another prefix than any before, from which on that
is no matter of several agents."""


def gate_replay(
    found: Ledger, settings: GateSettings, subject: str, lock: Lock | None = None
) -> GateOutcome:
    """The gate over a replayed log; `lock` is the baseline, where there is one."""
    breaches = sorted(_of_rows(found, settings), key=lambda breach: not breach.breaks)
    now = lock_of(found.heads) if found.heads else None
    stable = _stable_of_log(found, breaches, settings)
    has_one = not any(row.related for row in found.rows) and not stable.value
    checks = [*([] if has_one and settings.baseline else [stable]), *_limits(found, settings)]
    changed: tuple[PrefixChange, ...] = ()
    if settings.baseline is not None:
        check, changed = _against(lock, now, settings.baseline)
        checks.append(check)
    return GateOutcome(
        subject=subject,
        checks=tuple(checks),
        breaches=tuple(breaches),
        changed=changed,
        lock=now if stable.verdict is not Verdict.BROKEN else None,
        baseline=settings.baseline or "",
        allowed=frozenset(CAUSES[name].id for name in settings.allow),
        not_checked=(*_unread(found), *found.missing),
    )


def _unread(found: Ledger) -> Iterator[str]:
    """What was passed over, where it was meant to be a request."""
    skipped = [item for item in found.log.skipped if not item.other]
    if skipped:
        first = skipped[0]
        records = "1 record was" if len(skipped) == 1 else f"{len(skipped):,} records were"
        yield f"{records} skipped, the first: {first.source}, line {first.line}: {first.reason}"


def _stable_of_log(found: Ledger, breaches: Sequence[Breach], settings: GateSettings) -> Check:
    broken = [breach for breach in breaches if breach.breaks]
    why = _unchecked(found, settings)
    verdict = Verdict.BROKEN if broken else Verdict.UNCHECKED if why else Verdict.HELD
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
        why="" if broken else why,
    )


def _unchecked(found: Ledger, settings: GateSettings) -> str:
    """Why the log cannot show that its prefix is stable; empty where it can."""
    skipped = sum(not item.other for item in found.log.skipped)
    if skipped > len(found.rows):
        return f"most of the log could not be read: {skipped:,} records were skipped"
    if not any(row.related for row in found.rows):
        return "the log holds no two requests that should share a prefix"
    allowed = {CAUSES[name].id for name in settings.allow}
    unknown = [
        row
        for row in found.rows
        if row.miss is not None
        and row.miss.avoidable is None
        and CAUSES[row.miss.cause].unstable
        and row.miss.cause not in allowed
    ]
    if unknown:
        tokens = sum(row.miss.tokens or 0 for row in unknown if row.miss)
        return (
            f"{len(unknown):,} requests lost {tokens:,} cached tokens, and the log has no bodies that say "
            "why; record bodies, or limit them by --max-lost-tokens"
        )
    return ""


def _where(breach: Breach) -> str:
    line = f":{breach.line}" if breach.line else ""
    pointer = f" {breach.place.pointer}" if breach.place else ""
    return f"{breach.source}{line}{pointer}"


def _of_rows(found: Ledger, settings: GateSettings) -> Iterator[Breach]:
    """Each cause of misses and of waste that is or may be avoidable, and those that the settings name."""
    rows: dict[tuple[str, bool], list[RequestCost]] = {}
    named = {CAUSES[name].id for name in settings.fail_on}
    varies = _openings_vary(found)
    for row in found.rows:
        wrong = row.miss or row.waste
        if wrong is None:
            continue
        avoidable = row.miss.avoidable if row.miss is not None else True
        if avoidable is False and wrong.cause not in named:
            continue
        promised = row.miss is not None and avoidable is True and not row.daily
        # What the API refuses is no matter of what conversations share.
        refused = row.miss is not None and row.miss.tokens is None
        promised &= refused or not row.opens or (varies and wrong.cause in EACH_TIME)
        breaking = wrong.cause in named or (promised and breaks(CAUSES[wrong.cause], settings))
        rows.setdefault((wrong.cause, breaking), []).append(row)
    for (name, breaking), own in rows.items():
        yield _breach(CAUSES[name], own, breaking)


def _openings_vary(found: Ledger) -> bool:
    """Whether conversations begin with another prefix each time, as with a clock at its head; a few that
    differ are agents of their own."""
    openings = [row for row in found.rows if row.opens and row.related]
    lost = [row for row in openings if row.miss is not None and row.miss.cause in EACH_TIME]
    return len(lost) > 1 and len(lost) >= MOST_OF * len(openings)


def _breach(cause: Cause, rows: Sequence[RequestCost], breaking: bool) -> Breach:
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
        advice=first.miss.fix if first.miss else "",
        tokens=sum(tokens) if tokens else None,
        cost=None if None in costs else sum((cost or Decimal(0) for cost in costs), Decimal(0)),
    )


def _limits(found: Ledger, settings: GateSettings) -> Iterator[Check]:
    for limit in LIMITS:
        allowed = limit_of(limit, settings)
        if allowed is not None:
            yield _limited(limit, allowed, found)


def _limited(limit: Limit, allowed: Value, found: Ledger) -> Check:
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


def _against(
    lock: Lock | None, now: Lock | None, path: str
) -> tuple[Check, tuple[PrefixChange, ...]]:
    """The prefix now beside the baseline."""
    verdict, why = Verdict.HELD, ""
    changed: tuple[PrefixChange, ...] = ()
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
    found: dict[str, Breach] = {}
    failed: dict[str, str] = {}
    for surrounding, run in runs:
        if isinstance(run, Failed):
            failed[surrounding.id] = f"{surrounding.title}: {run.why}"
            continue
        for breach in _of_run(reference, run, surrounding, subject):
            earlier = found.get(breach.cause.id)
            found[breach.cause.id] = _joined(earlier, breach) if earlier else breach
    settled = [_settled(breach, settings) for breach in found.values()]
    breaches = sorted(settled, key=lambda breach: not breach.breaks)
    broken = [breach for breach in breaches if breach.breaks]
    names = dict.fromkeys(name for breach in broken for name in breach.surroundings)
    verdict = Verdict.BROKEN if broken else Verdict.UNCHECKED if failed else Verdict.HELD
    prefixes = [render(request) for request in reference.requests]
    now = lock_of(locked(prefix, marked_count(prefix)) for prefix in prefixes)
    first = next(iter(failed.items()), None)
    checks = [
        Check(
            name=STABLE,
            title="surroundings in which the builder gave another prefix",
            unit="surroundings",
            limit=0,
            value=len(names),
            verdict=verdict,
            where=_where(broken[0]) if broken else "",
            why=f"the builder failed elsewhere ({first[1]}); --skip {first[0]} leaves that out"
            if first and not broken
            else "",
        )
    ]
    changed: tuple[PrefixChange, ...] = ()
    if settings.baseline is not None:
        check, changed = _against(lock, now, settings.baseline)
        checks.append(check)
    unmarked = () if all(prefix.breakpoints for prefix in prefixes) else (UNMARKED,)
    return GateOutcome(
        subject=subject,
        checks=tuple(checks),
        breaches=tuple(breaches),
        changed=changed,
        lock=None if broken else now,
        baseline=settings.baseline or "",
        allowed=frozenset(CAUSES[name].id for name in settings.allow),
        not_checked=(*unmarked, *failed.values(), *not_checked),
    )


def _of_run(
    reference: Run,
    run: Run,
    surrounding: Surrounding,
    subject: str,
) -> Iterator[Breach]:
    if len(run.requests) != len(reference.requests):
        counts = f"{len(reference.requests)} bodies and then {len(run.requests)}"
        yield _built(UNKNOWN, f"the builder gave {counts}", None, surrounding, subject)
        return
    for before, after in zip(reference.requests, run.requests, strict=True):
        drift = find_drift(before, after)
        if drift is None:
            continue
        cause, explanation = drift.finding.cause, drift.finding.match.explanation
        if cause.id not in OF_BUILDERS:
            # What is known of sessions says nothing of a program that was only started again.
            cause = UNKNOWN
            explanation = f"{drift.place.pointer} differs, and nothing else was changed than this"
        yield _built(cause, explanation, drift, surrounding, subject)


UNKNOWN = CAUSES["unexplained"]
OF_BUILDERS = frozenset(
    {
        "tool_order", "tool_set_changed", "json_key_order", "json_value_encoding", "text_normalization",
        "timestamp_in_prefix", "request_id_in_prefix", "environment_state_in_prefix",
        "tool_definition_changed", "tool_call_id_regenerated", "tool_result_order", "model_changed",
        "tool_choice_changed", "thinking_settings_changed", "effort_changed", "output_format_changed",
        "server_feature_toggled", "image_changed",
    }
)  # fmt: skip
"""Causes that hold for two runs of a program as they do for two requests of a session."""


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
        place=drift.place if drift else None,
        surroundings=(surrounding.id,),
        tokens=drift.tokens if drift else None,
        daily=drift is not None and drift.daily,
        advice=surrounding.advice,
    )


def _settled(breach: Breach, settings: GateSettings) -> Breach:
    """Whether a difference breaks the gate: all of it is meant to be the same, but for the day."""
    allowed = breach.cause.id in {CAUSES[name].id for name in settings.allow}
    named = breach.cause.id in {CAUSES[name].id for name in settings.fail_on}
    # A clock that is an hour off has the same day.
    daily = breach.daily and not {PAUSE, "clock"} & set(breach.surroundings)
    explanation = breach.explanation
    if daily:
        explanation += " Only the day is another one: sessions of one day share the prefix."
    return replace(
        breach, breaks=named or not (allowed or daily), daily=daily, explanation=explanation
    )


def _joined(one: Breach, two: Breach) -> Breach:
    names = tuple(dict.fromkeys((*one.surroundings, *two.surroundings)))
    if PAUSE in names:
        # What differs with nothing changed says nothing of what was changed beside it.
        names = (PAUSE,)
    worse = max((one, two), key=lambda each: (not each.daily, each.tokens or 0))
    advice = one.advice if PAUSE in one.surroundings or PAUSE not in names else two.advice
    return replace(worse, surroundings=names, daily=one.daily and two.daily, advice=advice)
