"""The price of a Usage for a model at a date; what has no price is None, never 0."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.pricing.rates import MILLION, find_rates, find_tier
from ctxdoc.pricing.table import (
    Rates,
)
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.request.request import Request
from ctxdoc.request.usage import Usage

SEARCH = Decimal("0.01")
"""USD for one search of the web (pricing page, 2026-10-10: 10 per 1,000)."""


def fees_of(request: Request) -> Decimal:
    """USD that a request costs beside its tokens."""
    return SEARCH * (request.response.searches if request.response else 0)


def extra_passes_of(request: Request, tariff: Tariff) -> list[tuple[Usage, Tariff]]:
    """The passes that a request is billed for beside its counters, each at the rates of the model that
    ran it (advisor page, 2026-08)."""
    passes = request.response.extra_passes if request.response else ()
    return [
        (each.usage, replace(tariff, model=each.model) if each.model else tariff) for each in passes
    ]


def price(usage: Usage, tariff: Tariff, size: int | None = None) -> Decimal | None:
    """USD for one request, or None when the library has no price for what was used.

    The size of the whole prompt, cache included, chooses the tier (pricing page, 2026-10-10); it is
    given for a usage that adds up several requests of one tier.
    """
    rates = find_rates(tariff, usage.input if size is None else size)
    if rates is None:
        return None
    total = usage.uncached * rates.input + usage.output * rates.output
    for tokens, rate in (
        (usage.cache_read, rates.cache_read),
        (usage.cache_write_5m, rates.cache_write_5m),
        (usage.cache_write_1h, rates.cache_write_1h),
    ):
        if rate is not None:
            total += tokens * rate
        elif tokens:
            return None
    return total / MILLION


NANO = 10**9
"""Rates are whole numbers of this part of a dollar per million tokens."""


class Meter(Struct, frozen=True):
    """The rates of a tariff as whole numbers, for many requests: nanodollars per million tokens."""

    low: tuple[int | None, ...] | None
    """Uncached, read, written for 5 minutes, for an hour, output; None where unpriced."""
    high: tuple[int | None, ...] | None
    """The same for a prompt above the step."""
    above: int | None
    """Tokens of the largest prompt below the step; None where there is none."""

    def cost(self, usage: Usage) -> int | None:
        """What a request costs, in millionths of nanodollars."""
        rates = self.low if self.above is None or usage.input <= self.above else self.high
        if rates is None:
            return None
        parts = (
            usage.uncached,
            usage.cache_read,
            usage.cache_write_5m,
            usage.cache_write_1h,
            usage.output,
        )
        total = 0
        for tokens, rate in zip(parts, rates, strict=True):
            if tokens:
                if rate is None:
                    return None
                total += tokens * rate
        return total


@lru_cache(maxsize=256)
def meter_of(tariff: Tariff) -> Meter:
    """The meter of a tariff."""
    step = find_tier(tariff, 10**12)
    low = _whole(find_rates(tariff, 0))
    return Meter(low, _whole(find_rates(tariff, step)) if step else low, step - 1 if step else None)


def _whole(rates: Rates | None) -> tuple[int | None, ...] | None:
    if rates is None:
        return None
    parts = (
        rates.input,
        rates.cache_read,
        rates.cache_write_5m,
        rates.cache_write_1h,
        rates.output,
    )
    return tuple(None if rate is None else int(rate * NANO) for rate in parts)


def dollars(whole: int) -> Decimal:
    """What a meter counts, as USD."""
    return Decimal(whole) / (NANO * 1_000_000)


def usd_text(value: Decimal | None) -> str:
    """USD with as many places as it takes to see it, or a dash where it is unknown."""
    if value is None:
        return "-"
    if not value:
        return "$0"
    if abs(value) < Decimal("0.0001"):
        return f"${value:.6f}"
    if abs(value) >= 100:
        return f"${value:,.2f}"
    return f"${value:.4f}"


def whole_sum_of(costs: Iterable[Decimal | None]) -> Decimal | None:
    """The sum of all, in USD; None where one of them is not known."""
    total = Decimal(0)
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total
