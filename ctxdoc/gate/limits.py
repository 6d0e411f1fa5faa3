"""The limits of the gate: what is measured of a replayed log, and what it may be."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from msgspec import Struct

from ctxdoc.ledger.ledger import Grown, Ledger
from ctxdoc.ledger.totals import totals_of

Value = int | float | Decimal
STRETCH = 3
"""Requests of a stretch from which on its growth says something."""


class Measured(Struct, frozen=True):
    """What a limit is held against."""

    value: Value | None
    """None where the log does not tell."""
    where: str = ""


class Limit(Struct, frozen=True, kw_only=True):
    """Something of a log that may be limited."""

    name: str
    """As in the settings, with underscores."""
    title: str
    unit: str
    measure: Callable[[Ledger], Measured]
    at_least: bool = False
    """Whether the limit is a lower one."""

    def holds(self, value: Value, limit: Value) -> bool:
        """Whether a value keeps to a limit."""
        one, two = Decimal(str(value)), Decimal(str(limit))
        return one >= two if self.at_least else one <= two


def _hit_ratio(replay: Ledger) -> Measured:
    return Measured(totals_of(replay.rows).hit_ratio)


def _lost_cost(replay: Ledger) -> Measured:
    return Measured(totals_of(replay.rows).gated.amount)


def _lost_tokens(replay: Ledger) -> Measured:
    return Measured(totals_of(replay.rows).lost_tokens)


def _largest(replay: Ledger, value: Callable[[Grown], float | None]) -> Measured:
    found = [
        (round(size), grown)
        for grown in replay.growth
        if len(grown.rows) >= STRETCH and (size := value(grown)) is not None
    ]
    if not found:
        return Measured(None)
    size, grown = max(found, key=lambda pair: pair[0])
    return Measured(size, f"session {grown.session}, requests {grown.rows[0]} to {grown.rows[-1]}")


def _prefix(replay: Ledger) -> Measured:
    return _largest(replay, lambda grown: grown.fit.prefix)


def _growth(replay: Ledger) -> Measured:
    return _largest(replay, lambda grown: grown.fit.per_turn)


LIMITS = (
    Limit(
        name="min_hit_ratio",
        title="share of the input that is read from the cache",
        unit="share",
        measure=_hit_ratio,
        at_least=True,
    ),
    Limit(
        name="max_lost_cost",
        title="money lost by misses that can be avoided",
        unit="USD",
        measure=_lost_cost,
    ),
    Limit(
        name="max_lost_tokens",
        title="tokens lost by misses that can be avoided",
        unit="tokens",
        measure=_lost_tokens,
    ),
    Limit(
        name="max_prefix_tokens",
        title="tokens of the fixed prefix: tools and system prompt",
        unit="tokens",
        measure=_prefix,
    ),
    Limit(
        name="max_growth_per_turn",
        title="tokens that a turn adds",
        unit="tokens",
        measure=_growth,
    ),
)
"""In the order in which they are reported."""


def limit_of(limit: Limit, settings: Any) -> Value | None:
    """What the settings allow; None where they say nothing."""
    found: Value | None = getattr(settings, limit.name)
    return found
