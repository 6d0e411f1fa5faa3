"""The rendered prompt of a request: segments that tile its bytes.

The prompt is written as unfinished JSON, `[[tools],[system],[messages…`, so that a longer request that
only appends has the shorter one as a prefix.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from ctxdoc.prompt.segments import Segment, part_of
from ctxdoc.providers import ModelRule
from ctxdoc.request import codec
from ctxdoc.request.request import Section


class Breakpoint(Struct, frozen=True, gc=False):
    """A breakpoint: the segment that carries it, and the lifetime it asks for."""

    index: int
    ttl: str


class Prefix(Struct, frozen=True, kw_only=True, dict=True):
    """The rendered prompt of one request."""

    root: str
    """The model: entries belong to one model."""
    model: str
    """The model as the request spells it."""
    segments: tuple[Segment, ...]
    keys: tuple[bytes, ...]
    """Chained hashes: equal keys mean equal prompts up to and including that segment."""
    row: tuple[bytes, ...]
    """A hash of each message block together with the one before it."""
    unrendered: tuple[Segment, ...]
    """Blocks of the body that are no part of the prompt: deferred tools, stripped thinking, and
    settings that spell out the default."""
    rule: ModelRule
    sent: Prefix | None = None
    """The prompt of the body alone, where the API made another one of it."""

    @property
    def as_sent(self) -> Prefix:
        """The prompt as the body has it, before the API took anything out."""
        return self.sent or self

    @cached_property
    def heads(self) -> tuple[bytes, ...]:
        """What parts each segment from the one before, so that all are one JSON text."""
        return tuple(_iter_heads(self.segments))

    @cached_property
    def data(self) -> bytes:
        """The prompt's bytes."""
        rows = zip(self.heads, self.segments, strict=True)
        return b"".join(part for head, segment in rows for part in (head, segment.data))

    @cached_property
    def sorted_data(self) -> bytes:
        """The prompt's bytes with the members of every object sorted."""
        parts: list[bytes] = []
        role = ""
        for head, segment in zip(self.heads, self.segments, strict=True):
            parts += [_sorted_head(head, segment, role), codec.encode_sorted(segment.value)]
            role = segment.role
        return b"".join(parts)

    @cached_property
    def breakpoints(self) -> tuple[int, ...]:
        """Indices of the segments that carry one."""
        return tuple([mark.index for mark in self.marks])

    @cached_property
    def marks(self) -> tuple[Breakpoint, ...]:
        """The breakpoints that the request carries; where the provider caches every prompt, its end."""
        rules = self.rule.rules
        if rules.automatic:
            return (Breakpoint(len(self.keys) - 1, rules.default_ttl),) if self.keys else ()
        return tuple(
            [Breakpoint(i, segment.ttl) for i, segment in enumerate(self.segments) if segment.ttl]
        )

    @cached_property
    def by_rank(self) -> dict[tuple[int, int, int], Segment]:
        """The segments by their place in render order."""
        return {segment.rank: segment for segment in self.segments}

    @property
    def data_length(self) -> int:
        """Bytes of the whole prompt."""
        return sum(map(len, self.heads)) + sum(segment.size for segment in self.segments)


def _iter_heads(segments: tuple[Segment, ...]) -> Iterator[bytes]:
    part, message, opened = -1, -1, False
    for segment in segments:
        head = b""
        while part < part_of(segment.rank):
            head += b"[[" if part < 0 else b"],["
            part, opened = part + 1, False
        comma = b"," if opened else b""
        if segment.section is not Section.MESSAGES:
            head += comma
        elif segment.rank[1] == message:
            head += b","
        else:
            head += (b"]}," if message >= 0 else comma) + _opening(segment)
            message = segment.rank[1]
        opened = True
        yield head


def _opening(segment: Segment) -> bytes:
    return b'{"role":' + codec.encode(segment.role) + b',"content":['


def _sorted_head(head: bytes, segment: Segment, role: str) -> bytes:
    """A head in which a message's role comes behind its content, as sorting puts it."""
    head = head.replace(_opening(segment), b'{"content":[')
    return head.replace(b"]},", b'],"role":' + codec.encode(role) + b"},")
