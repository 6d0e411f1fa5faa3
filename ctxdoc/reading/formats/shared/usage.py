"""The counters of the providers, each as parts that do not overlap.

Anthropic leaves the cached part out of its input count (SDK 2.14.0), as does Bedrock Converse
(botocore 1.44.8). OpenAI chat and responses (SDK 3.57.0), Gemini (google-genai 3.6.1), LiteLLM
(1.110.2) and the OpenTelemetry convention count it inside, as do the others that speak OpenAI's
language: DeepSeek, xAI, Groq, Mistral, Fireworks, Z.ai, Qwen, MiniMax, vLLM and OpenRouter keep it in
`prompt_tokens_details`, Kimi and Together at the top of the usage (providers' pages, 2026-11-30).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

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
        # Nearly every counter is such a number, and there are five of them in each request.
        if type(value) is int and 0 <= value <= MOST:
            return value
        if value is not None:
            return _spelled_otherwise(name, value)
    return 0


def _spelled_otherwise(name: str, value: Any) -> int:
    """A count that a recorder wrote with a fraction of nothing, such as 12.0."""
    if isinstance(value, float) and value.is_integer() and 0 <= value <= MOST:
        return int(value)
    raise msgspec.ValidationError(f"counter '{name}' is no whole number from 0 up")


def part(values: Counters, name: str) -> Counters:
    """A group of counters inside of others; empty where there is none."""
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def beside(uncached: int, read: int, written: int, hour: int | None, output: int) -> Usage:
    """Counters of which the input leaves the cached part out; `hour` is None where not stated."""
    # Of an answer with several passes the split is that of one pass: it may be the larger.
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
    # Where the parts are more than the whole, one of them is counted otherwise than said.
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
    times = part(usage, "server_tool_use").values()
    return any(map(_is_positive, times)) or _is_split_of_one_pass(usage)


def _is_positive(value: Any) -> TypeGuard[int]:
    return type(value) is int and value > 0


def _is_split_of_one_pass(usage: Counters) -> bool:
    """Whether the split by lifetime is not that of the total."""
    split = part(usage, "cache_creation")
    written = usage.get("cache_creation_input_tokens")
    lifetimes = [split.get(f"ephemeral_{ttl}_input_tokens") for ttl in ("5m", "1h")]
    known = [tokens for tokens in lifetimes if type(tokens) is int]
    return bool(known) and type(written) is int and sum(known) != written


def searches(usage: Counters) -> int:
    """Searches of the web that the provider ran."""
    times = part(usage, "server_tool_use").get("web_search_requests")
    return times if _is_positive(times) else 0


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
    split = _split_of(usage, details)
    read = _read_of(usage, details)
    written = max(count(each, *WRITTEN) for each in (*details, usage))
    hour = count(split, "ephemeral_1h_input_tokens") if split else None
    total = count(usage, "prompt_tokens", "input_tokens")
    if not total and "prompt_cache_miss_tokens" in usage:
        # DeepSeek: the two are the whole prompt.
        total = read + count(usage, "prompt_cache_miss_tokens")
    output = count(usage, "completion_tokens", "output_tokens")
    return inside(total, read, written, hour, output)


def _read_of(usage: Counters, details: list[Counters]) -> int:
    """The cached part; where several names stand they say the same."""
    return max(
        *(count(each, "cached_tokens", "cache_read_tokens") for each in details),
        *(count(usage, name) for name in READ),
    )


def _split_of(usage: Counters, details: list[Counters]) -> Counters | None:
    """What was written by lifetime: LiteLLM keeps it in the details, and beside them as Anthropic
    spells it; Qwen inside."""
    splits = (part(each, name) for each in (*details, usage) for name in SPLITS)
    return next((each for each in splits if each), None)


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
    # What Gemini's own tools gave back is input that is counted apart.
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
    hour = _of_an_hour(details) if isinstance(details, list) else None
    return beside(
        count(usage, "inputTokens"),
        count(usage, "cacheReadInputTokens", "cacheReadInputTokenCount"),
        written,
        hour,
        count(usage, "outputTokens"),
    )


def _of_an_hour(details: list[Any]) -> int | None:
    """What was written for an hour, of a list by lifetime; None for a list that states nothing."""
    stated = [each for each in details if isinstance(each, Mapping)]
    if not stated:
        return None
    return sum(count(each, "inputTokens") for each in stated if each.get("ttl") == "1h")


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
