"""The price of a Usage for a model at a date; what has no price is None, never 0."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.pricing.table import (
    TABLE,
    OwnPrice,
    PriceRow,
    PriceTable,
    Rates,
    read_library,
    read_own,
)
from ctxdoc.providers import PROVIDERS
from ctxdoc.providers.rules import short_model_id
from ctxdoc.request.model import Request, Usage

MILLION = Decimal(1_000_000)
BATCH_FACTOR = Decimal("0.5")
"""Half price on every category (pricing page, 2026-10-10); the library knows batch prices only
from 2026-10-14 on."""
PLACE_FACTOR = Decimal("1.1")
"""`inference_geo: us`, models from 4.6 on, and regional profiles of Bedrock, from 4.5 on (pricing page,
2026-10-10); a request pays one of them."""
US_SINCE, REGIONAL_SINCE = (4, 6), (4, 5)
_REGIONAL = re.compile(r"(?:^|[/:])(?:us|eu|apac|jp|au)\.anthropic\.", re.ASCII)
_VERSION = re.compile(r"^claude-(?:[a-z]+)-(\d+)(?:-(\d{1,2}))?$", re.ASCII)


class Tariff(Struct, frozen=True, kw_only=True):
    """How one request is billed."""

    model: str
    day: date
    fast: bool = False
    batch: bool = False
    us_only: bool = False
    regional: bool = False
    """Whether a regional profile of Bedrock was called."""
    million: bool = False
    """Whether the request asked for a larger window than the model has by itself."""


def tariff_of(request: Request) -> Tariff:
    """The tariff of a recorded request; without a time, that of today."""
    response, body = request.response, request.body
    model = (response.model if response else "") or request.model
    speed = response.speed if response else ""
    if not speed and body is not None and bytes(body.speed) == b'"fast"':
        # These ran at the standard speed when they were asked for the fast one (facts of fast mode).
        speed = "" if version_of(model) == NEVER_FAST else "fast"
    geo = body is not None and bytes(body.inference_geo) == b'"us"'
    return _tariff(
        model,
        (request.at or datetime.now(UTC)).astimezone(UTC).date(),
        speed == "fast",
        bool(response and response.batch),
        geo or bool(response and response.us_only),
        is_regional(request.model) or is_regional(model),
        "context-1m" in request.headers.get("anthropic-beta", ""),
    )


NEVER_FAST = (4, 6)
"""Version whose models run at the standard speed although they are asked for the fast one (fast-mode page,
2026-10-10)."""


@lru_cache(maxsize=1024)
def _tariff(
    model: str, day: date, fast: bool, batch: bool, us_only: bool, regional: bool, million: bool
) -> Tariff:
    """One value for all requests that are billed alike."""
    return Tariff(
        model=model,
        day=day,
        fast=fast,
        batch=batch,
        us_only=us_only,
        regional=regional,
        million=million,
    )


@lru_cache(maxsize=256)
def is_regional(model: str) -> bool:
    """Whether a model is spelled as a regional profile of Bedrock, be it inside of an ARN; `global.` is
    none."""
    return _REGIONAL.search(model) is not None


@lru_cache(maxsize=256)
def version_of(model: str) -> tuple[int, int] | None:
    """The version in a model's name; None where it has none."""
    found = _VERSION.match(short_model_id(model))
    return (int(found[1]), int(found[2] or 0)) if found else None


def _is_since(model: str, version: tuple[int, int]) -> bool:
    """Whether a model is of that version or a later one; one without a number is a preview of later ones."""
    known = version_of(model)
    return known >= version if known else short_model_id(model) == "claude-mythos-preview"


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
    parts = (
        (usage.uncached, rates.input),
        (usage.cache_read, rates.cache_read),
        (usage.cache_write_5m, rates.cache_write_5m),
        (usage.cache_write_1h, rates.cache_write_1h),
        (usage.output, rates.output),
    )
    total = Decimal(0)
    for tokens, rate in parts:
        if tokens and rate is None:
            return None
        total += tokens * (rate or Decimal(0))
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


def find_tier(tariff: Tariff, input_tokens: int) -> int:
    """The smallest prompt that has the same rates as one of that size."""
    row, _ = _find_row(tariff)
    above = row is not None and _is_above(row, tariff, input_tokens)
    return (row.above or 0) + 1 if row is not None and above else 0


def find_rates(tariff: Tariff, input_tokens: int) -> Rates | None:
    """The rates for a prompt of that size, or None when the model is unpriced."""
    row, factor = _find_row(tariff)
    if row is None:
        return None
    return _rates(row, factor, above=_is_above(row, tariff, input_tokens))


@lru_cache(maxsize=256)
def _find_row(tariff: Tariff) -> tuple[PriceRow | None, Decimal]:
    """The row of the price table, and what its rates are multiplied by."""
    factor = Decimal(1)
    contexts = _table().models.get(short_model_id(tariff.model))
    own = own_price_of(tariff)
    if own is not None:
        contexts = {"standard": [PriceRow(since=None, rates=own.rates)]}
    if contexts is None or (tariff.fast and "fast" not in contexts):
        return None, factor
    rows = contexts["fast" if tariff.fast else "standard"]
    if tariff.batch:
        batch = contexts.get("batch", [])
        if _row_at(batch, tariff.day):
            rows = batch
        else:
            factor = BATCH_FACTOR
    if (tariff.us_only and _is_since(tariff.model, US_SINCE)) or (
        tariff.regional and _is_since(tariff.model, REGIONAL_SINCE)
    ):
        factor *= PLACE_FACTOR
    return _row_at(rows, tariff.day), factor


def own_price_of(tariff: Tariff) -> OwnPrice | None:
    """The price that is this project's own and not the library's; None where the library has one."""
    model = short_model_id(tariff.model)
    own = _own().get(model)
    if own is None or tariff.fast:
        return None
    if own.until is not None:
        return own if tariff.day < own.until else None
    return None if model in _table().models else own


@cache
def _own() -> dict[str, OwnPrice]:
    return read_own()


@lru_cache(maxsize=256)
def _rates(row: PriceRow, factor: Decimal, *, above: bool) -> Rates:
    rates = row.rates
    if above:
        assert row.rates_above is not None
        rates = row.rates_above
    return rates if factor == 1 else _scaled(rates, factor)


def _is_above(row: PriceRow, tariff: Tariff, input_tokens: int) -> bool:
    """Whether a prompt pays the higher rates.

    The library's step at 200k of models with a window of that size belongs to the beta with a larger
    one (pricing page, 2026-10-10); what a log shows beyond it without the beta pays the plain rates.
    """
    if row.rates_above is None or row.above is None or input_tokens <= row.above:
        return False
    return tariff.million or row.above < PROVIDERS["anthropic"].find_model(tariff.model).window


def _row_at(rows: list[PriceRow], day: date) -> PriceRow | None:
    found = None
    for row in rows:
        if row.since is None or row.since <= day:
            found = row
    return found


def _scaled(rates: Rates, factor: Decimal) -> Rates:
    def scaled(rate: Decimal | None) -> Decimal | None:
        return None if rate is None else rate * factor

    return Rates(
        input=rates.input * factor,
        cache_read=scaled(rates.cache_read),
        cache_write_5m=scaled(rates.cache_write_5m),
        cache_write_1h=scaled(rates.cache_write_1h),
        output=rates.output * factor,
    )


@cache
def _table() -> PriceTable:
    made = msgspec.json.decode(TABLE.read_bytes(), type=PriceTable)
    if made.library == _installed_version():
        return made
    return read_library()


def _installed_version() -> str:
    """The version of genai-prices, from the name of its metadata folder: importlib.metadata
    would take longer than the rest of a price."""
    spec = find_spec("genai_prices")
    places = spec.submodule_search_locations if spec else None
    folder = Path(places[0]).parent if places else Path()
    found = sorted(folder.glob("genai_prices-*.dist-info"))
    return found[-1].name.split("-")[1].removesuffix(".dist") if found else ""


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
