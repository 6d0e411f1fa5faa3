"""The report of a simulation: which strategy costs what, why, and what the model would not see."""

from __future__ import annotations

import shlex
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
    Curve,
    Curves,
    Fields,
    Headline,
    Heat,
    Notes,
    Panel,
    Part,
    Records,
    Report,
    Table,
)
from ctxdoc.outputs.report import Row as Line
from ctxdoc.pricing.cost import dollars
from ctxdoc.providers.rules import short_model_id
from ctxdoc.reports.blocks import first_line
from ctxdoc.reports.json.simulate import parameters_json, row_json, simulate_json
from ctxdoc.request.codec import Json
from ctxdoc.simulation.compare import Comparison, Form
from ctxdoc.simulation.result import Lost, Result
from ctxdoc.simulation.search import Optimum
from ctxdoc.simulation.strategies import Spec, as_number

SHOWN_BLOCKS = 20
"""Blocks that --verbose lists for a strategy."""
SHOWN_POINTS = 12
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
        make_records=lambda: _records(comparison),
    )


def _parts(
    comparison: Comparison, logs: Sequence[str], *, verbose: bool, excerpts: bool
) -> Iterator[Part]:
    yield _headline(comparison)
    yield Fields((*_first_rows(comparison, logs), *_main_rows(comparison, logs)))
    yield _table(comparison)
    idle = [label_of(row) for row in comparison.own_rows if _is_left_out(row, comparison)]
    if idle:
        yield Fields((Line("", f"no effect here, a mark is never reached: {'; '.join(idle)}"),))
    for found in comparison.found:
        yield _points(found)
    if comparison.forms:
        yield _forms(comparison.forms)
    if verbose:
        yield from _unseen(comparison, excerpts)
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


def _headline(comparison: Comparison) -> Headline:
    keep, best, recorded = comparison.keep, comparison.best, comparison.recorded
    count = counted(keep.requests, "request")
    under = f"under {comparison.placement.id} breakpoints ({comparison.placement.title})"
    if best is None or best.cost is None or keep.cost is None:
        why = "the model has no price" if keep.cost is None else "no prompt fits the window"
        return Headline("SIMULATED", "plain", f"{count}; {why}", under)
    paid = recorded.cost if recorded is not None else None
    if paid is not None and abs(paid - keep.cost) > WORTH_SAYING * paid:
        text = (
            f"{count}: {money_text(paid)} with the breakpoints as sent; {keep.placement.id} ones alone "
            f"{money_text(keep.cost)} ({_change(keep.cost, paid)})"
        )
        if best is not keep and best.cost < keep.cost:
            text += f", with {label_of(best)} {money_text(best.cost)} ({_change(best.cost, paid)})"
    elif best is keep or best.cost >= keep.cost:
        text = f"{count}: keeping everything is cheapest, {money_text(keep.cost)}"
    else:
        text = (
            f"{count}: {_named(best, comparison)} is cheapest, {money_text(best.cost)} instead of "
            f"{money_text(keep.cost)} ({_change(best.cost, keep.cost)})"
        )
    others = [row for row in comparison.own_rows if row is not keep and not row.is_idle]
    dearer = [row for row in others if row.cost and row.cost > keep.cost]
    if dearer:
        text += f"; {len(dearer)} of {len(others)} cost more than keeping everything"
    return Headline("SIMULATED", "plain", text, under)


WORTH_SAYING = Decimal("0.01")
"""Share of the cost from which on a difference is worth a word in the headline."""


def _change(value: Decimal, other: Decimal) -> str:
    text = change_text(value, other)
    return "under 1%" if text == "0%" and value != other else text


def _named(row: Result, comparison: Comparison) -> str:
    """A strategy, with its placement where that is another one."""
    own = row.placement is comparison.placement
    return label_of(row) + ("" if own else f" @{row.placement.id}")


def label_of(row: Result) -> str:
    """A strategy with the parameters that were set, in words that can be broken into lines."""
    return " + ".join(map(_spec_text, row.specs))


def _spec_text(spec: Spec) -> str:
    return " ".join([spec.definition.id, *(f"{key}={_given(value)}" for key, value in spec.given)])


def _given(value: str) -> str:
    return short_text(int(value)) if value.isdecimal() and int(value) >= 10_000 else value


def _first_rows(comparison: Comparison, logs: Sequence[str]) -> Iterator[Line]:
    """What is to be done before anything is chosen."""
    if not comparison.is_dead:
        return
    keep = comparison.keep
    yield Line(
        "First",
        f"mend the prefix: it breaks on {keep.rewrites:,} of {keep.requests:,} requests, and "
        f"{keep.rewritten_tokens:,} tokens are sent again behind a change, whatever is chosen below; "
        "this says why:",
        strong=True,
    )
    if logs and "-" not in logs:
        yield Line("", f"ctxdoc replay {shlex.join(logs)}", is_command=True)


def _main_rows(comparison: Comparison, logs: Sequence[str]) -> Iterator[Line]:
    keep, best, whole = comparison.keep, comparison.best, comparison.best_whole
    recorded = comparison.recorded
    if recorded is not None:
        billed = comparison.billed
        beside = ""
        if comparison.beside:
            what = f"{money_text(comparison.beside)} for compaction passes and searches"
            beside = f", of it {what}, which no row has"
        check = f" (billed {money_text(billed)}{beside})" if billed is not None else ""
        yield Line(
            "Recorded",
            f"{money_text(recorded.cost)} with the breakpoints as sent{check}; "
            f"{keep.placement.id} ones {money_text(keep.cost)} "
            f"({change_text(keep.cost, recorded.cost)})",
        )
    elif comparison.billed is not None:
        yield Line(
            "Recorded",
            f"{money_text(comparison.billed)} billed; where its breakpoints stood is not known",
        )
    if best is not None and best is not keep:
        yield Line(
            "Cheapest",
            f"{_named(best, comparison)}: {money_text(best.cost)}{_unseen_text(best, comparison)}",
            strong=True,
        )
        if logs and "-" not in logs and best.placement is comparison.placement:
            chosen = shlex.join([*logs, "--strategy", best.text])
            yield Line("", f"ctxdoc simulate {chosen} --verbose", is_command=True)
    if whole is not None and whole is not best:
        yield Line(
            "Complete",
            f"with nothing taken from the model: {_named(whole, comparison)}, {money_text(whole.cost)}",
        )
    for row in comparison.cheaper_as_written:
        why = "; ".join(row.warnings) or "the API may refuse it"
        yield Line("", f"{label_of(row)} costs {money_text(row.cost)} and is no choice: {why}")
    if not keep.fits:
        yield Line(
            "Window", "keeping everything exceeds the model's window, and is no choice: see below"
        )
    growth = comparison.growth
    if growth is not None and growth.turns > 2:
        r2 = "" if growth.r2 is None else f", R² {growth.r2:.3f}"
        part = (
            ""
            if comparison.whole
            else f" (the longest of several stretches, {counted(growth.turns, 'request')})"
        )
        yield Line(
            "Growth",
            f"P {growth.prefix:,.0f} + a {growth.per_turn or 0:,.0f} a turn{r2}{part}; n·P + a·n²/2 = "
            f"{growth.law:,.0f}, exactly {growth.exact:,.0f}, sent {growth.recorded:,}",
        )


def _unseen_text(row: Result, comparison: Comparison) -> str:
    """What of the history the model would not have."""
    if not row.lost:
        return ""
    share = f"{row.lost_tokens:,} of {comparison.history_tokens:,} tokens of history"
    edits = [spec.definition.edits for spec in row.specs]
    if not any(edits):
        return f"; {share} are never shown to the model, unless it reads them again"
    later = "are taken from the model later" if all(edits) else "are never shown, or taken later"
    return f"; {share} {later}"


def _is_left_out(row: Result, comparison: Comparison) -> bool:
    """Whether a row only repeats that of keeping everything."""
    return row is not comparison.against_keep(row) and row.is_idle


def _table(comparison: Comparison) -> Table:
    shown = [row for row in comparison.rows if not _is_left_out(row, comparison)]
    rows = sorted(shown, key=_by_cost)
    several = len({row.placement.id for row in rows}) > 1
    return Table(
        title="",
        columns=(
            "strategy", "input", "read", "cost", "± keep", "no cache", "± keep", "moved", "unseen", "pays",
        ),
        rows=tuple(tuple(_cells(row, comparison, several)) for row in rows),
        optional=(6, 5, 7, 2, 1, 8),
    )  # fmt: skip


def _by_cost(row: Result) -> tuple[bool, Decimal]:
    return row.cost is None, row.cost or Decimal(0)


def _cells(row: Result, comparison: Comparison, several: bool) -> Iterator[str]:
    keep = comparison.against_keep(row)
    same = row is keep
    name = label_of(row) + (f" @{row.placement.id}" if several else "")
    yield name + (f" (+{counted(row.extra_calls, 'call')})" if row.extra_calls else "")
    yield short_text(row.usage.input)
    yield share_text(row.usage.cache_read, row.usage.input)
    yield money_text(row.cost)
    yield "-" if same else change_text(row.cost, keep.cost)
    yield money_text(row.cost_without_cache)
    yield "-" if same else change_text(row.cost_without_cache, keep.cost_without_cache)
    yield short_text(row.rewritten_tokens)
    yield short_text(row.lost_tokens)
    pays = None if same else row.overtaken_at(keep)
    yield "-" if pays is None else str(pays)


def _points(found: Optimum) -> Table:
    """The values that were tried; of many, those around the best."""
    points = list(found.points)
    best = found.best
    title = "Tried: " + " × ".join(map(str, found.targets))
    if found.is_flat:
        title += ": it makes no difference"
    if len(points) > SHOWN_POINTS and best is not None:
        at = points.index(best)
        step = max(1, len(points) // (SHOWN_POINTS - 1))
        points = [p for i, p in enumerate(points) if i % step == 0 or abs(i - at) <= 1]
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
                "cheapest" if point is best and not found.is_flat else "",
            )
            for point in points
        ),
        optional=(len(found.targets) + 2, len(found.targets) + 1),
    )


def _forms(forms: Sequence[Form]) -> Table:
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


def _unseen(comparison: Comparison, excerpts: bool) -> Iterator[Part]:
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


def pictures_of(comparison: Comparison) -> Iterator[Curves | Heat]:
    """The cost and the prompts over the requests, or the searches."""
    for found in comparison.found:
        yield from _search_picture(found, comparison.keep)
    if not comparison.found:
        yield _strategies_picture(comparison)


def _strategies_picture(comparison: Comparison) -> Curves:
    """The cheapest strategies beside keeping everything; those that cost the same are one curve."""
    same: dict[tuple[object, ...], list[Result]] = {}
    for row in sorted(comparison.rows, key=_by_cost):
        if row.cost is not None:
            same.setdefault((row.costs, row.prompts), []).append(row)
    groups = list(same.values())
    shown = [g for n, g in enumerate(groups) if n < MOST_CURVES - 1 or comparison.keep in g]
    shown = shown[: MOST_CURVES - 1] + shown[MOST_CURVES - 1 :][-1:]
    numbers = tuple(float(n) for n in range(1, comparison.keep.requests + 1))
    costs, sizes = [], []
    for rows in shown:
        name = _named(rows[0], comparison)
        name += f" (and {len(rows) - 1} the same)" if len(rows) > 1 else ""
        total, sums = 0, []
        for cost in rows[0].costs:
            total += cost or 0
            sums.append(float(dollars(total)))
        costs.append(Curve(label=f"{name} {money_text(rows[0].cost)}", xs=numbers, ys=tuple(sums)))
        sizes.append(Curve(label=name, xs=numbers, ys=tuple(map(float, rows[0].prompts))))
    left = len(groups) - len(shown)
    more = f"; {left} dearer ones are not drawn" if left else ""
    return Curves(
        title=f"Cost and prompt by request, {comparison.placement.id} breakpoints (simulated){more}",
        axis="request, in time order",
        panels=(
            Panel(label="USD in all", unit="USD", curves=tuple(costs)),
            Panel(label="tokens of the prompt", unit="tokens", curves=tuple(sizes)),
        ),
    )


MOST_CURVES = 7
"""As many as there are colours."""


def _search_picture(found: Optimum, keep: Result) -> Iterator[Curves | Heat]:
    if found.best is None:
        return
    if len(found.targets) == 1 and all(_is_number(point.values[0]) for point in found.points):
        points = sorted(found.points, key=lambda point: float(as_number(point.values[0])))
        xs = tuple(float(as_number(point.values[0])) for point in points)
        cheapest = f"cheapest at {found.best.values[0]}, {money_text(found.best.row.cost)}"
        if found.is_flat:
            cheapest = f"it makes no difference, {money_text(found.best.row.cost)}"
        yield Curves(
            title=f"Cost over {found.targets[0]}: {cheapest} (simulated)",
            axis=str(found.targets[0]),
            steps=True,
            panels=(
                Panel(
                    label="USD in all",
                    unit="USD",
                    curves=(
                        Curve(
                            label=str(found.targets[0]),
                            xs=xs,
                            ys=tuple(float(point.row.cost or 0) for point in points),
                        ),
                        Curve(
                            label=f"everything kept {money_text(keep.cost)}",
                            xs=(xs[0], xs[-1]),
                            ys=(float(keep.cost or 0),) * 2,
                        ),
                    ),
                ),
            ),
        )
    elif len(found.targets) == 2:
        columns = tuple(dict.fromkeys(point.values[0] for point in found.points))
        rows = tuple(dict.fromkeys(point.values[1] for point in found.points))
        cost = {point.values: float(point.row.cost or 0) for point in found.points}
        yield Heat(
            title="Cost over two parameters (simulated)",
            columns=columns,
            rows=rows,
            across=str(found.targets[0]),
            down=str(found.targets[1]),
            values=tuple(tuple(cost[column, row] for column in columns) for row in rows),
        )


def _is_number(text: str) -> bool:
    try:
        float(as_number(text))
    except ValueError:
        return False
    return True


def _records(comparison: Comparison) -> Records:
    """The table for other programs."""
    rows: list[dict[str, Json]] = [row_json(row, comparison) for row in comparison.rows]
    names = [name for name in rows[0] if name not in ("parameters", "warnings", "lost_blocks")]
    return Records(
        columns=(*names, "parameters"),
        rows=tuple(
            (
                *(_cell(row[name]) for name in names),
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
