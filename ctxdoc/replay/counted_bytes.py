"""What the bytes of a prompt prove of its counters: a token is at least one byte."""

from __future__ import annotations

from msgspec.structs import replace

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.request.usage import Usage
from ctxdoc.tokens.estimate import hidden_tokens, is_opaque

FRAME_TOKENS = 64
"""Tokens that may stand around the blocks of a prompt without being in them."""


def can_have(prefix: Prefix, index: int, tokens: int) -> bool:
    """Whether the prompt up to a segment can have so many tokens: a token is at least one byte, and
    where nothing opaque stands there, that is all there is."""
    segments = prefix.segments[: index + 1]
    most = sum(segment.size for segment in segments) + FRAME_TOKENS + hidden_tokens(prefix)
    return tokens <= most or any(map(is_opaque, segments))


def corrected_of(prefix: Prefix, usage: Usage | None) -> Usage | None:
    """Counters without the cached part that some loggers count in input_tokens as well; None where that
    is not proved.

    The proof: input_tokens is more than can stand behind the last breakpoint, where nothing is whose
    tokens its bytes do not bound; and without the cached part it fits.
    """
    if usage is None or not prefix.breakpoints:
        return None
    cached = usage.cache_read + usage.cache_write
    rest = usage.uncached - cached
    if not cached or rest < 0:
        return None
    behind = prefix.segments[prefix.breakpoints[-1] + 1 :]
    most = sum(segment.size for segment in behind) + FRAME_TOKENS
    if usage.uncached <= most or rest > most or any(map(is_opaque, behind)):
        return None
    return replace(usage, uncached=rest)
