"""The sessions of a log, the dearest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.ledger.totals import lost_of, priced_of
from ctxdoc.outputs.numbers import counted, money_text
from ctxdoc.outputs.report import Notes, Part, Table
from ctxdoc.providers.rules import short_model_id
from ctxdoc.replay.sessions import Session, short_name

SHOWN_SESSIONS = 6


def session_parts(replay: Ledger) -> Iterator[Part]:
    """A table of the sessions, where there are several."""
    sessions = replay.sessions
    if len(sessions) < 2:
        return
    costs = {session.id: priced_of(replay.rows_of(session)).amount for session in sessions}

    def rank(session: Session) -> tuple[Decimal, int]:
        return -(costs[session.id] or Decimal(0)), session.requests[0]

    shown = sorted(sessions, key=rank)[:SHOWN_SESSIONS]
    rows = tuple(_cells(each, replay.rows_of(each), costs[each.id]) for each in shown)
    columns = ("session", "parent", "requests", "cost", "lost", "first", "models")
    yield Table("Sessions", columns, rows)
    if len(sessions) > SHOWN_SESSIONS:
        more = counted(len(sessions) - SHOWN_SESSIONS, "more session")
        yield Notes("", (f"… and {more} (--format json lists all)",))


def _cells(session: Session, rows: Sequence[RequestCost], cost: Decimal | None) -> tuple[str, ...]:
    start = rows[0].request.at
    models = {short_model_id(row.request.model) or "-" for row in rows}
    return (
        short_name(session.id),
        short_name(session.parent or "-"),
        f"{len(rows):,}",
        money_text(cost),
        money_text(lost_of(rows).amount),
        start.strftime("%Y-%m-%d %H:%M") if start else "-",
        ", ".join(sorted(models)),
    )
