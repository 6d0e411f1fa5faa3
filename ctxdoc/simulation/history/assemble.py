"""Prompts as a strategy sends them, put together request by request.

What a request shares with the one before it in its thread is taken over; so the work grows with what is
new or rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import cast

import msgspec
from msgspec import Struct

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.request.usage import Origin
from ctxdoc.simulation.history.keys import Keys, Known
from ctxdoc.simulation.history.messages import Call, Head, Message
from ctxdoc.simulation.history.overlap import common_start, moved_run
from ctxdoc.tokens.ledger import Sizes


class Prompt(Struct, frozen=True, eq=False, kw_only=True, gc=False):
    """A whole prompt as a placement and the cache look at it."""

    call: Call
    head: Head
    messages: Sequence[Message]
    ends: Sequence[int]
    """Blocks up to the end of each message."""
    prefix: Prefix
    sizes: Sizes
    passing: int
    """Blocks at the end that no breakpoint should cover."""
    kept: int
    """Blocks that the prompt before it in its lane has too, from the start."""
    dropped: int
    """Blocks of that one that stand behind them: 0 where it is a prefix of this one."""
    rewritten: int
    """Tokens behind the shared blocks that were in that one as well."""


class _Blocks(Struct, gc=False):
    """The messages of a prompt and its blocks, in rows."""

    start: int
    """Blocks ahead of the first message."""
    messages: list[Message] = []
    ends: list[int] = []
    """Blocks up to the end of each message."""
    segments: list[Segment] = []
    upto: list[int] = []
    """Tokens up to the end of each block."""
    parts: list[bytes] = []
    """What each block adds to a key."""
    known: Known = msgspec.field(default_factory=Known)
    """What was hashed of them."""

    @classmethod
    def of(cls, head: Head) -> _Blocks:
        """Those of a head, without any message."""
        found = cls(len(head.segments))
        for segment, tokens in zip(head.segments, head.tokens, strict=True):
            found._block(segment, tokens, segment.digest)
        return found

    @property
    def total(self) -> int:
        """Tokens of all of them."""
        return self.upto[-1] if self.upto else 0

    def between(self, start: int, end: int) -> int:
        """Tokens of the blocks from one up to another."""
        return self.upto[end - 1] - (self.upto[start - 1] if start else 0)

    def start_of(self, index: int) -> int:
        """Blocks ahead of a message."""
        return self.ends[index - 1] if index else self.start

    def upto_message(self, count: int) -> _Blocks:
        """The first messages alone. Rows that a prompt before still looks at are left as they are."""
        if count == len(self.messages):
            return self
        end = self.start_of(count)
        return _Blocks(
            start=self.start,
            messages=self.messages[:count],
            ends=self.ends[:count],
            segments=self.segments[:end],
            upto=self.upto[:end],
            parts=self.parts[:end],
            known=self.known.upto(end),
        )

    def add(self, messages: Sequence[Message]) -> None:
        """Adds messages, block by block."""
        for message in messages:
            # The role opens a message: the same blocks in one or in two are two prompts.
            opening = message.role.encode() + b"\0"
            for segment, tokens in zip(message.segments, message.tokens, strict=True):
                self._block(segment, tokens, opening + segment.digest)
                opening = b""
            self.messages.append(message)
            self.ends.append(len(self.segments))

    def _block(self, segment: Segment, tokens: int, part: bytes) -> None:
        self.segments.append(segment)
        self.upto.append(self.total + tokens)
        self.parts.append(part)

    def move(self, old: _Blocks, run: range) -> None:
        """Takes over a run of another prompt's messages, which has moved as a whole."""
        first, last = old.start_of(run.start), old.start_of(run.stop)
        shift = len(self.segments) - first
        tokens = self.total - (old.upto[first - 1] if first else 0)
        self.messages += old.messages[run.start : run.stop]
        self.ends += [end + shift for end in old.ends[run.start : run.stop]]
        self.segments += old.segments[first:last]
        self.upto += [upto + tokens for upto in old.upto[first:last]]
        self.parts += old.parts[first:last]


class _Moved(Struct, frozen=True, gc=False):
    """Blocks of a prompt that stood in the one before it as well, together and elsewhere."""

    own: range
    """Where they stand now."""
    origin: int
    """Where the first of them stood."""

    def within(self, own: range, gone: range) -> range:
        """Those of them between what both prompts share and what passes, in both prompts; none where
        the run reaches beyond."""
        first, last = max(self.own.start, own.start), min(self.own.stop, own.stop)
        shift = self.origin - self.own.start
        is_there = gone.start <= first + shift and last + shift <= gone.stop
        return range(first, last) if first < last and is_there else range(own.start, own.start)


class _Change(Struct, frozen=True, gc=False):
    """What became of the prompt before: see Prompt."""

    kept: int
    dropped: int
    rewritten: int


class Lane:
    """The prompts of a thread."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._root = ""
        self._blocks = _Blocks(0)
        self._ever: set[bytes] = set()
        """Digests of all blocks so far."""
        self._passing = 0

    def prompt(self, call: Call, head: Head, messages: list[Message], passing: int = 0) -> Prompt:
        """The prompt of these messages."""
        old = self._blocks
        goes_on = head is self._head and call.root == self._root
        shared = common_start(old.messages, messages) if goes_on else 0
        start = old.start_of(shared) if goes_on else 0
        # Counted ahead of what is added, which may grow the same rows. Entries belong to one model: behind
        # a switch there is no prompt before.
        before = len(old.segments) - self._passing if call.root == self._root else 0
        # Behind another head every row begins anew, though runs of messages are still taken over.
        blocks, moved = self._put(None if goes_on else head, messages, shared)
        change = self._change(blocks, moved, range(start, before), passing)
        self._remember(blocks, moved, change.kept)
        self._head, self._root, self._blocks, self._passing = head, call.root, blocks, passing
        return Prompt(
            call=call,
            head=head,
            messages=messages,
            # Rows grow with the next prompt: what a prompt holds is a copy.
            ends=tuple(blocks.ends),
            prefix=_prefix_of(call, blocks),
            sizes=Sizes(upto=tuple(blocks.upto), total=blocks.total, origin=Origin.SIMULATED),
            passing=passing,
            kept=change.kept,
            dropped=change.dropped,
            rewritten=change.rewritten,
        )

    def _put(
        self, head: Head | None, messages: list[Message], shared: int
    ) -> tuple[_Blocks, _Moved]:
        """The blocks of messages behind the shared ones, or behind a new head; which of them have moved
        together."""
        old = self._blocks
        grown = head is None and shared == len(old.messages)
        blocks = old.upto_message(shared) if head is None else _Blocks.of(head)
        # What only grows has nothing behind the shared messages that could have moved.
        at, run = (shared, range(0)) if grown else moved_run(old.messages, messages, shared)
        blocks.add(messages[shared:at])
        start = len(blocks.segments)
        if run:
            blocks.move(old, run)
        own = range(start, len(blocks.segments))
        blocks.add(messages[at + len(run) :])
        return blocks, _Moved(own, old.start_of(run.start) if run else 0)

    def _change(self, blocks: _Blocks, moved: _Moved, before: range, passing: int) -> _Change:
        """What is left of the prompt before, of which the blocks behind the shared messages are given."""
        # The first message that differs may begin with the same blocks.
        equal = _common(
            self._blocks.segments[before.start : before.stop], blocks.segments, before.start
        )
        kept = before.start + equal
        dropped = max(0, before.stop - kept)
        if not dropped:
            return _Change(kept, 0, 0)
        # What passes is sent once by intention, and no rewrite.
        own = range(kept, len(blocks.segments) - passing)
        return _Change(kept, dropped, self._again(blocks, own, range(kept, before.stop), moved))

    def _again(self, blocks: _Blocks, own: range, gone: range, moved: _Moved) -> int:
        """Tokens of the blocks of a prompt that the one before it had too, behind what both share."""
        # What has moved as a whole was there as a whole: most of a window is counted at once.
        run = moved.within(own, gone)
        total = blocks.between(run.start, run.stop) if run else 0
        rest = [*range(own.start, run.start), *range(run.stop, own.stop)]
        # Most of what is new was never there before, and need not be looked for.
        rest = [index for index in rest if blocks.segments[index].digest in self._ever]
        if not rest:
            return total
        old = self._blocks.segments[gone.start : gone.stop]
        known = {segment.digest for segment in old}
        again = [index for index in rest if blocks.segments[index].digest in known]
        return total + sum([blocks.between(index, index + 1) for index in again])

    def _remember(self, blocks: _Blocks, moved: _Moved, kept: int) -> None:
        """Notes the digests of what is new: shared and moved blocks were noted when they came."""
        for fresh in (
            blocks.segments[kept : moved.own.start],
            blocks.segments[max(kept, moved.own.stop) :],
        ):
            self._ever.update([segment.digest for segment in fresh])


def _prefix_of(call: Call, blocks: _Blocks) -> Prefix:
    return Prefix(
        root=call.root,
        model=call.root,
        segments=tuple(blocks.segments),
        # A row like any other, most of which nobody looks at.
        keys=cast("tuple[bytes, ...]", Keys(call.root, blocks.parts, blocks.known)),
        row=(),
        unrendered=(),
        rule=call.rule,
    )


def _common(one: Sequence[Segment], two: Sequence[Segment], start: int) -> int:
    """How many blocks are the same, of the second from some index on."""
    count = 0
    for a, b in zip(one, islice(two, start, None), strict=False):
        if a is not b and (a.digest != b.digest or a.role != b.role):
            break
        count += 1
    return count
