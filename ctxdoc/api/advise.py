"""`ctxdoc.advise`: whether to go on with a session, compact it, hand it off, or wait."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from msgspec import Struct

from ctxdoc.api.outcome import Outcome, collector_paused, noting, skipped_lines
from ctxdoc.api.read import Progress, Source, check_model, read
from ctxdoc.api.rows import Row, rows_of
from ctxdoc.api.simulate import check_one_source
from ctxdoc.errors import InputError
from ctxdoc.outputs.report import Report
from ctxdoc.reports.advise import advise_report, way_rows
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.history.from_numbers import made_session
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.outlook import Outlook, by_clock, latest_session, outlook_of
from ctxdoc.simulation.question import shape_of

if TYPE_CHECKING:
    from ctxdoc.live.count_tokens import TokenCounter

MADE_UP = "made-up session"


class AdviceTotals(Struct, frozen=True, kw_only=True):
    """The advice in one line; USD."""

    advice: str
    """go_on, compact, handoff or wait."""
    calls: int
    """Projected ones."""
    going_on: Decimal | None
    advised: Decimal | None


class AdviceOutcome(Outcome, frozen=True, kw_only=True):
    """What going on with a session costs, and what else could be done."""

    outlook: Outlook

    @property
    def totals(self) -> AdviceTotals:
        """The advice, and what it saves."""
        found = self.outlook
        return AdviceTotals(
            advice=found.best.id,
            calls=found.calls,
            going_on=found.going_on.total,
            advised=found.best.total,
        )

    @property
    def rows(self) -> list[Row]:
        """The ways, going on first."""
        return rows_of(way_rows(self.outlook))

    @property
    def findings(self) -> list[Row]:
        """Nothing is wrong with a session in hand."""
        return []

    def report(self, *, excerpts: bool = True) -> Report:
        """What all outputs write."""
        del excerpts
        return advise_report(self.outlook)


def advise(
    *logs: Source,
    session: str = "",
    now: datetime | str | None = None,
    calls: int | None = None,
    summary: int | None = None,
    prefix: int | None = None,
    per_turn: int | None = None,
    turns: int | None = None,
    gap: float | None = None,
    model: str = "",
    strict: bool = False,
    count_tokens: bool | TokenCounter = False,
    progress: Progress | None = None,
) -> AdviceOutcome:
    """What to do with the session that was worked on last, or the one that is named: go on, compact now, hand
    off to a new session with a summary, or wait until the cache is cold, when shortening costs no rewrite.

    The session is projected over `calls` further calls, as many as there were by default, and each way is
    simulated. `now` is a time, the clock's by default: it decides whether the cache is still warm. `summary` is
    tokens. A made-up session is given by its numbers, as for `simulate`.

    Raises InputError for what cannot be read or makes no session, NoRequestError where nothing can be
    simulated.

        found = ctxdoc.advise("agent.jsonl")
        found.totals.advice, found.outlook.best.pays_after
    """
    check_model(model)
    numbers = {"prefix": prefix, "per_turn": per_turn, "turns": turns, "gap": gap}
    given = {name: number for name, number in numbers.items() if number is not None}
    check_one_source(logs, given)
    _check_counts(calls, summary)
    at = _time_of(now)
    warnings: tuple[str, ...] = ()
    with collector_paused():
        if given:
            name, found = MADE_UP, made_session(shape_of(given, model))
        else:
            log = read(
                *logs,
                model=model,
                strict=strict,
                count_tokens=count_tokens,
                condense=True,
                progress=progress,
            )
            warnings = skipped_lines(log)
            with noting(warnings):
                name = session or latest_session(log)
                found = recorded_session(log, only=name)
        outlook = outlook_of(found, name, now=at or _now_of(found), calls=calls, summary=summary)
    return AdviceOutcome(outlook=outlook, warnings=warnings)


def _check_counts(calls: int | None, summary: int | None) -> None:
    for option, value, most in (("--calls", calls, 5_000), ("--summary", summary, 10**7)):
        if value is not None and not 1 <= value <= most:
            raise InputError(f"{option} is a number from 1 to {most:,}", f"write {option} 40")


def _time_of(now: datetime | str | None) -> datetime | None:
    """A time as it was given; one without a zone is UTC.

    Raises InputError for what is none.
    """
    if isinstance(now, datetime):
        return now if now.tzinfo else now.replace(tzinfo=UTC)
    if not now:
        return None
    try:
        found = datetime.fromisoformat(now)
    except ValueError as error:
        raise InputError(f"--now '{now}' is no time", "write --now 2026-11-02T09:30:00Z") from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _now_of(session: Session) -> datetime | None:
    """The time of the clock, but never before the last call: made-up sessions and clocks that differ."""
    last = session.calls[-1].at
    if last is None:
        return None
    # A made-up session has just been going on.
    return max(last, by_clock()) if session.calls[-1].reported or session.has_bodies else last
