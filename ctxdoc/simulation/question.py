"""The question to a simulation: strategies, placements and searches as they are typed, or a session by its
numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches

import msgspec
from msgspec import Struct

from ctxdoc.errors import InputError, UnknownNameError
from ctxdoc.simulation.choice import MAX_UNSEEN, REREAD
from ctxdoc.simulation.compare import Comparison, compare
from ctxdoc.simulation.defaults import fitted_all
from ctxdoc.simulation.history.from_numbers import MODEL, Shape
from ctxdoc.simulation.placements import PLACEMENTS, Placement
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.search import (
    Optimum,
    Sweep,
    Target,
    base_of,
    optimum,
    parse_optimum,
    parse_sweep,
    sweep,
)
from ctxdoc.simulation.strategies import Spec
from ctxdoc.simulation.strategies.spec import by_server, parse_specs

TURNS = 20
"""Of a made-up session, where nothing else is said."""
OPTIONS = {"output": "--output-tokens"}
"""Numbers of a made-up session whose option has another name."""


class Question(Struct, frozen=True, kw_only=True):
    """What is to be compared."""

    strategies: tuple[tuple[Spec, ...], ...] = ()
    """Each may be several that are joined; none means all that apply."""
    placements: tuple[Placement, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    optima: tuple[tuple[Target, tuple[int, int] | None], ...] = ()
    """Each with the range to look at."""
    max_unseen: float = MAX_UNSEEN
    """Share of the history that a way may hide and still be a choice."""

    @property
    def placement(self) -> Placement:
        """What searches and an emitted log stand under: the first that was asked for."""
        return self.placements[0] if self.placements else PLACEMENTS["rolling"]

    def emitted(self) -> tuple[Spec, ...]:
        """The strategy whose requests can be written as a log.

        Raises InputError unless it is one, under a placement that a request can carry.
        """
        if len(self.strategies) != 1:
            count = len(self.strategies)
            raise InputError(
                f"--emit writes one strategy, and there are {count}", "give one --strategy"
            )
        if self.placement.bound:
            raise InputError("the oracle is a bound and places no breakpoints", "choose another")
        specs = self.strategies[0]
        if any(spec.definition.id == REREAD for spec in specs) and any(map(by_server, specs)):
            raise InputError(
                "what the API takes out by itself stands in no body that reread could go on from",
                "add by=client to the strategy ahead of it",
            )
        return specs

    def answer(self, simulation: Simulation) -> Comparison:
        """The comparison over a session.

        Raises InputError for a search that is too large or finds nothing to vary.
        """
        found = list(self._searched(simulation))
        return compare(simulation, self.strategies, self.placements, found, self.max_unseen)

    def _searched(self, simulation: Simulation) -> Iterator[Optimum]:
        """All sweeps as one grid, then each optimum by itself."""
        place = self.placement
        if self.sweeps:
            # Values of one strategy may hang on those of another, so that sweeps make one grid.
            base = base_of(self.strategies, [each.target for each in self.sweeps])
            (base,) = fitted_all(simulation.session, [base])
            yield sweep(simulation, base, self.sweeps, place)
        for target, ends in self.optima:
            base = base_of(self.strategies, [target])
            # What is not searched stands where the table has it.
            (base,) = fitted_all(simulation.session, [base], but=str(target))
            yield optimum(simulation, base, target, ends, place)


def question_of(
    strategy: Sequence[str] = (),
    placement: Sequence[str] = (),
    sweeps: Sequence[str] = (),
    optimize: Sequence[str] = (),
    max_unseen: float = MAX_UNSEEN,
) -> Question:
    """The question in the words of the command's options.

    Raises InputError, and UnknownNameError for a name that there is not.
    """
    return Question(
        strategies=tuple(map(parse_specs, strategy)),
        placements=tuple(PLACEMENTS[name] for name in placement),
        sweeps=tuple(map(parse_sweep, sweeps)),
        optima=tuple(map(parse_optimum, optimize)),
        max_unseen=max_unseen,
    )


def shape_of(numbers: Mapping[str, int | float], model: str) -> Shape:
    """The made-up session of the numbers that were given.

    Raises InputError where its growth is not among them.
    """
    if "per_turn" not in numbers:
        raise InputError(
            "nothing says what a turn adds to the made-up session", "give --per-turn, as in 1500"
        )
    given = {"prefix": 0, "turns": TURNS, **numbers, "model": model or MODEL}
    return msgspec.convert(given, Shape)


def share_of(text: float | str, option: str) -> float:
    """A share as it is typed: 0.1 or 10%.

    Raises InputError for what is none.
    """
    try:
        typed = str(text).strip()
        share = float(typed.removesuffix("%")) / (100 if typed.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(f"{option} '{text}' is no share", f"write {option} 10%, or {option} 0.1")
    return share


ASSUMPTIONS = {"shorter_entries_die": False, "shorter_entries_live": True}
"""What nobody documents of the cache, by its name → whether a read renews the entries of shorter prefixes."""


def renews_shorter_of(text: str) -> bool:
    """The assumption on entries that are shorter than the one that is read.

    Raises UnknownNameError for another one.
    """
    if text and text not in ASSUMPTIONS:
        near = get_close_matches(text, ASSUMPTIONS, n=2)
        raise UnknownNameError("assumption", text, near, list(ASSUMPTIONS))
    return ASSUMPTIONS.get(text, False)


def option_of(number: str) -> str:
    """The option that gives a number of a made-up session."""
    return OPTIONS.get(number, f"--{number.replace('_', '-')}")
