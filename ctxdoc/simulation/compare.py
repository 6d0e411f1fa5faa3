"""What a simulation compares: the strategies side by side, the law beside the figures, the searches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import pairwise

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.pricing.cost import dollars, meter_of
from ctxdoc.replay.growth import Growth, Turn, iter_growth
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.closed_forms import (
    Factors,
    bare,
    best_batch,
    compaction,
    dead,
    factors_of,
    pays_after,
    saved_by_offload,
    warm,
    window_loses_until,
)
from ctxdoc.simulation.defaults import is_small, usual_for
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.placements import PLACEMENTS, Placement
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.search import Optimum
from ctxdoc.simulation.strategies import Spec
from ctxdoc.simulation.strategies.compact import ASKED_TOKENS, Compact
from ctxdoc.simulation.strategies.spec import parse_specs


class Form(Struct, frozen=True, kw_only=True):
    """A closed form beside the simulated figure."""

    name: str
    row: Result | None = None
    """The one that it is about, where several could be."""
    formula: str
    unit: str
    """tokens (at the input price) or request."""
    value: float | None
    simulated: float | None
    """None where the session does not get there."""

    @property
    def difference(self) -> float | None:
        """Of the closed form from the simulated figure, as a share of it."""
        if self.value is None or not self.simulated:
            return None
        return self.value / self.simulated - 1


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
        best = self.best
        return [
            row
            for row in self.own_rows
            if row not in self.possible
            and row.fits
            and best is not None
            and row.cost is not None
            and best.cost is not None
            and row.cost < best.cost
        ]

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
    priced = [(row.cost, place, row) for place, row in enumerate(rows) if row.cost is not None]
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
    compared = PLACEMENTS["rolling"]
    places = list(dict.fromkeys((compared, *placements)))
    keep_specs = parse_specs("keep")
    bests = [each.best.row.specs for each in found if each.best is not None]
    chosen = _distinct([*chosen, *bests])
    recorded = PLACEMENTS["recorded"]
    if recorded in places and not session.has_bodies:
        raise InputError(
            "--placement recorded needs bodies, and the log has none",
            "leave it out: what was billed is shown all the same",
        )
    has_marks = any(call.marks for call in session.calls)
    asked = [*places, *([recorded] if has_marks and recorded not in places else [])]
    kept = simulation.rows(keep_specs, asked)
    keep = kept[0]
    specs = list(chosen) or list(usual_for(simulation, keep))
    rows: list[Result] = kept[: len(places)]
    for each in specs:
        if [spec.definition.id for spec in each] != ["keep"]:
            rows += simulation.rows(each, places)
    growth, whole = _growth(simulation)
    return Comparison(
        session=session,
        rows=tuple(rows),
        placement=compared,
        keep=keep,
        recorded=next((row for row in kept if row.placement is recorded), None),
        billed=_billed(session),
        growth=growth,
        whole=whole,
        forms=(
            *_forms(session, rows, keep, growth if whole else None),
            *(form for each in found if whole for form in _optimum(each, keep, growth, session)),
        ),
        found=tuple(found),
        scaled=not chosen and is_small(keep),
    )


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
    for call in simulation.session.calls:
        thread = turns[call.thread]
        size = call.head.size + sum([message.size for message in call.messages])
        thread.append(Turn(len(thread) + 1, size))
    fits = [fit for thread in turns.values() for fit in iter_growth(thread)]
    if not fits:
        return None, False
    longest = max(fits, key=lambda fit: fit.recorded)
    return longest, longest.turns == len(simulation.session.calls)


def _distinct(chosen: Sequence[tuple[Spec, ...]]) -> list[tuple[Spec, ...]]:
    """Each strategy with its parameters once."""
    return list({tuple(spec.strategy for spec in specs): specs for specs in chosen}.values())


def _forms(
    session: Session, rows: Sequence[Result], keep: Result, growth: Growth | None
) -> Iterator[Form]:
    """The closed forms that a session of one stretch can be put beside."""
    call = session.calls[-1]
    by = factors_of(call.tariff, keep.peak)
    if growth is None or growth.per_turn is None or by is None:
        return
    prefix, per_turn, turns = growth.prefix, growth.per_turn, growth.turns
    yield Form(
        name="keep, no cache",
        formula="n·P + a·n(n+1)/2",
        unit="tokens",
        value=bare(prefix, per_turn, turns),
        simulated=float(keep.usage.input),
    )
    if keep.rewrites >= turns - 1 > 0:
        yield Form(
            name="keep, always dead",
            formula="w·(n·P + a·n(n+1)/2)",
            unit="tokens",
            value=dead(prefix, per_turn, turns, by),
            simulated=in_tokens(keep.usage, by),
        )
    is_warm = not keep.rewrites and _stays_warm(session)
    if is_warm:
        yield Form(
            name="keep, always warm",
            formula="w·(P + a·n) + r·((n−1)·P + a·n(n−1)/2)",
            unit="tokens",
            value=warm(prefix, per_turn, turns, by),
            simulated=in_tokens(keep.usage, by),
        )
    for row in rows:
        if row.placement is keep.placement and len(row.specs) == 1 and is_warm:
            yield from _forms_of(row, keep, per_turn, by, session)


def _stays_warm(session: Session) -> bool:
    """Whether no pause is longer than an entry of the shortest lifetime lives."""
    starts = [call.at for call in session.calls if call.at is not None]
    lives = min(call.rule.rules.shortest for call in session.calls)
    return all((two - one).total_seconds() <= lives for one, two in pairwise(sorted(starts)))


def _forms_of(
    row: Result, keep: Result, per_turn: float, by: Factors, session: Session
) -> Iterator[Form]:
    """The closed forms of a strategy, where it did what they are about."""
    name, requests = row.name, len(session.calls)
    if name == "window" and row.rewrites and per_turn > 0:
        first = row.rewrote[0][0]
        until = window_loses_until(row.peak - session.calls[-1].head.size, per_turn, by)
        slides = row.rewrites == requests - first
        if slides and until is not None and until < requests:
            yield Form(
                name="costs more a turn",
                row=row,
                formula="until turn w·(W − a)/(r·a)",
                unit="request",
                value=until,
                simulated=_cheaper_from(row, keep, first),
            )
    elif name in ("clear", "trim") and row.rewrites == 1:
        first, behind = row.rewrote[0]
        removed = keep.prompts[first] - row.prompts[first]
        turns = pays_after(behind, removed, by)
        if turns is not None and first + turns + 1 <= requests:
            yield Form(
                name="has paid",
                row=row,
                formula="(w−r)·T/(r·d) turns after the cut",
                unit="request",
                value=first + turns + 1,
                simulated=row.overtaken_at(keep),
            )
    elif name == "offload" and row.lost and not row.extra_calls and not row.rewrites:
        last = session.calls[-1].number
        pointer = getattr(row.specs[0].strategy, "pointer_tokens", 0)
        yield Form(
            name="saves",
            row=row,
            formula="Σ (w + r·later turns)·(x − pointer)",
            unit="tokens",
            value=sum(
                saved_by_offload(item.tokens, pointer, last - item.request, by) for item in row.lost
            ),
            simulated=in_tokens(keep.usage, by) - in_tokens(row.usage, by),
        )


def _optimum(
    found: Optimum, keep: Result, growth: Growth | None, session: Session
) -> Iterator[Form]:
    """The best size of a compaction, where one was looked for."""
    best = found.best
    if growth is None or not growth.per_turn or best is None or len(best.row.specs) != 1:
        return
    if [str(target) for target in found.targets] != ["compact.trigger"]:
        return
    call, compact = session.calls[-1], best.row.specs[0].strategy
    by = factors_of(call.tariff, keep.peak)
    if by is None or not isinstance(compact, Compact):
        return
    summary, prefix = compact.summary_tokens, call.head.size
    once = compaction(prefix, summary, compact.keep_recent * growth.per_turn + ASKED_TOKENS, by)
    turns = best_batch(growth.per_turn, once, by)
    if turns is None or not best.row.rewrites:
        # Never is cheapest here.
        return
    yield Form(
        name="is cheapest",
        row=best.row,
        formula="at P + summary + a·√(2·C/(r·a))",
        unit="tokens",
        value=prefix + summary + growth.per_turn * turns,
        simulated=float(compact.trigger),
    )


def _cheaper_from(row: Result, keep: Result, first: int) -> float | None:
    """The first request, from 1, from which on each costs less than with everything kept."""
    since = None
    for number, (own, theirs) in enumerate(zip(row.costs, keep.costs, strict=True), start=1):
        if own is None or theirs is None:
            return None
        if number <= first:
            continue
        since = (since or number) if own < theirs else None
    return since


def in_tokens(usage: Usage, by: Factors) -> float:
    """What a usage's input costs, in tokens at the input price."""
    return (
        usage.uncached
        + by.read * usage.cache_read
        + by.write * usage.cache_write_5m
        + by.write_1h * usage.cache_write_1h
    )
