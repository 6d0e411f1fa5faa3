"""What to do about a log, ranked by money: each with the figure behind it and where to see more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc.causes import CAUSES
from ctxdoc.lifetime import Block
from ctxdoc.model import Section
from ctxdoc.pricing import MILLION, find_rates
from ctxdoc.providers import RULES
from ctxdoc.replay import Replay
from ctxdoc.rows import Row

AT_MOST = 5
LARGE_RESULT = 1000
"""Tokens from which on a tool result is worth a file of its own."""
MUCH = Decimal("0.05")
"""Share of the log's cost from which on large results are worth a word."""
WORTH_SAYING = Decimal("0.01")
"""Share of the log's cost under which a piece of advice is left out."""
NAMES = 6
CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")


class Advice(Struct, frozen=True, kw_only=True):
    """One thing to do."""

    id: str
    """A cause, or the kind of block."""
    what: str
    why: str
    """The figure behind it."""
    cost: Decimal
    """USD that it is about."""
    is_lost: bool
    """Whether all of it was for nothing; otherwise it is what blocks cost, of which some may be
    needed."""
    pair: tuple[int, int] | None = None
    """Two requests of the log that show it, counted from 1."""


def advise(replay: Replay) -> tuple[Advice, ...]:
    """What was lost first, then what may be smaller, each by its money; at most five."""
    total = sum((row.cost or Decimal(0) for row in replay.rows), Decimal(0))
    found = [advice for source in SOURCES for advice in source(replay)]
    worth = [advice for advice in found if advice.cost > 0 and advice.cost >= WORTH_SAYING * total]
    ranked = sorted(worth, key=lambda advice: (not advice.is_lost, -advice.cost, advice.id))
    return tuple(ranked[:AT_MOST])


def _causes(replay: Replay) -> Iterator[Advice]:
    """Each avoidable cause of misses."""
    of_cause: defaultdict[str, list[Row]] = defaultdict(list)
    for row in replay.rows:
        if row.miss is not None and row.miss.avoidable and row.miss.cost is not None:
            of_cause[row.miss.cause].append(row)
    for name, rows in of_cause.items():
        worst = max(rows, key=_lost)
        tokens = sum(row.miss.tokens or 0 for row in rows if row.miss)
        yield Advice(
            id=name,
            what=CAUSES[name].fix,
            why=f"{name}: {_requests(len(rows))} lost {tokens:,} cached tokens",
            cost=sum((_lost(row) for row in rows), Decimal(0)),
            is_lost=True,
            pair=_pair_of(worst),
        )


def _pair_of(row: Row) -> tuple[int, int] | None:
    """Both requests as `diagnose` takes them: with bodies, the earlier one first in the log."""
    if row.compared is None or row.simulated is None or row.compared >= row.number:
        return None
    return row.compared, row.number


def _lost(row: Row) -> Decimal:
    return (row.miss.cost if row.miss else None) or Decimal(0)


def _wastes(replay: Replay) -> Iterator[Advice]:
    """History that is paid in full again and again."""
    of_cause: defaultdict[str, list[Row]] = defaultdict(list)
    for row in replay.rows:
        if row.waste is not None and row.waste.cost:
            of_cause[row.waste.cause].append(row)
    for name, rows in of_cause.items():
        wastes = [row.waste for row in rows if row.waste]
        tokens = sum(waste.tokens for waste in wastes)
        worst = rows[-1]
        yield Advice(
            id=name,
            what=CAUSES[name].fix,
            why=f"{name}: {_requests(len(rows))} paid {tokens:,} repeated tokens in full",
            cost=sum((waste.cost or Decimal(0) for waste in wastes), Decimal(0)),
            is_lost=True,
            pair=_pair_of(worst),
        )


def _unused_tools(replay: Replay) -> Iterator[Advice]:
    blocks = unused_tools(replay)
    if not blocks:
        return
    tokens = sum(block.lifetime_tokens for block in blocks)
    names = list(dict.fromkeys(block.sort.name for block in blocks))
    named = ", ".join(names[:NAMES]) + (
        f" and {len(names) - NAMES} more" if len(names) > NAMES else ""
    )
    yield Advice(
        id="unused_tools",
        what=f"Leave out the tools that were never called, or defer their loading: {named}.",
        why=f"{len(names)} tool definitions, sent to {tokens:,} tokens in all, were never called",
        cost=_cost_of(blocks),
        is_lost=True,
    )


def unused_tools(replay: Replay) -> list[Block]:
    """Tool definitions that the log shows no call of; none where it shows no call at all."""
    blocks = replay.blocks
    called = replay.called | {sort.name for sort in blocks.sorts if sort.kind in CALLS}
    if not called:
        return []
    return blocks.where(lambda s: s.section is Section.TOOLS and s.name not in called)


def _results(replay: Replay) -> Iterator[Advice]:
    blocks = [
        block
        for block in replay.blocks.where(lambda sort: sort.kind.endswith("tool_result"))
        if block.tokens >= LARGE_RESULT
    ]
    total = sum((row.cost or Decimal(0) for row in replay.rows), Decimal(0))
    cost = _cost_of(blocks)
    if not blocks or cost < MUCH * total:
        return
    tokens = sum(block.lifetime_tokens for block in blocks)
    largest = max(block.tokens for block in blocks)
    noun = "tool result is" if len(blocks) == 1 else "tool results are"
    yield Advice(
        id="large_tool_results",
        what="If the agent does not need all of its large tool results, shorten them in the tool, before "
        "the first request that carries them: taking them out later rewrites the prefix.",
        why=f"{len(blocks):,} {noun} of {LARGE_RESULT:,} tokens or more (the largest {largest:,}), sent to "
        f"{tokens:,} tokens in all",
        cost=cost,
        is_lost=False,
    )


def _images(replay: Replay) -> Iterator[Advice]:
    blocks = replay.blocks.where(lambda sort: sort.pictured)
    if not blocks:
        return
    tokens = sum(block.lifetime_tokens for block in blocks)
    yield Advice(
        id="images",
        what="Send images smaller from the start: tokens are ⌈w/28⌉·⌈h/28⌉. Dropping them later "
        "rewrites the prefix.",
        why=f"{len(blocks):,} blocks with images, sent to {tokens:,} tokens in all",
        cost=_cost_of(blocks),
        is_lost=False,
    )


def _hours(replay: Replay) -> Iterator[Advice]:
    """One-hour writes that no pause made use of."""
    written, premium = 0, Decimal(0)
    last: dict[str, Row] = {}
    for index in replay.order:
        row = replay.by_place[index]
        request = row.request
        before = last.get(row.session)
        last[row.session] = row
        usage = row.counters
        if request.at is None:
            return
        if before is not None:
            earlier = before.request.at
            pause = (request.at - earlier).total_seconds() if earlier else 0.0
            if pause >= RULES.ttl_seconds["5m"]:
                return
        rates = find_rates(row.tariff, usage.input) if usage else None
        if usage is None or rates is None or not rates.cache_write_1h or not rates.cache_write_5m:
            continue
        written += usage.cache_write_1h
        premium += usage.cache_write_1h * (rates.cache_write_1h - rates.cache_write_5m) / MILLION
    if written:
        yield Advice(
            id="hour_writes_unused",
            what="Write for five minutes instead of an hour: no pause was longer than five minutes.",
            why=f"{written:,} tokens were written for an hour, at 2 instead of 1.25 times the price",
            cost=premium,
            is_lost=True,
        )


def _cost_of(blocks: Sequence[Block]) -> Decimal:
    return sum((block.cost or Decimal(0) for block in blocks), Decimal(0))


def _requests(count: int) -> str:
    return f"{count:,} request{'' if count == 1 else 's'}"


SOURCES: tuple[Callable[[Replay], Iterator[Advice]], ...] = (
    _causes,
    _wastes,
    _unused_tools,
    _results,
    _images,
    _hours,
)
"""Where advice comes from."""
