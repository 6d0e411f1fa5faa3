"""What every block of a log costs over its life: its tokens, times sent, read, written or paid in full.

All prompts of a log are one tree whose nodes are blocks. A request adds what a token costs at three
places only, the ends of what was read, of what was written and of the prompt; summing from the leaves
to the root gives each block what all requests paid for it. A block has the size of its first sending; what
a request read, wrote and paid in full is shared out by these sizes, so that the blocks of a request add
up to its input. So the work grows with the blocks that are
new, and not with the history that is sent again; and the tree is held in flat arrays, since a log of a
gigabyte has a hundred thousand nodes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import NamedTuple

from msgspec import Struct

from ctxdoc.cache.prefix_tree import ROOT, PrefixTree
from ctxdoc.pricing.table import Rates
from ctxdoc.prompt.segments import Segment, segment_of
from ctxdoc.replay.measure import MeasuredRequest
from ctxdoc.request.request import Section
from ctxdoc.request.usage import Origin, Usage

ZERO = Decimal(0)
NANO = 10**9
"""Rates are whole numbers of this part of a dollar per million tokens."""
SHARES = 1_000_000
"""Shares of a block's size are whole numbers of this part of it."""
DIGEST = 16
"""Bytes of a block's digest."""


class Sort(NamedTuple):
    """What kind of block one is."""

    section: Section
    kind: str
    role: str
    pictured: bool
    name: str
    """Of a tool, or of the tool that is called."""


class Block(Struct, frozen=True, kw_only=True):
    """A block with the same content wherever it was sent."""

    sort: Sort
    source: Segment | bytes
    """The block itself, or the message that it is made from again."""
    place: tuple[int, int]
    """Index of that message, and place of the block in it."""
    tokens: int
    """Of one sending, in the mean."""
    times: int
    """Requests that sent it."""
    lifetime_tokens: int
    cost: Decimal | None
    """USD; None where a request that sent it is unpriced."""
    origin: Origin

    @property
    def segment(self) -> Segment:
        """The block as it was sent first."""
        if isinstance(self.source, Segment):
            return self.source
        return segment_of(self.source, *self.place)


NO_NODE = -1
NO_SORT = -1
"""Of a node that no counted request has."""


class _Stretch(Struct, gc=False):
    """Blocks in a row that a request paid one rate for."""

    node: int = NO_NODE
    """The last of them."""
    size: int = 0
    """Tokens, by the sizes of the nodes."""
    tokens: int = 0
    """As counted."""
    money: int = 0
    """Nanodollars per million tokens, times tokens."""

    @property
    def share(self) -> int:
        """What a sending was of the first one's size."""
        return round(self.tokens * SHARES / self.size) if self.size else 0

    @property
    def rate(self) -> int:
        """What a token of the nodes cost."""
        return round(self.money / self.size) if self.size else 0


class BlockCosts:
    """What requests paid for the blocks of a tree of prompts."""

    def __init__(self, tree: PrefixTree) -> None:
        self._tree = tree
        self._tokens = array("l")
        self._count = array("l")
        """Requests that end at a node; after summing, those that hold it."""
        self._rate = array("q")
        """Sums of rates, in the same way."""
        self._share = array("q")
        """Sums of what a sending was of the first one's size, in the same way."""
        self._upto = array("l")
        """Tokens from the root to here, by the sizes of the nodes."""
        self._unpriced = array("l")
        self._origin = array("b")
        self._sort = array("l")
        self._digests = bytearray()
        self._sorts: dict[Sort, int] = {}
        self._sources: list[Segment | bytes] = []
        """The block itself, or the message that it is made from again."""
        self._places = array("l")
        """Index of that message, and place of the block in it."""

    def add(self, exchange: MeasuredRequest, usage: Usage, rates: Rates | None) -> None:
        """Adds a request with what it read, wrote and paid in full."""
        self._grow(exchange)
        keys = exchange.prefix.keys
        if not keys:
            return
        tip = self._tree.node(keys[-1])
        self._count[tip] += 1
        if rates is None:
            self._unpriced[tip] += 1
        self._spread(exchange, usage, rates)

    def _spread(self, exchange: MeasuredRequest, usage: Usage, rates: Rates | None) -> None:
        """Shares what a request read, wrote and paid in full out among its blocks."""
        # A node's sum is brought by all nodes behind it. So each stretch adds only what a token of it is
        # more than one of the stretch behind: then every block ends with the share of its own stretch.
        later_share = later_rate = 0
        for stretch in reversed(self._stretches(exchange, usage, rates)):
            share, rate = stretch.share, stretch.rate
            self._share[stretch.node] += share - later_share
            self._rate[stretch.node] += rate - later_rate
            later_share, later_rate = share, rate

    def _stretches(
        self, exchange: MeasuredRequest, usage: Usage, rates: Rates | None
    ) -> list[_Stretch]:
        """The blocks that were read, those that were written and those that were paid in full."""
        keys = exchange.prefix.keys
        found: list[_Stretch] = []
        stretch, behind, before = _Stretch(), 0, 0
        for end, tokens, rate in _ends_of(exchange, usage, rates):
            if end > behind:
                # What ended in no block of its own at the start of the prompt stays in the first stretch.
                if found:
                    stretch = _Stretch()
                found.append(stretch)
                stretch.node = self._tree.node(keys[end - 1])
                # By the sizes of the nodes and not by those of the request: the first sending sized them,
                # and only so do the blocks of this request add up to its input.
                upto = self._upto[stretch.node]
                stretch.size, behind, before = upto - before, end, upto
            # What ends within the block before is a part of that one's.
            stretch.tokens += tokens
            stretch.money += tokens * rate
        return found

    def _grow(self, exchange: MeasuredRequest) -> None:
        """Adds the nodes that are new to it: other requests may have brought them to the tree."""
        tree, prefix = self._tree, exchange.prefix
        keys = prefix.keys
        tree.grow(keys, tree.known(keys))
        self._widen(len(tree) - len(self._sort))
        known = len(keys)
        while known and self._sort[tree.node(keys[known - 1])] == NO_SORT:
            known -= 1
        parent = tree.node(keys[known - 1]) if known else ROOT
        if known:
            # The message that ended the request before was marked then, and is held unmarked now.
            self._hold(parent, prefix.segments[known - 1])
        upto = exchange.sizes.upto
        base = upto[known - 1] if known else 0
        origin = ORIGINS.index(exchange.sizes.origin)
        for index in range(known, len(keys)):
            node = tree.node(keys[index])
            self._fill(node, parent, prefix.segments[index], upto[index] - base)
            self._origin[node] = origin
            base, parent = upto[index], node

    def _widen(self, count: int) -> None:
        """Makes room for nodes."""
        nothing = (0,) * count
        for column in (
            self._tokens,
            self._count,
            self._rate,
            self._share,
            self._upto,
            self._unpriced,
        ):
            column.extend(nothing)
        self._origin.extend(nothing)
        self._sort.extend((NO_SORT,) * count)
        self._digests += bytes(DIGEST * count)
        self._sources += (b"",) * count
        self._places.extend(nothing + nothing)

    def _fill(self, node: int, parent: int, segment: Segment, tokens: int) -> None:
        sort = Sort(segment.section, segment.kind, segment.role, segment.pictured, segment.name)
        self._tokens[node] = tokens
        self._upto[node] = tokens + (self._upto[parent] if parent != ROOT else 0)
        self._sort[node] = self._sorts.setdefault(sort, len(self._sorts))
        self._digests[node * DIGEST : (node + 1) * DIGEST] = segment.digest
        self._places[2 * node], self._places[2 * node + 1] = segment.rank[1], segment.origin[1]
        self._hold(node, segment)

    def _hold(self, node: int, segment: Segment) -> None:
        self._sources[node] = segment if segment.held is not None else segment.origin[0]

    def finish(self) -> None:
        """Sums from the leaves to the root; nothing can be added after it."""
        self._widen(len(self._tree) - len(self._sort))
        self._tree.sum_up(self._count, self._rate, self._share, self._unpriced)
        self._tree.close()

    def blocks(self) -> Blocks:
        """Every block, those of equal content together, the dearest first."""
        return Blocks(self)


class Blocks:
    """The blocks of a finished tree, the dearest first; each is made when it is asked for."""

    def __init__(self, tree: BlockCosts) -> None:
        self._tree = tree
        self._sorts = list(tree._sorts)
        self._nodes = array("l")
        """The first node of each block."""
        self._times, self._tokens = array("l"), array("l")
        self._costs: list[int | None] = []
        """Nanodollars per million."""
        self._group()
        self._order = sorted(range(len(self._nodes)), key=self._rank)

    def _group(self) -> None:
        tree = self._tree
        # Settings and empty blocks have a node, since they change the prefix; they cost nothing.
        quiet = {i for i, sort in enumerate(self._sorts) if sort.kind in ("setting", "empty")}
        quiet.add(NO_SORT)
        found: dict[bytes, int] = {}
        for node, sort in enumerate(tree._sort):
            if sort in quiet:
                continue
            # The same content behind another prefix is another node, and the same block to a reader.
            digest = bytes(tree._digests[node * DIGEST : (node + 1) * DIGEST])
            block = found.setdefault(digest, len(self._nodes))
            if block == len(self._nodes):
                self._begin(node)
            self._times[block] += tree._count[node]
            self._tokens[block] += tree._tokens[node] * tree._share[node] // SHARES
            self._costs[block] = self._with(self._costs[block], node)

    def _begin(self, node: int) -> None:
        self._nodes.append(node)
        self._times.append(0)
        self._tokens.append(0)
        self._costs.append(0)

    def _with(self, cost: int | None, node: int) -> int | None:
        """The cost with that of one more node; none where a request that sent it has no price."""
        if cost is None or self._tree._unpriced[node]:
            return None
        return cost + self._tree._rate[node] * self._tree._tokens[node]

    def _rank(self, block: int) -> tuple[int, int, int]:
        return -(self._costs[block] or 0), -self._tokens[block], self._nodes[block]

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[Block]:
        return map(self._made, self._order)

    def first(self, count: int) -> list[Block]:
        """The dearest ones."""
        return [self._made(block) for block in self._order[:count]]

    def where(self, test: Callable[[Sort], bool]) -> list[Block]:
        """The blocks of some sorts."""
        wanted = {number for number, sort in enumerate(self._sorts) if test(sort)}
        sort_of = self._tree._sort
        return [self._made(b) for b in self._order if sort_of[self._nodes[b]] in wanted]

    @property
    def sorts(self) -> Iterable[Sort]:
        """The sorts that there are."""
        return self._sorts

    def _made(self, block: int) -> Block:
        tree, node, cost = self._tree, self._nodes[block], self._costs[block]
        return Block(
            sort=self._sorts[tree._sort[node]],
            source=tree._sources[node],
            place=(tree._places[2 * node], tree._places[2 * node + 1]),
            tokens=round(self._tokens[block] / self._times[block]) if self._times[block] else 0,
            times=self._times[block],
            lifetime_tokens=self._tokens[block],
            cost=None if cost is None else Decimal(cost) / (NANO * 1_000_000),
            origin=ORIGINS[tree._origin[node]],
        )


ORIGINS = tuple(Origin)


def nano(rate: Decimal | None) -> int:
    """Nanodollars per million tokens; 0 where nothing is known."""
    return int(rate * NANO) if rate is not None else 0


def _ends_of(
    exchange: MeasuredRequest, usage: Usage, rates: Rates | None
) -> tuple[tuple[int, int, int], ...]:
    """Where what was read, written and paid in full ends, in blocks, with the tokens and the rate of
    each."""
    upto = exchange.sizes.upto
    read, written = usage.cache_read, usage.cache_write
    return (
        (_nearest(upto, read), read, nano(rates.cache_read if rates else None)),
        (_nearest(upto, read + written), written, write_rate(usage, rates)),
        (len(upto), usage.uncached, nano(rates.input if rates else None)),
    )


def _nearest(upto: tuple[int, ...], tokens: int) -> int:
    """How many leading blocks have that many tokens: entries end where blocks end."""
    if not tokens:
        return 0
    index = bisect_left(upto, tokens)
    if index == len(upto):
        return index
    before = upto[index - 1] if index else 0
    return index + 1 if upto[index] - tokens <= tokens - before else index


def write_rate(usage: Usage, rates: Rates | None) -> int:
    """Nanodollars per million written tokens, both lifetimes together."""
    if rates is None or not usage.cache_write:
        return 0
    short = nano(rates.cache_write_5m) * usage.cache_write_5m
    hour = nano(rates.cache_write_1h) * usage.cache_write_1h
    return round((short + hour) / usage.cache_write)
