"""Prompts as a strategy sends them, put together request by request.

What a request shares with the one before it in its thread is taken over; so the work grows with what is
new or rewritten.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ctxdoc.prompt.chain import next_key, root_key
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.request.usage import Origin
from ctxdoc.simulation.history.messages import Call, Head, Message
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


class Lane:
    """The prompts of a thread."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._root = ""
        self._messages: list[Message] = []
        self._ends: list[int] = []
        self._segments: list[Segment] = []
        self._upto: list[int] = []
        self._keys: list[bytes] = []
        self._passing = 0

    def prompt(self, call: Call, head: Head, messages: list[Message], passing: int = 0) -> Prompt:
        """The prompt of these messages."""
        # Entries belong to one model: behind a switch there is no prompt before.
        before = len(self._segments) - self._passing if call.root == self._root else 0
        old = self._segments
        shared = self._shared(call, head, messages)
        base = self._ends[shared - 1] if shared else len(head.segments) if self._head else 0
        gone = old[base:before]
        if self._head is None:
            self._begin(call, head)
            base = 0
        kept = self._ends[shared - 1] if shared else base
        self._cut(shared)
        self._add(messages[shared:])
        self._passing = passing
        kept += _common(gone, self._segments[kept:])
        dropped = max(0, before - kept)
        return Prompt(
            call=call,
            head=head,
            messages=messages,
            ends=tuple(self._ends),
            prefix=Prefix(
                root=call.root,
                model=call.root,
                segments=tuple(self._segments),
                keys=tuple(self._keys),
                row=(),
                unrendered=(),
                rule=call.rule,
            ),
            sizes=Sizes(
                upto=tuple(self._upto),
                total=self._upto[-1] if self._upto else 0,
                origin=Origin.SIMULATED,
            ),
            passing=passing,
            kept=kept,
            dropped=dropped,
            rewritten=self._rewritten(old[kept:before], kept) if dropped else 0,
        )

    def _shared(self, call: Call, head: Head, messages: list[Message]) -> int:
        """How many leading messages are those of the prompt before; with another head, none."""
        if head is not self._head or call.root != self._root:
            self._head = None
            return 0
        count = 0
        for one, two in zip(self._messages, messages, strict=False):
            if one is not two:
                break
            count += 1
        return count

    def _begin(self, call: Call, head: Head) -> None:
        self._head, self._root = head, call.root
        self._segments, self._upto, self._keys = list(head.segments), [], []
        self._messages, self._ends = [], []
        total, key = 0, root_key(call.root)
        for segment, tokens in zip(head.segments, head.tokens, strict=True):
            total += tokens
            key = next_key(key, segment.digest)
            self._upto.append(total)
            self._keys.append(key)

    def _cut(self, count: int) -> None:
        assert self._head is not None
        end = self._ends[count - 1] if count else len(self._head.segments)
        # Lists that a prompt before may still look at are left as they are.
        self._messages, self._ends = self._messages[:count], self._ends[:count]
        self._segments = self._segments[:end]
        del self._upto[end:], self._keys[end:]

    def _add(self, messages: Sequence[Message]) -> None:
        total = self._upto[-1] if self._upto else 0
        key = self._keys[-1] if self._keys else root_key(self._root)
        for message in messages:
            role: str | None = message.role
            for segment, tokens in zip(message.segments, message.tokens, strict=True):
                total += tokens
                key = next_key(key, segment.digest, role)
                role = None
                self._upto.append(total)
                self._keys.append(key)
            self._segments += message.segments
            self._messages.append(message)
            self._ends.append(len(self._segments))

    def _rewritten(self, old: Sequence[Segment], kept: int) -> int:
        """Tokens of the blocks behind the shared ones that the prompt before had too."""
        known = {segment.digest for segment in old}
        upto = self._upto
        return sum(
            upto[index] - (upto[index - 1] if index else 0)
            for index in range(kept, len(self._segments) - self._passing)
            if self._segments[index].digest in known
        )


def _common(one: Sequence[Segment], two: Sequence[Segment]) -> int:
    """How many leading blocks are the same."""
    count = 0
    for a, b in zip(one, two, strict=False):
        if a is not b and (a.digest != b.digest or a.role != b.role):
            break
        count += 1
    return count
