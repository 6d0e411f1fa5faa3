"""Hashes instead of text, so that a log can be shared and is still diagnosed.

Equal texts stay equal and unequal ones unequal within one recording, each keeps its length and its script,
and so every block its size. What is kept is named here; everything else is text, the names of a tool's
arguments included. The key of the hashes is made for each recording and written nowhere.
"""

from __future__ import annotations

import re
import secrets
from base64 import b32encode
from hashlib import blake2b
from typing import Any

from ctxdoc.images.file import blank_picture, picture_of

KEPT_OF_BODY = frozenset(
    {
        "model", "max_tokens", "stream", "temperature", "top_p", "top_k", "service_tier", "speed",
        "cache_control", "thinking", "diagnostics", "thread", "inference_geo",
    }
)  # fmt: skip
"""Members of a body that hold settings."""
KNOWN = KEPT_OF_BODY | {
    "messages", "system", "tools", "tool_choice", "metadata", "stop_sequences", "container",
    "mcp_servers", "context_management", "compaction", "output_config", "output_format", "betas",
    "fallbacks", "prompt", "user_profile_id",
}  # fmt: skip
"""Members of the Messages API: other names are text."""
KEPT_OF_ANSWER = frozenset({"id", "type", "role", "model", "usage", "stop_reason", "diagnostics"})
KEPT_OF_BLOCK = frozenset({"cache_control", "is_error", "defer_loading"})
WORD = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
"""A type, as the API names them."""
NAME = re.compile(r"[\w-]{1,128}", re.ASCII)
"""The name of a tool, as the API takes it."""
ID = re.compile(r"(?:toolu|srvtoolu|mcptoolu|call|msg|req)_[\w-]{1,80}", re.ASCII)
LEAST = 12
"""Characters of the shortest hash."""
WIDE = 0x4E00
"""Where the characters begin that stand for those outside of ASCII."""
MOST_SIDE = 8_000
"""Pixels of the side of a picture that is made; the API takes no larger one."""


class Redactor:
    """Replaces texts by hashes."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = key or secrets.token_bytes(32)

    def body(self, value: Any) -> Any:
        """A request body without what was said in it."""
        if not isinstance(value, dict):
            return self.free(value)
        return {
            name if name in KNOWN else self.text(name): self._member(name, member)
            for name, member in value.items()
        }

    def _member(self, name: str, value: Any) -> Any:
        if name in KEPT_OF_BODY:
            return value
        match name, value:
            case "system", list():
                return [self.block(each) for each in value]
            case "messages", list():
                return [self._message(each) for each in value]
            case "tools", list():
                return [self.block(each) for each in value]
            case "tool_choice", dict():
                return self.block(value)
            case _:
                return self.free(value)

    def _message(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return self.free(value)
        return {
            k: v
            if k == "role" and _is(WORD, v)
            else self._content(v)
            if k == "content"
            else self.free(v)
            for k, v in value.items()
        }

    def _content(self, value: Any) -> Any:
        return [self.block(each) for each in value] if isinstance(value, list) else self.free(value)

    def block(self, value: Any) -> Any:
        """A block, or the definition of a tool: its kind, its name and its ids stay."""
        if not isinstance(value, dict):
            return self.free(value)
        return {name: self._of_block(name, member) for name, member in value.items()}

    def _of_block(self, name: str, value: Any) -> Any:
        kept = (
            name in KEPT_OF_BLOCK
            or (name == "type" and _is(WORD, value))
            or (name == "name" and _is(NAME, value))
            or (name in ("id", "tool_use_id") and _is(ID, value))
        )
        if kept:
            return value
        if name == "content":
            return self._content(value)
        if name == "source" and isinstance(value, dict):
            return self._source(value)
        return self.free(value)

    def _source(self, value: dict[str, Any]) -> dict[str, Any]:
        found = {
            name: member if name in ("type", "media_type") else self.free(member)
            for name, member in value.items()
        }
        if value.get("type") == "base64" and isinstance(value.get("data"), str):
            found["data"] = self._data(value["data"])
        return found

    def answer(self, value: Any) -> Any:
        """An answer without what was said in it, the message of an error included."""
        if not isinstance(value, dict):
            return self.free(value)
        found = {}
        for name, member in value.items():
            if name in KEPT_OF_ANSWER:
                found[name] = member
            elif name == "content":
                found[name] = self._content(member)
            elif name == "error" and isinstance(member, dict):
                found[name] = self.block(member)
            else:
                found[name] = self.free(member)
        return found

    def free(self, value: Any) -> Any:
        """A value of which nothing is known: its texts, its numbers and the names of its members."""
        if isinstance(value, dict):
            return {self.text(str(name)): self.free(member) for name, member in value.items()}
        if isinstance(value, list):
            return [self.free(each) for each in value]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool) or value is None:
            return value
        digest = blake2b(repr(value).encode(), key=self._key, digest_size=8).digest()
        return int.from_bytes(digest, "big") % 10 ** max(3, len(repr(value)))

    def text(self, value: str) -> str:
        """A hash of a text, as long as the text but never shorter than it takes to tell two apart."""
        if not value:
            return value
        data = value.encode("utf-8", "surrogatepass")
        name = b32encode(blake2b(data, key=self._key, digest_size=20).digest()).decode().lower()
        size = max(LEAST, len(value))
        found = (name * (size // len(name) + 1))[:size]
        if value.isascii():
            return found
        return "".join(
            chr(WIDE + ord(own)) if place < len(value) and ord(value[place]) > 127 else own
            for place, own in enumerate(found)
        )

    def _data(self, value: str) -> str:
        """A picture of one colour with the same size; other data as a text."""
        picture = picture_of(value)
        if picture is None or max(picture.width, picture.height) > MOST_SIDE:
            return self.text(value)
        return blank_picture(picture.width, picture.height, self.text(value)[:32])


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None
