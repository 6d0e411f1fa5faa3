"""Closed forms for what a growing session costs, beside which the simulated figures are put.

Turn k sends P + a·k tokens; r and w are the read and the write factor. Costs are in tokens at the input
price. Derivation: design, "Growth and cost, in formulas".
"""

from __future__ import annotations

from math import sqrt

from msgspec import Struct

from ctxdoc.pricing.rates import find_rates
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.request.usage import Usage


class Factors(Struct, frozen=True):
    """Prices of a model as multiples of its input price."""

    read: float
    write: float
    """For 5 minutes."""
    write_1h: float
    output: float


def factors_of(tariff: Tariff, size: int) -> Factors | None:
    """The factors for prompts of a size; None where the model is unpriced."""
    rates = find_rates(tariff, size)
    if (
        rates is None
        or rates.cache_read is None
        or rates.cache_write_5m is None
        or rates.cache_write_1h is None
    ):
        return None
    base = float(rates.input)
    return Factors(
        read=float(rates.cache_read) / base,
        write=float(rates.cache_write_5m) / base,
        write_1h=float(rates.cache_write_1h) / base,
        output=float(rates.output) / base,
    )


def bare(prefix: float, per_turn: float, turns: int) -> float:
    """Without a cache: n·P + a·n(n+1)/2."""
    return turns * prefix + per_turn * turns * (turns + 1) / 2


def warm(prefix: float, per_turn: float, turns: int, by: Factors) -> float:
    """Always warm: w·(P + a·n) + r·((n−1)·P + a·n(n−1)/2)."""
    read = (turns - 1) * prefix + per_turn * turns * (turns - 1) / 2
    return by.write * (prefix + per_turn * turns) + by.read * read


def dead(prefix: float, per_turn: float, turns: int, by: Factors) -> float:
    """Always dead, with breakpoints: w times the uncached sum."""
    return by.write * bare(prefix, per_turn, turns)


def window_loses_until(window: float, per_turn: float, by: Factors) -> float | None:
    """The turn up to which a window of so many tokens of messages, which slides every turn, costs more
    a turn than keeping all: w·(W − a)/(r·a); None where nothing grows."""
    if per_turn <= 0 or by.read <= 0:
        return None
    return by.write * (window - per_turn) / (by.read * per_turn)


def pays_after(behind: float, removed: float, by: Factors) -> float | None:
    """Turns after which removing tokens pays, with so many behind the cut: (w−r)·T/(r·d)."""
    if removed <= 0 or by.read <= 0:
        return None
    return (by.write - by.read) * behind / (by.read * removed)


def compaction(prefix: float, summary: float, again: float, by: Factors) -> float:
    """What one compaction costs whatever its size: the fixed part is read, the summary put out and
    written, and what stays of the last turn and the question for the summary are written `again`."""
    return by.read * prefix + by.output * summary + by.write * (summary + again)


def best_batch(per_turn: float, once: float, by: Factors) -> float | None:
    """Turns between two compactions that cost least a turn: √(2·C/(r·a)).

    `once` is what each costs whatever its size; the area under the saw-tooth is r·a·m²/2 for m turns.
    None where nothing grows.
    """
    if per_turn <= 0 or by.read <= 0:
        return None
    return sqrt(2 * once / (by.read * per_turn))


def saved_by_offload(payload: float, pointer: float, later: int, by: Factors) -> float:
    """What never sending a payload saves: w·x once and r·x in each later turn, the pointer's off."""
    return (by.write + by.read * later) * (payload - pointer)


def in_tokens(usage: Usage, by: Factors) -> float:
    """What a usage's input costs, in tokens at the input price."""
    return (
        usage.uncached
        + by.read * usage.cache_read
        + by.write * usage.cache_write_5m
        + by.write_1h * usage.cache_write_1h
    )


class Law(Struct, frozen=True, kw_only=True):
    """A closed form's value, and what the simulation came to."""

    name: str
    formula: str
    unit: str
    """tokens (at the input price) or request."""
    value: float | None
    simulated: float | None
    """None where the session does not get there."""


class Figures(Struct, frozen=True, kw_only=True):
    """What a session that grows by one law came to under a strategy, for the closed form of that one."""

    by: Factors
    requests: int
    per_turn: float
    head: int
    """Tokens of tools and system prompt."""
    peak: int
    rewrote: tuple[tuple[int, int], ...]
    """Indices of requests that do not go on from the one before, and the tokens behind the change."""
    removed: int
    """Tokens that the first of them has less than with everything kept."""
    extra_calls: int
    lost: tuple[tuple[int, int], ...]
    """Tokens of each block that is never sent, and the requests after the first that would have."""
    saved: float
    """Tokens at the input price that keeping everything costs more in all."""
    paid_from: int | None
    """The request, from 1, from which on keeping everything has cost more in all."""
    cheaper_from: int | None
    """The request, from 1, from which on each costs less than with everything kept."""


def paid_back(strategy: object, figures: Figures) -> Law | None:
    """When a single cut has paid for what it wrote anew; None where there was another number of cuts."""
    del strategy
    if len(figures.rewrote) != 1:
        return None
    first, behind = figures.rewrote[0]
    turns = pays_after(behind, figures.removed, figures.by)
    if turns is None or first + turns + 1 > figures.requests:
        return None
    return Law(
        name="has paid",
        formula="(w−r)·T/(r·d) turns after the cut",
        unit="request",
        value=first + turns + 1,
        simulated=figures.paid_from,
    )
