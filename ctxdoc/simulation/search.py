"""Values of a strategy's parameters tried out: a grid of given ones, or the cheapest."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import product

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.images.size import PATCH, TIERS
from ctxdoc.simulation.history.messages import Session, size_of
from ctxdoc.simulation.placements import Placement
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies import STRATEGIES, Measure, Spec, made
from ctxdoc.simulation.strategies.spec import parse_specs

COARSE = 24
"""Values that the first pass of an optimization tries."""
FINE = 12
"""What a step is divided by from pass to pass."""
PRECISION = 100
MOST = 400
"""Combinations of a sweep."""
_TARGET = re.compile(r"^\s*([\w-]+)\.([\w-]+)\s*(?:=\s*(.*))?$")


class Target(Struct, frozen=True):
    """A parameter of a strategy."""

    strategy: str
    key: str

    def __str__(self) -> str:
        """As it is typed."""
        return f"{self.strategy}.{self.key}"


class Sweep(Struct, frozen=True):
    """The values to try of one parameter."""

    target: Target
    values: tuple[str, ...]


class Point(Struct, frozen=True):
    """One combination and its row."""

    values: tuple[str, ...]
    row: Result


class Optimum(Struct, frozen=True):
    """The outcome of a search over one or several parameters."""

    targets: tuple[Target, ...]
    points: tuple[Point, ...]
    """In the order of the values."""
    held: tuple[str, ...] = ()
    """The parameters that were not searched, as they are typed."""
    ends: tuple[int, int] | None = None
    """The range of an optimization."""
    history: int = 0
    """Tokens of the session's messages."""

    @property
    def best(self) -> Point | None:
        """The cheapest; None where a price is missing."""
        priced = [point for point in self.points if point.row.cost is not None]
        return min(priced, key=_cost) if len(priced) == len(self.points) else None

    @property
    def is_on_edge(self) -> bool:
        """Whether the best value is an end of the range: beyond it may lie a cheaper one."""
        best = self.best
        return self.ends is not None and best is not None and int(best.values[0]) in self.ends

    @property
    def is_empty(self) -> bool:
        """Whether the best leaves the model next to nothing of the conversation."""
        best = self.best
        return best is not None and best.row.lost_tokens > EMPTY * self.history > 0

    @property
    def word(self) -> str:
        """What the best value is."""
        if self.is_empty:
            return "cheapest, but the conversation is gone"
        return "the edge of the range" if self.is_on_edge else "cheapest"

    @property
    def is_flat(self) -> bool:
        """Whether no value differs from another in what it costs."""
        return len(self.points) > 1 and len({point.row.cost for point in self.points}) == 1


EMPTY = 0.8
"""Share of the history that is hidden, from which on there is no conversation left."""


def held_of(base: Sequence[Spec], targets: Sequence[Target]) -> tuple[str, ...]:
    """What a search leaves as it is, of the parameters that are numbers of something."""
    searched = set(map(str, targets))
    names = [
        (f"{spec.definition.id}.{each.name}", getattr(spec.strategy, each.name))
        for spec in base
        for each in spec.definition.parameters
        if each.measure is not None
    ]
    return tuple(f"{name}={value}" for name, value in names if name not in searched)


def _history_of(session: Session) -> int:
    return size_of(session.messages)


def _cost(point: Point) -> Decimal:
    assert point.row.cost is not None
    return point.row.cost


def parse_sweep(text: str) -> Sweep:
    """`clear.trigger=50k,100k` as the values of a parameter.

    Raises InputError, and UnknownNameError for a name that there is not.
    """
    target, rest = _target(text, "--sweep")
    values = tuple(value.strip() for value in (rest or "").split(",") if value.strip())
    if not values:
        raise InputError(f"--sweep '{text}' has no values", f"write {target}=a,b,c")
    for value in values:
        made(STRATEGIES[target.strategy], {target.key: value})
    return Sweep(target, values)


def parse_optimum(text: str) -> tuple[Target, tuple[int, int] | None]:
    """`compact.trigger`, or `compact.trigger=20k..150k` with the range to look at.

    Raises InputError, and UnknownNameError for a name that there is not.
    """
    target, rest = _target(text, "--optimize")
    if STRATEGIES[target.strategy].parameter(target.key).measure is None:
        raise InputError(f"{target} is no number of tokens, requests or blocks", "try --sweep")
    if not rest:
        return target, None
    low, dots, high = rest.partition("..")
    ends = (_whole(target, low), _whole(target, high)) if dots else (0, 0)
    if ends[0] >= ends[1]:
        raise InputError(f"--optimize '{text}' has no range", f"write {target}=20k..150k")
    return target, ends


def _whole(target: Target, text: str) -> int:
    return int(getattr(made(STRATEGIES[target.strategy], {target.key: text}), target.key))


def _target(text: str, option: str) -> tuple[Target, str | None]:
    match = _TARGET.match(text)
    if match is None:
        values = "=50k,100k" if option == "--sweep" else ""
        raise InputError(
            f"{option} '{text}' names no parameter", f"write {option} clear.trigger{values}"
        )
    definition = STRATEGIES[match[1]]
    return Target(definition.id, definition.parameter(match[2]).name), match[3]


def with_value(specs: Sequence[Spec], target: Target, value: str) -> tuple[Spec, ...]:
    """The strategies with one parameter set anew."""
    return tuple(
        Spec(spec.definition, tuple(given.items()), made(spec.definition, given))
        if spec.definition.id == target.strategy
        and (given := {**dict(spec.given), target.key: value})
        else spec
        for spec in specs
    )


def base_of(chosen: Sequence[tuple[Spec, ...]], targets: Sequence[Target]) -> tuple[Spec, ...]:
    """The chosen strategies that have all of the parameters; else the ones that are named, joined."""
    names = list(dict.fromkeys(target.strategy for target in targets))
    for specs in chosen:
        if all(any(spec.definition.id == name for spec in specs) for name in names):
            return specs
    return parse_specs("+".join(names))


def sweep(
    simulation: Simulation, base: tuple[Spec, ...], sweeps: Sequence[Sweep], placement: Placement
) -> Optimum:
    """Every combination of the values.

    Raises InputError for more than `MOST`, and for a parameter that is named twice.
    """
    names = [str(each.target) for each in sweeps]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{twice} is swept twice", f"write --sweep {twice}=a,b,c once")
    grid = list(product(*(each.values for each in sweeps)))
    if len(grid) > MOST:
        raise InputError(f"--sweep asks for {len(grid):,} combinations", f"at most {MOST} are run")
    targets = tuple(each.target for each in sweeps)
    points = []
    for values in grid:
        specs = base
        for target, value in zip(targets, values, strict=True):
            specs = with_value(specs, target, value)
        points.append(Point(values, simulation.rows(specs, [placement])[0]))
    held, history = held_of(base, targets), _history_of(simulation.session)
    return Optimum(targets, tuple(points), held, history=history)


def optimum(
    simulation: Simulation,
    base: tuple[Spec, ...],
    target: Target,
    ends: tuple[int, int] | None,
    placement: Placement,
) -> Optimum:
    """The cheapest value of a parameter to a hundredth of it, and the curve around it: a coarse pass over
    the range, and finer ones around the best value so far.

    Raises InputError where the model has no price.
    """
    low, high = ends or _range(simulation, target)
    tried: dict[int, Point] = {}

    def cost(value: int) -> Decimal:
        if value not in tried:
            specs = with_value(base, target, str(value))
            tried[value] = Point((str(value),), simulation.rows(specs, [placement])[0])
        found = tried[value].row.cost
        if found is None:
            raise InputError(f"--optimize {target} needs a price", "name a model with --model")
        return found

    step = max(1, -(-(high - low) // COARSE))
    best = _cheapest(range(low, high + 1, step), cost)
    while step > max(1, best // PRECISION):
        around = range(max(low, best - step), min(high, best + step) + 1, max(1, step // FINE))
        best = _cheapest(around, cost)
        step //= FINE
    points = tuple(tried[value] for value in sorted(tried))
    held, history = held_of(base, [target]), _history_of(simulation.session)
    return Optimum((target,), points, held, (low, high), history)


def _cheapest(values: Sequence[int], cost: Callable[[int], Decimal]) -> int:
    return min(values, key=lambda value: (cost(value), value))


def _range(simulation: Simulation, target: Target) -> tuple[int, int]:
    """The values between which something changes, by what the parameter is a number of."""
    parameter = STRATEGIES[target.strategy].parameter(target.key)
    session = simulation.session
    head, peak = room_of(session)
    match parameter.measure:
        case Measure.PROMPT:
            return head, max(peak, head + 1)
        case Measure.PAYLOAD:
            blocks = [tokens for message in session.messages for tokens in message.tokens]
            return 0, max(blocks, default=1)
        case Measure.SUMMARY:
            return 0, max(1, (peak - head) // 2)
        case Measure.SECONDS:
            return 0, MOST_SECONDS
        case Measure.PIXELS:
            return PATCH, max(edge for edge, _ in TIERS.values())
        case _:
            return 0, max(LEAST_COUNT, 3 * int(str(parameter.default)))


LEAST_COUNT = 20
MOST_SECONDS = 2 * 3_600
"""Twice the longest lifetime of an entry."""


def room_of(session: Session) -> tuple[int, int]:
    """Tokens of the largest fixed part, tools and system prompt, and of the largest prompt."""
    heads = [call.head.size for call in session.calls]
    prompts = [call.head.size + size_of(call.messages) for call in session.calls]
    return max(heads, default=0), max(prompts, default=0)
