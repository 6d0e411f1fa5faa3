"""Tables of a simulation: all strategies, the values tried, the closed forms, the blocks unseen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from ctxdoc.outputs.numbers import (
    change_text,
    counted,
    money_text,
    share_text,
    short_text,
    tokens_text,
)
from ctxdoc.outputs.report import (
    Part,
    Records,
    Table,
)
from ctxdoc.reports.blocks import first_line
from ctxdoc.reports.json.simulate import parameters_json, row_json
from ctxdoc.reports.strategy_label import label_of
from ctxdoc.request.codec import Json
from ctxdoc.simulation.choice import BreakEven
from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.laws import Form
from ctxdoc.simulation.result import Lost, Result
from ctxdoc.simulation.search import Optimum, Point

SHOWN_BLOCKS = 20
"""Blocks that --verbose lists for a strategy."""


SHOWN_POINTS = 12


def is_left_out(row: Result, comparison: Comparison) -> bool:
    """Whether a row only repeats that of keeping everything."""
    return row is not comparison.against_keep(row) and row.is_idle


def strategy_tables(comparison: Comparison) -> Iterator[Table]:
    """The strategies, the cheapest first: those that hide no more than the limit, and below them the others."""
    every = (*comparison.rows, *comparison.as_sent)
    shown = [row for row in every if _is_shown(row, comparison)]
    within = [row for row in shown if comparison.is_within(row)]
    beyond = [row for row in shown if not comparison.is_within(row)]
    yield _strategy_table(within, comparison, "")
    if beyond:
        limit = share_text(comparison.max_unseen, 1)
        yield _strategy_table(beyond, comparison, f"These hide more than {limit} of the history")


def _is_shown(row: Result, comparison: Comparison) -> bool:
    """Whether a row says something of its own; how it was sent does where that costs otherwise."""
    if any(row is each for each in comparison.as_sent):
        return _is_apart(row, comparison.keep)
    return not is_left_out(row, comparison)


WORTH_A_ROW = Decimal("0.005")
"""Share of the cost from which on other breakpoints or lifetimes have a row."""


def _is_apart(row: Result, keep: Result) -> bool:
    one, two = row.cost, keep.cost
    return one is not None and two is not None and abs(one - two) > WORTH_A_ROW * two


def _strategy_table(rows: Sequence[Result], comparison: Comparison, title: str) -> Table:
    against = "± keep" if comparison.recorded is None else "± sent"
    return Table(
        title=title,
        columns=(
            "strategy", "input", "read", "cost", against, "no cache", "± keep", "moved", "unseen", "rereads",
            "pays",
        ),
        rows=tuple(tuple(_cells(row, comparison)) for row in sorted(rows, key=by_cost)),
        optional=(6, 5, 7, 2, 1, 10),
    )  # fmt: skip


def by_cost(row: Result) -> tuple[bool, Decimal]:
    """Sort key of a result: what has no price comes last."""
    return row.cost is None, row.cost or Decimal(0)


def _cells(row: Result, comparison: Comparison) -> Iterator[str]:
    keep, sent = comparison.against_keep(row), comparison.sent
    same = row is keep
    own = row.placement is comparison.placement
    name = label_of(row) + ("" if own else f" @{row.placement.id}")
    yield name + (f" (+{counted(row.extra_calls, 'call')})" if row.extra_calls else "")
    yield short_text(row.usage.input)
    yield share_text(row.usage.cache_read, row.usage.input)
    yield money_text(row.cost)
    yield "-" if row is sent else change_text(row.cost, sent.cost)
    yield money_text(row.cost_without_cache)
    yield "-" if same else change_text(row.cost_without_cache, keep.cost_without_cache)
    yield short_text(row.rewritten_tokens)
    yield share_text(row.lost_tokens, comparison.history_tokens) if row.lost else "0"
    yield reread_text(comparison.break_even(row))
    pays = None if same else row.overtaken_at(keep)
    yield "-" if pays is None else str(pays)


def reread_text(found: BreakEven | None) -> str:
    """Up to which share of rereads a row pays."""
    if found is None or found.share == 0:
        return "-"
    return "all" if found.share is None else "<" + share_text(found.share, 1).lstrip("<")


def points_table(found: Optimum) -> Table:
    """The values that were tried; of many, those around the best."""
    best = found.best
    title = "Tried: " + " × ".join(map(str, found.targets))
    if found.held:
        title += f" (held: {', '.join(found.held)})"
    if found.is_flat:
        title += ": it makes no difference"
    return Table(
        title=title,
        columns=(*(str(target) for target in found.targets), "cost", "input", "read", "unseen", ""),
        rows=tuple(
            (
                *point.values,
                money_text(point.row.cost),
                short_text(point.row.usage.input),
                share_text(point.row.usage.cache_read, point.row.usage.input),
                short_text(point.row.lost_tokens),
                found.word if point is best and not found.is_flat else "",
            )
            for point in _points_to_show(found)
        ),
        optional=(len(found.targets) + 2, len(found.targets) + 1),
    )


def _points_to_show(found: Optimum) -> Sequence[Point]:
    """All of them, or some over the whole range and both neighbours of the best one."""
    points, best = found.points, found.best
    if len(points) <= SHOWN_POINTS or best is None:
        return points
    at = points.index(best)
    step = max(1, len(points) // (SHOWN_POINTS - 1))
    return [p for index, p in enumerate(points) if index % step == 0 or abs(index - at) <= 1]


def forms_table(forms: Sequence[Form]) -> Table:
    """The table of the closed forms."""
    return Table(
        title="Closed forms beside the simulation (tokens at the input price)",
        columns=("what", "formula", "by formula", "simulated", "off by"),
        rows=tuple(
            (
                f"{label_of(form.row)} {form.name}" if form.row else form.name,
                form.formula,
                _number(form.value, form.unit),
                _number(form.simulated, form.unit),
                _off_by(form),
            )
            for form in forms
        ),
    )


def _off_by(form: Form) -> str:
    if form.value is None or not form.simulated:
        return "-"
    if form.unit == "request":
        off = round(form.value) - round(form.simulated)
        return "0" if not off else f"{off:+,} {'request' if abs(off) == 1 else 'requests'}"
    text = f"{form.value / form.simulated - 1:+.1%}"
    return text[1:] if text in ("+0.0%", "-0.0%") else text


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-" if unit == "tokens" else "never here"
    return f"{value:,.0f}" if unit == "tokens" else f"request {value:,.0f}"


def unseen_tables(comparison: Comparison, excerpts: bool) -> Iterator[Part]:
    """Tables of the blocks that a strategy takes from the model, the largest first."""
    for row in comparison.own_rows:
        if row.lost:
            blocks = sorted(row.lost, key=_by_size)
            more = len(blocks) - SHOWN_BLOCKS
            shown = f", the {SHOWN_BLOCKS} largest" if more > 0 else ""
            yield Table(
                title=f"Not seen under {label_of(row)}: {counted(len(blocks), 'block')}{shown}",
                columns=("request", "block", "tokens", "begins"),
                rows=tuple(
                    (
                        f"#{item.request}",
                        item.segment.pointer,
                        tokens_text(item.tokens),
                        first_line(item.segment) if excerpts else item.segment.kind,
                    )
                    for item in blocks[:SHOWN_BLOCKS]
                ),
            )


def _by_size(item: Lost) -> tuple[int, int, str]:
    return -item.tokens, item.request, item.segment.pointer


NESTED = ("parameters", "warnings", "lost_blocks", "rereads", "same_as")


def _share_of(found: BreakEven | None) -> str | None:
    """Up to which share of rereads a row pays: all of it is 1."""
    if found is None:
        return None
    return "1.0000" if found.share is None else f"{found.share:.4f}"


def strategy_records(comparison: Comparison) -> Records:
    """The table for other programs."""
    rows: list[dict[str, Json]] = [row_json(row, comparison) for row in comparison.rows]
    names = [name for name in rows[0] if name not in NESTED]
    return Records(
        columns=(*names, "pays_below_reread_share", "parameters"),
        rows=tuple(
            (
                *(_cell(row[name]) for name in names),
                _cell(_share_of(comparison.break_even(own))),
                "; ".join(f"{k}={v}" for k, v in parameters_json(own).items()),
            )
            for row, own in zip(rows, comparison.rows, strict=True)
        ),
    )


def _cell(value: Json) -> str | int | None:
    match value:
        case bool():
            return str(value).lower()
        case str() | int():
            return value
        case _:
            return None
