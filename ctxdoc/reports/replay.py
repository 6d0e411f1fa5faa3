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
    requests = len(log.requests)
    text = f"{requests:,} requests in {len(sessions):,} sessions"
    under = f"{log.files:,} files, {log.records:,} records, {', '.join(log.formats)}"
    yield Headline("READ", "plain", text, under)
    totals = _totals(log.requests)
    yield Fields(
        (
            Row(
                "Tokens",
                f"input {totals['input']:,}: read {totals['cache_read']:,} · written "
                f"{totals['cache_write_5m'] + totals['cache_write_1h']:,} · uncached "
                f"{totals['uncached']:,}; output {totals['output']:,} (reported)",
            ),
            Row("Money", _money(log.requests)),
        )
    )
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
        yield Notes(f"No model call: {len(other):,} other records", tuple(_reasons(other)))
    missing = missing_of(log)
    if missing:
        yield Notes("Not checked, because", missing)


def _money(requests: Sequence[Request]) -> str:
    costs = [_cost(request) for request in requests if request.usage is not None]
    known = [cost for cost in costs if cost is not None]
    unpriced = len(costs) - len(known)
    text = money_text(sum(known, Decimal(0)) if known else None)
    return text + (f", and {unpriced:,} requests of unpriced models" if unpriced else "")


def _cost(request: Request) -> Decimal | None:
    """What a request cost, its compaction passes included."""
    if request.usage is None:
        return None
    tariff = tariff_of(request)
    passes = request.response.iterations if request.response else ()
    costs = [price(usage, tariff) for usage in (request.usage, *passes)]
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None


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


def _totals(requests: Iterable[Request]) -> dict[str, int]:
    totals = dict.fromkeys((*PARTS, "input"), 0)
    for request in requests:
        if request.usage is not None:
            for name in totals:
                totals[name] += getattr(request.usage, name)
    return totals


def replay_json(log: Log, sessions: Sequence[Session]) -> dict[str, Json]:
    """The document `ctxdoc/replay/1`, as far as it rests on what was read."""
    names = {number: session.id for session in sessions for number in session.requests}
    totals = _totals(log.requests)
    costs = [_cost(r) for r in log.requests if r.usage is not None]
    known = [cost for cost in costs if cost is not None]
    input_tokens = totals["input"]
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
            **{name: totals[name] for name in PARTS[:4]},
            "input": input_tokens,
            "output": totals["output"],
            "hit_ratio": _ratio(totals["cache_read"], input_tokens),
            "cost": money_json(sum(known, Decimal(0))) if known else None,
            "unpriced_requests": len(costs) - len(known),
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
