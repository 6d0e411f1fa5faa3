"""Pictures of a simulation: cost and prompt over the requests, or over the parameters tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from ctxdoc.outputs.numbers import money_text
from ctxdoc.outputs.report import (
    Curve,
    Curves,
    Dot,
    Front,
    Heat,
    Panel,
)
from ctxdoc.pricing.cost import dollars
from ctxdoc.reports.strategy_label import named
from ctxdoc.reports.strategy_tables import by_cost
from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.search import Optimum, Point
from ctxdoc.simulation.strategies import as_number


def pictures_of(comparison: Comparison) -> Iterator[Curves | Heat]:
    """The cost and the prompts over the requests, or the searches."""
    for found in comparison.found:
        yield from _search_picture(found, comparison.keep)
    if not comparison.found:
        yield _strategies_picture(comparison)


def _strategies_picture(comparison: Comparison) -> Curves:
    """The cheapest strategies beside keeping everything; those that cost the same are one curve."""
    groups = _groups(comparison.rows)
    shown = _shown(groups, comparison.keep)
    numbers = tuple(float(n) for n in range(1, comparison.keep.requests + 1))
    costs, sizes = [], []
    for rows in shown:
        name = named(rows[0], comparison)
        name += f" (and {len(rows) - 1} the same)" if len(rows) > 1 else ""
        spent = tuple(float(dollars(total)) for total in accumulate(c or 0 for c in rows[0].costs))
        costs.append(Curve(label=f"{name} {money_text(rows[0].cost)}", xs=numbers, ys=spent))
        sizes.append(Curve(label=name, xs=numbers, ys=tuple(map(float, rows[0].prompts))))
    front = _front(comparison, shown)
    left = len(groups) - len(shown)
    more = f"; {left} dearer ones are not drawn" if left else ""
    return Curves(
        title=f"{_found_text(comparison)}{more}",
        axis="request, in time order",
        panels=(
            Panel(label="USD in all", unit="USD", curves=tuple(costs)),
            Panel(label="tokens of the prompt", unit="tokens", curves=tuple(sizes)),
        ),
        front=front,
    )


def _found_text(comparison: Comparison) -> str:
    """What the picture shows, in a line."""
    whole, within, keep = comparison.best_whole, comparison.best_within, comparison.keep
    ways = [row for row in (whole, within) if row is not None and row is not keep]
    told = [f"{named(row, comparison)} {money_text(row.cost)}" for row in ways]
    text = " and ".join(dict.fromkeys(told))
    beside = (
        f" beside keep {money_text(keep.cost)}"
        if text
        else f"keep is cheapest, {money_text(keep.cost)}"
    )
    return f"Simulated, {comparison.placement.id} breakpoints: {text}{beside}"


def _front(comparison: Comparison, shown: Sequence[list[Result]]) -> Front | None:
    """The ways by what they hide; None where nothing hides anything."""
    best = comparison.front
    dots = tuple(
        Dot(
            label=named(row, comparison),
            unseen=comparison.unseen_share(row),
            cost=float(row.cost),
            curve=next((at for at, rows in enumerate(shown) if row in rows), None),
            on_front=any(row is each for each in best),
            is_keep=row is comparison.keep,
        )
        for row in comparison.possible
        if row.cost is not None
    )
    return Front(dots=dots, limit=comparison.max_unseen) if any(d.unseen for d in dots) else None


def _groups(rows: Iterable[Result]) -> list[list[Result]]:
    """Results of one and the same curve together, the cheapest first."""
    same: dict[tuple[object, ...], list[Result]] = {}
    for row in sorted(rows, key=by_cost):
        if row.cost is not None:
            same.setdefault((row.costs, row.prompts), []).append(row)
    return list(same.values())


def _shown(groups: Sequence[list[Result]], keep: Result) -> list[list[Result]]:
    """As many as there are colours; keeping everything is always one of them."""
    first, rest = groups[: MOST_CURVES - 1], groups[MOST_CURVES - 1 :]
    kept = [group for group in rest if keep in group]
    return [*first, *kept]


MOST_CURVES = 7
"""As many as there are colours."""


def _search_picture(found: Optimum, keep: Result) -> Iterator[Curves | Heat]:
    """A curve over one parameter, a field over two; more cannot be drawn."""
    if found.best is None:
        return
    if len(found.targets) == 1 and all(_is_number(point.values[0]) for point in found.points):
        yield _search_curve(found, found.best, keep)
    elif len(found.targets) == 2:
        yield _search_field(found)


def _search_curve(found: Optimum, best: Point, keep: Result) -> Curves:
    target = str(found.targets[0])
    points = sorted(found.points, key=lambda point: float(as_number(point.values[0])))
    xs = tuple(float(as_number(point.values[0])) for point in points)
    where = "it makes no difference" if found.is_flat else f"cheapest at {best.values[0]}"
    kept = Curve(
        label=f"everything kept {money_text(keep.cost)}",
        xs=(xs[0], xs[-1]),
        ys=(float(keep.cost or 0),) * 2,
    )
    tried = Curve(label=target, xs=xs, ys=tuple(float(point.row.cost or 0) for point in points))
    return Curves(
        title=f"Cost over {target}: {where}, {money_text(best.row.cost)} (simulated)",
        axis=target,
        steps=True,
        panels=(Panel(label="USD in all", unit="USD", curves=(tried, kept)),),
    )


def _search_field(found: Optimum) -> Heat:
    columns = tuple(dict.fromkeys(point.values[0] for point in found.points))
    rows = tuple(dict.fromkeys(point.values[1] for point in found.points))
    cost = {point.values: float(point.row.cost or 0) for point in found.points}
    return Heat(
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
