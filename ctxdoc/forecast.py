"""What the next turns of a session will cost if nothing changes: same growth, same share read."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc.growth import Growth
from ctxdoc.model import Usage
from ctxdoc.pricing import Tariff, price
from ctxdoc.render import RULES
from ctxdoc.replay import Row

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
    paid = sum(usage.cache_write + usage.uncached for usage in known[1:])
    share = _Share(
        read=read,
        hour=sum(usage.cache_write_1h for usage in known[1:]) / paid if paid else 0.0,
        written=sum(usage.cache_write for usage in known[1:]) / paid if paid else 0.0,
        output=round(sum(usage.output for usage in known) / len(known)),
    )
    return Forecast(
        window=window,
        turns_left=left,
        read_share=read,
        next=tuple(
            Next(turns, _cost(fit, share, tariff, turns) if left is None or turns <= left else None)
            for turns in HORIZONS
        ),
    )


class _Share(Struct, frozen=True, kw_only=True):
    read: float
    written: float
    """Share of what is not read that is written."""
    hour: float
    """Share of it that is written for an hour."""
    output: int
    """Tokens a request."""


def _cost(fit: Growth, share: _Share, tariff: Tariff, turns: int) -> Decimal | None:
    total = Decimal(0)
    size = float(fit.latest)
    for _ in range(turns):
        before, size = size, size + max(0.0, fit.per_turn or 0.0)
        read = round(share.read * before)
        rest = round(size) - read
        written = round(rest * share.written)
        hour = min(written, round(rest * share.hour))
        cost = price(
            Usage(
                uncached=rest - written,
                cache_read=read,
                cache_write_5m=written - hour,
                cache_write_1h=hour,
                output=share.output,
            ),
            tariff,
        )
        if cost is None:
            return None
        total += cost
    return total
