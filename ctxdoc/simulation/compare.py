"""What a simulation compares: the strategies side by side, the law beside the figures, the searches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import accumulate

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.pricing.cost import dollars, meter_of
from ctxdoc.replay.growth import Growth, Turn, iter_growth
from ctxdoc.simulation.defaults import is_small, usual_for
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.laws import Form, forms_of_best, forms_of_rows
from ctxdoc.simulation.placements import PLACEMENTS, Placement
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.search import Optimum
from ctxdoc.simulation.strategies import Spec
from ctxdoc.simulation.strategies.spec import parse_specs


class Comparison(Struct, frozen=True, kw_only=True):
    """The outcome of a simulation."""

    session: Session
    rows: tuple[Result, ...]
    """In the order in which they were asked for."""
    placement: Placement
    """What the strategies are compared under."""
    keep: Result
    recorded: Result | None
    """Everything kept, with the breakpoints as they were sent; None where the log has none."""
    billed: Decimal | None
    """USD by the reported counters; None where some are missing."""
    growth: Growth | None
    """Of the longest stretch."""
    whole: bool
    """Whether that is the whole session."""
    forms: tuple[Form, ...]
    found: tuple[Optimum, ...] = ()
    scaled: bool = False
    """Whether the marks of the usual strategies were set for this session."""

    @property
    def own_rows(self) -> list[Result]:
        """The rows under the placement of the comparison."""
        return [row for row in self.rows if row.placement is self.placement]

    @property
    def possible(self) -> list[Result]:
        """What can be done: breakpoints that are placed, prompts that fit the window, messages that the
        API takes."""
        return [
            row
            for row in self.rows
            if row.fits
            and not row.placement.bound
            and not any(spec.definition.as_written for spec in row.specs)
        ]

    @property
    def best(self) -> Result | None:
        """The cheapest of what can be done; None where nothing is priced."""
        return _cheapest(iter(self.possible))

    @property
    def best_whole(self) -> Result | None:
        """The cheapest of which the model sees everything."""
        return _cheapest(row for row in self.possible if not row.lost)

    @property
    def cheaper_as_written(self) -> list[Result]:
        """Rows that cost less than the best, and are no choice: kept as people write them."""
        best, possible = self.best, self.possible
        if best is None or best.cost is None:
            return []
        others = (row for row in self.own_rows if row.fits and row not in possible)
        return [row for row in others if row.cost is not None and row.cost < best.cost]

    @property
    def history_tokens(self) -> int:
        """Of all messages, each once."""
        return sum(message.size for message in self.session.messages)

    @property
    def beside(self) -> Decimal:
        """USD of what is billed and in no row: compaction passes of the API, searches."""
        return sum((call.beside or Decimal(0) for call in self.session.calls), Decimal(0))

    @property
    def is_dead(self) -> bool:
        """Whether the prefix breaks so often that it is to be mended before anything is chosen."""
        moved = self.keep.rewritten_tokens > MUCH_MOVED * self.keep.usage.input
        cost, without = self.keep.cost, self.keep.cost_without_cache
        return moved or (
            self.keep.rewrites > 0 and cost is not None and without is not None and cost > without
        )

    def against_keep(self, row: Result) -> Result:
        """The row that keeps everything under the same placement."""
        same = (r for r in self.rows if r.placement is row.placement and r.name == "keep")
        return next(same, self.keep)


MUCH_MOVED = 0.05
"""Share of all input that is sent again behind a change, from which on the prefix is to be mended first."""


def _cheapest(rows: Iterator[Result]) -> Result | None:
    priced = [(row.cost, index, row) for index, row in enumerate(rows) if row.cost is not None]
    return min(priced)[2] if priced else None


def compare(
    simulation: Simulation,
    chosen: Sequence[tuple[Spec, ...]] = (),
    placements: Sequence[Placement] = (),
    found: Sequence[Optimum] = (),
) -> Comparison:
    """Runs the strategies, or the usual ones, under rolling breakpoints and further placements.

    The best of each search stands beside the chosen ones. Raises InputError for recorded breakpoints where
    nothing was recorded.
    """
    session = simulation.session
    places = list(dict.fromkeys((PLACEMENTS["rolling"], *placements)))
    kept = _kept(simulation, places)
    keep = kept[0]
    chosen = _distinct([*chosen, *_best_of(found)])
    rows = kept[: len(places)]
    for specs in chosen or list(usual_for(simulation, keep)):
        # Everything kept was run already, and stands first.
        if [spec.definition.id for spec in specs] != ["keep"]:
            rows += simulation.rows(specs, places)
    growth, whole = _growth(simulation)
    return Comparison(
        session=session,
        rows=tuple(rows),
        placement=keep.placement,
        keep=keep,
        recorded=next((row for row in kept if row.placement is PLACEMENTS["recorded"]), None),
        billed=_billed(session),
        growth=growth,
        whole=whole,
        # A law over a part of the session says nothing of its rows.
        forms=tuple(_forms(session, rows, keep, growth, found)) if growth and whole else (),
        found=tuple(found),
        scaled=not chosen and is_small(keep),
    )


def _best_of(found: Sequence[Optimum]) -> Iterator[tuple[Spec, ...]]:
    """The best of each search, which stands among the rows."""
    for each in found:
        if each.best is not None:
            yield each.best.row.specs


def _kept(simulation: Simulation, places: list[Placement]) -> list[Result]:
    """Everything kept under the placements, and as it was recorded where the log has breakpoints.

    Raises InputError for recorded breakpoints where nothing was recorded.
    """
    session, recorded = simulation.session, PLACEMENTS["recorded"]
    if recorded in places and not session.has_bodies:
        raise InputError(
            "--placement recorded needs bodies, and the log has none",
            "leave it out: what was billed is shown all the same",
        )
    has_marks = any(call.marks for call in session.calls)
    asked = [*places, recorded] if has_marks and recorded not in places else places
    return simulation.rows(parse_specs("keep"), asked)


def _forms(
    session: Session,
    rows: Sequence[Result],
    keep: Result,
    growth: Growth,
    found: Sequence[Optimum],
) -> Iterator[Form]:
    yield from forms_of_rows(session, rows, keep, growth)
    for each in found:
        yield from forms_of_best(session, each, keep, growth)


def _billed(session: Session) -> Decimal | None:
    """What the priced requests cost by their counters, with all that is billed beside them; None where one
    has none."""
    total, known, beside = 0, False, Decimal(0)
    for call in session.calls:
        if call.reported is None:
            return None
        cost = meter_of(call.tariff).cost(call.reported)
        total, known = total + (cost or 0), known or cost is not None
        beside += call.beside or Decimal(0)
    return dollars(total) + beside if known else None


def _growth(simulation: Simulation) -> tuple[Growth | None, bool]:
    """The longest stretch of one thread, and whether it is the whole session."""
    turns: defaultdict[int, list[Turn]] = defaultdict(list)
    # Requests of a thread share one line: its sizes are added up once.
    lines = {id(call.line): call.line for call in simulation.session.calls}
    upto = {key: [0, *accumulate(message.size for message in line)] for key, line in lines.items()}
    for call in simulation.session.calls:
        thread = turns[call.thread]
        size = call.head.size + upto[id(call.line)][call.count]
        thread.append(Turn(len(thread) + 1, size))
    fits = [fit for thread in turns.values() for fit in iter_growth(thread)]
    if not fits:
        return None, False
    longest = max(fits, key=lambda fit: fit.recorded)
    return longest, longest.turns == len(simulation.session.calls)


def _distinct(chosen: Sequence[tuple[Spec, ...]]) -> list[tuple[Spec, ...]]:
    """Each strategy with its parameters once."""
    return list({tuple(spec.strategy for spec in specs): specs for specs in chosen}.values())
