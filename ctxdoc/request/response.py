"""What came back, as far as the cache is concerned."""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from ctxdoc.request.usage import Pass, Usage


class ServerEdit(Struct, frozen=True, kw_only=True, gc=False):
    """What the API did to the prompt of a request by itself, as its answer says it.

    From `context_management.applied_edits` (context-editing page, 2026-10-08) and
    `input_transformations` (SDK 2.14.0).
    """

    kind: str
    """`clear_tool_uses`, `clear_thinking` or `thinking_dropped`."""
    count: int = 0
    """Tool uses or turns of thinking that were cleared, the oldest first; of dropped blocks 1."""
    tokens: int = 0
    """Input tokens that were cleared, as the API counts them."""
    path: str = ""
    """Of a dropped block: where it stands in the body."""


NULL = Raw(b"null")
"""A member that is left out; for the cache the same as an explicit null."""


class Response(Struct, frozen=True, kw_only=True, gc=False):
    """What came back, as far as the cache is concerned."""

    id: str = ""
    model: str = ""
    error: str = ""
    """The API's message when it refused the request."""
    usage: Usage | None = None
    speed: str = ""
    batch: bool = False
    us_only: bool = False
    """Billed at the price of US-only inference."""
    passes: tuple[Pass, ...] = ()
    """The passes that the answer lists, where they are more than the one that the usage counts."""
    several_passes: bool = False
    """Whether server tools ran, so that the counters may add up several passes over the prompt."""
    edits: tuple[ServerEdit, ...] = ()
    """What the API took out of the prompt before the model saw it."""
    compacted: bool = False
    """Whether the answer begins with a compaction block: it was given behind the summary in it."""
    searches: int = 0
    """Searches of the web, which are billed by number."""
    called: tuple[str, ...] = ()
    """Names of the tools that it calls."""
    miss_reason: str = ""
    """The API's own word on a cache miss."""
    notes: tuple[str, ...] = ()
    """What could not be read of it."""
    content: Raw = NULL
    """The blocks, where a later request is held beside them: the results of server tools and
    compaction blocks were in the prompt of this request already. Of other answers they are held
    while reading: a message thread goes on from them."""

    @property
    def extra_passes(self) -> tuple[Pass, ...]:
        """Passes whose tokens the usage leaves out: compactions and advisors."""
        return tuple([each for each in self.passes if each.is_extra])

    @property
    def prompt_passes(self) -> tuple[Usage, ...]:
        """The counters of each pass of the model itself, where they are listed; the first is that over
        the prompt as it was sent."""
        if not self.passes:
            return ()
        return tuple([each.usage for each in self.passes if each.kind == "message"])


class _Block(Struct):
    type: str = ""


_SERVER_BLOCK = re.compile(
    rb'"(?:server_tool_use|mcp_tool_use|\w+_tool_result|compaction)"', re.ASCII
)


def has_server_blocks(content: Raw) -> bool:
    """Whether the blocks of an answer hold a compaction, or calls of server tools or their results:
    what the API itself put behind the prompt of the request."""
    if not _SERVER_BLOCK.search(bytes(content)):
        return False
    # A text may hold such a word: only the decoded types tell.
    try:
        blocks = msgspec.json.decode(content, type=list[_Block])
    except (msgspec.MsgspecError, RecursionError):
        return False
    return any(is_server_block(block.type) for block in blocks)


def is_server_block(kind: str) -> bool:
    """Whether a block of that type is the API's own, and no call or text of the model alone."""
    return kind in SERVER_BLOCKS or (kind.endswith("_tool_result") and kind != "tool_result")


SERVER_BLOCKS = frozenset({"server_tool_use", "mcp_tool_use", "compaction"})
"""Besides the results, whose types end in `_tool_result` (SDK 2.14.0)."""
