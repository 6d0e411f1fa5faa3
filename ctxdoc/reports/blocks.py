"""Blocks in the words of a report: what kind of thing one is, and its first line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc import canonical
from ctxdoc.advice import holds_image, tool_name, unused_tools
from ctxdoc.canonical import Json
from ctxdoc.lifetime import Block
from ctxdoc.model import Section
from ctxdoc.visible import visible

FIRST_LINE = 36
"""Characters of a block's text that are shown."""


class Kind(Struct, kw_only=True):
    """All blocks of one kind together."""

    name: str
    count: int = 0
    tokens: int = 0
    """Over the life of the log."""
    cost: Decimal = Decimal(0)


def kinds_of(blocks: Sequence[Block]) -> list[Kind]:
    """The kinds of blocks, the dearest first."""
    found: defaultdict[str, Kind] = defaultdict(lambda: Kind(name=""))
    for block in blocks:
        name = kind_name(block)
        kind = found[name]
        kind.name = name
        kind.count += 1
        kind.tokens += block.lifetime_tokens
        kind.cost += block.cost or Decimal(0)
    return sorted(found.values(), key=lambda kind: (-kind.cost, -kind.tokens, kind.name))


def kind_name(block: Block) -> str:
    """What a block is, as people say it."""
    segment = block.segment
    if segment.section is Section.TOOLS:
        return "tool definitions"
    if segment.section is Section.SYSTEM:
        return "system prompt"
    if holds_image(block):
        return "images"
    if segment.kind.endswith("tool_result"):
        return "tool results"
    if segment.kind.endswith("tool_use"):
        return "tool calls"
    if "thinking" in segment.kind:
        return "thinking"
    if segment.kind == "text":
        return "replies" if segment.role == "assistant" else "user messages"
    return segment.kind.replace("_", " ") or "other blocks"


def unused_names(blocks: Sequence[Block]) -> set[str]:
    """Tools that were defined and never called."""
    return {tool_name(block) for block in unused_tools(blocks)}


def label_of(block: Block, *, excerpts: bool) -> str:
    """The name of a tool, or the first line of a text."""
    segment = block.segment
    value = segment.value
    if segment.section is Section.TOOLS:
        return tool_name(block)
    if not excerpts:
        return segment.kind
    text = _text(value).strip()
    first = text.split("\n", 1)[0][:FIRST_LINE]
    return visible(first) + ("…" if len(first) < len(text) else "")


def _text(value: Json) -> str:
    match value:
        case {"text": str(text)} | {"thinking": str(text)}:
            return text
        case {"type": "image", "source": {"media_type": str(kind)}}:
            return kind
        case {"name": str(name), "input": given}:
            return f"{name} {canonical.encode(given).decode()}"
        case {"content": str(text)}:
            return text
        case {"content": list(parts)}:
            return next((text for text in map(_text, parts) if text), "")
        case str():
            return value
        case _:
            return ""
