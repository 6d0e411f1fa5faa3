"""What the next turns of a session will cost if nothing changes: same growth, same share read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.pricing.cost import price
from ctxdoc.pricing.rates import find_tier
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.providers import are_rules_known, find_model
from ctxdoc.replay.growth import Growth
from ctxdoc.request.usage import Usage

HORIZONS = (10, 50, 100)


class Next(Struct, frozen=True):
    """A number of turns and what they cost, in USD; None where unpriced or past the window."""

    turns: int
    cost: Decimal | None


class Fall(Struct, frozen=True):
    """Where the log itself shows that a prompt fell: a compaction, a clearing."""

    tokens: int
    """Of the smallest prompt behind which one of the same conversation fell."""
    here: bool
    """Whether the stretch itself ended so."""


Falls: TypeAlias = Mapping[tuple[int, ...], Fall]
"""By the requests of a stretch; those of conversations in which nothing fell are not there."""


def falls_of(replay: Ledger) -> Falls:
    """Where prompts fell, for every stretch of a conversation."""
    of_row = {number: grown for grown in replay.growth for number in grown.rows}
    next_of: dict[tuple[int, ...], tuple[int, ...]] = {}
    ended: set[tuple[int, ...]] = set()
    for grown in replay.growth:
        first = replay.by_place[grown.rows[0] - 1]
        before = of_row.get(first.compared or 0)
        size = first.counters.input if first.counters else 0
        if before is None or before is grown or before.rows[-1] != first.compared:
            continue
        # A compaction may open another session: its cause says that the conversation goes on.
        told = first.miss is not None and CAUSES[first.miss.cause].replaces_history
        same = told or first.request.event is not None or before.session == grown.session
        if same and size < before.fit.latest and first.related:
            ended.add(before.rows)
            next_of[grown.rows] = before.rows
    found: dict[tuple[int, ...], Fall] = {}
    for grown in sorted(replay.growth, key=lambda each: each.rows[0]):
        earlier = found.get(next_of.get(grown.rows, ()))
        here = grown.rows in ended
        sizes = [earlier.tokens] if earlier is not None else []
        if here:
            sizes.append(grown.fit.latest)
        if sizes:
            found[grown.rows] = Fall(min(sizes), here)
    return found


class Forecast(Struct, frozen=True, kw_only=True):
    """How a stretch goes on."""

    window: int
    """Tokens that the model takes."""
    turns_left: int | None
    """None where nothing grows, or where prompts of the conversation fell before."""
    falls_at: int | None
    """Tokens at which the log shows that prompts fall; None where it shows none."""
    falls_in: int | None
    """Turns up to there."""
    read_share: float
    """Share of the prompt before that a request reads, as in the stretch."""
    next: tuple[Next, ...]


def forecast(fit: Growth, rows: Sequence[RequestCost], fall: Fall | None = None) -> Forecast | None:
    """The forecast for a stretch of at least two requests with counters; None for a shorter one, for one
    that the law does not fit, and for one whose end the log shows. It ends where prompts fell before."""
    usages = [row.counters for row in rows]
    known = [usage for usage in usages if usage is not None]
    if len(known) < 2 or fit.per_turn is None or not fit.foretells:
        return None
    if (fall is not None and fall.here) or any(usage.contradiction for usage in known):
        return None
    tariff = rows[-1].tariff
    if not are_rules_known(tariff.model):
        # Nothing is known of its window.
        return None
    window = find_model(tariff.model).window
    left = fit.turns_left(window if fall is None else min(window, fall.tokens))
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
        turns_left=left if fall is None else None,
        falls_at=fall.tokens if fall else None,
        falls_in=left if fall else None,
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
