"""What to do about a log, ranked by money: each with the figure behind it and where to see more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.ledger.block_costs import Block, Sort
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.losses import Loss, losses_of
from ctxdoc.ledger.pauses import Idle, hour_premium, idle_of
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.ledger.totals import is_idle, priced_of
from ctxdoc.pricing.cost import usd_text
from ctxdoc.pricing.rates import MILLION
from ctxdoc.providers import provider_of
from ctxdoc.request.request import Section

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


def advise(replay: Ledger) -> tuple[Advice, ...]:
    """What was lost first, then what may be smaller, each by its money; at most five."""
    total = priced_of(replay.rows).amount or Decimal(0)
    found = [advice for source in SOURCES for advice in source(replay)]
    worth = [advice for advice in found if advice.cost > 0 and advice.cost >= WORTH_SAYING * total]
    ranked = sorted(worth, key=lambda advice: (not advice.is_lost, -advice.cost, advice.id))
    return tuple(ranked[:AT_MOST])


def _losses(replay: Ledger) -> Iterator[Advice]:
    """Each cause of avoidable misses and of waste; what pauses cost is told apart."""
    for loss in losses_of(filter(_is_in_vain, replay.rows)):
        paused = CAUSES[loss.cause].is_idle and loss.kind == "miss"
        if loss.cost and not paused:
            yield _of_loss(loss, loss.cost)


def _is_in_vain(row: RequestCost) -> bool:
    return row.waste is not None or (row.miss is not None and bool(row.miss.avoidable))


def _of_loss(loss: Loss, cost: Decimal) -> Advice:
    missed = loss.kind == "miss"
    verb = "lost {} cached tokens" if missed else "paid {} repeated tokens in full"
    return Advice(
        id=loss.cause,
        what=CAUSES[loss.cause].fix,
        why=f"{loss.cause}: {_requests(len(loss.rows))} {verb.format(f'{loss.tokens or 0:,}')}",
        cost=cost,
        is_lost=True,
        # The dearest miss shows most; waste goes on to the end, where it is largest.
        pair=_pair_of(max(loss.rows, key=_lost) if missed else loss.rows[-1]),
    )


def _idle(replay: Ledger) -> Iterator[Advice]:
    """Pauses over the lifetime, with what would have bridged them."""
    idle = idle_of(replay)
    if idle is None:
        return
    rows = [row for row in replay.rows if is_idle(row)]
    worst = max(rows, key=_lost)
    assert worst.miss is not None
    pauses = f"{idle.pauses:,} pause{'' if idle.pauses == 1 else 's'}"
    why = f"{worst.miss.cause}: {pauses} over the lifetime"
    if idle.longest:
        why += f", {idle.longest:,} of an hour or more, which no lifetime bridges"
    if idle.short:
        why += f"; for those of up to an hour {bridge_text(idle)}"
    yield Advice(
        id=worst.miss.cause,
        what=_bridged_by(idle),
        why=why,
        cost=idle.cost,
        is_lost=True,
        pair=_pair_of(worst),
    )


def _bridged_by(idle: Idle) -> str:
    """What to do about pauses."""
    hour, kept = idle.hour, idle.keep_alive
    if not idle.short:
        return (
            "Expect a full write after a long pause: no lifetime bridges it. What is smaller then costs "
            "less: begin a new conversation, or compact before the pause."
        )
    if kept.pays and (not hour.pays or kept.extra <= hour.extra):
        return (
            "For pauses between five minutes and an hour send a cheap keep-alive before the entry ends "
            "(max_tokens 0), or use ttl 1h on the stable breakpoints: compare what each costs."
        )
    if hour.pays:
        return (
            "For pauses between five minutes and an hour use ttl 1h on the stable breakpoints, or "
            "send a cheap keep-alive before the entry ends."
        )
    return (
        "Leave the pauses as they are: neither an hour's lifetime nor a keep-alive would have paid."
    )


def bridge_text(idle: Idle) -> str:
    """What an hour's lifetime and a keep-alive would have cost and saved."""
    parts = (
        f"an hour's lifetime would have cost {usd_text(idle.hour.extra)} more in writes and saved "
        f"{usd_text(idle.hour.saved)}",
        f"a keep-alive would have cost {usd_text(idle.keep_alive.extra)} and saved "
        f"{usd_text(idle.keep_alive.saved)}",
    )
    neither = "" if idle.hour.pays or idle.keep_alive.pays else ": neither pays"
    return f"{', '.join(parts)}{neither}"


def _pair_of(row: RequestCost) -> tuple[int, int] | None:
    """Both requests as `diagnose` takes them: with bodies, the earlier one first in the log."""
    if row.compared is None or row.simulated is None or row.compared >= row.number:
        return None
    return row.compared, row.number


def _lost(row: RequestCost) -> Decimal:
    return (row.miss.cost if row.miss else None) or Decimal(0)


def _unused_tools(replay: Ledger) -> Iterator[Advice]:
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


def unused_tools(replay: Ledger) -> list[Block]:
    """Tool definitions that the log shows no call of; none where it shows no call at all."""
    blocks = replay.blocks
    called = replay.called | {sort.name for sort in blocks.sorts if sort.kind in CALLS}
    if not called:
        return []
    return blocks.where(lambda s: s.section is Section.TOOLS and s.name not in called)


def _results(replay: Ledger) -> Iterator[Advice]:
    blocks = list(filter(_is_large, replay.blocks.where(_is_result)))
    total = priced_of(replay.rows).amount or Decimal(0)
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


def _is_result(sort: Sort) -> bool:
    # Server tools and MCP have results of other names with the same ending.
    return sort.kind.endswith("tool_result")


def _is_large(block: Block) -> bool:
    return block.tokens >= LARGE_RESULT


def _images(replay: Ledger) -> Iterator[Advice]:
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


def _hours(replay: Ledger) -> Iterator[Advice]:
    """One-hour writes that no pause made use of."""
    if _may_have_paused(replay):
        return
    written, premium = 0, Decimal(0)
    for row in replay.rows:
        usage = row.counters
        more = hour_premium(row.tariff, usage) if usage is not None else None
        if usage is not None and more is not None:
            written += usage.cache_write_1h
            premium += usage.cache_write_1h * more / MILLION
    if written:
        yield Advice(
            id="hour_writes_unused",
            what="Write for five minutes instead of an hour: no pause was longer than five minutes.",
            why=f"{written:,} tokens were written for an hour, at 2 instead of 1.25 times the price",
            cost=premium,
            is_lost=True,
        )


def _may_have_paused(replay: Ledger) -> bool:
    """Whether a session paused beyond the shortest lifetime, or the log lacks a time to say that none
    did."""
    last: dict[str, datetime] = {}
    for index in replay.order:
        row = replay.by_index[index]
        at = row.request.at
        if at is None:
            return True
        pause = at - last.get(row.session, at)
        if pause.total_seconds() >= provider_of(row.request.model).shortest:
            return True
        last[row.session] = at
    return False


def _cost_of(blocks: Sequence[Block]) -> Decimal:
    return sum((block.cost or Decimal(0) for block in blocks), Decimal(0))


def _requests(count: int) -> str:
    return f"{count:,} request{'' if count == 1 else 's'}"


SOURCES: tuple[Callable[[Ledger], Iterator[Advice]], ...] = (
    _losses,
    _idle,
    _unused_tools,
    _results,
    _images,
    _hours,
)
"""Where advice comes from."""
