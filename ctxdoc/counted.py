"""What counters, times and models prove of a miss where the log has no bodies.

A request of a session reads what the one before it read and wrote: so it was in 1,132 of 1,214
recorded steps. What was in the earlier prompt and is written again is a rewrite, and the log says of
it as much as its model, its time and its own marks tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from ctxdoc.causes.base import TOLERANCE_TOKENS, Confidence
from ctxdoc.model import Event, Request, Usage
from ctxdoc.providers import RULES
from ctxdoc.providers.rules import short_model_id

SHORTER = 0.97
"""A prompt under this share of the one before it has lost a part of its history."""
FEW = 0.7
"""Under this share the history gave way to something else, or the call is a side call."""
GONE_ON = 4
"""Requests after which a prompt that fell stands for the one before it."""
LONGER = 2.0
"""A prompt that is more than so many times as long goes on from another one."""


class Rewrite(Struct, frozen=True, kw_only=True):
    """Tokens that were in the earlier prompt and were written again."""

    tokens: int
    cause: str
    """Id of a cause."""
    confidence: Confidence
    explanation: str
    lasting: bool = False
    """Whether no lifetime that there is would have bridged the pause."""


class Heard(Struct, frozen=True):
    """What counters tell of a request."""

    thread: int
    """Number of the thread that it goes on from, inside of its session."""
    before: int | None
    """The request that it is compared with."""
    goes_on: bool
    """Whether it goes on from that one, and could have read all of it."""
    rewrite: Rewrite | None


class _Thread(Struct):
    """Requests that go on from each other: one model, a prompt that grows."""

    number: int
    model: str
    key: int
    last: Request
    tokens: int
    turn: int
    """Running number of its last request in the session."""
    count: int = 1
    was_read: bool = False
    """Whether any request has read something."""

    def is_read_by(self, usage: Usage) -> bool:
        """Whether a request reads just what the last one read and wrote."""
        own = self.last.usage
        cached = own.cache_read + own.cache_write if own else 0
        return abs(usage.cache_read - cached) <= TOLERANCE_TOKENS


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

    def next(self, key: int, request: Request) -> Heard | None:
        """What is known of a request; None for one without counters of its own."""
        usage = request.usage
        if usage is None or request.refused or not usage.input:
            return None
        model = short_model_id(request.model)
        own = [thread for thread in self._threads if thread.model == model]
        before = self._continued(request, usage, own)
        compared, rewrite, goes_on = before or self._recent, None, before is not None
        fallen: Rewrite | None = None
        self._turn += 1
        if before is not None:
            if (
                before.was_read
                or usage.cache_read
                or usage.input > before.tokens + TOLERANCE_TOKENS
            ):
                rewrite = self._compare(request, usage, before, switched=False)
            # Else calls of one size that never read: prompts of their own, such as titles.
            before.was_read |= usage.cache_read > 0
            self._waiting = {k: w for k, w in self._waiting.items() if w[0] is not before}
        elif own:
            larger = [thread for thread in own if usage.input < FEW * thread.tokens]
            compared = max(larger, key=_last_turn, default=None)
            if compared is not None:
                fallen = self._compare(request, usage, compared, switched=False)
        elif compared is not None and usage.input >= FEW * compared.tokens:
            rewrite = self._compare(request, usage, compared, switched=True)
        heard = compared.key if compared else None
        self._long = bool(usage.cache_write_1h) or (self._long and not usage.cache_write_5m)
        if before is None:
            before = _Thread(len(self._threads), model, key, request, usage.input, self._turn)
            before.was_read = usage.cache_read > 0
            self._threads.append(before)
        if compared is not None and fallen is not None:
            self._waiting[key] = (compared, before, fallen)
        before.key, before.last, before.tokens = key, request, usage.input
        before.turn, before.count = self._turn, before.count + 1
        self._recent = before
        return Heard(before.number, heard, goes_on, rewrite)

    def settled(self) -> Iterator[tuple[int, Rewrite]]:
        """The falls that were no side calls, once the session is over."""
        for key, (_, _, rewrite) in self._waiting.items():
            yield key, rewrite

    def _continued(self, request: Request, usage: Usage, own: list[_Thread]) -> _Thread | None:
        """The thread that a request goes on from: the one whose entries it reads, or else the largest
        prompt that it can have grown from."""
        if request.event is Event.COMPACTION and own:
            return max(own, key=_last_turn)
        ended = {id(old) for old, new, _ in self._waiting.values() if new.count >= GONE_ON}
        own = [thread for thread in own if id(thread) not in ended]
        fitting = [t for t in own if FEW * t.tokens <= usage.input <= LONGER * t.tokens]
        read = [t for t in fitting if usage.cache_read and t.is_read_by(usage)]
        if read:
            return max(read, key=_last_turn)
        grown = [t for t in fitting if SHORTER * t.tokens <= usage.input]
        if grown:
            return max(grown, key=lambda thread: thread.tokens)
        return min(fitting, key=lambda thread: thread.tokens, default=None)

    def _compare(
        self, request: Request, usage: Usage, before: _Thread, *, switched: bool
    ) -> Rewrite | None:
        return _rewrite(request, usage, before.last, switched=switched, long=self._long)


def _rewrite(
    request: Request, usage: Usage, before: Request, *, switched: bool, long: bool
) -> Rewrite | None:
    earlier = before.usage
    if earlier is None or not (earlier.cache_read or earlier.cache_write):
        return None
    again = min(earlier.input - usage.cache_read, usage.cache_write)
    if again <= TOLERANCE_TOKENS:
        return None
    step = _Step(request, before, usage.input, earlier.input, switched, long)
    cause, confidence, why = next(found for rule in PROOFS if (found := rule(step)))
    return Rewrite(
        tokens=again,
        cause=cause,
        confidence=confidence,
        explanation=f"{again:,} of {earlier.input:,} tokens of the earlier prompt were written again: "
        f"{why}.",
        lasting=cause == "ttl_expired" and step.pause >= RULES.ttl_seconds["1h"],
    )


class _Step(NamedTuple):
    """Two requests of which the later one wrote again what the earlier one had."""

    request: Request
    before: Request
    size: int
    earlier: int
    switched: bool
    long: bool

    @property
    def pause(self) -> float:
        """Seconds from start to start; 0 where they are not known."""
        if self.request.at is None or self.before.at is None:
            return 0.0
        return (self.request.at - self.before.at).total_seconds()


Proof: TypeAlias = tuple[str, Confidence, str]


def _by_model(step: _Step) -> Proof | None:
    if not step.switched:
        return None
    models = f"{step.before.model} to {step.request.model}"
    why = f"the model went from {models}, and entries belong to one model"
    return "model_changed", Confidence.CERTAIN, why


def _by_compaction(step: _Step) -> Proof | None:
    if step.request.event is Event.COMPACTION:
        why = "the log notes a compaction, which replaces the history"
        return "history_compacted", Confidence.CERTAIN, why
    if step.size >= FEW * step.earlier:
        return None
    why = f"the prompt fell to {step.size:,} tokens: a compaction, a clearing or a rewind"
    return "history_compacted", Confidence.LIKELY, why


def _by_time(step: _Step) -> Proof | None:
    usage = step.before.usage
    short = usage is not None and usage.cache_write_5m
    life = RULES.ttl_seconds["1h" if step.long and not short else "5m"]
    if step.pause < life:
        return None
    why = (
        f"{step.pause / 60:.1f} min passed since the request before, more than the {life // 60} min"
    )
    return "ttl_expired", Confidence.LIKELY, f"{why} that entries live"


def _by_size(step: _Step) -> Proof | None:
    if step.size >= SHORTER * step.earlier:
        return None
    why = f"the prompt fell to {step.size:,} tokens, so a part of the history was taken out"
    return "history_rewritten", Confidence.LIKELY, why


def _by_thinking(step: _Step) -> Proof | None:
    if step.request.event is not Event.THINKING:
        return None
    why = "the log notes another thinking level, which is a part of the prompt"
    return "thinking_settings_changed", Confidence.LIKELY, why


def _by_nothing(step: _Step) -> Proof:
    said = step.request.response.miss_reason if step.request.response else ""
    if said:
        return "prefix_changed", Confidence.LIKELY, f"the API says {said}"
    why = "same model, in time; only bodies could say what changed"
    return "prefix_changed", Confidence.POSSIBLE, why


PROOFS: tuple[Callable[[_Step], Proof | None], ...] = (
    _by_model,
    _by_compaction,
    _by_time,
    _by_size,
    _by_thinking,
    _by_nothing,
)
"""What is asked of a rewrite; the first that knows answers, and the last always does."""
