"""What the next turns of a session will cost if nothing changes: same growth, same share read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.ledger.ledger import Grown, Ledger
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
    ended_by: dict[tuple[int, ...], tuple[int, ...]] = {}
    """Behind a fall → ahead of it, each by the requests of the stretch."""
    for grown in replay.growth:
        before = of_row.get(replay.by_index[grown.rows[0] - 1].compared or 0)
        if before is not None and _fell(replay, before, grown):
            ended_by[grown.rows] = before.rows
    ended = set(ended_by.values())
    found: dict[tuple[int, ...], Fall] = {}
    # In order of time: what was learnt of an earlier fall holds for the stretches behind it.
    for grown in sorted(replay.growth, key=lambda each: each.rows[0]):
        earlier = found.get(ended_by.get(grown.rows, ()))
        here = grown.rows in ended
        sizes = [earlier.tokens] if earlier is not None else []
        if here:
            sizes.append(grown.fit.latest)
        if sizes:
            found[grown.rows] = Fall(min(sizes), here)
    return found


def _fell(replay: Ledger, before: Grown, grown: Grown) -> bool:
    """Whether a stretch goes on from the end of another one with a smaller prompt."""
    first = replay.by_index[grown.rows[0] - 1]
    if before is grown or before.rows[-1] != first.compared or not first.related:
        return False
    size = first.counters.input if first.counters else 0
    return size < before.fit.latest and _is_one_conversation(first, before, grown)


def _is_one_conversation(first: RequestCost, before: Grown, grown: Grown) -> bool:
    """A conversation that begins anew is smaller as well, and no sign that prompts fall."""
    told = first.miss is not None and CAUSES[first.miss.cause].replaces_history
    return told or first.request.event is not None or before.session == grown.session


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
    known = [row.counters for row in rows if row.counters is not None]
    if not _foretells(fit, known) or (fall is not None and fall.here):
        return None
    tariff = rows[-1].tariff
    if not are_rules_known(tariff.model):
        # Nothing is known of its window.
        return None
    window = find_model(tariff.model).window
    left = fit.turns_left(window if fall is None else min(window, fall.tokens))
    share = _share_of(known)
    return Forecast(
        window=window,
        turns_left=left if fall is None else None,
        falls_at=fall.tokens if fall else None,
        falls_in=left if fall else None,
        read_share=share.read,
        next=tuple(_costs(fit, share, tariff, left)),
    )


def _foretells(fit: Growth, known: Sequence[Usage]) -> bool:
    """Whether a stretch says anything of the turns behind it."""
    if len(known) < 2 or fit.per_turn is None or not fit.foretells:
        return False
    return not any(usage.contradiction for usage in known)


class _Share(Struct, frozen=True, kw_only=True):
    read: float
    written: float
    """Share of what is not read that is written."""
    hour: float
    """Share of the written that is written for an hour."""
    output: int
    """Tokens a request."""


def _share_of(known: Sequence[Usage]) -> _Share:
    """The shares of a stretch. Its first request is left out of all but the output: it wrote what it
    begins with, which no later turn does."""
    later = known[1:]
    before = sum(usage.input for usage in known[:-1])
    written = sum(usage.cache_write for usage in later)
    paid = written + sum(usage.uncached for usage in later)
    # More can be read than the prompt before had, where another session wrote it.
    read = min(1.0, _ratio(sum(usage.cache_read for usage in later), before))
    return _Share(
        read=read,
        hour=_ratio(sum(usage.cache_write_1h for usage in later), written),
        written=_ratio(written, paid),
        output=round(sum(usage.output for usage in known) / len(known)),
    )


def _ratio(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


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
            parts = _parts(share, before, round(size))
            # A tier is set by the whole prompt: each turn may cross into a dearer one.
            tier = tiers.setdefault(find_tier(tariff, round(size)), [0] * len(parts))
            for index, tokens in enumerate(parts):
                tier[index] += tokens
        yield Next(horizon, _sum(tiers, tariff))


def _parts(share: _Share, before: float, size: int) -> tuple[int, ...]:
    """Tokens of a turn: uncached, read, written for five minutes and for an hour, output. They add up
    to its prompt, however they round."""
    read = round(share.read * before)
    written = round((size - read) * share.written)
    hour = round(written * share.hour)
    return size - read - written, read, written - hour, hour, share.output


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
