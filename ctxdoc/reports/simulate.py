"""The report of a simulation: which strategy costs what, why, and what the model would not see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

from ctxdoc.outputs.numbers import counted, money_text
from ctxdoc.outputs.report import (
    Fields,
    Notes,
    Part,
    Report,
)
from ctxdoc.outputs.report import Row as Line
from ctxdoc.providers.rules import short_model_id
from ctxdoc.reports.json.simulate import simulate_json
from ctxdoc.reports.plan import plan_rows
from ctxdoc.reports.strategy_curves import pictures_of
from ctxdoc.reports.strategy_label import label_of
from ctxdoc.reports.strategy_tables import (
    forms_table,
    is_left_out,
    points_table,
    strategy_records,
    strategy_tables,
    unseen_tables,
)
from ctxdoc.reports.strategy_verdict import choice_rows, first_rows, simulate_headline
from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.history.messages import Call
from ctxdoc.simulation.plan import Plan

SHOWN_MODELS = 4
QUALITY = (
    "answers and tool results are taken as recorded; what the model does worse without the unseen "
    "text is not priced"
)


def simulate_report(
    comparison: Comparison,
    *,
    verbose: bool = False,
    excerpts: bool = True,
    logs: Sequence[str] = (),
    make_plan: Callable[[], Plan] | None = None,
) -> Report:
    """The parts in the order in which a person reads them.

    `logs` are the paths as they were given, for the commands that show more; the plan is made for
    whoever reads it.
    """
    return Report(
        make_parts=lambda: _parts(comparison, logs, make_plan, verbose=verbose, excerpts=excerpts),
        make_data=lambda: simulate_json(comparison, excerpts=excerpts and verbose),
        make_records=lambda: strategy_records(comparison),
    )


def _parts(
    comparison: Comparison,
    logs: Sequence[str],
    make_plan: Callable[[], Plan] | None,
    *,
    verbose: bool,
    excerpts: bool,
) -> Iterator[Part]:
    yield simulate_headline(comparison)
    plan = plan_rows(make_plan(), logs) if make_plan else ()
    yield Fields((*first_rows(comparison, logs), *plan, *choice_rows(comparison, logs)))
    yield from _tables(comparison)
    if verbose:
        yield from unseen_tables(comparison, excerpts)
    yield from _notes("Warnings", _warnings(comparison))
    yield from _notes("Assumed", _assumed(comparison))
    left = comparison.session.left_out
    reasons = (f"{counted(count, 'request')}: {why}" for why, count in left.items())
    yield from _notes("Not simulated, because", reasons)
    yield from pictures_of(comparison)
    yield from _notes("More", _more(comparison))


def _notes(title: str, lines: Iterable[str]) -> Iterator[Part]:
    told = tuple(lines)
    if told:
        yield Notes(title, told)


def _tables(comparison: Comparison) -> Iterator[Part]:
    yield from strategy_tables(comparison)
    idle = [label_of(row) for row in comparison.own_rows if is_left_out(row, comparison)]
    if idle:
        yield Fields((Line("", f"no effect here, a mark is never reached: {'; '.join(idle)}"),))
    for index, texts in comparison.same.items():
        name = label_of(comparison.rows[index])
        yield Fields((Line("", f"sends the same as {name}: {'; '.join(texts)}"),))
    yield from map(points_table, comparison.found)
    if comparison.forms:
        yield forms_table(comparison.forms)


def _warnings(comparison: Comparison) -> Iterator[str]:
    for row in comparison.own_rows:
        for text, count in row.warnings.items():
            yield f"{label_of(row)}: {text} ({counted(count, 'request')})"


def _assumed(comparison: Comparison) -> Iterator[str]:
    session = comparison.session
    yield QUALITY
    yield from session.assumptions
    yield _prices_text(session.calls)
    if comparison.keep.unpriced:
        yield (
            f"{counted(comparison.keep.unpriced, 'request')} of models without a price are in the tokens "
            "and not in the money"
        )
    if any(call.output is None for call in session.calls):
        yield "the last answers are not known, and cost nothing here"
    if comparison.scaled:
        yield (
            "the session is small: the usual marks (100k, 150k) would never be reached, so they are "
            "set to shares of its largest prompt"
        )
    yield from _shorter_text(comparison)
    if any(row.lost for row in comparison.rows):
        yield "nothing that is gone is read again, unless offload:reread=SHARE or +reread:share=SHARE says so"
    yield (
        "moved: sent before, and again behind a change; unseen: share of the history that is missing at "
        "some request; rereads: it pays while less than that share of what is gone is read again; pays: "
        "the request from which it is cheaper in all, to the end"
    )


MATTERS = Decimal("0.005")
"""Share of the cost from which on an assumption is worth both figures."""


def _shorter_text(comparison: Comparison) -> Iterator[str]:
    """What is assumed of entries that are shorter than the one that is read, where it matters."""
    keep, other = comparison.keep.cost, comparison.otherwise
    if keep is None or other is None or abs(keep - other) <= MATTERS * keep:
        return
    how = "live on" if comparison.renews_shorter else "do not live on"
    word = "shorter_entries_die" if comparison.renews_shorter else "shorter_entries_live"
    yield (
        f"shorter entries {how} when a longer one is read, which nobody documents: otherwise keep costs "
        f"{money_text(other)} and not {money_text(keep)} (--assume {word})"
    )


def _prices_text(calls: Sequence[Call]) -> str:
    models = sorted({short_model_id(call.tariff.model) for call in calls})
    days = sorted({call.tariff.day for call in calls})
    span = f"{days[0]}" if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    return f"prices of {_few(models)} as of {span}"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_MODELS} more models" if len(names) > SHOWN_MODELS else ""
    return ", ".join(names[:SHOWN_MODELS]) + more


def _more(comparison: Comparison) -> Iterator[str]:
    yield "ctxdoc explain STRATEGY says what one does and which parameters it takes"
    recorded, keep = comparison.recorded, comparison.keep
    if recorded is not None and recorded.cost and keep.cost and keep.cost < recorded.cost:
        yield (
            "ctxdoc explain rolling says which blocks get cache_control; --strategy keep --emit FILE "
            "writes the requests with it"
        )
    if any(row.lost for row in comparison.own_rows):
        yield "--verbose lists what the model would not see; --emit FILE writes the requests of one strategy"
