"""Hashes instead of text, so that a log can be shared and is still diagnosed.

Equal texts stay equal and unequal ones unequal, each keeps its length, and so every block its size. The key
of the hashes is made for each recording and written nowhere.
"""

from __future__ import annotations

import secrets
from base64 import b32encode
from hashlib import blake2b
from typing import Any

from ctxdoc.images import blank_picture, picture_of

SAID = ("system", "messages", "tools", "metadata", "content", "mcp_servers")
"""Members of a body, and of an answer, that hold what people and tools said."""
KEPT = frozenset(
    {
        "type", "role", "name", "id", "tool_use_id", "model", "media_type", "ttl", "cache_control",
        "defer_loading", "stop_reason", "input_schema_version",
    }
)  # fmt: skip
"""Members whose texts are names and not content."""
LEAST = 12
"""Characters of the shortest hash."""


class Redactor:
    """Replaces texts by hashes."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def body(self, value: Any) -> Any:
        """A request body without what was said in it."""
        if not isinstance(value, dict):
            return self._redacted(value)
        return {k: self._redacted(v, k) if k in SAID else v for k, v in value.items()}

    def answer(self, value: Any) -> Any:
        """An answer without what was said in it; the message of an error stays."""
        if not isinstance(value, dict):
            return self._redacted(value)
        return {k: self._redacted(v, k) if k in SAID else v for k, v in value.items()}

    def _redacted(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            if value.get("type") == "base64" and isinstance(value.get("data"), str):
                return {**value, "data": self._data(value["data"])}
            return {
                k: v if k in KEPT and not isinstance(v, dict | list) else self._redacted(v, k)
                for k, v in value.items()
            }
        if isinstance(value, list):
            return [self._redacted(each, name) for each in value]
        return self.text(value) if isinstance(value, str) else value

    def text(self, value: str) -> str:
        """A hash of a text, as long as the text but never shorter than it takes to tell two apart."""
        if not value:
            return value
        data = value.encode("utf-8", "surrogatepass")
        name = b32encode(blake2b(data, key=self._key, digest_size=20).digest()).decode().lower()
        size = max(LEAST, len(value))
        return (name * (size // len(name) + 1))[:size]

    def _data(self, value: str) -> str:
        """A picture of one colour with the same size; other data as a text."""
        picture = picture_of(value)
        if picture is None or max(picture.width, picture.height) > MOST_SIDE:
            return self.text(value)
        return blank_picture(picture.width, picture.height, self.text(value)[:32])


MOST_SIDE = 8_000
"""Pixels of the side of a picture that is made; the API takes no larger one."""
