"""Prices against hand arithmetic from the pricing page of 2026-10-10."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal

import pytest
from genai_prices import Usage as LibraryUsage
from genai_prices import calc_price
from msgspec import Raw

from ctxdoc.pricing import rates as pricing
from ctxdoc.pricing import table as price_table
from ctxdoc.pricing.cost import price
from ctxdoc.pricing.rates import own_price_of
from ctxdoc.pricing.table import PriceTable
from ctxdoc.pricing.tariff import Tariff, tariff_of
from ctxdoc.providers import PROVIDERS
from ctxdoc.providers.rules import short_model_id
from ctxdoc.request.request import Body, Request
from ctxdoc.request.usage import Usage

NOVEMBER = date(2026, 11, 2)
MIX = Usage(uncached=1000, cache_read=2000, cache_write_5m=300, cache_write_1h=400, output=50)


def tariff(model: str, day: date = NOVEMBER, **how: bool) -> Tariff:
    return Tariff(model=model, day=day, **how)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        # 1000*3 + 2000*0.30 + 300*3.75 + 400*6 + 50*15 = 3000 + 600 + 1125 + 2400 + 750
        ("claude-sonnet-4-5", "0.007875"),
        # 1000*4 + 2000*0.20 + 300*5 + 400*8 + 50*20: reads at 0.05 of the input price
        ("claude-opus-5-5", "0.010100"),
        # 1000*8 + 2000*0.20 + 300*10 + 400*16 + 50*40: reads at 0.025
        ("claude-fable-5-2", "0.019800"),
        # 1000*0.10 + 2000*0.01 + 300*0.125 + 400*0.20 + 50*0.50
        ("claude-haiku-5-5", "0.0002625"),
    ],
)
def test_each_part_has_its_own_rate(model: str, usd: str) -> None:
    assert price(MIX, tariff(model)) == Decimal(usd)


def test_one_hour_writes_cost_twice_the_input() -> None:
    """100,000 tokens at twice 3 USD a million."""
    hour = Usage(uncached=0, cache_read=0, cache_write_5m=0, cache_write_1h=100_000)
    assert price(hour, tariff("claude-sonnet-4-5")) == Decimal("0.6")


def test_over_100k_tokens_haiku_5_5_costs_five_times_for_every_token() -> None:
    """The whole prompt, cache reads included, decides: 100,000 is below, 100,001 above."""
    below = Usage(uncached=1, cache_read=99_999, cache_write_5m=0, cache_write_1h=0)
    above = Usage(uncached=1, cache_read=100_000, cache_write_5m=0, cache_write_1h=0)
    # 1*0.10 + 99,999*0.01 = 1,000.09; 1*0.50 + 100,000*0.05 = 5,000.50, in millionths
    assert price(below, tariff("claude-haiku-5-5")) == Decimal("0.00100009")
    assert price(above, tariff("claude-haiku-5-5")) == Decimal("0.0050005")


@pytest.mark.parametrize("day", [date(2026, 9, 25), date(2026, 10, 13), date(2026, 10, 14)])
def test_a_batch_costs_half_on_either_side_of_the_librarys_first_batch_date(day: date) -> None:
    assert (
        price(MIX, tariff("claude-opus-4-8", day, batch=True))
        == (price(MIX, tariff("claude-opus-4-8", day)) or 0) / 2
    )


def test_fast_mode_has_prices_of_its_own() -> None:
    # Opus 5.5 fast: 8 in, 40 out: 1,000*8 + 50*40 = 10,000 millionths
    usage = Usage(uncached=1000, cache_read=0, cache_write_5m=0, cache_write_1h=0, output=50)
    assert price(usage, tariff("claude-opus-5-5", fast=True)) == Decimal("0.01")


def test_fast_mode_of_a_model_without_such_prices_is_unpriced() -> None:
    assert price(MIX, tariff("claude-opus-4-7", fast=True)) is None


def test_us_only_inference_costs_a_tenth_more() -> None:
    plain = price(MIX, tariff("claude-opus-5-5"))
    assert plain is not None
    assert price(MIX, tariff("claude-opus-5-5", us_only=True)) == plain * Decimal("1.1")


def test_a_200k_model_has_a_higher_step_with_its_larger_window_only() -> None:
    """Sonnet 4.5, 300k prompt: 3 USD a million, twice that with the beta of one million."""
    usage = Usage(uncached=300_000, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    assert price(usage, tariff("claude-sonnet-4-5")) == Decimal("0.9")
    assert price(usage, tariff("claude-sonnet-4-5", million=True)) == Decimal("1.8")


def test_reads_of_sonnet_5_5_cost_twice_as_much_until_october() -> None:
    """0.20 a million until 2026-10-07, 0.10 from then on (pricing page); the library has the later one."""
    read = Usage(uncached=0, cache_read=1_000_000, cache_write_5m=0, cache_write_1h=0)
    for day, usd in ((date(2026, 10, 6), "0.2"), (date(2026, 10, 7), "0.1")):
        assert price(read, tariff("claude-sonnet-5-5", day)) == Decimal(usd)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        # 1000*10 + 2000*1.00 + 300*12.5 + 400*20 + 50*50 = 10000 + 2000 + 3750 + 8000 + 2500
        ("claude-mythos-5", "0.02625"),
        # reads at 0.25: 2000*0.75 less
        ("claude-mythos-5-1", "0.02475"),
    ],
)
def test_prices_that_the_library_lacks_are_rows_of_our_own(model: str, usd: str) -> None:
    own = own_price_of(tariff(model))
    assert own is not None
    assert (own.source, own.read) == ("pricing page", date(2026, 10, 10))
    assert price(MIX, tariff(model)) == Decimal(usd)
    assert price(MIX, tariff(model, batch=True)) == Decimal(usd) / 2


def test_a_price_that_nobody_knows_leaves_what_used_it_unpriced() -> None:
    """Mythos Preview: no source has the price of a write; reads are 1.00, output 50."""
    assert price(MIX, tariff("claude-mythos-preview")) is None
    read = Usage(uncached=1000, cache_read=2000, cache_write_5m=0, cache_write_1h=0, output=50)
    assert price(read, tariff("claude-mythos-preview")) == Decimal("0.0145")


def test_the_library_goes_before_our_own_rows() -> None:
    assert own_price_of(tariff("claude-sonnet-5-5")) is None
    assert own_price_of(tariff("claude-sonnet-5-5", date(2026, 10, 6))) is not None


@pytest.mark.parametrize(
    ("model", "factor"),
    [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "1.1"),
        ("eu.anthropic.claude-haiku-4-5-20251001-v1:0", "1.1"),
        ("apac.anthropic.claude-opus-4-8", "1.1"),
        ("jp.anthropic.claude-opus-5-5", "1.1"),
        ("au.anthropic.claude-opus-5-5", "1.1"),
        ("bedrock/us.anthropic.claude-opus-5-5", "1.1"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-sonnet-4-6",
            "1.1",
        ),
        # before 4.5
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "1"),
        ("us.anthropic.claude-opus-4-1", "1"),
        ("global.anthropic.claude-opus-5-5", "1"),
        ("anthropic.claude-opus-5-5", "1"),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/global.anthropic.claude-sonnet-4-6",
            "1",
        ),
        ("claude-opus-5-5", "1"),
    ],
)
def test_a_regional_profile_of_bedrock_costs_a_tenth_more_from_4_5_on(
    model: str, factor: str
) -> None:
    plain = price(MIX, tariff(short_model_id(model)))
    assert plain is not None
    asked = Request(
        source="-", line=1, model=model, body=None, at=datetime(2026, 11, 2, tzinfo=UTC)
    )
    assert price(MIX, tariff_of(asked)) == plain * Decimal(factor)


@pytest.mark.parametrize(
    ("model", "more", "usd"),
    [
        # Sonnet 4.6, 1,000 tokens: 0.003, a tenth more in the US
        ("claude-sonnet-4-6", {"inference_geo": Raw(b'"us"')}, "0.0033"),
        ("claude-sonnet-4-6", {"inference_geo": Raw(b'"global"')}, "0.003"),
        # before 4.6
        ("claude-sonnet-4-5", {"inference_geo": Raw(b'"us"')}, "0.003"),
        # both, once
        ("us.anthropic.claude-sonnet-4-6", {"inference_geo": Raw(b'"us"')}, "0.0033"),
        # asked for fast: 4.6 runs at standard, 5 at 10 a million, 4.7 is unpriced
        ("claude-opus-4-6", {"speed": Raw(b'"fast"')}, "0.005"),
        ("claude-opus-5", {"speed": Raw(b'"fast"')}, "0.01"),
        ("claude-opus-4-7", {"speed": Raw(b'"fast"')}, None),
    ],
)
def test_the_body_says_where_and_how_fast_it_is_billed(
    model: str, more: dict[str, Raw], usd: str | None
) -> None:
    usage = Usage(uncached=1000, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    body = Body(messages=(), model=model, **more)  # type: ignore[arg-type]
    asked = Request(
        source="-", line=1, model=model, body=body, at=datetime(2026, 11, 2, tzinfo=UTC)
    )
    found = price(usage, tariff_of(asked))
    assert found == (None if usd is None else Decimal(usd))


def test_prices_have_dates() -> None:
    """Opus 4.6, 300k prompt: twice the input price until 2026-03-13."""
    usage = Usage(uncached=300_000, cache_read=0, cache_write_5m=0, cache_write_1h=0)
    assert price(usage, tariff("claude-opus-4-6", date(2026, 3, 1))) == 3
    assert price(usage, tariff("claude-opus-4-6", date(2026, 3, 20))) == Decimal("1.5")


@pytest.mark.parametrize("model", ["gpt-4o", "<synthetic>", "", "claude-mythos-4"])
def test_an_unknown_model_is_unpriced_and_not_free(model: str) -> None:
    assert price(MIX, tariff(model)) is None


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("claude-opus-5-5[1m]", "claude-opus-5-5"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("global.anthropic.claude-opus-5-5", "claude-opus-5-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-opus-4-0", "claude-opus-4"),
        ("openrouter/anthropic/claude-opus-4-8:thinking", "claude-opus-4-8"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
    ],
)
def test_a_model_has_one_name(name: str, short: str) -> None:
    assert short_model_id(name) == short


def test_every_model_row_names_its_source_and_date() -> None:
    for row in PROVIDERS["anthropic"].models.values():
        assert row.source
        assert date.fromisoformat(row.date) <= date(2026, 11, 29)


@pytest.mark.parametrize(
    ("model", "minimum"),
    [("claude-opus-5", 512), ("claude-sonnet-4-5", 1024), ("claude-opus-4-7", 2048),
     ("claude-haiku-4-5", 4096), ("claude-3-5-haiku", 2048), ("claude-opus-4-6", 4096)],
)  # fmt: skip
def test_the_minimum_is_the_pages(model: str, minimum: int) -> None:
    assert PROVIDERS["anthropic"].find_model(model).minimum == minimum


GRID = [
    (model, day, size, context)
    for model in PROVIDERS["anthropic"].models
    for day in (date(2026, 1, 5), date(2026, 4, 1), NOVEMBER)
    for size in (1000, 150_000, 300_000)
    for context in price_table.CONTEXTS
]


def test_the_table_prices_as_the_library_does() -> None:
    table = price_table.read_library()
    compared = 0
    for model, day, size, context in GRID:
        rows = table.models.get(model, {}).get(context)
        if not rows or (rows[0].since and rows[0].since > day):
            continue
        if own_price_of(tariff(model, day)) is not None:
            # The library does not have the price of that day.
            continue
        usage = Usage(uncached=size, cache_read=200, cache_write_5m=30, cache_write_1h=40, output=5)
        library = calc_price(
            LibraryUsage(
                input_tokens=usage.input,
                cache_read_tokens=200,
                cache_write_tokens=70,
                cache_write_5m_tokens=30,
                cache_write_1h_tokens=40,
                output_tokens=5,
            ),
            model,
            provider_id="anthropic",
            genai_request_timestamp=datetime.combine(day, time(12), UTC),
            price_context=price_table.CONTEXTS[context],
        )
        how = {} if context == "standard" else {context: True}
        assert price(usage, tariff(model, day, million=True, **how)) == library.total_price, (
            model,
            day,
            context,
        )
        compared += 1
    assert compared > 100


def test_the_written_table_is_that_of_its_version_of_the_library() -> None:
    made = price_table.read_library()
    written = price_table.msgspec.json.decode(price_table.TABLE.read_bytes(), type=PriceTable)
    assert written.library != made.library or written == made


def test_another_version_of_the_library_is_read_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    empty = PriceTable(library="9.9.9", models={})
    monkeypatch.setattr(pricing, "_installed_version", lambda: "9.9.9")
    monkeypatch.setattr(pricing, "read_library", lambda: empty)
    pricing._table.cache_clear()
    pricing._find_row.cache_clear()
    try:
        assert price(MIX, tariff("claude-opus-5-5")) is None
    finally:
        pricing._table.cache_clear()
        pricing._find_row.cache_clear()
