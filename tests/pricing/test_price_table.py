"""Prices row by row as the pricing page has them (2026-10-10), in USD a million tokens."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from ctxdoc.pricing.cost import price
from ctxdoc.pricing.rates import find_rates
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.request.usage import Usage

DAY = date(2026, 11, 15)
ROWS = {
    # model: input, write for 5 minutes, for an hour, read, output
    "claude-fable-5-2": ("8", "10", "16", "0.20", "40"),
    "claude-mythos-5-2": ("8", "10", "16", "0.20", "40"),
    "claude-fable-5-1": ("10", "12.50", "20", "0.25", "50"),
    "claude-mythos-5-1": ("10", "12.50", "20", "0.25", "50"),
    "claude-fable-5": ("10", "12.50", "20", "1.00", "50"),
    "claude-mythos-5": ("10", "12.50", "20", "1.00", "50"),
    "claude-opus-5-5": ("4", "5", "8", "0.20", "20"),
    "claude-opus-5": ("5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-8": ("5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-7": ("5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-6": ("5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-5": ("5", "6.25", "10", "0.50", "25"),
    "claude-opus-4-1": ("15", "18.75", "30", "1.50", "75"),
    "claude-sonnet-5-5": ("2", "2.50", "4", "0.10", "10"),
    "claude-sonnet-5": ("2", "2.50", "4", "0.20", "10"),
    "claude-sonnet-4-6": ("3", "3.75", "6", "0.30", "15"),
    "claude-sonnet-4-5": ("3", "3.75", "6", "0.30", "15"),
    "claude-haiku-5-5": ("0.10", "0.125", "0.20", "0.01", "0.50"),
    "claude-haiku-4-5": ("1", "1.25", "2", "0.10", "5"),
    "claude-3-5-haiku-20241022": ("0.80", "1", "1.60", "0.08", "4"),
}
MILLION = 10**6
NONE = Usage(uncached=0, cache_read=0, cache_write_5m=0, cache_write_1h=0, output=0)


@pytest.mark.parametrize("model", ROWS)
def test_a_row_is_the_pages(model: str) -> None:
    rates = find_rates(Tariff(model=model, day=DAY), 50_000)
    assert rates is not None
    found = (
        rates.input, rates.cache_write_5m, rates.cache_write_1h, rates.cache_read, rates.output,
    )  # fmt: skip
    assert found == tuple(map(Decimal, ROWS[model]))


@pytest.mark.parametrize("model", ROWS)
@pytest.mark.parametrize("batch", [False, True])
def test_a_request_costs_what_its_five_counters_add_up_to(model: str, batch: bool) -> None:
    """1,000 paid in full, 30,000 read, 2,000 and 500 written, 400 out; a batch is half of it."""
    usage = Usage(
        uncached=1_000, cache_read=30_000, cache_write_5m=2_000, cache_write_1h=500, output=400
    )
    full, five, hour, read, out = map(Decimal, ROWS[model])
    total = 1_000 * full + 30_000 * read + 2_000 * five + 500 * hour + 400 * out
    expected = total / MILLION / (2 if batch else 1)
    assert price(usage, Tariff(model=model, day=DAY, batch=batch)) == expected


@pytest.mark.parametrize(
    ("tokens", "factor"), [(99_999, 1), (100_000, 1), (100_001, 5), (400_000, 5)]
)
def test_the_cliff_of_haiku_5_5_is_above_100k_of_the_whole_prompt(tokens: int, factor: int) -> None:
    """0.10 USD a million up to 100,000 tokens, and 0.50 for every token of a larger prompt, read or not."""
    tariff = Tariff(model="claude-haiku-5-5", day=DAY)
    paid = Usage(uncached=tokens, cache_read=0, cache_write_5m=0, cache_write_1h=0, output=0)
    read = Usage(uncached=0, cache_read=tokens, cache_write_5m=0, cache_write_1h=0, output=0)
    assert price(paid, tariff) == tokens * Decimal("0.10") * factor / MILLION
    assert price(read, tariff) == tokens * Decimal("0.01") * factor / MILLION


@pytest.mark.parametrize(
    ("day", "tokens", "factor"),
    [
        (date(2026, 3, 12), 200_000, 1),
        (date(2026, 3, 12), 200_001, 2),
        (date(2026, 3, 13), 200_001, 1),
        (date(2026, 3, 20), 300_000, 1),
    ],
)
def test_long_prompts_of_opus_4_6_cost_double_until_its_step_was_dropped(
    day: date, tokens: int, factor: int
) -> None:
    """Above 200,000 tokens twice the input, until 2026-03-13 (pricing page; facts 3.1)."""
    usage = Usage(uncached=tokens, cache_read=0, cache_write_5m=0, cache_write_1h=0, output=0)
    found = price(usage, Tariff(model="claude-opus-4-6", day=day))
    assert found == tokens * Decimal(5) * factor / MILLION


def test_nothing_costs_nothing() -> None:
    for model in ROWS:
        assert price(NONE, Tariff(model=model, day=DAY)) == 0
