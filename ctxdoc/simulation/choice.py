"""The choice among strategies: what each costs against what the model no longer sees."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies import STRATEGIES, Spec, made
from ctxdoc.simulation.strategies.reread import payloads_of

MAX_UNSEEN = 0.10
"""Share of the history that a way may hide and still be a choice, where nothing else is asked for."""
REREAD = "reread"


class BreakEven(Struct, frozen=True, kw_only=True):
    """How much of what a strategy takes out may be read again until it stops paying."""

    share: float | None
    """Of the tool results and documents that are gone; None where even all of it may be, and 0 where the
    strategy does not pay as it is."""
    payloads: int
    """How many those are."""
    at_all: Decimal | None
    """USD when all of them are read again; None where that was not simulated."""


def is_choice(row: Result) -> bool:
    """Whether a row can be done: breakpoints that are placed, prompts that fit, messages that the API takes."""
    return (
        row.fits
        and not row.placement.bound
        and not any(spec.definition.as_written for spec in row.specs)
    )


def is_complete(row: Result) -> bool:
    """Whether nothing is taken from the model, or withheld from it."""
    return not row.lost and not is_withholding(row)


def is_withholding(row: Result) -> bool:
    """Whether the model lacks what is no part of the history, at first."""
    return any(spec.definition.withholds for spec in row.specs)


def cheapest_of(rows: Iterable[Result]) -> Result | None:
    """The row that costs least, the first of several; None where none is priced."""
    priced = [(row.cost, index, row) for index, row in enumerate(rows) if row.cost is not None]
    return min(priced)[2] if priced else None


def front_of(rows: Sequence[Result]) -> list[Result]:
    """The rows that no other one beats in what is unseen and in cost, from complete to cheapest: each costs
    less than those ahead of it, and hides more."""
    found: list[Result] = []
    priced = [row for row in rows if row.cost is not None]
    for row in sorted(priced, key=lambda each: (each.lost_tokens, each.cost)):
        if not found or _cost(row) < _cost(found[-1]):
            found.append(row)
    return found


def _cost(row: Result) -> Decimal:
    assert row.cost is not None
    return row.cost


def break_even_of(simulation: Simulation, row: Result, keep: Result) -> BreakEven | None:
    """The share of rereads at which a row costs as much as keeping everything, by simulating shares on both
    sides of it. None where nothing that could be read again is gone, a price is missing, or the share was
    chosen."""
    payloads = payloads_of([(item.segment, item.tokens) for item in row.lost])
    if not payloads or row.cost is None or keep.cost is None or _rereads(row.specs):
        return None
    if row.cost >= keep.cost:
        return BreakEven(share=0.0, payloads=payloads, at_all=None)

    def cost_at(share: float) -> Decimal | None:
        specs = (*row.specs, _reread(f"{share:.6f}"))
        return simulation.rows(specs, [row.placement])[0].cost

    every = cost_at(1.0)
    if every is None:
        return None
    if every < keep.cost:
        return BreakEven(share=None, payloads=payloads, at_all=every)
    tries = min(MOST_TRIES, MANY_REQUESTS // max(1, row.requests))
    share = _crossing(cost_at, keep.cost, (row.cost, every), tries)
    return BreakEven(share=share, payloads=payloads, at_all=every)


def _crossing(
    cost_at: Callable[[float], Decimal | None],
    keep: Decimal,
    costs: tuple[Decimal, Decimal],
    tries: int,
) -> float:
    """The share between 0 and 1, whose costs are given, at which a cost reaches that of keeping everything.

    More rereads cost more in nearly a straight line, the more of them the straighter.
    """
    (low, below), (high, above) = (0.0, costs[0]), (1.0, costs[1])
    for _ in range(tries):
        middle = low + (high - low) * float((keep - below) / (above - below))
        # An end that hardly moves would be tried again and again.
        middle = min(max(middle, low + (high - low) / 10), high - (high - low) / 10)
        found = cost_at(middle)
        if found is None:
            break
        if found < keep:
            low, below = middle, found
        else:
            high, above = middle, found
        if abs(found - keep) <= NEAR * keep:
            break
    return low + (high - low) * float((keep - below) / (above - below))


MOST_TRIES = 6
MANY_REQUESTS = 1_000
"""Requests that all tries together may simulate: over a long log two ends and one try are near enough."""
NEAR = Decimal("0.001")
"""Share of the cost up to which two are the same here."""


def _rereads(specs: Sequence[Spec]) -> bool:
    """Whether a strategy has a share of rereads of its own, which was chosen."""
    return any(
        spec.definition.id == REREAD or float(getattr(spec.strategy, "reread", 0.0)) > 0
        for spec in specs
    )


def _reread(share: str) -> Spec:
    definition, given = STRATEGIES[REREAD], {"share": share}
    return Spec(definition, tuple(given.items()), made(definition, given))
