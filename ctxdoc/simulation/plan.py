"""The plan: the three changes worth making, in their order, each with what to write and what it saves.

A step is worth its place by what it saves beside the steps ahead of it: all of them joined are simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct

from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.placements import Placement
from ctxdoc.simulation.recipe import Recipe
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies import Spec

MOST_STEPS = 3
WORTH = Decimal("0.01")
"""Share of what was sent that a step saves, or it is none."""
MEND = Recipe(
    do="mend what breaks the prefix: ctxdoc replay names each cause and its fix",
    proof="ctxdoc gate holds, and replay finds no avoidable miss",
)


class Step(Struct, frozen=True, kw_only=True):
    """One change."""

    id: str
    """A strategy or placement as `simulate` takes it, or mend."""
    recipe: Recipe
    alone: Decimal | None
    """USD that it saves by itself; None for what no row has."""
    together: Decimal | None
    """USD of all requests with this step and those ahead of it."""
    unseen: float
    """Share of the history that is hidden with this step and those ahead of it."""
    pays_below: float | None = None
    """Share of rereads at which it stops paying; None where nothing can be read again, or all may be."""


class Plan(Struct, frozen=True, kw_only=True):
    """Steps from what was sent to what it could cost."""

    sent: Decimal | None
    steps: tuple[Step, ...]

    @property
    def total(self) -> Decimal | None:
        """USD with all steps."""
        known = [step.together for step in self.steps if step.together is not None]
        return known[-1] if known else self.sent


def plan_of(simulation: Simulation, comparison: Comparison) -> Plan:
    """The plan of a comparison: breakpoints first, then what hides nothing, then what hides little."""
    return Plan(sent=comparison.sent.cost, steps=tuple(_steps(simulation, comparison))[:MOST_STEPS])


def _steps(simulation: Simulation, comparison: Comparison) -> Iterator[Step]:
    sent = comparison.sent.cost
    if comparison.is_dead:
        yield Step(id="mend", recipe=MEND, alone=None, together=None, unseen=0.0)
    if not sent:
        return
    placement, cost = comparison.sent.placement, sent
    place = _placement(comparison, sent)
    if place is not None and place.cost is not None:
        placement, cost = place.placement, place.cost
        recipe = placement.recipe or MEND
        yield Step(id=placement.id, recipe=recipe, alone=sent - cost, together=cost, unseen=0.0)
    joined: tuple[Spec, ...] = ()
    for row in _ranked(comparison):
        found = _joined(simulation, comparison, (*joined, *row.specs), placement)
        if found is not None and found.cost is not None and cost - found.cost >= WORTH * sent:
            joined, cost = found.specs, found.cost
            yield from _step(comparison, row, found)


def _placement(comparison: Comparison, sent: Decimal) -> Result | None:
    """Everything kept under the cheapest breakpoints that there is a row of; None where those are as sent."""
    rows = [comparison.keep, *comparison.as_sent]
    priced = [row for row in rows if row.cost is not None and row.placement.recipe is not None]
    best = min(priced, key=lambda row: row.cost or sent, default=None)
    if best is None or best.cost is None or sent - best.cost < WORTH * sent:
        return None
    return best


def _ranked(comparison: Comparison) -> list[Result]:
    """The rows to try: those that hide no more than the limit, what saves most first; of each strategy once."""
    keep = comparison.keep
    rows = [
        row
        for row in comparison.possible
        if len(row.specs) == 1
        and row.specs[0].definition.recipe is not None
        and row.placement is comparison.placement
        and row.cost is not None
        and keep.cost is not None
        and row.cost < keep.cost
        and comparison.is_within(row)
    ]
    found: dict[str, Result] = {}
    for row in sorted(rows, key=lambda each: each.cost or Decimal(0)):
        found.setdefault(row.name, row)
    return list(found.values())


def _joined(
    simulation: Simulation, comparison: Comparison, specs: tuple[Spec, ...], placement: Placement
) -> Result | None:
    """What the steps so far and one more come to together, within the window and the limit."""
    (found,) = simulation.rows(specs, [placement])
    return found if found.fits and comparison.is_within(found) else None


def _step(comparison: Comparison, row: Result, together: Result) -> Iterator[Step]:
    (spec,) = row.specs
    keep = comparison.keep.cost
    if spec.definition.recipe is None or keep is None or row.cost is None:
        return
    found = comparison.break_even(row)
    yield Step(
        id=row.text,
        recipe=spec.definition.recipe(spec.strategy),
        alone=keep - row.cost,
        together=together.cost,
        unseen=comparison.unseen_share(together),
        pays_below=found.share if found else None,
    )
