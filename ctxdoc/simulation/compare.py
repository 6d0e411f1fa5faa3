"""What a simulation compares: the strategies side by side, the law beside the figures, the searches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.replay.growth import Growth, Turn, iter_growth
from ctxdoc.simulation.baseline import Baseline, baseline_of, beside_of, billed_of, has_been_sent
from ctxdoc.simulation.choice import (
    MAX_UNSEEN,
    BreakEven,
    break_even_of,
    cheapest_of,
    front_of,
    is_choice,
    is_complete,
    is_withholding,
)
from ctxdoc.simulation.defaults import fitted_all, is_small, usual_for
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
    as_sent: tuple[Result, ...]
    """Everything kept as it was sent, and with the other lifetime; those that were asked for are rows."""
    placement: Placement
    """What the strategies are compared under."""
    keep: Result
    baseline: Baseline | None
    """Everything kept as it was sent; None of a made-up session."""
    growth: Growth | None
    """Of the longest stretch."""
    whole: bool
    """Whether that is the whole session."""
    forms: tuple[Form, ...]
    found: tuple[Optimum, ...] = ()
    scaled: bool = False
    """Whether the marks of strategies were set for this session."""
    renews_shorter: bool = False
    """Whether it is assumed that a read renews the entries of shorter prefixes."""
    otherwise: Decimal | None = None
    """USD of keeping everything under the other assumption."""
    max_unseen: float = MAX_UNSEEN
    """Share of the history that a way may hide and still be a choice."""
    break_evens: Mapping[int, BreakEven] = {}
    """By the index of the row."""
    same: Mapping[int, tuple[str, ...]] = {}
    """By the index of the row: strategies that sent exactly the same, and have no row."""

    @property
    def own_rows(self) -> list[Result]:
        """The rows under the placement of the comparison."""
        return [row for row in self.rows if row.placement is self.placement]

    @property
    def recorded(self) -> Result | None:
        """Everything kept, with the breakpoints as they were sent."""
        return self.baseline.row if self.baseline else None

    @property
    def billed(self) -> Decimal | None:
        """USD by the reported counters; None where some are missing."""
        return self.baseline.billed if self.baseline else None

    @property
    def sent(self) -> Result:
        """What every row is held against: everything kept as it was sent, or else under the placement."""
        return self.recorded or self.keep

    def break_even(self, row: Result) -> BreakEven | None:
        """How much of what a row takes out may be read again until it stops paying."""
        return next(
            (found for index, found in self.break_evens.items() if self.rows[index] is row), None
        )

    @property
    def possible(self) -> list[Result]:
        """What can be done."""
        return [row for row in (*self.rows, *self.as_sent) if is_choice(row)]

    @property
    def best(self) -> Result | None:
        """The cheapest of what can be done, whatever it hides; None where nothing is priced."""
        return cheapest_of(self.possible)

    @property
    def best_within(self) -> Result | None:
        """The cheapest that hides no more than the limit."""
        return cheapest_of(filter(self.is_within, self.possible))

    @property
    def front(self) -> list[Result]:
        """The rows that no other one beats both in cost and in what is unseen."""
        return front_of([row for row in self.possible if not is_withholding(row)])

    def unseen_share(self, row: Result) -> float:
        """Share of the history that the model does not see at some request that had it."""
        return row.lost_tokens / self.history_tokens if self.history_tokens else 0.0

    def is_within(self, row: Result) -> bool:
        """Whether a row hides no more than the limit."""
        return is_complete(row) or 0 < self.max_unseen >= self.unseen_share(row)

    @property
    def best_whole(self) -> Result | None:
        """The cheapest of which the model sees everything."""
        return cheapest_of(filter(is_complete, self.possible))

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
        return beside_of(self.session)

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
        every = (*self.rows, *self.as_sent)
        same = (r for r in every if r.placement is row.placement and r.name == "keep")
        return next(same, self.keep)


MUCH_MOVED = 0.05
"""Share of all input that is sent again behind a change, from which on the prefix is to be mended first."""


def compare(
    simulation: Simulation,
    chosen: Sequence[tuple[Spec, ...]] = (),
    placements: Sequence[Placement] = (),
    found: Sequence[Optimum] = (),
    max_unseen: float = MAX_UNSEEN,
) -> Comparison:
    """Runs the strategies, or the usual ones, under rolling breakpoints and further placements.

    The best of each search stands beside the chosen ones. Raises InputError for recorded breakpoints where
    nothing was recorded.
    """
    session = simulation.session
    places = list(dict.fromkeys((PLACEMENTS["rolling"], *placements)))
    kept = _kept(simulation, places)
    keep = kept[0]
    asked = _distinct([*fitted_all(session, chosen), *_best_of(found)])
    rows, ways = kept[: len(places)], kept[len(places) :]
    for specs in asked or usual_for(session, max_unseen):
        # Everything kept was run already, and stands first.
        if [spec.definition.id for spec in specs] != ["keep"]:
            rows += simulation.rows(specs, places)
    # Who names strategies gets a row for each.
    rows, same = (rows, {}) if asked else _merged(rows)
    growth, whole = _growth(simulation)
    recorded = next((row for row in kept if row.placement is PLACEMENTS["recorded"]), None)
    return Comparison(
        session=session,
        rows=tuple(rows),
        as_sent=tuple(ways),
        placement=keep.placement,
        keep=keep,
        baseline=baseline_of(simulation, recorded, billed_of(session)) if recorded else None,
        growth=growth,
        whole=whole,
        # A law over a part of the session says nothing of its rows.
        forms=tuple(_forms(session, rows, keep, growth, found)) if growth and whole else (),
        found=tuple(found),
        scaled=_is_scaled(session, [*chosen, *_best_of(found)]),
        renews_shorter=simulation.renews_shorter,
        otherwise=simulation.otherwise().rows(parse_specs("keep"), places[:1])[0].cost,
        max_unseen=max_unseen,
        break_evens=dict(_break_evens(simulation, rows, places)),
        same=same,
    )


def _is_scaled(session: Session, asked: Sequence[tuple[Spec, ...]]) -> bool:
    """Whether marks were set for a session that is too small for the usual ones."""
    return is_small(session) and (not asked or fitted_all(session, asked) != list(asked))


def _merged(rows: Sequence[Result]) -> tuple[list[Result], dict[int, tuple[str, ...]]]:
    """The rows of which no two sent the same, and what else sent what each did."""
    found: dict[object, int] = {}
    left: list[Result] = []
    same: dict[int, tuple[str, ...]] = {}
    for row in rows:
        key = (
            row.placement.id,
            row.prompts,
            row.costs,
            row.usage,
            row.lost_tokens,
            row.extra_calls,
        )
        at = found.get(key)
        # What has no effect at all is no other name for keeping everything: it is told apart.
        if at is None or row.is_idle:
            found.setdefault(key, len(left))
            left.append(row)
        else:
            same[at] = (*same.get(at, ()), row.text)
    return left, same


def _break_evens(
    simulation: Simulation, rows: Sequence[Result], places: Sequence[Placement]
) -> Iterator[tuple[int, BreakEven]]:
    """The share of rereads at which each row under the first placement stops paying."""
    keep = rows[0]
    for index, row in enumerate(rows):
        if row.placement is places[0] and row is not keep and row.lost:
            found = break_even_of(simulation, row, keep)
            if found is not None:
                yield index, found


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
    own = list(_as_sent(session)) if has_been_sent(session.calls) else []
    return simulation.rows(parse_specs("keep"), list(dict.fromkeys((*places, *own))))


def _as_sent(session: Session) -> Iterator[Placement]:
    """The breakpoints as they were sent, and the same with the other lifetime."""
    yield PLACEMENTS["recorded"]
    hours = sum(mark.ttl == "1h" for call in session.calls for mark in call.marks)
    every = sum(len(call.marks) for call in session.calls)
    if every:
        yield PLACEMENTS["recorded_5m" if 2 * hours > every else "recorded_1h"]


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
