"""The cache is kept warm over pauses by cheap calls.

What it does
    While nobody calls, the last prompt is sent again with `max_tokens` 0 shortly before its entry ends, at
    most `most` times in a row: each such call reads the whole prompt, and the next real one reads it too,
    where it would have written it. A program cannot know how long a pause becomes: behind the last such call
    the entry ends, and all of them were for nothing.
Parameters
    after=300       seconds that an entry lives; 3600 where entries live for an hour
    margin=20       seconds ahead of its end at which the call is made
    most=11         calls in a row: writing costs (w - r)/r reads, 11.5 at the usual factors of 1.25 and 0.1, so
                    that pauses over 12 lifetimes cost more to bridge than to let go
Rewrites the prefix
    no: it saves rewrites
What the model no longer sees
    nothing
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Struct

from ctxdoc.simulation.history.messages import Head, Message, Session
from ctxdoc.simulation.recipe import Recipe, pasted
from ctxdoc.simulation.strategies.base import (
    COUNT,
    SECONDS,
    Definition,
    Extra,
    History,
    Outgoing,
)


class Memory(Struct, frozen=True, eq=False, gc=False):
    """The prompt that was sent last, and when."""

    messages: list[Message]
    head: Head
    root: str
    at: datetime | None


class KeepAlive(Struct, frozen=True):
    """Sends the last prompt again before its entry ends."""

    after: Annotated[int, SECONDS] = 300
    margin: Annotated[int, SECONDS] = 20
    most: Annotated[int, COUNT] = 11

    def send(self, history: History, memory: object) -> Outgoing:
        """The history, and the calls that were made in the pause before it."""
        call = history.call
        now = Memory(history.messages, history.head, call.root, call.at)
        extra: tuple[Extra, ...] = ()
        if isinstance(memory, Memory) and memory.root == call.root:
            extra = tuple(
                Extra(messages=memory.messages, head=memory.head, output=0, at=at)
                for at in self._times(memory.at, call.at)
            )
        return Outgoing(messages=history.messages, memory=now, extra=extra)

    def _times(self, last: datetime | None, now: datetime | None) -> Iterator[datetime]:
        """When the calls of a pause are made."""
        if last is None or now is None or (now - last).total_seconds() < self.after:
            return
        step = timedelta(seconds=max(1, self.after - self.margin))
        for number in range(1, self.most + 1):
            at = last + number * step
            if at >= now:
                return
            yield at


def _has_times(session: Session) -> bool:
    return any(call.at is not None for call in session.calls)


def _recipe(strategy: KeepAlive) -> Recipe:
    return Recipe(
        do=f"send the last request again with max_tokens 0 after {strategy.after - strategy.margin:,} seconds "
        f"without a call, at most {strategy.most} times in a row",
        code=pasted({"max_tokens": 0}),
        proof="requests behind a pause read what the one before them wrote",
    )


STRATEGY = Definition(
    id="keep_alive",
    title="cheap calls keep the cache warm over pauses",
    make=KeepAlive,
    edits=False,
    recipe=_recipe,
    applies=_has_times,
)
