"""The report of a replayed log: what it cost, how it grows, what was missed, what is dear, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ctxdoc.ledger.advice import Advice, advise
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.pauses import idle_of
from ctxdoc.ledger.totals import totals_of
from ctxdoc.outputs.numbers import counted
from ctxdoc.outputs.report import Fields, Notes, Part, Report
from ctxdoc.reports.advice import advice_rows
from ctxdoc.reports.block_tables import block_tables
from ctxdoc.reports.chart import chart_of
from ctxdoc.reports.json.replay import replay_json
from ctxdoc.reports.json.request import replay_records
from ctxdoc.reports.misses import misses_parts, not_judged
from ctxdoc.reports.replay_verdict import replay_headline
from ctxdoc.reports.sessions import session_parts
from ctxdoc.reports.spending import spending_rows
from ctxdoc.request.log import Skipped

SHOWN_SKIPPED = 5


def replay_report(
    replay: Ledger, *, excerpts: bool = True, logs: Sequence[str] = ("LOG",)
) -> Report:
    """The parts in the order in which a person reads them; every request is in the data.

    `logs` are the paths as they were given, for the commands that show more.
    """
    advice = advise(replay)
    return Report(
        make_parts=lambda: _parts(replay, advice, excerpts, logs),
        make_data=lambda: replay_json(replay, advice, excerpts=excerpts),
        make_records=lambda: replay_records(replay),
    )


def _parts(
    replay: Ledger, advice: Sequence[Advice], excerpts: bool, logs: Sequence[str]
) -> Iterator[Part]:
    totals = totals_of(replay.rows)
    idle = idle_of(replay)
    yield replay_headline(replay, totals, idle)
    yield Fields(tuple(spending_rows(replay, totals, idle)))
    yield from misses_parts(replay.rows)
    if advice:
        yield Fields(tuple(advice_rows(replay, advice, logs)))
    yield from block_tables(replay, excerpts)
    yield from session_parts(replay)
    chart = chart_of(replay)
    if chart is not None:
        yield chart
    yield from _skipped_parts(replay.log.skipped)
    missing = (*not_judged(replay.rows), *replay.missing)
    if missing:
        yield Notes("Not checked, because", missing)
    yield Notes("More", ("ctxdoc explain replay says what the words mean",))


def _skipped_parts(every: Sequence[Skipped]) -> Iterator[Part]:
    """What was not understood, and apart from it what is no fault: records that are no model call."""
    skipped = [item for item in every if not item.other]
    if skipped:
        yield Notes(f"Skipped: {len(skipped):,}", tuple(_reasons(skipped)))
    other = [item for item in every if item.other]
    if other:
        yield Notes(f"No model call: {counted(len(other), 'record')}", tuple(_reasons(other)))


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
