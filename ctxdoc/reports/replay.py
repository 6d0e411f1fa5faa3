"""The report of a log: what was read, in which sessions, with which counters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from ctxdoc.canonical import Json
from ctxdoc.model import Log, Request, Skipped, Usage
from ctxdoc.pricing import price, tariff_of
from ctxdoc.reports.base import (
    Fields,
    Headline,
    Notes,
    Part,
    Report,
    Row,
    Table,
    money_json,
    money_text,
)
from ctxdoc.reports.traits import missing_of
from ctxdoc.sessions import Session, part

SCHEMA = "ctxdoc/replay/1"
SHOWN_SESSIONS = 12
SHOWN_SKIPPED = 5
PARTS = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output")


def replay_report(log: Log) -> Report:
    """Totals, sessions and what was passed over; every request is in the data."""
    sessions = part(log.requests)
    return Report(parts=tuple(_parts(log, sessions)), data=replay_json(log, sessions))


def _parts(log: Log, sessions: Sequence[Session]) -> Iterator[Part]:
    text = f"{_number(len(log.requests), 'request')} in {_number(len(sessions), 'session')}"
    read = f"{_number(log.files, 'file')}, {_number(log.records, 'record')}"
    yield Headline("READ", "plain", text, f"{read}, {', '.join(log.formats)}")
    yield Fields((Row("Tokens", _tokens(log.requests)), Row("Money", _money(log.requests))))
    yield Table(
        "Sessions",
        ("session", "parent", "requests", "first", "models"),
        tuple(_session_row(session, log.requests) for session in sessions[:SHOWN_SESSIONS]),
    )
    if len(sessions) > SHOWN_SESSIONS:
        yield Notes("", (f"… and {len(sessions) - SHOWN_SESSIONS:,} more sessions",))
    skipped = [item for item in log.skipped if not item.other]
    if skipped:
        yield Notes(f"Skipped: {len(skipped):,}", tuple(_reasons(skipped)))
    other = [item for item in log.skipped if item.other]
    if other:
        yield Notes(f"No model call: {_number(len(other), 'record')}", tuple(_reasons(other)))
    missing = missing_of(log)
    if missing:
        yield Notes("Not checked, because", missing)
    if sum(request.body is not None for request in log.requests) > 1:
        yield Notes("More", ("ctxdoc diagnose LOG says why a request read less than it could",))


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _tokens(requests: Sequence[Request]) -> str:
    totals, counted = _totals(requests), _counted(requests)
    if not counted:
        return "- (no request of the log has counters)"
    parts = (
        f"read {totals['cache_read']:,}",
        f"written {totals['cache_write_5m'] + totals['cache_write_1h']:,}",
        f"uncached {totals['uncached']:,}",
    )
    without = len(requests) - counted
    rest = f"; {_number(without, 'request')} without counters" if without else ""
    output = f"output {totals['output']:,} (reported{rest})"
    return f"input {totals['input']:,}: {' · '.join(parts)}; {output}"


def _money(requests: Sequence[Request]) -> str:
    costs = [_cost(request) for request in requests if request.usage is not None]
    known = [cost for cost in costs if cost is not None]
    unpriced = len(costs) - len(known)
    text = money_text(sum(known, Decimal(0)) if known else None)
    return text + (f", and {unpriced:,} requests of unpriced models" if unpriced else "")


def _cost(request: Request) -> Decimal | None:
    """What a request cost, its compaction passes included."""
    tariff = tariff_of(request)
    costs = [price(usage, tariff) for usage in _usages(request)]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if costs and len(known) == len(costs) else None


def _session_row(session: Session, requests: Sequence[Request]) -> tuple[str, ...]:
    own = [requests[number] for number in session.requests]
    start = own[0].at
    return (
        session.id,
        session.parent or "-",
        f"{len(own):,}",
        start.strftime("%Y-%m-%d %H:%M") if start else "-",
        ", ".join(sorted({request.model or "-" for request in own})),
    )


def _reasons(skipped: Iterable[Skipped]) -> Iterator[str]:
    reasons: dict[str, int] = {}
    firsts: dict[str, str] = {}
    for item in skipped:
        reasons[item.reason] = reasons.get(item.reason, 0) + 1
        firsts.setdefault(item.reason, f"{item.source}, line {item.line}")
    ranked = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    for reason in ranked[:SHOWN_SKIPPED]:
        yield f"{reasons[reason]:,} x {reason} (first: {firsts[reason]})"
    if len(ranked) > SHOWN_SKIPPED:
        yield f"… and {len(ranked) - SHOWN_SKIPPED:,} more reasons"


def _counted(requests: Iterable[Request]) -> int:
    """How many requests have counters."""
    return sum(request.usage is not None for request in requests)


def _totals(requests: Iterable[Request]) -> dict[str, int]:
    """Sums over all requests and their compaction passes, which no other counter holds (facts 1.9)."""
    totals = dict.fromkeys((*PARTS, "input"), 0)
    for request in requests:
        for usage in _usages(request):
            for name in totals:
                totals[name] += getattr(usage, name)
    return totals


def _usages(request: Request) -> tuple[Usage, ...]:
    """The counters of a request and of its compaction passes; empty where it has none."""
    if request.response is None or request.usage is None:
        return ()
    return (request.usage, *request.response.iterations)


def replay_json(log: Log, sessions: Sequence[Session]) -> dict[str, Json]:
    """The document `ctxdoc/replay/1`, as far as it rests on what was read."""
    names = {number: session.id for session in sessions for number in session.requests}
    totals = _totals(log.requests)
    costs = [_cost(r) for r in log.requests if r.usage is not None]
    known = [cost for cost in costs if cost is not None]
    counted = _counted(log.requests)
    return {
        "schema": SCHEMA,
        "log": {
            "files": log.files,
            "records": log.records,
            "requests": len(log.requests),
            "sessions": len(sessions),
            "skipped": [
                {"source": s.source, "line": s.line, "reason": s.reason, "other": s.other}
                for s in log.skipped
            ],
            "formats": list(log.formats),
            "traits": [str(trait) for trait in sorted(log.traits)],
        },
        "totals": {
            **{name: totals[name] if counted else None for name in (*PARTS[:4], "input", "output")},
            "hit_ratio": _ratio(totals["cache_read"], totals["input"]),
            "cost": money_json(sum(known, Decimal(0))) if known else None,
            "unpriced_requests": len(costs) - len(known),
            "requests_with_counters": counted,
        },
        "sessions": [
            {
                "id": session.id,
                "parent": session.parent,
                "requests": len(session.requests),
                "models": [*sorted({log.requests[n].model for n in session.requests})],
            }
            for session in sessions
        ],
        "requests": [_request_json(r, names[n]) for n, r in enumerate(log.requests)],
        "not_checked": list(missing_of(log)),
    }


def _ratio(read: int, whole: int) -> str | None:
    """A share as a decimal string of four places, or null where there is no whole."""
    return f"{Decimal(read) / whole:.4f}" if whole else None


def _request_json(request: Request, session: str) -> dict[str, Json]:
    usage = request.usage
    return {
        "id": request.id,
        "source": request.source,
        "line": request.line,
        "at": request.at.isoformat() if request.at else None,
        "model": request.model or None,
        "session": session,
        "reported": _usage_json(usage) if usage else None,
        "contradiction": (usage.contradiction or None) if usage else None,
        "compaction": [
            _usage_json(passed)
            for passed in (request.response.iterations if request.response else ())
        ],
        "cost": money_json(_cost(request)),
        "notes": list(request.notes),
    }


def _usage_json(usage: Usage) -> dict[str, Json]:
    return {name: getattr(usage, name) for name in PARTS}
