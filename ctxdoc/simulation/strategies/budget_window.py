"""A token budget filled from the newest message back, as it is commonly written.

What it does
    System prompt and tools stay. From the newest message back each one is taken that still fits into
    `max_tokens`; one that is too large is passed over and older, smaller ones are still taken. So
    there are holes, and tool calls are parted from their results: the warnings say how often the API
    would refuse it.
Parameters
    max_tokens=50000    of the whole prompt
Rewrites the prefix
    on every request once it is full
What the model no longer sees
    what did not fit
"""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated

from msgspec import Struct

from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.strategies.base import Definition, History, Sent, prompt

SIZE = attrgetter("size")


class BudgetWindow(Struct, frozen=True):
    """Fills a budget from the end."""

    max_tokens: Annotated[int, prompt(0.4)] = 50_000

    def send(self, history: History, memory: object) -> Sent:
        """What fits."""
        del memory
        left = self.max_tokens - history.head.size
        kept: list[Message] = []
        least = min(map(SIZE, history.messages), default=0)
        for message in reversed(history.messages):
            if left < least and kept:
                # Nothing older fits, however small.
                break
            if message.size <= left or not kept:
                kept.append(message)
                left -= message.size
        kept.reverse()
        return Sent(messages=kept)


STRATEGY = Definition(
    id="budget_window",
    title="a token budget filled from the end, as commonly written",
    make=BudgetWindow,
    as_written=True,
)
