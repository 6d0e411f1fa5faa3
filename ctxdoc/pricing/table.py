"""Reads genai-prices into a table of rates: the library stays the source, its import is paid once.

`python -m ctxdoc.pricing.table` writes the table of the installed library beside this module.
`pricing` reads that file while the installed library has the version it was made from, and
calls `read_library` when it has another.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ctxdoc.providers import BY_DEFAULT, PROVIDERS
from ctxdoc.providers.rules import short_model_id

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

TABLE = Path(__file__).with_name("table.json")
OWN = Path(__file__).with_name("own_prices.toml")

CONTEXTS: Mapping[str, dict[str, str]] = {
    "standard": {},
    "batch": {"processing": "batch"},
    "fast": {"speed": "fast"},
}
"""The ways to be billed, by the library's own price context."""


class Rates(Struct, frozen=True, kw_only=True):
    """USD per million tokens; a part that the library does not price is None."""

    input: Decimal
    cache_read: Decimal | None
    cache_write_5m: Decimal | None
    cache_write_1h: Decimal | None
    output: Decimal


class PriceRow(Struct, frozen=True, kw_only=True):
    """The rates of a model from a date on, and above a prompt size where they differ."""

    since: date | None
    rates: Rates
    above: int | None = None
    """A prompt larger than this pays `rates_above` for every token."""
    rates_above: Rates | None = None


class PriceTable(Struct, frozen=True, kw_only=True):
    """All rows of one version of the library: model → context → rows, newest last."""

    library: str
    models: dict[str, dict[str, list[PriceRow]]]


def read_library() -> PriceTable:
    """The table of the installed genai-prices; imports it, which takes about half a second."""
    from importlib.metadata import version

    from genai_prices.data_snapshot import get_snapshot

    provider = next(p for p in get_snapshot().providers if p.id == BY_DEFAULT)
    names = {short_model_id(model.id): model.id for model in provider.models}
    names.update({name: name for name in PROVIDERS[BY_DEFAULT].models})
    models = {}
    for short, name in sorted(names.items()):
        model = provider.find_model(name)
        if model is not None:
            models[short] = {
                context: rows
                for context, when in CONTEXTS.items()
                if (rows := list(_iter_rows(model, when)))
            }
    return PriceTable(library=version("genai-prices"), models=models)


class OwnPrice(Struct, frozen=True, kw_only=True):
    """A price that the library does not have, with where it was read."""

    model: str
    input: Decimal
    output: Decimal
    source: str
    read: date
    """When that source was read."""
    cache_read: Decimal | None = None
    cache_write_5m: Decimal | None = None
    cache_write_1h: Decimal | None = None
    until: date | None = None
    """The day from which on it does not hold any more; None where the library has no price at all."""

    @property
    def rates(self) -> Rates:
        """Its rates."""
        return Rates(
            input=self.input,
            cache_read=self.cache_read,
            cache_write_5m=self.cache_write_5m,
            cache_write_1h=self.cache_write_1h,
            output=self.output,
        )


def read_own() -> dict[str, OwnPrice]:
    """The prices of this project, by model: those of its own file, and those that providers state
    beside their rules."""
    rows = tomllib.loads(OWN.read_text(encoding="utf-8"))["row"]
    rows += [row for provider in PROVIDERS for row in provider.prices]
    return {row.model: row for row in msgspec.convert(rows, list[OwnPrice])}


def _iter_rows(model: ModelInfo, when: dict[str, str]) -> Iterable[PriceRow]:
    last: PriceRow | None = None
    for since in (None, *sorted(_start_dates(model))):
        day = datetime.combine(since or date(2000, 1, 1), time(12), UTC)
        if when and not _has_variant(model, when, day):
            continue
        row = _price_row(model.get_prices(day, when), since)
        if last is None or msgspec.structs.replace(last, since=since) != row:
            yield row
        last = row


def _start_dates(model: ModelInfo) -> set[date]:
    priced = [*(model.prices if isinstance(model.prices, list) else ())]
    constraints = [p.constraint for p in (*priced, *(model.price_variants or ()))]
    return {c.start_date for c in constraints if c is not None and hasattr(c, "start_date")}


def _has_variant(model: ModelInfo, when: dict[str, str], day: datetime) -> bool:
    return any(
        variant.when == when and (variant.constraint is None or variant.constraint.active(day))
        for variant in model.price_variants or ()
    )


def _price_row(price: ModelPrice, since: date | None) -> PriceRow:
    above = max((_tier_start(p) for p in vars(price).values()), default=0)
    return PriceRow(
        since=since,
        rates=_rates(price, 0),
        above=above or None,
        rates_above=_rates(price, above + 1) if above else None,
    )


def _tier_start(price: object) -> int:
    tiers: list[int] = [tier.start for tier in getattr(price, "tiers", ())]
    return max(tiers, default=0)


def _rates(price: ModelPrice, size: int) -> Rates:
    def rate(value: object) -> Decimal | None:
        if value is None or isinstance(value, Decimal):
            return value
        chosen: Decimal = getattr(value, "base")  # noqa: B009
        for tier in getattr(value, "tiers", ()):
            if size > tier.start:
                chosen = tier.price
        return chosen

    read = vars(price).get
    return Rates(
        input=rate(read("input_mtok")) or Decimal(0),
        cache_read=rate(read("cache_read_mtok")),
        cache_write_5m=rate(read("cache_write_mtok")),
        cache_write_1h=rate(read("cache_write_1h_mtok")),
        output=rate(read("output_mtok")) or Decimal(0),
    )


def main() -> None:
    """Writes the table of the installed library."""
    text = msgspec.json.format(msgspec.json.encode(read_library()), indent=1)
    TABLE.write_bytes(text + b"\n")


if __name__ == "__main__":
    main()
