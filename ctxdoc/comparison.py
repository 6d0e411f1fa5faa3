"""What a simulation compares: the strategies side by side, the law beside the figures, the searches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc.growth import Growth, Turn, iter_growth
from ctxdoc.history import Session
from ctxdoc.law import (
    Factors,
    bare,
    best_batch,
    compaction,
    factors_of,
    pays_after,
    saved_by_offload,
    warm,
    window_loses_until,
)
from ctxdoc.model import Usage
from ctxdoc.placements import PLACEMENTS, Placement
from ctxdoc.pricing import dollars, meter_of
from ctxdoc.search import Found, Target, with_value
from ctxdoc.simulate import Row, Simulation, parse_specs
from ctxdoc.strategies import Spec
from ctxdoc.strategies.compact import ASKED_TOKENS, Compact
from ctxdoc.strategies.offload import PAYLOADS, Offload

USUAL = (
    "keep",
    "trim",
    "window",
    "clear",
    "clear:mode=rolling",
    "clear_thinking",
    "compact",
    "offload",
    "offload+compact",
    "drop_images",
    "shrink_images",
    "last_messages",
    "budget_window",
)
"""What is compared where nothing is asked for."""
MARKS = {
    ("trim", "high"): 0.6,
    ("trim", "low"): 0.3,
    ("window", "max_tokens"): 0.4,
    ("budget_window", "max_tokens"): 0.4,
    ("clear", "trigger"): 0.5,
    ("compact", "trigger"): 0.6,
}
"""Marks that a small session would never reach: shares of what its largest prompt has beyond tools and
system prompt."""

SUMMARY_SHARE = 0.1
"""Of the same, what a summary has."""


class Form(Struct, frozen=True, kw_only=True):
    """A closed form beside the simulated figure."""

    name: str
    formula: str
    unit: str
    """tokens (at the input price) or request."""
    value: float | None
    simulated: float | None
    """None where the session does not get there."""

    @property
    def difference(self) -> float | None:
        """Of the closed form from the simulated figure, as a share."""
        if self.value is None or not self.simulated:
            return None
        return self.value / self.simulated - 1


class Comparison(Struct, frozen=True, kw_only=True):
    """The outcome of a simulation."""

    session: Session
    rows: tuple[Row, ...]
    """In the order in which they were asked for."""
    placement: Placement
    """What the strategies are compared under."""
    keep: Row
    recorded: Row | None
    """Everything kept, with the breakpoints as they were sent; None where the log has none."""
    billed: Decimal | None
    """USD by the reported counters; None where some are missing."""
    growth: Growth | None
    """Of the longest stretch."""
    whole: bool
    """Whether that is the whole session."""
    forms: tuple[Form, ...]
    found: tuple[Found, ...] = ()
    scaled: bool = False
    """Whether the marks of the usual strategies were set for this session."""

    @property
    def own_rows(self) -> list[Row]:
        """The rows under the placement of the comparison."""
        return [row for row in self.rows if row.placement is self.placement]

    @property
    def best(self) -> Row | None:
        """The cheapest strategy that the API takes; None where nothing is priced."""
        return _cheapest(row for row in self.own_rows if not row.specs[0].definition.as_written)

    @property
    def best_whole(self) -> Row | None:
        """The cheapest of which the model sees everything."""
        return _cheapest(row for row in self.own_rows if not row.lost)

    def against_keep(self, row: Row) -> Row:
        """The row that keeps everything under the same placement."""
        same = (r for r in self.rows if r.placement is row.placement and r.name == "keep")
        return next(same, self.keep)


def _cheapest(rows: Iterator[Row]) -> Row | None:
    priced = [(row.cost, place, row) for place, row in enumerate(rows) if row.cost is not None]
    return min(priced)[2] if priced else None


def compare(
    simulation: Simulation,
    chosen: Sequence[tuple[Spec, ...]] = (),
    placements: Sequence[Placement] = (),
    found: Sequence[Found] = (),
) -> Comparison:
    """Runs the strategies, or the usual ones, under the placements, or under rolling breakpoints."""
    session = simulation.session
    places = list(dict.fromkeys(placements)) or [PLACEMENTS["rolling"]]
    keep_specs = parse_specs("keep")
    compared = places[0]
    recorded = PLACEMENTS["recorded"]
    has_marks = any(call.marks for call in session.calls)
    asked = [*places, *([recorded] if has_marks and recorded not in places else [])]
    kept = simulation.rows(keep_specs, asked)
    keep = kept[0]
    specs = list(chosen) or list(usual_for(simulation, keep))
    rows: list[Row] = kept[: len(places)]
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
        scaled=not chosen and _is_small(keep),
    )


def usual_for(simulation: Simulation, keep: Row) -> Iterator[tuple[Spec, ...]]:
    """The usual strategies. Where the session is too small for their marks, these are set anew."""
    calls = simulation.session.calls
    heads = max((call.head.size for call in calls), default=0)
    room = keep.peak - heads
    lines = {id(call.line): call.line for call in calls}.values()
    thinks = any(message.thinks for line in lines for message in line)
    pictured = any(s.pictured for line in lines for message in line for s in message.segments)
    largest = max(_payloads(simulation.session), default=0)
    for text in USUAL:
        if (text == "clear_thinking" and not thinks) or ("images" in text and not pictured):
            continue
        specs = parse_specs(text)
        if _is_small(keep):
            for (name, key), share in MARKS.items():
                specs = _with(specs, name, key, str(rounded(heads + share * room)))
            summary = min(Compact().summary_tokens, rounded(SUMMARY_SHARE * room))
            specs = _with(specs, "compact", "summary_tokens", str(summary))
        default = Offload().over
        if 0 < largest <= default:
            specs = _with(specs, "offload", "over", str(rounded(largest / 2)))
        yield specs


def _with(specs: tuple[Spec, ...], name: str, key: str, value: str) -> tuple[Spec, ...]:
    return with_value(specs, Target(name, key), value)


def _is_small(keep: Row) -> bool:
    return keep.peak <= SMALL


SMALL = 150_000
"""Tokens of a prompt: the largest of the usual marks."""


def rounded(value: float) -> int:
    """Two digits that matter."""
    whole = max(1, round(value))
    unit = 10 ** max(0, len(str(whole)) - 2)
    return int(round(whole / unit) * unit)


def _payloads(session: Session) -> Iterator[int]:
    for line in {id(call.line): call.line for call in session.calls}.values():
        for message in line:
            for segment, tokens in zip(message.segments, message.tokens, strict=True):
                if segment.kind in PAYLOADS:
                    yield tokens


def _billed(session: Session) -> Decimal | None:
    """What the priced requests cost by their counters; None where one has none."""
    total, known = 0, False
    for call in session.calls:
        if call.reported is None:
            return None
        cost = meter_of(call.tariff).cost(call.reported)
        total, known = total + (cost or 0), known or cost is not None
    return dollars(total) if known else None


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


def _forms(
    session: Session, rows: Sequence[Row], keep: Row, growth: Growth | None
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
    if keep.placement.id in ("rolling", "automatic"):
        yield Form(
            name="keep, were it always warm",
            formula="w·(P + a·n) + r·((n−1)·P + a·n(n−1)/2)",
            unit="tokens",
            value=warm(prefix, per_turn, turns, by),
            simulated=in_tokens(keep.usage, by),
        )
    for row in rows:
        if row.placement is keep.placement and len(row.specs) == 1:
            yield from _forms_of(row, keep, per_turn, by, session)


def _forms_of(
    row: Row, keep: Row, per_turn: float, by: Factors, session: Session
) -> Iterator[Form]:
    name = row.name
    if name == "window" and row.rewrites and per_turn > 0:
        size = row.peak - session.calls[-1].head.size
        first = row.rewrote[0][0]
        yield Form(
            name="window costs more a turn",
            formula="until turn w·(W − a)/(r·a)",
            unit="request",
            value=window_loses_until(size, per_turn, by),
            simulated=_cheaper_from(row, keep, first),
        )
    elif name in ("clear", "trim") and row.rewrites == 1:
        first, behind = row.rewrote[0]
        removed = keep.prompts[first] - row.prompts[first]
        turns = pays_after(behind, removed, by)
        yield Form(
            name=f"{name} has paid",
            formula="(w−r)·T/(r·d) turns after the cut",
            unit="request",
            value=None if turns is None else first + turns + 1,
            simulated=row.overtaken_at(keep),
        )
    elif name == "offload" and row.lost and not row.extra_calls and not row.rewrites:
        last = session.calls[-1].number
        pointer = getattr(row.specs[0].strategy, "pointer_tokens", 0)
        yield Form(
            name="offload saves",
            formula="Σ (w + r·later turns)·(x − pointer)",
            unit="tokens",
            value=sum(
                saved_by_offload(item.tokens, pointer, last - item.request, by) for item in row.lost
            ),
            simulated=in_tokens(keep.usage, by) - in_tokens(row.usage, by),
        )


def _optimum(found: Found, keep: Row, growth: Growth | None, session: Session) -> Iterator[Form]:
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
    yield Form(
        name="compaction is cheapest",
        formula="at P + summary + a·√(2·C/(r·a))",
        unit="tokens",
        value=None if turns is None else prefix + summary + growth.per_turn * turns,
        simulated=float(compact.trigger),
    )


def _cheaper_from(row: Row, keep: Row, first: int) -> float | None:
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
    hour = 2.0
    return (
        usage.uncached
        + by.read * usage.cache_read
        + by.write * usage.cache_write_5m
        + hour * usage.cache_write_1h
    )
