"""What counters tell of the requests of a session where the log has no bodies.

A request of a session reads what the one before it read and wrote: so it was in 1,132 of 1,214
recorded steps. What of that it does not read is paid again; `counter_proofs` says why.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from ctxdoc.diagnosis.case import TOLERANCE_TOKENS
from ctxdoc.diagnosis.counter_proofs import (
    FEW,
    SHORTER,
    CounterThread,
    Fall,
    PromptSizes,
    Rewrite,
    cached_by,
    rewrite_of,
    sizes_of,
)
from ctxdoc.providers.rules import short_model_id
from ctxdoc.request.request import Event, Request
from ctxdoc.request.usage import Usage

GONE_ON = 4
"""Requests after which a prompt that fell stands for the one before it."""
LONGER = 2.0
"""A prompt that is more than so many times as long goes on from another one."""


class CounterStep(Struct, frozen=True):
    """What counters tell of a request."""

    thread: int
    """Number of the thread that it goes on from, inside of its session."""
    before: int | None
    """The request that it is compared with."""
    goes_on: bool
    """Whether it goes on from that one, and could have read all of it."""
    rewrite: Rewrite | None


def _last_turn(thread: CounterThread) -> int:
    return thread.turn


class _Call(NamedTuple):
    """A request with counters, and what was noted before it."""

    key: int
    request: Request
    usage: Usage
    sizes: PromptSizes
    events: frozenset[Event]


class _Comparison(NamedTuple):
    """The thread that a call is held against, and what it paid again of it."""

    thread: CounterThread | None
    rewrite: Rewrite | None = None
    pending: Rewrite | None = None
    """What it is if the thread never goes on: until then the call may be a side call."""


class Counted:
    """The requests of one session, compared one after the other.

    A session holds side calls as well: a small prompt among large ones is a thread of its own. It is
    a compaction only if the large one never goes on, which shows at the end.
    """

    def __init__(self) -> None:
        self._threads: list[CounterThread] = []
        self._recent: CounterThread | None = None
        self._turn = 0
        self._waiting: dict[int, tuple[CounterThread, CounterThread, Rewrite]] = {}
        """Falls by the request: the thread that may go on, the one that fell, and what it is if the
        first does not go on."""
        self._long = False
        """Whether the session writes for an hour."""
        self._events: frozenset[Event] = frozenset()
        """What was noted since the last call that the cache is concerned with."""

    def next(self, key: int, request: Request) -> CounterStep | None:
        """What is known of a request; None for one without counters of its own."""
        # Notes of a call that is passed over stand for the next one: a compaction is noted at its own call.
        self._events |= frozenset(request.events)
        usage = request.usage
        if usage is None or request.refused or not usage.input or usage.contradiction:
            return None
        call = _Call(key, request, usage, sizes_of(request, usage), self._events)
        if cached_by(usage):
            # A call without a breakpoint is explained by nothing, and explains nothing.
            self._events = frozenset()
        self._turn += 1
        thread = self._continued(call)
        found = self._compared(call, thread)
        before = found.thread.key if found.thread is not None else None
        self._step(call, thread or self._opened(call), found)
        assert self._recent is not None
        return CounterStep(self._recent.number, before, thread is not None, found.rewrite)

    def settled(self) -> Iterator[tuple[int, Rewrite]]:
        """The falls that were no side calls, once the session is over."""
        for key, (_, _, rewrite) in self._waiting.items():
            yield key, rewrite

    def _of_model(self, request: Request) -> list[CounterThread]:
        """The threads whose entries a request could read: those belong to one model."""
        model = short_model_id(request.model)
        return [thread for thread in self._threads if thread.model == model]

    def _continued(self, call: _Call) -> CounterThread | None:
        """The thread that a request goes on from."""
        own = self._of_model(call.request)
        if Event.COMPACTION in call.events and own:
            # A noted compaction says so itself, however short the prompt is now.
            return max(own, key=_last_turn)
        # A thread that fell and went on for so long stands for the one before it, which is over.
        ended = {id(old) for old, new, _ in self._waiting.values() if new.count >= GONE_ON}
        own = [thread for thread in own if id(thread) not in ended]
        if call.sizes.cached is None:
            # A sum of passes is as large as its prompt at least.
            fitting = (t for t in own if t.tokens <= call.sizes.start)
            return max(fitting, key=_last_turn, default=None)
        return _best_fit(call.sizes, own)

    def _compared(self, call: _Call, thread: CounterThread | None) -> _Comparison:
        """A call beside the thread that it goes on from, or else beside the one that it may have replaced."""
        if thread is not None:
            # The large prompt went on, so what fell beside it was a side call.
            self._waiting = {k: w for k, w in self._waiting.items() if w[0] is not thread}
            known = _can_tell(call, thread)
            return _Comparison(thread, self._rewrite(call, thread) if known else None)
        own = self._of_model(call.request)
        return self._shrunk(call, own) if own else self._switched(call)

    def _shrunk(self, call: _Call, own: list[CounterThread]) -> _Comparison:
        """A call that is too small to go on from any thread of its model."""
        larger = [thread for thread in own if call.sizes.start < FEW * thread.tokens]
        other = max(larger, key=_last_turn, default=None)
        # One that reads its own beginning is a side call, or has a new history.
        fell = call.sizes.read <= TOLERANCE_TOKENS or Event.MICRO_COMPACTION in call.events
        if other is None or not fell:
            return _Comparison(other)
        return _Comparison(other, pending=self._rewrite(call, other))

    def _switched(self, call: _Call) -> _Comparison:
        """The first call of a model: the conversation goes on with it, or it is a side call."""
        other = self._recent
        if other is None or not _goes_on(call, other):
            return _Comparison(other)
        found = self._rewrite(call, other)
        # What reads a cache of its own may be a side call.
        if call.sizes.read > TOLERANCE_TOKENS:
            return _Comparison(other, pending=found)
        return _Comparison(other, rewrite=found)

    def _rewrite(self, call: _Call, before: CounterThread) -> Rewrite | None:
        return rewrite_of(Fall(call.request, before, call.sizes, call.events, self._long))

    def _opened(self, call: _Call) -> CounterThread:
        """A thread of its own for a call that goes on from none."""
        thread = CounterThread(
            number=len(self._threads),
            model=short_model_id(call.request.model),
            key=call.key,
            last=call.request,
            tokens=call.sizes.end,
            cached=call.sizes.cached,
            turn=self._turn,
            first=call.sizes.start,
            count=0,
        )
        self._threads.append(thread)
        return thread

    def _step(self, call: _Call, thread: CounterThread, found: _Comparison) -> None:
        """Goes on with a call, once it is compared: until then the thread is as the call met it."""
        if found.thread is not None and found.pending is not None:
            self._waiting[call.key] = (found.thread, thread, found.pending)
        # How long this call's own entries live says nothing of those that it could have read.
        usage = call.usage
        self._long = bool(usage.cache_write_1h) or (self._long and not usage.cache_write_5m)
        thread.was_read |= usage.cache_read > 0
        thread.take(call.key, call.request, call.sizes, self._turn)
        self._recent = thread


def _best_fit(sizes: PromptSizes, own: list[CounterThread]) -> CounterThread | None:
    """The thread whose entries a request reads, or else the largest prompt that it can have grown from."""
    fitting = [t for t in own if FEW * t.tokens <= sizes.start <= LONGER * t.tokens]
    # The read is the best proof that there is: two threads seldom have cached as much to twenty tokens.
    read = [t for t in fitting if sizes.read and t.is_read_by(sizes)]
    if read:
        return max(read, key=_last_turn)
    grown = [t for t in fitting if SHORTER * t.tokens <= sizes.start]
    if grown:
        return max(grown, key=lambda thread: thread.tokens)
    # All are larger: the one that lost the least of its history.
    return min(fitting, key=lambda thread: thread.tokens, default=None)


def _can_tell(call: _Call, before: CounterThread) -> bool:
    """Whether a thread is known to be one: calls of one size that never read are prompts of their own,
    such as titles."""
    noted = not call.events.isdisjoint((Event.COMPACTION, Event.MICRO_COMPACTION))
    grown = call.sizes.start > before.tokens + TOLERANCE_TOKENS
    return before.was_read or bool(call.usage.cache_read) or grown or noted


def _goes_on(call: _Call, before: CounterThread) -> bool:
    """Whether a call of another model goes on with the conversation: its prompt is as long, or it
    comes behind a compaction and is cached."""
    if call.sizes.start >= FEW * before.tokens:
        return True
    return Event.COMPACTION in call.events and bool(cached_by(call.usage))
