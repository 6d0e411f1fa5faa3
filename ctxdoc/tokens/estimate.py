"""Estimated tokens of a block, from characters and pixels, where no counter tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from ctxdoc.images.file import read_size
from ctxdoc.images.size import UNKNOWN_SIZE_TOKENS, image_tokens
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.providers import ModelRule
from ctxdoc.request.codec import Json

CHARACTERS_PER_TOKEN = {"older": 4.1, "newer": 2.8}
"""English prose and tool schemas by tokenizer family, measured on 3,046 recorded requests:
3.6 to 4.8 for models up to 4.6, 2.4 to 3.1 from 4.7 on."""


CHARACTERS_PER_TOKEN_CALL = {"older": 3.0, "newer": 2.1}
"""Arguments of tool calls."""


TOKENS_PER_WIDE_CHARACTER = 0.9
"""Characters outside ASCII weigh more than their number."""


BLOCK_TOKENS = 3.0
"""Fixed cost of one block."""


IMAGE_BLOCK_TOKENS = 2.0
"""The same of an image, beside its patches: the best of whole numbers on 20 recorded prompts."""


IMAGE_FRAME = len('{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}')
"""Characters around the data of an image, which are no text: of 23 recorded prompts with images the
billed tokens leave 10 to 29 for all but the patches."""


ERROR_SHARE = 0.25
"""Half-width of the band around an estimate without counters. Of 520 recorded prompts of 500 tokens
and more 95 % lie in it, half of them within 5 %; parts that `is_opaque` names are outside of any band."""


Weigh: TypeAlias = Callable[[Segment, ModelRule], float]
"""Estimated tokens of a block for a model."""


def hidden_tokens(prefix: Prefix) -> int:
    """Tokens that tool use adds without standing in the body (pricing page, 2026-10-10)."""
    has_tools = any(segment.kind == "tool" for segment in prefix.segments)
    return prefix.rule.tool_prompt if has_tools else 0


def weight_of(segment: Segment, rule: ModelRule) -> float:
    """Estimated tokens of a segment, before calibration."""
    if segment.kind in ("setting", "empty"):
        return 0.0
    family = rule.tokenizer
    ratio = CHARACTERS_PER_TOKEN[family]
    if segment.kind in ("tool_use", "server_tool_use"):
        ratio = CHARACTERS_PER_TOKEN_CALL[family]
    pictures = list(_iter_images(segment.value)) if segment.pictured else []
    hidden = sum(len(data) + IMAGE_FRAME for data in pictures)
    tokens = sum(_picture_tokens(data, rule.image_tier) for data in pictures)
    text = max(0, segment.narrow - hidden) / ratio + segment.wide * TOKENS_PER_WIDE_CHARACTER
    return (IMAGE_BLOCK_TOKENS if segment.kind == "image" else BLOCK_TOKENS) + tokens + text


def is_opaque(segment: Segment) -> bool:
    """Whether a block brings tokens that its text does not show: a document, something that is only
    referred to, a tool of the provider's, the tools of a server."""
    if segment.kind == "tool":
        return b'"input_schema"' not in segment.data
    if segment.kind == "setting":
        return segment.pointer.startswith("$.mcp_servers")
    return segment.kind in OPAQUE_KINDS or (
        segment.pictured and b'"type":"base64"' not in segment.data
    )


OPAQUE_KINDS = frozenset({"document", "container_upload", "search_result", "server_tool_use"})


def _iter_images(value: Json) -> Iterable[str]:
    match value:
        case {"type": "image", "source": {"data": str(data)}}:
            yield data
        case {"content": list(parts)}:
            for part in parts:
                yield from _iter_images(part)


def _picture_tokens(data: str, tier: str) -> int:
    size = read_size(data)
    return image_tokens(*size, tier) if size else UNKNOWN_SIZE_TOKENS
