"""The counters of the providers, each as parts that do not overlap.

Anthropic leaves the cached part out of its input count (SDK 2.14.0), as does Bedrock Converse
(botocore 1.44.8). OpenAI chat and responses (SDK 3.57.0), Gemini (google-genai 3.6.1), LiteLLM
(1.110.2) and the OpenTelemetry convention count it inside, as do the others that speak OpenAI's
language: DeepSeek, xAI, Groq, Mistral, Fireworks, Z.ai, Qwen, MiniMax, vLLM and OpenRouter keep it in
`prompt_tokens_details`, Kimi and Together at the top of the usage (providers' pages, 2026-11-30).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import msgspec

from ctxdoc.request.usage import Usage

MOST = 10**10
"""No counter of one request is larger."""
Counters = Mapping[str, Any]


def count(values: Counters, *names: str) -> int:
    """The first of the counters that is there; 0 if none is.

    Raises msgspec.ValidationError for one that is no whole number from 0 up.
    """
    for name in names:
        value = values.get(name)
        if type(value) is int and 0 <= value <= MOST:
            return value
        if value is None:
            continue
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST:
            raise msgspec.ValidationError(f"counter '{name}' is no whole number from 0 up")
        return value
    return 0


def part(values: Counters, name: str) -> Counters:
    """A group of counters inside of others; empty where there is none."""
    found = values.get(name)
    return found if isinstance(found, dict) else {}


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
    more = f" and {written:,} written" if written else ""
    text = f"{read:,} tokens read{more} are more than the prompt of {total:,}"
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


def has_server_tools(usage: Counters) -> bool:
    """Whether server tools ran: the totals then add up passes over the prompt, and the split by
    lifetime is that of the last one (formats of recorded logs: 6 of 1,131)."""
    if any(type(times) is int and times > 0 for times in part(usage, "server_tool_use").values()):
        return True
    split = part(usage, "cache_creation")
    written = usage.get("cache_creation_input_tokens")
    lifetimes = [split.get(f"ephemeral_{ttl}_input_tokens") for ttl in ("5m", "1h")]
    known = [times for times in lifetimes if type(times) is int]
    return bool(known) and type(written) is int and sum(known) != written


def searches(usage: Counters) -> int:
    """Searches of the web that the provider ran."""
    times = part(usage, "server_tool_use").get("web_search_requests")
    return times if type(times) is int and times > 0 else 0


DETAILS = ("prompt_tokens_details", "input_tokens_details", "prompt_token_details")
"""Groups that hold the cached part of an input."""
READ = (
    "cache_read_input_tokens",
    "prompt_cache_hit_tokens",
    "cached_tokens",
    "num_cached_tokens",
    "cache_read_tokens",
)
"""Names of the cached part at the top of a usage."""
WRITTEN = ("cache_creation_tokens", "cache_write_tokens", "cache_creation_input_tokens")


def openai_chat(usage: Counters) -> Usage:
    """Chat completions, and the answers of all who speak their language: the input holds the cached
    part, which stands in a group of details, at the top, or in both."""
    details = [part(usage, name) for name in DETAILS]
    # LiteLLM keeps the split by lifetime there, and beside it as Anthropic spells it; Qwen inside.
    splits = (part(each, name) for each in (*details, usage) for name in SPLITS)
    split = next((each for each in splits if each), None)
    # Where several names stand they say the same.
    read = max(
        *(count(each, "cached_tokens", "cache_read_tokens") for each in details),
        *(count(usage, name) for name in READ),
    )
    written = max(count(each, *WRITTEN) for each in (*details, usage))
    hour = count(split, "ephemeral_1h_input_tokens") if split else None
    total = count(usage, "prompt_tokens", "input_tokens")
    if not total and "prompt_cache_miss_tokens" in usage:
        # DeepSeek: the two are the whole prompt.
        total = read + count(usage, "prompt_cache_miss_tokens")
    output = count(usage, "completion_tokens", "output_tokens")
    return inside(total, read, written, hour, output)


SPLITS = ("cache_creation_token_details", "cache_creation")


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


def interactions(usage: Counters) -> Usage:
    """Gemini's Interactions API; thoughts are output."""
    output = count(usage, "total_output_tokens") + count(usage, "total_thought_tokens")
    total = count(usage, "total_input_tokens") + count(usage, "total_tool_use_tokens")
    return inside(total, count(usage, "total_cached_tokens"), 0, None, output)


def cohere(usage: Counters) -> Usage:
    """Cohere's chat, whose input holds the cached part."""
    tokens = part(usage, "tokens")
    total, output = count(tokens, "input_tokens"), count(tokens, "output_tokens")
    return inside(total, count(usage, "cached_tokens"), 0, None, output)


def ai_sdk(usage: Counters) -> Usage:
    """Vercel's AI SDK, from version 5 on: the input holds the cached part."""
    details = part(usage, "inputTokenDetails")
    read = count(details, "cacheReadTokens") or count(usage, "cachedInputTokens")
    return inside(
        count(usage, "inputTokens"),
        read,
        count(details, "cacheWriteTokens"),
        None,
        count(usage, "outputTokens"),
    )


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


def told_by_total(parts: Usage, total: int, reasoning: int = 0) -> Usage:
    """Counters of a tracker that may hold the cached part inside of the input or beside it.

    `parts` are the counters as they stand, `total` is what the tracker says they add up to, and
    `reasoning` output that may be counted once more. Without a total they stand beside each other;
    a total that no reading gives is a contradiction.
    """
    if not total:
        return msgspec.structs.replace(parts, output=parts.output + reasoning)
    choices = product((reasoning, 0), (parts.cache_write, 0), (parts.cache_read, 0))
    for more, written, read in choices:
        output, whole = parts.output + more, parts.uncached + written + read
        if total == whole + output:
            hour = parts.cache_write_1h if parts.split_known else None
            return inside(whole, parts.cache_read, parts.cache_write, hour, output)
    text = f"total {total:,} is not the sum of its parts {parts.input + parts.output:,}"
    return msgspec.structs.replace(parts, output=parts.output + reasoning, contradiction=text)


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


def langfuse(usage: Counters) -> Usage | None:
    """Langfuse's usageDetails: buckets that do not overlap, and their total (token-and-cost-tracking
    page, 2026-11-30). What an application stores as it is may overlap all the same."""
    if "input" not in usage and "output" not in usage:
        return any_of(usage)
    five, hour = (count(usage, name) for name in LANGFUSE_SPLIT)
    split = any(name in usage for name in LANGFUSE_SPLIT)
    known = {*LANGFUSE_READ, *LANGFUSE_WRITTEN, *LANGFUSE_SPLIT, "input_tokens", "output_tokens"}
    more = {name: count(usage, name) for name in usage if name not in known}
    total, given, said = (more.pop(name, 0) for name in ("total", "input", "output"))
    other = sum(more[name] for name in more if name.startswith("input_"))
    reasoning = sum(more[name] for name in more if name.startswith("output_"))
    parts = beside(
        given + other,
        count(usage, *LANGFUSE_READ),
        count(usage, *LANGFUSE_WRITTEN) + five + hour,
        hour if split else None,
        said,
    )
    rest = sum(more.values()) - other - reasoning
    return told_by_total(parts, max(total - rest, 0), reasoning)


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


def any_of(usage: Counters) -> Usage | None:
    """The counters of an answer by the names that they have; None for an unknown set of names."""
    return next((read(usage) for known, read in SHAPES if known(usage)), None)


def _has(*names: str) -> Callable[[Counters], bool]:
    return lambda usage: any(name in usage for name in names)


def _is_responses(usage: Counters) -> bool:
    return "input_tokens_details" in usage or (
        "output_tokens_details" in usage and "total_tokens" in usage
    )


SHAPES: tuple[tuple[Callable[[Counters], bool], Callable[[Counters], Usage | None]], ...] = (
    (_has("promptTokenCount", "candidatesTokenCount"), gemini),
    (_has("prompt_tokens", "completion_tokens", "prompt_cache_hit_tokens"), openai_chat),
    (_has("cachedInputTokens", "inputTokenDetails"), ai_sdk),
    (_has("inputTokens", "outputTokens"), converse),
    (_has("total_input_tokens"), interactions),
    (_is_responses, openai_responses),
    # DashScope's own API.
    (_has("prompt_tokens_details"), openai_chat),
    (_has("input_tokens", "output_tokens"), anthropic),
    (lambda usage: bool(part(usage, "tokens")), cohere),
)
"""The names by which a usage is known; the first that fits."""
