"""The conversation is handed off to a new session with a summary.

What it does
    At the requests that `at` names, a further call writes a summary, and a new session begins: its tools and
    system prompt, the summary, and from then on what is said. Unlike `compact`, nothing recent stays, and
    what the program puts into the fixed part of each session anew (date, directory, state) is written again.
Parameters
    at=                 numbers of the requests ahead of which it is handed off, joined by |
    summary_tokens=3500 of the summary
    fresh=0             tokens at the end of the fixed part that are another text in a new session
Rewrites the prefix
    behind what both sessions share, at each handoff
What the model no longer sees
    everything that the summary stands for
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.prompt.settings import system_block
from ctxdoc.simulation.history.edit import text_block, told
from ctxdoc.simulation.history.messages import Head, Message
from ctxdoc.simulation.strategies.base import (
    COUNT,
    SUMMARY,
    Definition,
    Extra,
    History,
    Outgoing,
    numbers_of,
)
from ctxdoc.simulation.strategies.compact import ASKED, ASKED_TOKENS


class Memory(Struct, frozen=True, eq=False, gc=False):
    """The session that was begun last."""

    index: int
    """The first message behind the summary."""
    before: Message
    """The last one that it covers."""
    count: int
    """Sessions so far."""


class Handoff(Struct, frozen=True):
    """Begins a new session with a summary."""

    at: str = ""
    summary_tokens: Annotated[int, SUMMARY] = 3_500
    fresh: Annotated[int, COUNT] = 0

    def send(self, history: History, memory: object) -> Outgoing:
        """The messages of the session that is the last one by now."""
        messages = history.messages
        known = memory if isinstance(memory, Memory) and _holds(memory, messages) else None
        sent = self._begun(history, known)
        head = self._head(history, known.count) if known else None
        if history.number not in numbers_of(self.at, "handoff:at") or len(messages) < 2:
            return Outgoing(messages=sent, memory=known, head=head)
        # The question goes behind the last message, so that all ahead of it is read from the cache.
        asked = text_block(ASKED)
        asking = [*sent[:-1], history.maker.with_block(sent[-1], asked, ASKED_TOKENS, last=True)]
        now = Memory(len(messages), messages[-1], known.count + 1 if known else 1)
        return Outgoing(
            messages=self._begun(history, now),
            memory=now,
            head=self._head(history, now.count),
            # The summary is asked for in the old session.
            extra=(Extra(messages=asking, output=self.summary_tokens, head=head or history.head),),
        )

    def _begun(self, history: History, known: Memory | None) -> list[Message]:
        """The summary and what was said behind it."""
        messages = history.messages
        if known is None:
            return messages
        block = text_block(told(messages, known.index))
        summary = history.maker.message("user", block, self.summary_tokens)
        return [summary, *messages[known.index :]]

    def _head(self, history: History, count: int) -> Head | None:
        """The fixed part of a new session; None where it is the same."""
        fresh = min(self.fresh, history.head.size)
        if not fresh:
            return None
        return history.maker.once(
            ("fresh", history.head, count, fresh), lambda: _renewed(history.head, fresh, count)
        )


def _holds(memory: Memory, messages: list[Message]) -> bool:
    return memory.index <= len(messages) and messages[memory.index - 1] is memory.before


def _renewed(head: Head, fresh: int, count: int) -> Head:
    """A fixed part whose last tokens are another text."""
    segments, tokens, left = list(head.segments), list(head.tokens), fresh
    while segments and left >= tokens[-1]:
        left -= tokens.pop()
        segments.pop()
    if left:
        tokens[-1] -= left
    own = system_block(text_block(f"[what session {count + 1} begins with]"), len(head.segments))
    return replace(
        head, segments=(*segments, own), tokens=(*tokens, fresh), size=sum(tokens) + fresh
    )


STRATEGY = Definition(
    id="handoff", title="a new session begins with a summary", make=Handoff, usual=()
)
