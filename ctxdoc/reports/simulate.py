"""The report of a simulation: which strategy costs what, why, and what the model would not see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxdoc.outputs.numbers import counted
from ctxdoc.outputs.report import (
    Fields,
    Notes,
    Part,
    Report,
)
from ctxdoc.outputs.report import Row as Line
from ctxdoc.providers.rules import short_model_id
from ctxdoc.reports.json.simulate import simulate_json
from ctxdoc.reports.strategy_curves import pictures_of
from ctxdoc.reports.strategy_label import label_of
from ctxdoc.reports.strategy_tables import (
    forms_table,
    is_left_out,
    points_table,
    strategy_records,
    strategy_table,
    unseen_tables,
)
from ctxdoc.reports.strategy_verdict import choice_rows, first_rows, simulate_headline
from ctxdoc.simulation.compare import Comparison

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
) -> Report:
    """The parts in the order in which a person reads them.

    `logs` are the paths as they were given, for the commands that show more.
    """
    return Report(
        parts=tuple(_parts(comparison, logs, verbose=verbose, excerpts=excerpts)),
        make_data=lambda: simulate_json(comparison, excerpts=excerpts and verbose),
        make_records=lambda: strategy_records(comparison),
    )


def _parts(
    comparison: Comparison, logs: Sequence[str], *, verbose: bool, excerpts: bool
) -> Iterator[Part]:
    yield simulate_headline(comparison)
    yield Fields((*first_rows(comparison, logs), *choice_rows(comparison, logs)))
    yield strategy_table(comparison)
    idle = [label_of(row) for row in comparison.own_rows if is_left_out(row, comparison)]
    if idle:
        yield Fields((Line("", f"no effect here, a mark is never reached: {'; '.join(idle)}"),))
    for found in comparison.found:
        yield points_table(found)
    if comparison.forms:
        yield forms_table(comparison.forms)
    if verbose:
        yield from unseen_tables(comparison, excerpts)
    warnings = list(_warnings(comparison))
    if warnings:
        yield Notes("Warnings", tuple(warnings))
    yield Notes("Assumed", tuple(_assumed(comparison)))
    left = comparison.session.left_out
    if left:
        lines = (f"{counted(count, 'request')}: {why}" for why, count in left.items())
        yield Notes("Not simulated, because", tuple(lines))
    yield from pictures_of(comparison)
    yield Notes("More", tuple(_more(comparison)))


def _warnings(comparison: Comparison) -> Iterator[str]:
    for row in comparison.own_rows:
        for text, count in row.warnings.items():
            yield f"{label_of(row)}: {text} ({counted(count, 'request')})"


def _assumed(comparison: Comparison) -> Iterator[str]:
    yield QUALITY
    yield from comparison.session.assumptions
    models = sorted({short_model_id(call.tariff.model) for call in comparison.session.calls})
    days = sorted({call.tariff.day for call in comparison.session.calls})
    span = f"{days[0]}" if days[0] == days[-1] else f"{days[0]} to {days[-1]}"
    yield f"prices of {_few(models)} as of {span}"
    if comparison.keep.unpriced:
        yield (
            f"{counted(comparison.keep.unpriced, 'request')} of models without a price are in the tokens "
            "and not in the money"
        )
    if any(call.output is None for call in comparison.session.calls):
        yield "the last answers are not known, and cost nothing here"
    if comparison.scaled:
        yield (
            "the session is small: the usual marks (100k, 150k) would never be reached, so they are "
            "set to shares of its largest prompt"
        )
    if any(spec.definition.id == "offload" for row in comparison.rows for spec in row.specs):
        yield "offload: nothing is read again unless offload:reread=SHARE says so"
    yield (
        "moved: sent before, and again behind a change; unseen: recorded, and missing at some request; "
        "pays: the request from which it is cheaper in all, to the end"
    )


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
