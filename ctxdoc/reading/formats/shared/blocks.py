"""The blocks of a response, whole or streamed, as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ctxdoc.request.response import NULL

_TEXTS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
"""Member of the block that a delta adds to, and of the delta that holds it."""


class _Block(Struct):
    """A block that is still being streamed."""

    start: dict[str, Any]
    texts: dict[str, list[str]]
    arguments: list[str]
    citations: list[Any]

    def whole(self) -> dict[str, Any]:
        block = dict(self.start)
        for name, parts in self.texts.items():
            before = block.get(name)
            block[name] = (before if isinstance(before, str) else "") + "".join(parts)
        if self.citations:
            block["citations"] = self.citations
        spelled = "".join(self.arguments)
        # A stream that broke off leaves half of them, which is no input.
        if spelled and _is_json(spelled):
            block["input"] = Raw(spelled.encode())
        return block


class Blocks:
    """Collects the blocks of a streamed answer; what is no event of a block is passed over."""

    def __init__(self) -> None:
        self._open: dict[int, _Block] = {}

    def add(self, event: Mapping[str, Any]) -> None:
        """Takes one event."""
        index = event.get("index")
        if not isinstance(index, int):
            return
        start = event.get("content_block")
        if event.get("type") == "content_block_start" and isinstance(start, Mapping):
            self._open[index] = _Block(dict(start), {}, [], [])
        delta = event.get("delta")
        if index in self._open and isinstance(delta, Mapping):
            _add(self._open[index], delta)

    def content(self) -> Raw:
        """The blocks in their order; NULL when there was none."""
        blocks = [self._open[index].whole() for index in sorted(self._open)]
        return content_of(blocks) if blocks else NULL


def content_of(blocks: Any) -> Raw:
    """The blocks of a whole answer; NULL for what is no list of them."""
    if isinstance(blocks, Raw):
        return blocks
    if not isinstance(blocks, list) or not all(isinstance(block, Mapping) for block in blocks):
        return NULL
    try:
        return Raw(msgspec.json.encode(blocks))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return NULL


def _add(block: _Block, delta: Mapping[str, Any]) -> None:
    match delta:
        case {"type": "citations_delta"}:
            block.citations.append(delta.get("citation"))
        case {"type": "input_json_delta", "partial_json": str(piece)}:
            block.arguments.append(piece)
        case {"type": "compaction_delta"}:
            _add_summary(block, delta)
        case {"type": str(kind)} if kind in _TEXTS:
            name = _TEXTS[kind]
            if isinstance(delta.get(name), str):
                block.texts.setdefault(name, []).append(delta[name])


def _add_summary(block: _Block, delta: Mapping[str, Any]) -> None:
    if isinstance(delta.get("content"), str):
        block.texts.setdefault("content", []).append(delta["content"])
    # Its state comes whole, beside the summary or in place of it (SDK 2.14.0).
    if isinstance(delta.get("encrypted_content"), str):
        block.start["encrypted_content"] = delta["encrypted_content"]


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
