"""The sessions of a log, the dearest first."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.totals import totals_of
from ctxdoc.outputs.numbers import counted, money_text
from ctxdoc.outputs.report import Notes, Part, Table
from ctxdoc.providers.rules import short_model_id
from ctxdoc.replay.sessions import short_name

SHOWN_SESSIONS = 6


def session_parts(replay: Ledger) -> Iterator[Part]:
    """A table of the sessions, where there are several."""
    sessions = replay.sessions
    if len(sessions) < 2:
        return
    totals = {s.id: totals_of(replay.rows_of(s)) for s in sessions}
    ranked = sorted(
        sessions, key=lambda s: (-(totals[s.id].priced.amount or Decimal(0)), s.requests[0])
    )
    rows = []
    for session in ranked[:SHOWN_SESSIONS]:
        own = replay.rows_of(session)
        start = own[0].request.at
        rows.append(
            (
                short_name(session.id),
                short_name(session.parent or "-"),
                f"{len(own):,}",
                money_text(totals[session.id].priced.amount),
                money_text(totals[session.id].lost.amount),
                start.strftime("%Y-%m-%d %H:%M") if start else "-",
                ", ".join(sorted({short_model_id(row.request.model) or "-" for row in own})),
            )
        )
    columns = ("session", "parent", "requests", "cost", "lost", "first", "models")
    yield Table("Sessions", columns, tuple(rows))
    if len(sessions) > SHOWN_SESSIONS:
        more = counted(len(sessions) - SHOWN_SESSIONS, "more session")
        yield Notes("", (f"… and {more} (--format json lists all)",))
