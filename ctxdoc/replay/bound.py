"""The bound of what any placement can reach: one tree of all prompts, for replay and simulation alike.

What will be sent again is written once, for five minutes, and read from then on; nothing expires,
breakpoints are free, and every scope shares one cache. The model's minimum holds: a prefix below it can
be neither written nor read (prompt-caching page, 2026-10-08).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from ctxdoc.cache.prefix_tree import ROOT, PrefixTree
from ctxdoc.prompt.segments import Segment
from ctxdoc.replay.measure import MeasuredRequest, is_whole
from ctxdoc.request.request import Request
from ctxdoc.request.usage import Usage

Block = tuple[str, str, bytes]
"""Tokenizer, role and digest of a block."""
LEAST_SHARE = 0.5
"""Counters that leave less, or more than twice as much, for new blocks than these weigh contradict the
sizes known before."""


def block_of(tokenizer: str, segment: Segment) -> Block:
    """A block as sizes are known by."""
    return tokenizer, segment.role, segment.digest


class BlockSizes:
    """The tokens of every block: one size wherever it stands.

    What a prompt brings that none before it had takes up what its counters leave beside the known
    blocks, so that the blocks of a prompt add up to it.
    """

    def __init__(self) -> None:
        self._sizes: dict[Block, int] = {}

    def __getitem__(self, block: Block) -> int:
        return self._sizes[block]

    def settle(self, blocks: Iterable[tuple[Block, int]], known: int, total: int | None) -> None:
        """Sizes blocks that are seen for the first time.

        Each comes with its estimated tokens; `known` are the tokens of the prompt beside them all, and
        `total` those of the whole where counters state them.
        """
        sizes = self._sizes
        new: dict[Block, int] = {}
        times: Counter[Block] = Counter()
        for block, tokens in blocks:
            if block in sizes:
                known += sizes[block]
            else:
                new.setdefault(block, tokens)
                times[block] += 1
        guessed = sum(tokens * times[block] for block, tokens in new.items())
        left = guessed if total is None else total - known
        if not guessed or not LEAST_SHARE <= left / guessed <= 1 / LEAST_SHARE:
            left = guessed
        done = given = 0
        for block, tokens in new.items():
            done += tokens * times[block]
            # Rounded together, so that all of them add up to what is left.
            upto_here = round(left * done / guessed) if guessed else 0
            sizes[block] = (upto_here - given) // times[block]
            given += sizes[block] * times[block]


def warm_of(usage: Usage | None, request: Request | None) -> int:
    """Tokens of a prompt that its counters say were read; 0 where they are no size of a prefix."""
    response = request.response if request is not None else None
    if usage is None or usage.contradiction or (response is not None and response.several_passes):
        return 0
    return usage.cache_read


class BoundOfTree:
    """What each prompt of a tree reads, writes and pays in full at best."""

    def __init__(self, tree: PrefixTree) -> None:
        self._tree = tree
        self._owner = array("l")
        """Of each node, the prompt that sent it first."""
        self._upto = array("l")
        """Of each node, tokens from the start up to its end."""
        self._shared: list[int] = []
        """Of each prompt, tokens that one before it sent too."""
        self._again: list[int] = []
        """Of each prompt, tokens up to where a later one goes on from it."""
        self._totals = array("l")

    def add(
        self,
        keys: Sequence[bytes],
        minimum: int,
        upto_of: Callable[[int, int], Sequence[int]],
        warm: int = 0,
    ) -> int:
        """Adds a prompt; its number.

        `upto_of` gives, for the number of leading blocks that are known and their tokens, the tokens up
        to each block behind them. `warm` are tokens that its counters say were read.
        """
        known = self._tree.known(keys)
        last = self._tree.node(keys[known - 1]) if known else ROOT
        base = self._upto[last] if known else 0
        number = len(self._shared)
        ends = upto_of(known, base)
        self._tree.grow(keys, known)
        self._owner.extend([number] * (len(keys) - known))
        self._upto.extend(ends)
        total = ends[-1] if ends else base
        shared = base if base >= minimum else 0
        if shared:
            first = self._owner[last]
            self._again[first] = max(self._again[first], shared)
        # What was read was there, whoever wrote it.
        shared = max(shared, min(warm, total))
        self._shared.append(shared)
        self._again.append(shared)
        self._totals.append(total)
        return number

    def parts(self, number: int) -> tuple[int, int, int]:
        """Tokens that a prompt reads, writes and pays in full at best."""
        read, again = self._shared[number], self._again[number]
        return read, again - read, self._totals[number] - again


class Bound:
    """The tree of the prompts of a log as they were sent."""

    def __init__(self, tree: PrefixTree) -> None:
        """The tree may hold no prompt yet that was not added here."""
        self._prompts = BoundOfTree(tree)
        self._sizes = BlockSizes()

    def add(self, exchange: MeasuredRequest) -> int:
        """Adds a request in time order; its number."""
        prefix, sizes = exchange.prefix, exchange.sizes
        kind, upto = prefix.rule.tokenizer, sizes.upto

        def upto_of(known: int, base: int) -> list[int]:
            """Tokens up to the end of each block that is new."""
            blocks = [block_of(kind, segment) for segment in prefix.segments[known:]]
            estimated = [
                upto[index] - (upto[index - 1] if index else 0) for index in range(known, len(upto))
            ]
            usage = exchange.usage if is_whole(exchange) else None
            self._sizes.settle(
                zip(blocks, estimated, strict=True), base, usage.input if usage else None
            )
            return list(accumulate((self._sizes[block] for block in blocks), initial=base))[1:]

        warm = warm_of(exchange.usage, exchange.request)
        return self._prompts.add(prefix.keys, prefix.rule.minimum, upto_of, warm)

    def usage(self, number: int, output: int) -> Usage:
        """What a request reads, writes and pays in full at best."""
        read, written, uncached = self._prompts.parts(number)
        return Usage(
            uncached=uncached,
            cache_read=read,
            cache_write_5m=written,
            cache_write_1h=0,
            output=output,
        )
