"""What the model no longer sees: recorded blocks that a strategy takes out of a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ctxdoc.prompt.segments import Segment
from ctxdoc.simulation.history.messages import Call, Message
from ctxdoc.simulation.history.overlap import common_end, common_start
from ctxdoc.simulation.result import Lost


class _Before(Struct, gc=False):
    """The request before, in a thread."""

    line: list[Message] | None = None
    seen: int = 0
    """Messages of the line that it had."""
    sent: Sequence[Message] = ()
    """What it sent."""


class Unseen:
    """The blocks that are gone, each with the request from which on it is."""

    def __init__(self, *, coarsens: bool) -> None:
        self._coarsens = coarsens
        self._before: dict[int, _Before] = {}
        self._lost: dict[tuple[Message, bytes], Lost] = {}
        self._shown: set[bytes] = set()
        """Digests of recorded blocks that the model sees in another form."""
        self._left: dict[bytes, int] = {}
        """By the digest of a block: how many of its tokens are sent all the same."""
        self._recorded: set[bytes] = set()
        """Digests of the blocks that the log has."""

    @property
    def lost(self) -> tuple[Lost, ...]:
        """What is gone, in the order in which it went."""
        return tuple(self._lost.values())

    def show(self, segments: Iterable[Segment]) -> None:
        """Notes blocks that the model sees in another form than they were recorded in."""
        self._shown.update([segment.digest for segment in segments])

    def shorten(self, segments: Iterable[tuple[Segment, int]]) -> None:
        """Notes blocks of which the model sees so many tokens."""
        self._left.update([(segment.digest, tokens) for segment, tokens in segments])

    def note(self, call: Call, messages: list[Message]) -> None:
        """What a request had in the log and does not send. Looked at is what is new in the log, and what
        the request before sent."""
        known = self._before.get(call.thread, NOTHING)
        goes_on = known.line is call.line
        new = call.line[known.seen if goes_on else 0 : call.count]
        before = known.sent if goes_on else ()
        for message in new:
            self._recorded.update([segment.digest for segment in message.segments])
        self._before[call.thread] = _Before(call.line, call.count, messages)
        had = [*before, *new]
        if had == messages:
            # Only appended: nothing can be gone.
            return
        # What both begin and end with is there, so that a window costs what it drops.
        start = common_start(had, messages)
        end = common_end(had[start:], messages[start:])
        kept = set(messages[start : len(messages) - end])
        gone = _without(had[start : len(had) - end], kept, messages)
        if gone:
            # A block may have moved into a message that is new, be it made or recorded.
            fresh = kept.difference(before)
            fresh.update(had[len(before) : start], had[max(len(before), len(had) - end) :])
            self._lose(call, gone, {s.digest for message in fresh for s in message.segments})

    def _lose(self, call: Call, gone: Sequence[Message], moved: set[bytes]) -> None:
        for message, segment, tokens in _blocks(gone):
            if segment.digest in self._shown or segment.digest in moved:
                continue
            # What a strategy made up itself is no loss, and a coarser image is seen.
            is_counted = segment.digest in self._recorded
            if is_counted and not (segment.pictured and self._coarsens):
                hidden = max(0, tokens - self._left.get(segment.digest, 0))
                self._lost.setdefault((message, segment.digest), Lost(segment, hidden, call.number))


NOTHING = _Before()


def _without(had: Sequence[Message], kept: set[Message], messages: list[Message]) -> list[Message]:
    """Those that are not sent any more: few are looked for in the whole prompt."""
    return [message for message in had if message not in kept and message not in messages]


def _blocks(messages: Sequence[Message]) -> Iterator[tuple[Message, Segment, int]]:
    for message in messages:
        for segment, tokens in zip(message.segments, message.tokens, strict=True):
            yield message, segment, tokens
