"""What every block of a log costs over its life: its tokens, times sent, read, written or paid in full.

All prompts of a log are one tree whose nodes are blocks. A request adds what a token costs at three
places only, the ends of what was read, of what was written and of the prompt; summing from the leaves
to the root gives each block what all requests paid for it. So the work grows with the blocks that are
new, and not with the history that is sent again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct

from ctxdoc.exchange import Exchange
from ctxdoc.model import Origin, Usage
from ctxdoc.price_table import Rates
from ctxdoc.pricing import MILLION
from ctxdoc.render import Segment

ROUNDING = 2
"""Tokens by which sizes inside an interval are off."""
ZERO = Decimal(0)


class Node:
    """A block behind a certain prefix."""

    __slots__ = ("count", "origin", "parent", "rate", "segment", "tokens", "unpriced")

    def __init__(self, segment: Segment, parent: int, tokens: int, origin: Origin) -> None:
        self.segment = segment
        self.parent = parent
        self.tokens = tokens
        self.origin = origin
        self.count = 0
        """Requests that end here; after summing, those that hold it."""
        self.rate = ZERO
        """USD per million tokens, in the same way."""
        self.unpriced = 0


class Block(Struct, kw_only=True):
    """A block with the same content wherever it was sent."""

    segment: Segment
    tokens: int
    times: int
    """Requests that sent it."""
    lifetime_tokens: int
    cost: Decimal | None
    """USD; None where a request that sent it is unpriced."""
    origin: Origin


class Sent(Struct, frozen=True):
    """What a request adds to the tree."""

    start: int
    """Its first node that no earlier request sent."""
    stop: int
    shared: int
    """Tokens of the blocks that an earlier request sent too."""


class Lifetime:
    """The tree of all blocks of a log."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._of_key: dict[bytes, int] = {}

    def add(self, exchange: Exchange, usage: Usage, rates: Rates | None) -> Sent:
        """Adds a request with what it read, wrote and paid in full."""
        start, known = len(self._nodes), self._grow(exchange)
        upto = exchange.sizes.upto
        keys = exchange.prefix.keys
        if not keys:
            return Sent(start, start, 0)
        read = bisect_right(upto, usage.cache_read + ROUNDING) if usage.cache_read else 0
        cached = usage.cache_read + usage.cache_write
        written = bisect_right(upto, cached + ROUNDING) if usage.cache_write else read
        tip = self._nodes[self._of_key[keys[-1]]]
        tip.count += 1
        if rates is None:
            tip.unpriced += 1
        else:
            write = _write_rate(usage, rates)
            tip.rate += rates.input
            if written:
                self._nodes[self._of_key[keys[written - 1]]].rate += write - rates.input
            if read:
                self._nodes[self._of_key[keys[read - 1]]].rate += (rates.cache_read or ZERO) - write
        return Sent(start, len(self._nodes), upto[known - 1] if known else 0)

    def _grow(self, exchange: Exchange) -> int:
        """Adds the new nodes; how many segments were there before."""
        keys, of_key = exchange.prefix.keys, self._of_key
        known = len(keys)
        while known and keys[known - 1] not in of_key:
            known -= 1
        parent = of_key[keys[known - 1]] if known else -1
        upto, segments = exchange.sizes.upto, exchange.prefix.segments
        base = upto[known - 1] if known else 0
        for index in range(known, len(keys)):
            of_key[keys[index]] = len(self._nodes)
            tokens = upto[index] - base
            base = upto[index]
            self._nodes.append(Node(segments[index], parent, tokens, exchange.sizes.origin))
            parent = len(self._nodes) - 1
        return known

    def finish(self) -> None:
        """Sums from the leaves to the root; nothing can be added after it."""
        nodes = self._nodes
        for node in reversed(nodes):
            if node.parent >= 0:
                above = nodes[node.parent]
                above.count += node.count
                above.rate += node.rate
                above.unpriced += node.unpriced

    def sent_again(self, sent: Sent) -> int:
        """Tokens of a request's new blocks that a later request sends as well."""
        tokens = 0
        for node in self._nodes[sent.start : sent.stop]:
            if node.count < 2:
                break
            tokens += node.tokens
        return tokens

    def blocks(self) -> list[Block]:
        """Every block, those of equal content together, the dearest first."""
        found: dict[bytes, Block] = {}
        for node in self._nodes:
            if node.segment.kind in ("setting", "empty"):
                continue
            cost = None if node.unpriced else node.rate * node.tokens / MILLION
            block = found.get(node.segment.digest)
            if block is None:
                found[node.segment.digest] = Block(
                    segment=node.segment,
                    tokens=node.tokens,
                    times=node.count,
                    lifetime_tokens=node.tokens * node.count,
                    cost=cost,
                    origin=node.origin,
                )
            else:
                block.times += node.count
                block.lifetime_tokens += node.tokens * node.count
                block.cost = None if block.cost is None or cost is None else block.cost + cost
        return sorted(found.values(), key=_rank)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)


def _rank(block: Block) -> tuple[Decimal, int, str]:
    return -(block.cost or ZERO), -block.lifetime_tokens, block.segment.pointer


def _write_rate(usage: Usage, rates: Rates) -> Decimal:
    """USD per million written tokens, both lifetimes together."""
    if not usage.cache_write:
        return rates.input
    short = (rates.cache_write_5m or ZERO) * usage.cache_write_5m
    return (short + (rates.cache_write_1h or ZERO) * usage.cache_write_1h) / usage.cache_write
