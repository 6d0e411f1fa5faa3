"""What counters, times and models prove of a miss where the log has no bodies.

A request of a session reads what the one before it read and wrote: so it was in 1,132 of 1,214
recorded steps. What of that it does not read is paid again, and the log says of it as much as its
model, its time and its own marks tell. Lifetimes are known of Claude models only; of the others the
fall of the read is all that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from ctxdoc.diagnosis.case import TOLERANCE_TOKENS, Confidence
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
GONE_ON = 4
"""Requests after which a prompt that fell stands for the one before it."""
LONGER = 2.0
"""A prompt that is more than so many times as long goes on from another one."""


class Rewrite(Struct, frozen=True, kw_only=True):
    """Tokens that the earlier request had cached, and that were paid again."""

    tokens: int
    cause: str
    """Id of a cause."""
    confidence: Confidence
    explanation: str
    lasting: bool = False
    """Whether no lifetime that there is would have bridged the pause."""


class CounterStep(Struct, frozen=True):
    """What counters tell of a request."""

    thread: int
    """Number of the thread that it goes on from, inside of its session."""
    before: int | None
    """The request that it is compared with."""
    goes_on: bool
    """Whether it goes on from that one, and could have read all of it."""
    rewrite: Rewrite | None


class _Sizes(NamedTuple):
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


def _sizes_of(request: Request, usage: Usage) -> _Sizes:
    response = request.response
    listed = response.prompt_passes if response else ()
    if listed:
        first, last = listed[0], listed[-1]
        return _Sizes(first.input, last.input, first.cache_read, _cached(last))
    if response and response.several_passes:
        # Two passes at least have read the same beginning: what is left of the sum bounds the prompt.
        most = usage.uncached + usage.cache_write + usage.cache_read // 2
        return _Sizes(usage.input, most, usage.cache_read, None)
    return _Sizes(usage.input, usage.input, usage.cache_read, _cached(usage))


def _cached(usage: Usage) -> int:
    return usage.cache_read + usage.cache_write


class _Thread(Struct):
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

    def is_read_by(self, sizes: _Sizes) -> bool:
        """Whether a request reads just what the last one read and wrote."""
        return abs(sizes.read - (self.cached or 0)) <= TOLERANCE_TOKENS

    def take(self, key: int, request: Request, sizes: _Sizes, turn: int) -> None:
        """Goes on with a request; one whose counters add up passes leaves the sizes as they were."""
        self.key, self.last, self.turn = key, request, turn
        self.count += 1
        if sizes.cached is not None:
            self.tokens, self.cached = sizes.end, sizes.cached


def _last_turn(thread: _Thread) -> int:
    return thread.turn


class Counted:
    """The requests of one session, compared one after the other.

    A session holds side calls as well: a small prompt among large ones is a thread of its own. It is
    a compaction only if the large one never goes on, which shows at the end.
    """

    def __init__(self) -> None:
        self._threads: list[_Thread] = []
        self._recent: _Thread | None = None
        self._turn = 0
        self._waiting: dict[int, tuple[_Thread, _Thread, Rewrite]] = {}
        """Falls by the request: the thread that may go on, the one that fell, and what it is if the
        first does not go on."""
        self._long = False
        """Whether the session writes for an hour."""
        self._events: frozenset[Event] = frozenset()
        """What was noted since the last call that the cache is concerned with."""

    def next(self, key: int, request: Request) -> CounterStep | None:
        """What is known of a request; None for one without counters of its own."""
        self._events |= frozenset(request.events)
        usage = request.usage
        if usage is None or request.refused or not usage.input or usage.contradiction:
            return None
        events, sizes = self._events, _sizes_of(request, usage)
        if _cached(usage):
            # A call without a breakpoint is explained by nothing, and explains nothing.
            self._events = frozenset()
        self._turn += 1
        model = short_model_id(request.model)
        own = [thread for thread in self._threads if thread.model == model]
        before = self._continued(sizes, own, events)
        compared = before or self._recent
        rewrite: Rewrite | None = None
        fallen: Rewrite | None = None
        if before is not None:
            if _can_tell(usage, sizes, before, events):
                rewrite = self._compare(request, sizes, before, events)
            before.was_read |= usage.cache_read > 0
            self._waiting = {k: w for k, w in self._waiting.items() if w[0] is not before}
        elif own:
            larger = [thread for thread in own if sizes.start < FEW * thread.tokens]
            compared = max(larger, key=_last_turn, default=None)
            # One that reads its own beginning is a side call, or has a new history.
            if compared and (sizes.read <= TOLERANCE_TOKENS or Event.MICRO_COMPACTION in events):
                fallen = self._compare(request, sizes, compared, events)
        elif compared is not None and _goes_on(usage, sizes, compared, events):
            found = self._compare(request, sizes, compared, events)
            # What reads a cache of its own may be a side call.
            rewrite, fallen = (None, found) if sizes.read > TOLERANCE_TOKENS else (found, None)
        heard = compared.key if compared else None
        self._long = bool(usage.cache_write_1h) or (self._long and not usage.cache_write_5m)
        goes_on = before is not None
        if before is None:
            before = _Thread(
                number=len(self._threads),
                model=model,
                key=key,
                last=request,
                tokens=sizes.end,
                cached=sizes.cached,
                turn=self._turn,
                first=sizes.start,
                count=0,
            )
            before.was_read = usage.cache_read > 0
            self._threads.append(before)
        if compared is not None and fallen is not None:
            self._waiting[key] = (compared, before, fallen)
        before.take(key, request, sizes, self._turn)
        self._recent = before
        return CounterStep(before.number, heard, goes_on, rewrite)

    def settled(self) -> Iterator[tuple[int, Rewrite]]:
        """The falls that were no side calls, once the session is over."""
        for key, (_, _, rewrite) in self._waiting.items():
            yield key, rewrite

    def _continued(
        self, sizes: _Sizes, own: list[_Thread], events: frozenset[Event]
    ) -> _Thread | None:
        """The thread that a request goes on from: the one whose entries it reads, or else the largest
        prompt that it can have grown from."""
        if Event.COMPACTION in events and own:
            return max(own, key=_last_turn)
        ended = {id(old) for old, new, _ in self._waiting.values() if new.count >= GONE_ON}
        own = [thread for thread in own if id(thread) not in ended]
        if sizes.cached is None:
            # A sum of passes is as large as its prompt at least.
            return max((t for t in own if t.tokens <= sizes.start), key=_last_turn, default=None)
        fitting = [t for t in own if FEW * t.tokens <= sizes.start <= LONGER * t.tokens]
        read = [t for t in fitting if sizes.read and t.is_read_by(sizes)]
        if read:
            return max(read, key=_last_turn)
        grown = [t for t in fitting if SHORTER * t.tokens <= sizes.start]
        if grown:
            return max(grown, key=lambda thread: thread.tokens)
        return min(fitting, key=lambda thread: thread.tokens, default=None)

    def _compare(
        self, request: Request, sizes: _Sizes, before: _Thread, events: frozenset[Event]
    ) -> Rewrite | None:
        return _rewrite(_Step(request, before, sizes, events, self._long))


def _can_tell(usage: Usage, sizes: _Sizes, before: _Thread, events: frozenset[Event]) -> bool:
    """Whether a thread is known to be one: calls of one size that never read are prompts of their own,
    such as titles."""
    noted = not events.isdisjoint((Event.COMPACTION, Event.MICRO_COMPACTION))
    grown = sizes.start > before.tokens + TOLERANCE_TOKENS
    return before.was_read or bool(usage.cache_read) or grown or noted


def _goes_on(usage: Usage, sizes: _Sizes, before: _Thread, events: frozenset[Event]) -> bool:
    """Whether a call of another model goes on with the conversation: its prompt is as long, or it
    comes behind a compaction and is cached."""
    if sizes.start >= FEW * before.tokens:
        return True
    return Event.COMPACTION in events and bool(_cached(usage))


class _Step(NamedTuple):
    """Two requests of which the later one did not read all that the earlier one had cached."""

    request: Request
    thread: _Thread
    """What it goes on from, as far as it had come."""
    sizes: _Sizes
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


def _rewrite(step: _Step) -> Rewrite | None:
    if step.lost <= step.tolerance:
        return None
    cause, confidence, why = next(found for rule in PROOFS if (found := rule(step)))
    if cause == "history_compacted":
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
        lasting=cause == "ttl_expired"
        and (step.pause or 0) >= provider_of(step.before.model).longest,
    )


Proof: TypeAlias = tuple[str, Confidence, str]


def _by_model(step: _Step) -> Proof | None:
    if not step.switched:
        return None
    models = f"{step.before.model} to {step.request.model}"
    why = f"the model went from {models}, and entries belong to one model"
    if Event.COMPACTION in step.events:
        why += "; the log notes a compaction as well, which alone leaves tools and system prompt"
    return "model_changed", Confidence.CERTAIN if step.ruled else Confidence.LIKELY, why


def _by_compaction(step: _Step) -> Proof | None:
    if Event.COMPACTION not in step.events:
        return None
    why = "the log notes a compaction, which replaces the history"
    return "history_compacted", Confidence.CERTAIN, why


def _by_micro_compaction(step: _Step) -> Proof | None:
    if Event.MICRO_COMPACTION not in step.events:
        return None
    if step.expired and step.sizes.read <= TOLERANCE_TOKENS:
        # It leaves what stands ahead of the history.
        return None
    why = "the log notes a micro-compaction, which takes old tool results out of the history"
    return "history_rewritten", Confidence.LIKELY, f"{why}: an expected rewrite"


def _by_fall(step: _Step) -> Proof | None:
    if step.sizes.start >= FEW * step.thread.tokens:
        return None
    why = f"the prompt fell to {step.sizes.start:,} tokens: a compaction, a clearing or a rewind"
    return "history_compacted", Confidence.LIKELY, why


def _by_time(step: _Step) -> Proof | None:
    if not step.expired:
        return None
    passed = f"{(step.pause or 0) / 60:.1f} min passed since the request before"
    why = f"{passed}, more than the {step.life // 60} min that entries live"
    return "ttl_expired", Confidence.LIKELY, why


def _by_word(step: _Step) -> Proof | None:
    said = step.request.response.miss_reason if step.request.response else ""
    if not said.endswith("_changed"):
        return None
    why = f"the API says {said}"
    if said == "messages_changed":
        return "history_rewritten", Confidence.LIKELY, why
    if said == "tools_changed" and Event.TOOLS in step.events:
        return "tool_set_changed", Confidence.LIKELY, f"{why}, and {TOLD[Event.TOOLS][1]}"
    return "prefix_changed", Confidence.LIKELY, why


TOLD = {
    Event.LOGIN: (
        "routing_changed",
        "the log notes a new login, and another account has a cache of its own",
    ),
    Event.TOOLS: (
        "tool_set_changed",
        "the log notes that tools or MCP servers came or went, which stand ahead of all else",
    ),
    Event.EFFORT: ("effort_changed", "the log notes another effort, which is a part of the prompt"),
    Event.THINKING: (
        "thinking_settings_changed",
        "the log notes another thinking level, which is a part of the prompt",
    ),
}
"""What a noted event is a cause of, and why."""


def _by_event(step: _Step) -> Proof | None:
    told = next((TOLD[event] for event in TOLD if event in step.events), None)
    return (told[0], Confidence.LIKELY, told[1]) if told else None


def _by_size(step: _Step) -> Proof | None:
    if step.sizes.start >= SHORTER * step.thread.tokens:
        return None
    why = f"the prompt fell to {step.sizes.start:,} tokens, so a part of the history was taken out"
    return "history_rewritten", Confidence.LIKELY, why


def _by_turn(step: _Step) -> Proof | None:
    """What a program does as a turn of the user begins: it puts the history together anew."""
    if Event.USER_TURN not in step.events or not step.ruled:
        return None
    if step.sizes.read <= TOLERANCE_TOKENS:
        why = (
            "at the first request of a user turn nothing was read, not even tools and system "
            "prompt; a date or a setting ahead of all may have been renewed, and only bodies could say"
        )
        return "prefix_changed", Confidence.POSSIBLE, why
    why = (
        f"at the first request of a user turn the read fell back to the first {step.sizes.read:,} "
        "tokens, such as tools and system prompt, and the history behind them was rewritten"
    )
    if not find_model(step.request.model).keeps_thinking:
        why += " (this model drops the thinking of earlier turns then)"
    return "history_rewritten", Confidence.LIKELY, why


def _by_nothing(step: _Step) -> Proof:
    if not step.ruled:
        why = "same model; how long its entries live is not known here, and only bodies could say more"
        return "prefix_changed", Confidence.POSSIBLE, why
    if step.pause is None:
        why = "same model; when it was sent is not known, and only bodies could say what changed"
    else:
        why = "same model, in time; only bodies could say what changed"
    return "prefix_changed", Confidence.POSSIBLE, why


PROOFS: tuple[Callable[[_Step], Proof | None], ...] = (
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
