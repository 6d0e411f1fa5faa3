"""What the messages of a log are known by: each is made once for its place behind the same others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.replay.bound import BlockSizes, block_of
from ctxdoc.replay.measure import MeasuredRequest, is_whole
from ctxdoc.request import codec
from ctxdoc.simulation.history.messages import BreakpointAt, Head, Message, message_of


class Line(Struct):
    """The messages of a thread as they were sent last."""

    line: list[Message] = []
    ends: list[int] = []
    """Blocks up to the end of each message."""
    nodes: list[int] = []
    """What each message is known by."""
    segments: tuple[Segment, ...] = ()
    """Of the messages, as they were sent last."""

    def start_of(self, index: int) -> int:
        """Blocks ahead of a message."""
        return self.ends[index - 1] if index else 0


class KnownMessages:
    """Every message of the log, each once for its place behind the same others, and every head.

    A block has one size wherever it stands.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[int, Message]] = {}
        self._heads: dict[tuple[object, ...], Head] = {}
        self._sizes = BlockSizes()

    def take(
        self, exchange: MeasuredRequest, thread: Line
    ) -> tuple[Head, tuple[BreakpointAt, ...]]:
        """Puts a request's messages into its thread's line; its head and its breakpoints."""
        prefix = exchange.prefix
        start = len(prefix.segments) - len(prefix.row)
        segments = prefix.segments[start:]
        count = self._shared(thread, segments)
        head_key = (prefix.rule.tokenizer, *[each.digest for each in prefix.segments[:start]])
        head = self._heads.get(head_key)
        # Sizes come first: what is made of the blocks holds them.
        known = sum([message.size for message in thread.line[:count]]) + (head.size if head else 0)
        fresh = range(start + thread.start_of(count), len(prefix.segments))
        self._settle(exchange, [*(range(start) if head is None else ()), *fresh], known)
        if head is None:
            head = self._heads[head_key] = self._head(prefix, prefix.segments[:start])
        ends = self._extend(thread, prefix, segments, count)
        thread.segments = segments
        return head, tuple(_places(exchange, start, ends))

    def _head(self, prefix: Prefix, segments: Sequence[Segment]) -> Head:
        tokens = self._of(prefix, segments)
        return Head(tuple(map(_unmarked, segments)), tokens, sum(tokens))

    def _extend(
        self, thread: Line, prefix: Prefix, segments: tuple[Segment, ...], count: int
    ) -> list[int]:
        """Adds the messages behind the shared ones; where all of them end."""
        at = thread.start_of(count)
        node = thread.nodes[count - 1] if count else -1
        line, ends, nodes = thread.line, thread.ends[:count], thread.nodes[:count]
        for end in _ends_of(segments, at):
            node, message = self._message(node, prefix, segments[at:end])
            index = len(ends)
            if index < len(line) and line[index] is not message:
                # Requests before this one keep the line that they had.
                line = line[:index]
            if index == len(line):
                line.append(message)
            ends.append(end)
            nodes.append(node)
            at = end
        thread.line = line if len(ends) == len(line) else line[: len(ends)]
        thread.ends, thread.nodes = ends, nodes
        return ends

    def _settle(self, exchange: MeasuredRequest, indices: Sequence[int], known: int) -> None:
        """Gives blocks that are seen for the first time their size."""
        prefix, upto = exchange.prefix, exchange.sizes.upto
        kind = prefix.rule.tokenizer
        self._sizes.settle(
            (
                (
                    block_of(kind, prefix.segments[index]),
                    upto[index] - (upto[index - 1] if index else 0),
                )
                for index in indices
            ),
            known,
            exchange.usage.input if exchange.usage and is_whole(exchange) else None,
        )

    def _of(self, prefix: Prefix, segments: Sequence[Segment]) -> tuple[int, ...]:
        kind = prefix.rule.tokenizer
        return tuple([self._sizes[block_of(kind, segment)] for segment in segments])

    def _shared(self, thread: Line, segments: Sequence[Segment]) -> int:
        """Leading messages that the request before has in the same form."""
        count = 0
        for one, two in zip(thread.segments, segments, strict=False):
            if one is not two:
                break
            count += 1
        return bisect_right(thread.ends, count)

    def _message(
        self, node: int, prefix: Prefix, segments: tuple[Segment, ...]
    ) -> tuple[int, Message]:
        key = (node, prefix.rule.tokenizer, segments[0].role, *[s.digest for s in segments])
        found = self._known.get(key)
        if found is None:
            raw = _raw_of(segments)
            made = message_of(tuple(map(_unmarked, segments)), self._of(prefix, segments), raw)
            found = self._known[key] = (len(self._known), made)
        return found


def _raw_of(segments: tuple[Segment, ...]) -> bytes:
    """A message as it was sent; made anew where the API took something out of it."""
    raw = next((segment.origin[0] for segment in segments if segment.origin[0]), b"")
    if raw and all(segment.held is None for segment in segments):
        return raw
    blocks = b",".join(segment.data for segment in segments)
    return b'{"role":%b,"content":[%b]}' % (codec.encode(segments[0].role), blocks)


def _unmarked(segment: Segment) -> Segment:
    return replace(segment, ttl=None) if segment.ttl else segment


def _ends_of(segments: Sequence[Segment], start: int) -> Iterator[int]:
    """Where the messages end, from a block on."""
    for index in range(start + 1, len(segments)):
        if segments[index].rank[1] != segments[index - 1].rank[1]:
            yield index
    if start < len(segments):
        yield len(segments)


def _places(exchange: MeasuredRequest, start: int, ends: Sequence[int]) -> Iterator[BreakpointAt]:
    for mark in exchange.prefix.marks:
        if mark.index < start:
            yield BreakpointAt(0, mark.index, mark.ttl)
            continue
        message = bisect_right(ends, mark.index - start)
        first = ends[message - 1] if message else 0
        yield BreakpointAt(len(ends) - message, mark.index - start - first, mark.ttl)
