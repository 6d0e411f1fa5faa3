"""The gate over a replayed log: whether its prefix is stable, and whether it keeps to the limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxdoc.diagnosis.causes import CAUSES, Cause, Confidence
from ctxdoc.gate.baseline import Lock, PrefixChange, lock_of
from ctxdoc.gate.limits import LIMITS, Limit, Value, limit_of
from ctxdoc.gate.outcome import (
    STABLE,
    Breach,
    Check,
    GateOutcome,
    Verdict,
    baseline_check,
    breaks,
    ids_of,
    where_of,
)
from ctxdoc.gate.settings import GateSettings
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import Miss, RequestCost, Waste
from ctxdoc.pricing.cost import whole_sum_of

SHOWN_PLACES = 3
"""Misses of each cause of which it is kept where they differ."""
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
    # A log of single requests has nothing that could have stayed the same: its baseline is the check then.
    has_one = not any(row.related for row in found.rows) and not stable.value
    checks = [*([] if has_one and settings.baseline else [stable]), *_limits(found, settings)]
    changed: tuple[PrefixChange, ...] = ()
    if settings.baseline is not None:
        check, changed = baseline_check(lock, now, settings.baseline)
        checks.append(check)
    return GateOutcome(
        subject=subject,
        checks=tuple(checks),
        breaches=tuple(breaches),
        changed=changed,
        lock=now if stable.verdict is not Verdict.BROKEN else None,
        baseline=settings.baseline or "",
        allowed=ids_of(settings.allow),
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
    """The check of the prefix."""
    broken = [breach for breach in breaches if breach.breaks]
    why = "" if broken else _unchecked(found, settings)
    verdict = Verdict.BROKEN if broken else Verdict.UNCHECKED if why else Verdict.HELD
    lost = {number for breach in broken for number in breach.requests}
    return Check(
        name=STABLE,
        title="requests whose prefix was lost to a cause that breaks the gate",
        unit="requests",
        limit=0,
        value=None if verdict is Verdict.UNCHECKED else len(lost),
        verdict=verdict,
        where=where_of(broken[0]) if broken else "",
        why=why,
    )


def _unchecked(found: Ledger, settings: GateSettings) -> str:
    """Why the log cannot show that its prefix is stable; empty where it can."""
    skipped = sum(not item.other for item in found.log.skipped)
    if skipped > len(found.rows):
        return f"most of the log could not be read: {skipped:,} records were skipped"
    if not any(row.related for row in found.rows):
        return "the log holds no two requests that should share a prefix"
    unknown = list(_misses_of_unknown_reason(found, ids_of(settings.allow)))
    if not unknown:
        return ""
    tokens = sum(miss.tokens or 0 for miss in unknown)
    return (
        f"{len(unknown):,} requests lost {tokens:,} cached tokens, and the log has no bodies that say "
        "why; record bodies, or limit them by --max-lost-tokens"
    )


def _misses_of_unknown_reason(found: Ledger, allowed: frozenset[str]) -> Iterator[Miss]:
    """Misses of which the log does not tell whether the client is to blame."""
    for miss in (row.miss for row in found.rows):
        if miss is None or miss.avoidable is not None or miss.cause in allowed:
            continue
        if CAUSES[miss.cause].unstable:
            yield miss


def _of_rows(found: Ledger, settings: GateSettings) -> Iterator[Breach]:
    """Each cause of misses and of waste that is or may be avoidable, and those that the settings name."""
    rows: dict[tuple[str, bool], list[RequestCost]] = {}
    named, varies = ids_of(settings.fail_on), _openings_vary(found)
    for row in found.rows:
        wrong = _wrong_of(row)
        if wrong is None or (_is_expected(row) and wrong.cause not in named):
            continue
        cause = CAUSES[wrong.cause]
        promised = _is_promised(row, varies=varies) and breaks(cause, settings)
        breaking = wrong.cause in named or promised
        rows.setdefault((wrong.cause, breaking), []).append(row)
    for (name, breaking), own in rows.items():
        yield _breach(CAUSES[name], own, breaking)


def _wrong_of(row: RequestCost) -> Miss | Waste | None:
    """What a request lost, or else wastes."""
    return row.miss or row.waste


def _is_expected(row: RequestCost) -> bool:
    """Whether a request lost what nobody could have kept."""
    return row.miss is not None and row.miss.avoidable is False


def _is_promised(row: RequestCost, *, varies: bool) -> bool:
    """Whether a request should have had the prefix that it lost. What two conversations share is nobody's
    promise, but where each of them begins with another time, id or order."""
    miss = row.miss
    if miss is None or not miss.avoidable or row.daily:
        return False
    # What the API refuses is no matter of what conversations share.
    refused = miss.tokens is None
    return refused or not row.opens or (varies and CAUSES[miss.cause].every_time)


def _openings_vary(found: Ledger) -> bool:
    """Whether conversations begin with another prefix each time, as with a clock at its head; a few that
    differ are agents of their own."""
    openings = [row for row in found.rows if row.opens and row.related]
    lost = [row for row in openings if row.miss is not None and CAUSES[row.miss.cause].every_time]
    return len(lost) > 1 and len(lost) >= MOST_OF * len(openings)


def _breach(cause: Cause, rows: Sequence[RequestCost], breaking: bool) -> Breach:
    """All requests of one cause; shown by the first of which it is known where it differs."""
    first = next((row for row in rows if row.difference is not None), rows[0])
    each = [found for found in map(_wrong_of, rows) if found is not None]
    shown, miss = _wrong_of(first) or each[0], first.miss
    return Breach(
        cause=cause,
        confidence=miss.confidence if miss else Confidence.CERTAIN,
        explanation=shown.explanation,
        breaks=breaking,
        source=first.request.source,
        line=first.request.line,
        difference=first.difference,
        requests=tuple(row.number for row in rows),
        pair=_pair_of(first),
        advice=miss.fix if miss else "",
        tokens=_tokens_of(each),
        cost=whole_sum_of(found.cost for found in each),
    )


def _tokens_of(each: Sequence[Miss | Waste]) -> int | None:
    """Tokens of all of them; None where none tells any."""
    known = [found.tokens for found in each if found.tokens is not None]
    return sum(known) if known else None


def _pair_of(row: RequestCost) -> tuple[int, int] | None:
    """Both requests as diagnose takes them; without bodies it has nothing to compare."""
    if row.compared is None or row.simulated is None or row.compared >= row.number:
        return None
    return row.compared, row.number


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
