"""Rates of a tariff: USD for a million tokens of each kind."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from ctxdoc.pricing.table import (
    TABLE,
    OwnPrice,
    PriceRow,
    PriceTable,
    Rates,
    read_library,
    read_own,
)
from ctxdoc.pricing.tariff import (
    BATCH_FACTOR,
    PLACE_FACTOR,
    REGIONAL_SINCE,
    US_SINCE,
    Tariff,
    is_since,
)
from ctxdoc.providers import find_model
from ctxdoc.providers.rules import short_model_id

MILLION = Decimal(1_000_000)


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
    if (tariff.us_only and is_since(tariff.model, US_SINCE)) or (
        tariff.regional and is_since(tariff.model, REGIONAL_SINCE)
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
    return tariff.million or row.above < find_model(tariff.model).window


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
