"""The shapes of bodies that can be taken apart and put together again."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from ctxdoc.request.request import Body, MarkedMessage


class Shapes:
    """Whether the parts of bodies can be taken apart and put together again, looked at once each."""

    def __init__(self) -> None:
        self._known: dict[bytes, bool] = {}

    def are_known(self, body: Body) -> bool:
        """Whether every tool, system block and message is what the API takes."""
        return (
            all(map(self._is_known, map(_plain, body.messages)))
            and all(bytes(tool).startswith(b"{") for tool in body.tools or ())
            and _is_text_or_blocks(bytes(body.system))
        )

    def _is_known(self, message: bytes) -> bool:
        found = self._known.get(message)
        if found is None:
            found = self._known[message] = _is_message(message)
        return found


def _plain(message: Raw | bytes | MarkedMessage) -> bytes:
    return message.plain if isinstance(message, MarkedMessage) else bytes(message)


def _is_message(message: bytes) -> bool:
    """Whether a message holds a text, or blocks of which each is what its type says."""
    try:
        members = msgspec.json.decode(message, type=dict[str, Raw])
        content = bytes(members.get("content", b"null"))
        if content.startswith(b'"'):
            return True
        blocks = msgspec.json.decode(content, type=list[dict[str, Raw]])
        return bool(blocks) and all(map(_is_block, blocks))
    except (msgspec.DecodeError, RecursionError):
        return False


def _is_block(block: dict[str, Raw]) -> bool:
    kind = bytes(block.get("type", b"null"))
    if kind == b'"tool_use"':
        return bytes(block.get("input", b"{}")).startswith(b"{")
    if kind == b'"tool_result"':
        return _is_text_or_blocks(bytes(block.get("content", b"null")))
    return kind.startswith(b'"')


def _is_text_or_blocks(value: bytes) -> bool:
    if value.startswith(b'"') or value == b"null":
        return True
    try:
        msgspec.json.decode(value, type=list[dict[str, Raw]])
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
