"""The counters of trackers that stand beside the provider, each as parts that do not overlap.

A tracker keeps what an application or an instrumentation handed to it, so that whether the input holds
the cached part differs from record to record; its own total tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from msgspec.structs import replace

from ctxdoc.reading.formats.shared.usage import Counters, any_of, beside, count, inside
from ctxdoc.request.usage import Usage


def told_by_total(parts: Usage, total: int, reasoning: int = 0) -> Usage:
    """Counters of a tracker that may hold the cached part inside of the input or beside it.

    `parts` are the counters as they stand, `total` is what the tracker says they add up to, and
    `reasoning` output that may be counted once more. Without a total they stand beside each other;
    a total that no reading gives is a contradiction.
    """
    if not total:
        return replace(parts, output=parts.output + reasoning)
    choices = product((reasoning, 0), (parts.cache_write, 0), (parts.cache_read, 0))
    # The plain sum comes first; each further choice takes one more part as held inside.
    for more, written, read in choices:
        output, whole = parts.output + more, parts.uncached + written + read
        if total == whole + output:
            hour = parts.cache_write_1h if parts.split_known else None
            return inside(whole, parts.cache_read, parts.cache_write, hour, output)
    text = f"total {total:,} is not the sum of its parts {parts.input + parts.output:,}"
    return replace(parts, output=parts.output + reasoning, contradiction=text)


def inspect(usage: Counters) -> Usage | None:
    """Inspect's ModelUsage; whether the input holds the cached part differs by its version and by
    the provider (0.3.95 leaves it in for OpenAI)."""
    if "input_tokens" not in usage and "output_tokens" not in usage:
        return None
    read = count(usage, "input_tokens_cache_read")
    written = count(usage, "input_tokens_cache_write")
    parts = beside(count(usage, "input_tokens"), read, written, None, count(usage, "output_tokens"))
    return told_by_total(parts, count(usage, "total_tokens"))


LANGFUSE_READ = ("input_cached_tokens", "cache_read_input_tokens", "input_cache_read")
LANGFUSE_WRITTEN = ("input_cache_creation", "cache_creation_input_tokens", "input_cache_write")
LANGFUSE_SPLIT = ("input_cache_creation_5m", "input_cache_creation_1h")
LANGFUSE_KNOWN = frozenset(
    (*LANGFUSE_READ, *LANGFUSE_WRITTEN, *LANGFUSE_SPLIT, "input_tokens", "output_tokens")
)
"""Buckets of which it is known on which side they count."""


def langfuse(usage: Counters) -> Usage | None:
    """Langfuse's usageDetails: buckets that do not overlap, and their total (token-and-cost-tracking
    page, 2026-11-30). What an application stores as it is may overlap all the same."""
    if "input" not in usage and "output" not in usage:
        return any_of(usage)
    five, hour = (count(usage, name) for name in LANGFUSE_SPLIT)
    split = any(name in usage for name in LANGFUSE_SPLIT)
    buckets = {name: count(usage, name) for name in usage if name not in LANGFUSE_KNOWN}
    total, given, said = (buckets.pop(name, 0) for name in ("total", "input", "output"))
    # Buckets of one's own count to the side that their name begins with.
    other, reasoning = _sum_of(buckets, "input_"), _sum_of(buckets, "output_")
    parts = beside(
        given + other,
        count(usage, *LANGFUSE_READ),
        count(usage, *LANGFUSE_WRITTEN) + five + hour,
        hour if split else None,
        said,
    )
    # Buckets of neither side are in the total as well.
    rest = sum(buckets.values()) - other - reasoning
    return told_by_total(parts, max(total - rest, 0), reasoning)


def _sum_of(buckets: Mapping[str, int], beginning: str) -> int:
    return sum(tokens for name, tokens in buckets.items() if name.startswith(beginning))


OTEL_INPUT = (
    "gen_ai.usage.input_tokens",
    "gen_ai.usage.prompt_tokens",
    "llm.usage.prompt_tokens",
    "llm.token_count.prompt",
)
OTEL_OUTPUT = (
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
    "llm.usage.completion_tokens",
    "llm.token_count.completion",
)
OTEL_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
    "llm.token_count.prompt_details.cache_read",
)
OTEL_WRITTEN = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.cache_write_input_tokens",
    "gen_ai.usage.input_tokens.cache_write",
    "llm.token_count.prompt_details.cache_write",
)


def otel(attributes: Counters) -> Usage | None:
    """Attributes of a trace span, in the spellings of both generations of the convention and of its
    relatives: the input holds the cached part (semantic-conventions-genai, anthropic page, 2026-11-30)."""
    if not any(name in attributes for name in (*OTEL_INPUT, *OTEL_OUTPUT)):
        return None
    return inside(
        count(attributes, *OTEL_INPUT),
        count(attributes, *OTEL_READ),
        count(attributes, *OTEL_WRITTEN),
        None,
        count(attributes, *OTEL_OUTPUT),
    )
