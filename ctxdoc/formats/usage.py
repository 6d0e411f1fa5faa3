"""The counters of the providers, each as parts that do not overlap.

Anthropic leaves the cached part out of its input count (SDK 2.14.0), as does Bedrock Converse
(botocore 1.44.8). OpenAI chat and responses (SDK 3.57.0), Gemini (google-genai 3.6.1), LiteLLM
(1.110.2) and the OpenTelemetry convention count it inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctxdoc.model import Usage

Counters = Mapping[str, Any]


def count(values: Counters, *names: str) -> int:
    """The first of the counters that is there; 0 if none is.

    Raises msgspec.ValidationError for one that is no whole number from 0 up.
    """
    for name in names:
        value = values.get(name)
        if value is None:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise msgspec.ValidationError(f"counter '{name}' is no whole number from 0 up")
        return value
    return 0


def part(values: Counters, name: str) -> Counters:
    """A group of counters inside of others; empty where there is none."""
    found = values.get(name)
    return found if isinstance(found, Mapping) else {}


def beside(uncached: int, read: int, written: int, hour: int | None, output: int) -> Usage:
    """Counters of which the input leaves the cached part out; `hour` is None where not stated."""
    long = min(hour or 0, written)
    return Usage(
        uncached=uncached,
        cache_read=read,
        cache_write_5m=written - long,
        cache_write_1h=long,
        output=output,
        split_known=hour is not None or not written,
    )


def inside(total: int, read: int, written: int, hour: int | None, output: int) -> Usage:
    """Counters of which the input holds the cached part.

    Parts that contradict each other are kept as they are and flagged: the input would be negative.
    """
    rest = total - read - written
    usage = beside(max(rest, 0), read, written, hour, output)
    if rest >= 0:
        return usage
    text = f"input {total:,} is less than read {read:,} and written {written:,}"
    return msgspec.structs.replace(usage, contradiction=text)


def anthropic(usage: Counters) -> Usage | None:
    """Messages API; None for an empty object."""
    if not usage:
        return None
    split = part(usage, "cache_creation")
    written = count(usage, "cache_creation_input_tokens")
    hour = count(split, "ephemeral_1h_input_tokens") if split else None
    return beside(
        count(usage, "input_tokens"),
        count(usage, "cache_read_input_tokens"),
        written,
        hour,
        count(usage, "output_tokens"),
    )


def openai_chat(usage: Counters) -> Usage:
    """Chat completions, and LiteLLM's and OpenRouter's answers in that form."""
    details = part(usage, "prompt_tokens_details")
    split = part(details, "cache_creation_token_details")
    # LiteLLM repeats Anthropic's names at the top; where both stand they say the same.
    read = max(
        count(details, "cached_tokens"),
        count(usage, "cache_read_input_tokens", "prompt_cache_hit_tokens"),
    )
    written = max(
        count(details, "cache_creation_tokens", "cache_write_tokens"),
        count(usage, "cache_creation_input_tokens"),
    )
    hour = count(split, "ephemeral_1h_input_tokens") if split else None
    return inside(
        count(usage, "prompt_tokens"), read, written, hour, count(usage, "completion_tokens")
    )


def openai_responses(usage: Counters) -> Usage:
    """The responses API."""
    details = part(usage, "input_tokens_details")
    read, written = count(details, "cached_tokens"), count(details, "cache_write_tokens")
    return inside(count(usage, "input_tokens"), read, written, None, count(usage, "output_tokens"))


def gemini(usage: Counters) -> Usage:
    """Gemini's usageMetadata; thoughts are output."""
    output = count(usage, "candidatesTokenCount") + count(usage, "thoughtsTokenCount")
    total = count(usage, "promptTokenCount")
    return inside(total, count(usage, "cachedContentTokenCount"), 0, None, output)


def converse(usage: Counters) -> Usage:
    """Bedrock Converse."""
    written = count(usage, "cacheWriteInputTokens", "cacheWriteInputTokenCount")
    details = usage.get("cacheDetails")
    hours = [d for d in details if isinstance(d, Mapping)] if isinstance(details, list) else []
    hour = sum(count(d, "inputTokens") for d in hours if d.get("ttl") == "1h") if hours else None
    return beside(
        count(usage, "inputTokens"),
        count(usage, "cacheReadInputTokens", "cacheReadInputTokenCount"),
        written,
        hour,
        count(usage, "outputTokens"),
    )


def any_of(usage: Counters) -> Usage | None:
    """The counters of an answer by the names that they have; None for an unknown set of names."""
    if "promptTokenCount" in usage or "candidatesTokenCount" in usage:
        return gemini(usage)
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        return openai_chat(usage)
    if "inputTokens" in usage or "outputTokens" in usage:
        return converse(usage)
    if "input_tokens_details" in usage or (
        "output_tokens_details" in usage and "total_tokens" in usage
    ):
        return openai_responses(usage)
    if "input_tokens" in usage or "output_tokens" in usage:
        return anthropic(usage)
    return None
