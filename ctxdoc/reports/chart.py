"""A replay as a chart: the context strip over the requests, and what they cost up to there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import accumulate, chain

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.outputs.report import Bar, Chart, Line
from ctxdoc.request.usage import Usage

MOST_BARS = 400
"""More cannot be told apart at 800 pixels."""


def chart_of(replay: Ledger) -> Chart | None:
    """The chart of all requests with counters, in time order; None where there is none."""
    every = (replay.by_index[index] for index in replay.order)
    rows = [row for row in every if row.counters is not None]
    if not rows:
        return None
    each = -(-len(rows) // MOST_BARS)
    groups = [rows[start : start + each] for start in range(0, len(rows), each)]
    laws = dict(_laws(replay))
    return Chart(
        title="Context and cost by request",
        bars=tuple(_bar(i * each + 1, group, laws) for i, group in enumerate(groups)),
        lines=tuple(_lines(groups)),
        each=each,
        origin=_origin(rows),
    )


def _bar(first: int, group: Sequence[RequestCost], laws: dict[int, tuple[float, int]]) -> Bar:
    usages = [row.counters for row in group if row.counters is not None]
    missed = [row.miss for row in group if row.miss is not None]
    law, stretch = _law_of(group, laws)
    return Bar(
        at=first + (len(group) - 1) / 2,
        read=_mean(usages, "cache_read"),
        written=_mean(usages, "cache_write"),
        uncached=_mean(usages, "uncached"),
        law=law,
        stretch=stretch,
        mark=max(missed, key=lambda miss: miss.tokens or 0).cause if missed else "",
    )


def _law_of(
    group: Sequence[RequestCost], laws: dict[int, tuple[float, int]]
) -> tuple[float | None, int]:
    """The law at a bar, and the stretch it is of; a bar over two stretches has none to go through."""
    law = [laws[row.number] for row in group if row.number in laws]
    stretches = {stretch for _, stretch in law}
    mean = sum(size for size, _ in law) / len(law) if len(stretches) == 1 else None
    return mean, max(stretches, default=0)


def _mean(usages: Sequence[Usage], name: str) -> float:
    return float(sum(getattr(usage, name) for usage in usages)) / len(usages)


def _laws(replay: Ledger) -> Iterator[tuple[int, tuple[float, int]]]:
    """P + a·k and the stretch for the requests of each that is long enough for a fit."""
    for stretch, grown in enumerate(replay.growth, start=1):
        fit = grown.fit
        if fit.per_turn is not None and fit.turns > 2:
            for k, number in enumerate(grown.rows, start=1):
                yield number, (fit.prefix + fit.per_turn * k, stretch)


def _lines(groups: Sequence[Sequence[RequestCost]]) -> Iterator[Line]:
    """Cumulated costs; a line is left out where none of its costs is known."""
    # A bound of fewer requests than were paid would lie too low.
    left_out = () if _is_bound_whole(groups) else ("oracle (bound)",)
    for label, name in LINES.items():
        costs = [[getattr(row, name) for row in group] for group in groups]
        is_known = any(cost is not None for cost in chain.from_iterable(costs))
        if is_known and label not in left_out:
            yield Line(label=label, values=tuple(accumulate(map(_sum, costs))))


LINES = {"no cache": "without_cache", "paid": "cost", "oracle (bound)": "oracle"}
"""Label → cost of a request."""


def _is_bound_whole(groups: Sequence[Sequence[RequestCost]]) -> bool:
    return all(row.oracle is not None for group in groups for row in group if row.cost is not None)


def _sum(costs: Sequence[Decimal | None]) -> float:
    return sum((float(cost) for cost in costs if cost is not None), 0.0)


def _origin(rows: Sequence[RequestCost]) -> str:
    reported = sum(row.reported is not None for row in rows)
    if reported == len(rows):
        return "reported"
    return "simulated" if not reported else f"{reported:,} reported, the others simulated"
