"""What the next turns of a session will cost if nothing changes: same growth, same share read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc.growth import Growth
from ctxdoc.model import Usage
from ctxdoc.pricing import Tariff, find_tier, price
from ctxdoc.providers import RULES
from ctxdoc.rows import Row

HORIZONS = (10, 50, 100)


class Next(Struct, frozen=True):
    """A number of turns and what they cost, in USD; None where unpriced or past the window."""

    turns: int
    cost: Decimal | None


class Forecast(Struct, frozen=True, kw_only=True):
    """How a stretch goes on."""

    window: int
    """Tokens that the model takes."""
    turns_left: int | None
    """None where nothing grows."""
    read_share: float
    """Share of the prompt before that a request reads, as in the stretch."""
    next: tuple[Next, ...]


def forecast(fit: Growth, rows: Sequence[Row]) -> Forecast | None:
    """The forecast for a stretch of at least two requests with counters; None for a shorter one."""
    usages = [row.counters for row in rows]
    known = [usage for usage in usages if usage is not None]
    if len(known) < 2 or fit.per_turn is None:
        return None
    tariff = rows[-1].tariff
    window = RULES.find_model(tariff.model).window
    left = fit.turns_left(window)
    before = sum(usage.input for usage in known[:-1])
    read = min(1.0, sum(usage.cache_read for usage in known[1:]) / before) if before else 0.0
    written = sum(usage.cache_write for usage in known[1:])
    paid = written + sum(usage.uncached for usage in known[1:])
    share = _Share(
        read=read,
        hour=sum(usage.cache_write_1h for usage in known[1:]) / written if written else 0.0,
        written=written / paid if paid else 0.0,
        output=round(sum(usage.output for usage in known) / len(known)),
    )
    return Forecast(
        window=window,
        turns_left=left,
        read_share=read,
        next=tuple(_costs(fit, share, tariff, left)),
    )


class _Share(Struct, frozen=True, kw_only=True):
    read: float
    written: float
    """Share of what is not read that is written."""
    hour: float
    """Share of the written that is written for an hour."""
    output: int
    """Tokens a request."""


def _costs(fit: Growth, share: _Share, tariff: Tariff, left: int | None) -> Iterator[Next]:
    """The cost up to each horizon. Prompts of one tier are priced together: there it is linear."""
    tiers: dict[int, list[int]] = {}
    size, turn = float(fit.latest), 0
    for horizon in HORIZONS:
        if left is not None and horizon > left:
            yield Next(horizon, None)
            continue
        while turn < horizon:
            turn += 1
            before, size = size, size + max(0.0, fit.per_turn or 0.0)
            read = round(share.read * before)
            written = round((round(size) - read) * share.written)
            hour = round(written * share.hour)
            parts = (round(size) - read - written, read, written - hour, hour, share.output)
            tier = tiers.setdefault(find_tier(tariff, round(size)), [0] * len(parts))
            for place, tokens in enumerate(parts):
                tier[place] += tokens
        yield Next(horizon, _sum(tiers, tariff))


def _sum(tiers: dict[int, list[int]], tariff: Tariff) -> Decimal | None:
    total = Decimal(0)
    for tier, (uncached, read, short, hour, output) in tiers.items():
        usage = Usage(
            uncached=uncached,
            cache_read=read,
            cache_write_5m=short,
            cache_write_1h=hour,
            output=output,
        )
        cost = price(usage, tariff, size=tier)
        if cost is None:
            return None
        total += cost
    return total
