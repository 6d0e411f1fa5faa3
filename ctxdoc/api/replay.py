"""`ctxdoc.replay`: what a log cost, how it grows, what was missed."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ctxdoc.api.outcome import Outcome, collector_paused, drawn, skipped_lines
from ctxdoc.api.read import Progress, Source, names_of, read
from ctxdoc.api.rows import Row, named, rows_of, rows_of_records
from ctxdoc.errors import InputError, NoRequestError
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.ledger import replay as replay_log
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.ledger.totals import Totals, totals_of
from ctxdoc.outputs.report import Report
from ctxdoc.reports.chart import chart_of
from ctxdoc.reports.json.replay import causes_json
from ctxdoc.reports.json.request import replay_records
from ctxdoc.reports.replay import replay_report
from ctxdoc.request.log import Log

if TYPE_CHECKING:
    from ctxdoc.live.count_tokens import TokenCounter

SEE_FORMATS = "'ctxdoc formats' lists what can be read"


class ReplayOutcome(Outcome, frozen=True, kw_only=True, dict=True):
    """What each request read, lost and cost."""

    ledger: Ledger
    logs: tuple[str, ...]
    """As they were given, for the commands that the report shows."""

    @cached_property
    def totals(self) -> Totals:
        """Every sum with what it rests on; `cost`, `lost`, `waste` and the like have their USD in `amount`."""
        return totals_of(self.ledger.rows)

    @cached_property
    def rows(self) -> list[Row]:
        """The requests in the order of the log, with the columns of `--format csv`."""
        return rows_of_records(replay_records(self.ledger))

    @cached_property
    def findings(self) -> list[Row]:
        """The misses and the waste by cause, the dearest first."""
        causes = causes_json(self.ledger.rows)
        return rows_of(named(each) for each in causes if isinstance(each, dict))

    @property
    def is_understood(self) -> bool:
        """Whether any request has counters, or a body that was compared."""
        return any(row.judged or row.counters for row in self.ledger.rows)

    def report(self, *, excerpts: bool = True) -> Report:
        """What all outputs write."""
        return replay_report(self.ledger, excerpts=excerpts, logs=self.logs)

    def plot(self, kind: str = "png") -> bytes:
        """Context and cost by request as a picture: png or svg.

        Raises InputError where no request has counters or a body.
        """
        chart = chart_of(self.ledger)
        if chart is None:
            raise InputError("there is nothing to draw: no request has counters or a body")
        return drawn(chart, kind)


def replay(
    *logs: Source,
    session: str = "",
    model: str = "",
    strict: bool = False,
    count_tokens: bool | TokenCounter = False,
    progress: Progress | None = None,
) -> ReplayOutcome:
    """What a log cost, how the context grows, what was missed and why, request by request.

    Of paths nothing but numbers stays in memory: for logs of gigabytes give them rather than a log. `session`
    is one session, by the beginning of its name.

    Raises InputError for what cannot be read and for a session that is not there, NoRequestError where nothing
    can be replayed.

        found = ctxdoc.replay("agent.jsonl")
        found.totals.cost.amount, found.totals.hit_ratio, found.findings
    """
    names = names_of(logs)
    with collector_paused():
        # Nobody but the replay holds a log that was read here, so that it lets go of bodies on the way.
        held: list[Log] = [
            read(
                *logs,
                model=model,
                strict=strict,
                count_tokens=count_tokens,
                condense=True,
                progress=progress,
            )
        ]
        tell = progress("replaying", len(held[0].requests)) if progress else None
        ledger = replay_log(held.pop(), only=session, progress=tell)
    if not any(map(_tells_something, ledger.rows)):
        reasons = dict.fromkeys(row.reason for row in ledger.rows if row.reason)
        why = f": {next(iter(reasons))}" if reasons else ""
        raise NoRequestError(f"no request can be replayed{why}", SEE_FORMATS)
    return ReplayOutcome(ledger=ledger, logs=names, warnings=skipped_lines(ledger.log))


def _tells_something(row: RequestCost) -> bool:
    """Whether anything is known of a request but that there was one."""
    return bool(row.counters or row.miss or row.waste or row.request.refused)
