"""Pauses over the lifetime of entries: what they cost, and what would have bridged them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import Miss, RequestCost
from ctxdoc.ledger.totals import ZERO, counts, is_idle
from ctxdoc.pricing.cost import price
from ctxdoc.pricing.rates import MILLION, find_rates
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.providers import provider_of
from ctxdoc.request.usage import Usage


class Bridge(Struct, frozen=True, kw_only=True):
    """A way to keep entries alive over pauses, and what it would have been worth, in USD."""

    extra: Decimal
    """What it would have cost."""
    saved: Decimal
    """What it would have saved."""

    @property
    def pays(self) -> bool:
        """Whether it would have saved more than it costs."""
        return self.saved > self.extra


class Idle(Struct, frozen=True, kw_only=True):
    """What a log lost to pauses that were longer than the lifetime of its entries."""

    pauses: int
    cost: Decimal
    """USD, all of them together."""
    short: int
    """Pauses of up to an hour in which nothing else changed: a longer lifetime bridges them."""
    short_cost: Decimal
    longest: int
    """Pauses of an hour or more: no lifetime bridges them."""
    longest_cost: Decimal
    hour: Bridge
    """Writing for an hour throughout the log."""
    keep_alive: Bridge
    """Reading the cached prefix again within each five minutes of a short pause."""


class _Pause(NamedTuple):
    """A pause that lost something with a price."""

    row: RequestCost
    miss: Miss
    seconds: float | None
    """None where the log has no times."""

    @property
    def is_long(self) -> bool:
        """Whether no lifetime of the provider bridges it."""
        return (self.seconds or 0) >= provider_of(self.row.request.model).longest

    @property
    def is_bridged(self) -> bool:
        """Whether a longer lifetime alone would have kept what it lost."""
        return self.seconds is not None and not self.is_long and bool(self.miss.avoidable)


def idle_of(replay: Ledger) -> Idle | None:
    """What pauses cost; None where none is priced."""
    pauses = list(_pauses(replay))
    if not pauses:
        return None
    long = [pause for pause in pauses if pause.is_long]
    short = [pause for pause in pauses if pause.is_bridged]
    saved = _cost(short)
    return Idle(
        pauses=len(pauses),
        cost=_cost(pauses),
        short=len(short),
        short_cost=saved,
        longest=len(long),
        longest_cost=_cost(long),
        hour=Bridge(extra=_premium(replay, short), saved=saved),
        keep_alive=Bridge(extra=sum((_kept(replay, each) for each in short), ZERO), saved=saved),
    )


def _pauses(replay: Ledger) -> Iterator[_Pause]:
    for row in filter(counts, replay.rows):
        miss = row.miss
        if miss is not None and is_idle(row) and miss.cost is not None:
            yield _Pause(row, miss, _seconds(replay, row))


def _cost(pauses: Iterable[_Pause]) -> Decimal:
    return sum((each.miss.cost or ZERO for each in pauses), ZERO)


def _before(replay: Ledger, row: RequestCost) -> RequestCost | None:
    return replay.by_index.get(row.compared - 1) if row.compared is not None else None


def _seconds(replay: Ledger, row: RequestCost) -> float | None:
    """From the start of the request before to the start of this one: an entry's clock runs from there
    and not from the answer (facts 1.4)."""
    before = _before(replay, row)
    if before is None or before.request.at is None or row.request.at is None:
        return None
    return (row.request.at - before.request.at).total_seconds()


def _premium(replay: Ledger, bridged: Iterable[_Pause]) -> Decimal:
    """What all five-minute writes of the log would have cost more for an hour, but for those that would
    not have been needed: nobody knows before a pause that it will be one."""
    spared = {each.row.number: each.miss.tokens or 0 for each in bridged}
    total = ZERO
    for row in filter(counts, replay.rows):
        usage = row.counters
        if usage is not None:
            written = max(0, usage.cache_write_5m - spared.get(row.number, 0))
            total += written * (hour_premium(row.tariff, usage) or 0) / MILLION
    return total


def hour_premium(tariff: Tariff, usage: Usage) -> Decimal | None:
    """USD that a million tokens cost more to be written for an hour instead of five minutes; None where
    a rate is not known."""
    rates = find_rates(tariff, usage.input)
    if rates is None or not rates.cache_write_1h or not rates.cache_write_5m:
        return None
    return rates.cache_write_1h - rates.cache_write_5m


def _kept(replay: Ledger, pause: _Pause) -> Decimal:
    """What it would have cost to read a cached prefix again and again over a pause, each time before five
    minutes are over."""
    before = _before(replay, pause.row)
    usage = before.counters if before is not None else None
    # What the request before had cached may be more than what this one would have read of it.
    cached = usage.cache_read + usage.cache_write if usage is not None else 0
    size = max(pause.miss.tokens or 0, cached)
    read = Usage(uncached=0, cache_read=size, cache_write_5m=0, cache_write_1h=0)
    times = int((pause.seconds or 0) // provider_of(pause.row.request.model).shortest)
    return times * (price(read, pause.row.tariff) or ZERO)
