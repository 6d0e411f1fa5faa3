"""A thread of which the log has counters only, as its messages are made up.

What a prompt grows by counts as the answer before it and one tool result. A first request that read something
begins as the session does that wrote it; where a later one reads less than the one before it had cached, and
no pause explains it, its prompt changed there: so that everything kept as it was sent reads what was read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.diagnosis.case import TOLERANCE_TOKENS
from ctxdoc.prompt.segments import read_message
from ctxdoc.prompt.settings import system_block
from ctxdoc.providers import find_model
from ctxdoc.providers.rules import Provider
from ctxdoc.request.request import Request
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.history.edit import made_message, text_block
from ctxdoc.simulation.history.from_numbers import exchange
from ctxdoc.simulation.history.messages import BreakpointAt, Head, Message, message_of


class Start(Struct, frozen=True):
    """What a prompt begins with, and may share with those of other threads."""

    tokens: int
    name: str


class CountedThread(Struct):
    """The prompt of a thread so far."""

    name: str
    """What nobody else shares: nothing tells that two threads begin alike behind what they read."""
    start: Start
    head: Head
    line: list[Message]
    last: int
    """Tokens of the prompt before."""
    cached: int
    """Of them, those that were read or written."""
    output: int
    rules: Provider
    ttl: str = ""
    """The lifetime that the last counters showed; empty where nothing was cached so far."""
    at: datetime | None = None
    """When the request before was sent."""

    @classmethod
    def begin(
        cls, name: str, usage: Usage, start: Start, rules: Provider, at: datetime | None = None
    ) -> CountedThread:
        """The first prompt counts as fixed: nothing tells what is in it."""
        opening = made_message({"role": "user", "content": [text_block("[task]")]}, [0])
        return cls(
            name=name,
            start=start,
            head=_head(start, usage.input, name),
            line=[opening],
            last=usage.input,
            cached=_cached(usage),
            output=usage.output,
            rules=rules,
            ttl=ttl_of(usage),
            at=at,
        )

    def go_on(self, turn: int, usage: Usage, at: datetime | None) -> None:
        """One more request."""
        added = usage.input - self.last
        changed = self._is_changed(usage, at)
        if added < 0:
            self._fall(turn, usage, changed)
        else:
            if changed:
                self._change(turn, usage.cache_read)
            reply = min(self.output, added)
            self.line += exchange(turn, reply, added - reply, 0)
        self.last, self.cached, self.output = usage.input, _cached(usage), usage.output
        self.ttl, self.at = ttl_of(usage) or self.ttl, at

    def marks(self) -> tuple[BreakpointAt, ...]:
        """Breakpoints at the ends of what is fixed and of the last message, where anything was cached."""
        if not self.ttl:
            return ()
        fixed = [BreakpointAt(0, index, self.ttl) for index in range(len(self.head.segments))]
        return (*fixed, BreakpointAt(1, len(self.line[-1].segments) - 1, self.ttl))

    def _is_changed(self, usage: Usage, at: datetime | None) -> bool:
        """Whether less was read than was cached, though it had not ended."""
        if not self.ttl or usage.cache_read >= self.cached - TOLERANCE_TOKENS:
            return False
        if at is None or self.at is None:
            return True
        return (at - self.at).total_seconds() < self.rules.seconds(self.ttl)

    def _change(self, turn: int, read: int) -> None:
        """Makes the prompt another one behind so many tokens."""
        if read < self.head.size - TOLERANCE_TOKENS:
            self._change_head(turn, read)
            return
        end = self.head.size
        for index, message in enumerate(self.line):
            end += message.size
            if end > read + TOLERANCE_TOKENS:
                # Requests before this one look at the line as it was.
                self.line = [*self.line[:index], _renewed(message, turn), *self.line[index + 1 :]]
                return

    def _change_head(self, turn: int, read: int, size: int | None = None) -> None:
        """Makes what is fixed another one, behind its start where that was read."""
        name = f"{self.name}, changed at {turn}"
        if read < self.start.tokens - TOLERANCE_TOKENS:
            self.start = Start(0, "")
        self.head = _head(self.start, self.head.size if size is None else size, name)

    def _fall(self, turn: int, usage: Usage, changed: bool) -> None:
        """The prompt fell: a summary stands in the place of the history."""
        if usage.input < self.head.size:
            self._change_head(turn, min(usage.cache_read, usage.input), usage.input)
        elif changed and usage.cache_read < self.head.size - TOLERANCE_TOKENS:
            self._change_head(turn, usage.cache_read)
        told = text_block(f"[summary {turn}]")
        rest = usage.input - self.head.size
        self.line = [made_message({"role": "user", "content": [told]}, [rest])]


class Starts:
    """What the threads of a log begin with, as far as their counters tell."""

    def __init__(self, requests: Iterable[Request]) -> None:
        """A history grows: what was read twice to the token is what requests of a model begin with."""
        counts: Counter[tuple[str, int]] = Counter()
        for request in requests:
            if request.body is None and request.usage is not None and request.usage.cache_read:
                counts[find_model(request.model).id, request.usage.cache_read] += 1
        usual = reversed(counts.most_common())
        self._usual = {model: read for (model, read), count in usual if count > 1}
        self._written: dict[tuple[str, int], str] = {}
        """Model and tokens → the name of the start that was written last."""

    def of(self, model: str, usage: Usage, name: str) -> Start:
        """The start of a thread's first prompt: that of the thread whose entry it read, or its own."""
        model = find_model(model).id
        if usage.cache_read:
            told = self._written.setdefault((model, usage.cache_read), f"start of {name}")
            return Start(usage.cache_read, told)
        tokens = self._usual.get(model, 0)
        if tokens > usage.input:
            return Start(0, "")
        told = self._written[model, tokens] = f"start of {name}"
        return Start(tokens, told)


def ttl_of(usage: Usage) -> str:
    """The lifetime of what a request wrote; empty where it wrote nothing."""
    if not usage.cache_write:
        return ""
    return "1h" if usage.cache_write_1h > usage.cache_write_5m else "5m"


def _cached(usage: Usage) -> int:
    return usage.cache_read + usage.cache_write


def _head(start: Start, size: int, name: str) -> Head:
    """Tools and system prompt of so many tokens: the start, and what is this thread's own."""
    parts = [(f"[{start.name}]", start.tokens)] if start.tokens else []
    if size > start.tokens or not parts:
        parts.append((f"[tools and system prompt {name}]", size - start.tokens))
    return Head(
        segments=tuple(system_block(text_block(text), at) for at, (text, _) in enumerate(parts)),
        tokens=tuple(tokens for _, tokens in parts),
        size=size,
    )


def _renewed(message: Message, turn: int) -> Message:
    """The same message with another text in its first block; calls keep their ids."""
    # The texts that are made up here end with a bracket.
    raw = message.raw.replace(b']"', f'; changed at {turn}]"'.encode(), 1)
    segments = read_message(raw, message.segments[0].rank[1], lean=True).segments
    return replace(message_of(segments, message.tokens, raw))
