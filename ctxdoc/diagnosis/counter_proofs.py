"""What counters, times and notes prove of tokens that were cached and not read.

The log has no bodies here: it says of a fall as much as its model, its time and its own marks tell.
Lifetimes are known of Claude models only; of the others the fall of the read is all that is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from ctxdoc.diagnosis.case import TOLERANCE_TOKENS, Confidence
from ctxdoc.diagnosis.causes import (
    effort_changed,
    history_compacted,
    history_rewritten,
    model_changed,
    prefix_changed,
    routing_changed,
    thinking_settings_changed,
    tool_set_changed,
    ttl_expired,
)
from ctxdoc.providers import are_rules_known, find_model, provider_of
from ctxdoc.providers.rules import short_model_id
from ctxdoc.request.request import Event, Request
from ctxdoc.request.usage import Usage

GRANULE = 128
"""Tokens by which the reads of other providers' caches go up and down (providers' pages, 2026-11)."""
WAVERS = 0.05
"""The share by which their reads may fall while nothing has changed (Gemini: 3,747, 3,692, 3,660)."""
SHORTER = 0.97
"""A prompt under this share of the one before it has lost a part of its history."""
FEW = 0.7
"""Under this share the history gave way to something else, or the call is a side call."""


class Rewrite(Struct, frozen=True, kw_only=True):
    """Tokens that the earlier request had cached, and that were paid again."""

    tokens: int
    cause: str
    """Id of a cause."""
    confidence: Confidence
    explanation: str
    lasting: bool = False
    """Whether no lifetime that there is would have bridged the pause."""


class PromptSizes(NamedTuple):
    """What the counters of a request say of its prompt."""

    start: int
    """Tokens as it was sent."""
    end: int
    """Tokens of the last pass over it."""
    read: int
    """Of those as it was sent; where passes are added up, no more than this."""
    cached: int | None
    """In the cache when it ended; None where the counters add up passes over a growing prompt, of
    which a sum is no size."""


def sizes_of(request: Request, usage: Usage) -> PromptSizes:
    """The sizes of a prompt by its counters; of several passes those of the first and the last."""
    response = request.response
    listed = response.prompt_passes if response else ()
    if listed:
        first, last = listed[0], listed[-1]
        return PromptSizes(first.input, last.input, first.cache_read, cached_by(last))
    if response and response.several_passes:
        # Two passes at least have read the same beginning: what is left of the sum bounds the prompt.
        most = usage.uncached + usage.cache_write + usage.cache_read // 2
        return PromptSizes(usage.input, most, usage.cache_read, None)
    return PromptSizes(usage.input, usage.input, usage.cache_read, cached_by(usage))


def cached_by(usage: Usage) -> int:
    """Tokens that are in the cache once a request has ended."""
    return usage.cache_read + usage.cache_write


class CounterThread(Struct):
    """Requests that go on from each other: one model, a prompt that grows."""

    number: int
    model: str
    key: int
    last: Request
    tokens: int
    """Of its prompt."""
    cached: int | None
    """What was in the cache for certain when its last request ended; None where it is not known."""
    turn: int
    """Running number of its last request in the session."""
    first: int = 0
    """Tokens of its first prompt, which what a compaction leaves does not exceed."""
    count: int = 1
    was_read: bool = False
    """Whether any request has read something."""

    def is_read_by(self, sizes: PromptSizes) -> bool:
        """Whether a request reads just what the last one read and wrote."""
        return abs(sizes.read - (self.cached or 0)) <= TOLERANCE_TOKENS

    def take(self, key: int, request: Request, sizes: PromptSizes, turn: int) -> None:
        """Goes on with a request; one whose counters add up passes leaves the sizes as they were."""
        self.key, self.last, self.turn = key, request, turn
        self.count += 1
        if sizes.cached is not None:
            self.tokens, self.cached = sizes.end, sizes.cached


class Fall(NamedTuple):
    """Two requests of which the later one did not read all that the earlier one had cached."""

    request: Request
    thread: CounterThread
    """What it goes on from, as far as it had come."""
    sizes: PromptSizes
    events: frozenset[Event]
    long: bool
    """Whether the session writes for an hour."""

    @property
    def before(self) -> Request:
        """The earlier request."""
        return self.thread.last

    @property
    def cached(self) -> int:
        """Tokens that the earlier request had cached for certain."""
        cached, usage = self.thread.cached or 0, self.before.usage
        if (
            usage is not None
            and self.pause is not None
            and self.pause < (self.before.duration or 0)
        ):
            # Sent before the earlier answer was there: what that one wrote may not have been ready.
            return min(cached, usage.cache_read)
        return cached

    @property
    def lost(self) -> int:
        """Tokens that were cached, can be in both prompts, and were not read."""
        return min(self.cached, self.thread.tokens, self.sizes.start) - self.sizes.read

    @property
    def switched(self) -> bool:
        """Whether another model was asked."""
        return self.thread.model != short_model_id(self.request.model)

    @property
    def ruled(self) -> bool:
        """Whether the cache rules of both models are known."""
        return are_rules_known(self.request.model) and are_rules_known(self.before.model)

    @property
    def tolerance(self) -> int:
        """Tokens that are no loss."""
        return TOLERANCE_TOKENS if self.ruled else max(GRANULE, int(WAVERS * self.cached))

    @property
    def pause(self) -> float | None:
        """Seconds from start to start, where they are known."""
        if self.request.at is None or self.before.at is None:
            return None
        return (self.request.at - self.before.at).total_seconds()

    @property
    def life(self) -> int:
        """Seconds that what the earlier request wrote or read lives."""
        usage = self.before.usage
        short = usage is not None and usage.cache_write_5m
        rules = provider_of(self.before.model)
        return rules.longest if self.long and not short else rules.shortest

    @property
    def expired(self) -> bool:
        """Whether the entries were gone by then."""
        return self.ruled and self.pause is not None and self.pause >= self.life


def rewrite_of(step: Fall) -> Rewrite | None:
    """What was paid again and why; None where no more is missing than a cache wavers by."""
    if step.lost <= step.tolerance:
        return None
    cause, confidence, why = next(found for rule in PROOFS if (found := rule(step)))
    if cause == history_compacted.CAUSE.id:
        # The history is gone from the prompt: only what the first prompt had, tools and system, is left to
        # be read.
        kept = max(0, min(step.lost, step.thread.first - step.sizes.read))
        return Rewrite(
            tokens=kept,
            cause=cause,
            confidence=confidence,
            explanation=f"The prompt went from {step.thread.tokens:,} to {step.sizes.start:,} tokens: {why}. "
            f"Of what both can share at most {kept:,} tokens were not read.",
        )
    return Rewrite(
        tokens=step.lost,
        cause=cause,
        confidence=confidence,
        explanation=f"{step.lost:,} of the {step.cached:,} tokens that the earlier request had cached "
        f"were not read, and paid again: {why}.",
        lasting=cause == ttl_expired.CAUSE.id
        and (step.pause or 0) >= provider_of(step.before.model).longest,
    )


Proof: TypeAlias = tuple[str, Confidence, str]


def _by_model(step: Fall) -> Proof | None:
    if not step.switched:
        return None
    models = f"{step.before.model} to {step.request.model}"
    why = f"the model went from {models}, and entries belong to one model"
    if Event.COMPACTION in step.events:
        why += "; the log notes a compaction as well, which alone leaves tools and system prompt"
    return model_changed.CAUSE.id, Confidence.CERTAIN if step.ruled else Confidence.LIKELY, why


def _by_compaction(step: Fall) -> Proof | None:
    if Event.COMPACTION not in step.events:
        return None
    why = "the log notes a compaction, which replaces the history"
    return history_compacted.CAUSE.id, Confidence.CERTAIN, why


def _by_micro_compaction(step: Fall) -> Proof | None:
    if Event.MICRO_COMPACTION not in step.events:
        return None
    if step.expired and step.sizes.read <= TOLERANCE_TOKENS:
        # It leaves what stands ahead of the history.
        return None
    why = "the log notes a micro-compaction, which takes old tool results out of the history"
    return history_rewritten.CAUSE.id, Confidence.LIKELY, f"{why}: an expected rewrite"


def _by_fall(step: Fall) -> Proof | None:
    if step.sizes.start >= FEW * step.thread.tokens:
        return None
    why = f"the prompt fell to {step.sizes.start:,} tokens: a compaction, a clearing or a rewind"
    return history_compacted.CAUSE.id, Confidence.LIKELY, why


def _by_time(step: Fall) -> Proof | None:
    if not step.expired:
        return None
    passed = f"{(step.pause or 0) / 60:.1f} min passed since the request before"
    why = f"{passed}, more than the {step.life // 60} min that entries live"
    return ttl_expired.CAUSE.id, Confidence.LIKELY, why


def _by_word(step: Fall) -> Proof | None:
    said = step.request.response.miss_reason if step.request.response else ""
    if not said.endswith("_changed"):
        return None
    why = f"the API says {said}"
    if said == "messages_changed":
        return history_rewritten.CAUSE.id, Confidence.LIKELY, why
    if said == "tools_changed" and Event.TOOLS in step.events:
        return tool_set_changed.CAUSE.id, Confidence.LIKELY, f"{why}, and {TOLD[Event.TOOLS][1]}"
    return prefix_changed.CAUSE.id, Confidence.LIKELY, why


TOLD = {
    Event.LOGIN: (
        routing_changed.CAUSE.id,
        "the log notes a new login, and another account has a cache of its own",
    ),
    Event.TOOLS: (
        tool_set_changed.CAUSE.id,
        "the log notes that tools or MCP servers came or went, which stand ahead of all else",
    ),
    Event.EFFORT: (
        effort_changed.CAUSE.id,
        "the log notes another effort, which is a part of the prompt",
    ),
    Event.THINKING: (
        thinking_settings_changed.CAUSE.id,
        "the log notes another thinking level, which is a part of the prompt",
    ),
}
"""What a noted event is a cause of, and why."""


def _by_event(step: Fall) -> Proof | None:
    told = next((TOLD[event] for event in TOLD if event in step.events), None)
    return (told[0], Confidence.LIKELY, told[1]) if told else None


def _by_size(step: Fall) -> Proof | None:
    if step.sizes.start >= SHORTER * step.thread.tokens:
        return None
    why = f"the prompt fell to {step.sizes.start:,} tokens, so a part of the history was taken out"
    return history_rewritten.CAUSE.id, Confidence.LIKELY, why


def _by_turn(step: Fall) -> Proof | None:
    """What a program does as a turn of the user begins: it puts the history together anew."""
    if Event.USER_TURN not in step.events or not step.ruled:
        return None
    if step.sizes.read <= TOLERANCE_TOKENS:
        why = (
            "at the first request of a user turn nothing was read, not even tools and system "
            "prompt; a date or a setting ahead of all may have been renewed, and only bodies could say"
        )
        return prefix_changed.CAUSE.id, Confidence.POSSIBLE, why
    why = (
        f"at the first request of a user turn the read fell back to the first {step.sizes.read:,} "
        "tokens, such as tools and system prompt, and the history behind them was rewritten"
    )
    if not find_model(step.request.model).keeps_thinking:
        why += " (this model drops the thinking of earlier turns then)"
    return history_rewritten.CAUSE.id, Confidence.LIKELY, why


def _by_nothing(step: Fall) -> Proof:
    if not step.ruled:
        why = "same model; how long its entries live is not known here, and only bodies could say more"
        return prefix_changed.CAUSE.id, Confidence.POSSIBLE, why
    if step.pause is None:
        why = "same model; when it was sent is not known, and only bodies could say what changed"
    else:
        why = "same model, in time; only bodies could say what changed"
    return prefix_changed.CAUSE.id, Confidence.POSSIBLE, why


PROOFS: tuple[Callable[[Fall], Proof | None], ...] = (
    _by_model,
    _by_compaction,
    _by_micro_compaction,
    _by_fall,
    _by_time,
    _by_word,
    _by_event,
    _by_size,
    _by_turn,
    _by_nothing,
)
"""What is asked of a rewrite; the first that knows answers, and the last always does."""
