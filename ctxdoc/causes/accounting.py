"""Known mistakes in the cost that a tracker writes beside a request."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec.structs import replace

from ctxdoc.causes.base import Case, Confidence, Match
from ctxdoc.exchange import Exchange
from ctxdoc.model import Usage
from ctxdoc.pricing import price, tariff_of

TOLERANCE = Decimal("0.01")
"""Relative difference below which two costs are the same: trackers round."""


def find_wrong_rate(case: Case) -> Match | None:
    """A recorded cost that is not the right one and fits a known mistake."""
    for exchange in (case.after, case.before):
        said = exchange.request.cost_reported
        if said is None or exchange.usage is None:
            continue
        right = price(exchange.usage, tariff_of(exchange.request))
        if right is None or _same(said, right):
            continue
        for what, wrong in _mistakes(exchange, exchange.usage):
            if wrong is not None and _same(said, wrong):
                where = f"{exchange.request.source}, line {exchange.request.line}"
                return Match(
                    explanation=f"The cost recorded in {where} ({said} USD) prices {what}; at the "
                    f"right rates it is {right:.6f} USD. The cache works.",
                    confidence=Confidence.CERTAIN,
                )
    return None


def _same(one: Decimal, two: Decimal) -> bool:
    return abs(one - two) <= TOLERANCE * max(abs(one), abs(two))


def _mistakes(exchange: Exchange, usage: Usage) -> Iterator[tuple[str, Decimal | None]]:
    tariff = tariff_of(exchange.request)
    flat = {"cache_read": 0, "cache_write_5m": 0, "cache_write_1h": 0}
    five = usage.cache_write
    yield (
        "one-hour writes at the five-minute rate",
        price(replace(usage, cache_write_5m=five, cache_write_1h=0), tariff),
    )
    yield (
        "cache reads as plain input",
        price(replace(usage, uncached=usage.uncached + usage.cache_read, cache_read=0), tariff),
    )
    yield (
        "cache writes as plain input",
        price(
            replace(
                usage, **{**flat, "cache_read": usage.cache_read}, uncached=usage.uncached + five
            ),
            tariff,
        ),
    )
    yield "all input as uncached", price(replace(usage, **flat, uncached=usage.input), tariff)
    yield "no cache tokens at all", price(replace(usage, **flat), tariff)
    double = replace(usage, uncached=usage.input)
    yield "cached tokens twice", price(double, tariff)
