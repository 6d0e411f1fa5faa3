"""Blocks in the words of a report: what kind of thing one is, and its first line."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

from msgspec import Struct

from ctxdoc.ledger.advice import unused_tools
from ctxdoc.ledger.block_costs import Block, Blocks, Sort
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.outputs.printable import visible
from ctxdoc.prompt.segments import Segment
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Section

FIRST_LINE = 36
"""Characters of a block's text that are shown."""


class Kind(Struct, kw_only=True):
    """All blocks of one kind together."""

    name: str
    count: int = 0
    tokens: int = 0
    """Over the life of the log."""
    cost: Decimal | None = None
    """USD of what is priced; None where nothing is."""
    unpriced: int = 0


def kinds_of(blocks: Blocks) -> list[Kind]:
    """The kinds of blocks, the dearest first."""
    found: defaultdict[str, Kind] = defaultdict(lambda: Kind(name=""))
    for block in blocks:
        name = kind_name(block)
        kind = found[name]
        kind.name = name
        kind.count += 1
        kind.tokens += block.lifetime_tokens
        if block.cost is None:
            kind.unpriced += 1
        else:
            kind.cost = (kind.cost or Decimal(0)) + block.cost
    return sorted(found.values(), key=lambda k: (-(k.cost or Decimal(0)), -k.tokens, k.name))


def kind_name(block: Block) -> str:
    """What a block is, as people say it."""
    sort = block.sort
    if sort.section in OF_SECTION:
        return OF_SECTION[sort.section]
    # A result that holds an image is dear for the image.
    if sort.pictured:
        return "images"
    named = (name for ending, name in OF_ENDING.items() if sort.kind.endswith(ending))
    return next(named, None) or _of_message(sort)


OF_SECTION = {Section.TOOLS: "tool definitions", Section.SYSTEM: "system prompt"}
OF_ENDING = {"tool_result": "tool results", "tool_use": "tool calls"}
"""End of a kind → name: those of server tools and MCP begin with more."""


def _of_message(sort: Sort) -> str:
    if "thinking" in sort.kind:
        return "thinking"
    if sort.kind == "text":
        return "replies" if sort.role == "assistant" else "user messages"
    return sort.kind.replace("_", " ") or "other blocks"


def unused_names(replay: Ledger) -> set[str]:
    """Tools that were defined and never called."""
    return {block.sort.name for block in unused_tools(replay)}


def label_of(block: Block, *, excerpts: bool) -> str:
    """The name of a tool, or the first line of a text."""
    if block.sort.section is Section.TOOLS:
        return block.sort.name
    return first_line(block.segment) if excerpts else block.sort.kind


def first_line(segment: Segment) -> str:
    """The beginning of a block's text."""
    text = _text(segment.value).strip()
    first = text.split("\n", 1)[0][:FIRST_LINE]
    return visible(first) + ("…" if len(first) < len(text) else "")


def _text(value: Json) -> str:
    match value:
        case {"text": str(text)} | {"thinking": str(text)}:
            return text
        case {"type": "image", "source": {"media_type": str(kind)}}:
            return kind
        case {"name": str(name), "input": given}:
            return f"{name} {codec.encode(given).decode()}"
        case {"content": str(text)}:
            return text
        case {"content": list(parts)}:
            return next((text for text in map(_text, parts) if text), "")
        case str():
            return value
        case _:
            return ""
