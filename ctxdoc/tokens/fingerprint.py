"""Fingerprints of the parts of a prompt that should stay: hashes and sizes, no text."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.providers import ModelRule
from ctxdoc.request import codec
from ctxdoc.request.digest import blake2b
from ctxdoc.request.request import Section
from ctxdoc.tokens.estimate import weight_of


class Part(Struct, frozen=True, kw_only=True):
    """A member of a tool definition."""

    hash: str
    tokens: int


class Block(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A block of the prefix; tokens are estimated from its text, so that they depend on nothing else."""

    at: str
    """JSON path."""
    name: str = ""
    """Of a tool."""
    hash: str
    bytes: int
    tokens: int
    parts: dict[str, Part] = {}
    """Of a tool definition."""


class Fingerprint(Struct, frozen=True, kw_only=True):
    """A stable prefix: of one agent, with one model."""

    model: str
    tokens: int
    blocks: tuple[Block, ...]


def stable_count(prefix: Prefix) -> int:
    """Leading segments that are no messages: tools, system prompt and settings."""
    for index, segment in enumerate(prefix.segments):
        if segment.section is Section.MESSAGES:
            return index
    return len(prefix.segments)


def marked_count(prefix: Prefix) -> int:
    """Leading segments up to the last breakpoint; tools and system prompt where there is none."""
    return prefix.breakpoints[-1] + 1 if prefix.breakpoints else stable_count(prefix)


def locked(prefix: Prefix, count: int) -> Fingerprint:
    """A prompt up to so many leading segments, as hashes and sizes."""
    blocks = tuple(_block(segment, prefix.rule) for segment in prefix.segments[:count])
    return Fingerprint(
        model=prefix.root, tokens=sum(block.tokens for block in blocks), blocks=blocks
    )


def _block(segment: Segment, rule: ModelRule) -> Block:
    parts = dict(_parts(segment, rule)) if segment.kind == "tool" else {}
    return Block(
        at=segment.pointer,
        name=segment.name if segment.kind == "tool" else "",
        hash=_hash(segment.role.encode() + segment.data),
        bytes=segment.size,
        tokens=round(weight_of(segment, rule)),
        parts=parts,
    )


def _parts(segment: Segment, rule: ModelRule) -> Iterator[tuple[str, Part]]:
    value = segment.value
    whole = weight_of(segment, rule)
    for name, member in value.items() if isinstance(value, dict) else ():
        data = codec.encode(member)
        share = len(data) / max(1, segment.size)
        yield name, Part(hash=_hash(data), tokens=round(whole * share))


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=12).hexdigest()
