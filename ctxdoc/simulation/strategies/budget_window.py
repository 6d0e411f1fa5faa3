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

from collections.abc import Iterator
from typing import Annotated

from msgspec import Struct

from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.history.totals import Totals, first_within
from ctxdoc.simulation.strategies.base import Definition, History, Outgoing, prompt


class BudgetWindow(Struct, frozen=True):
    """Fills a budget from the end."""

    max_tokens: Annotated[int, prompt(0.4)] = 50_000

    def send(self, history: History, memory: object) -> Outgoing:
        """What fits."""
        totals = memory if isinstance(memory, Totals) else Totals()
        totals.go_on(history.messages)
        runs = [*self._runs(totals, self.max_tokens - history.head.size)]
        kept: list[Message] = []
        for run in reversed(runs):
            kept += history.messages[run]
        return Outgoing(messages=kept, memory=totals)

    def _runs(self, totals: Totals, left: int) -> Iterator[slice]:
        """The runs of messages that fit, from the newest back, each up to one that is too large."""
        end, tokens = len(totals.tokens) - 1, totals.tokens
        # The newest message goes whatever its size.
        start = min(first_within(tokens, left, end), max(0, end - 1))
        while end > 0:
            yield slice(start, end)
            left -= tokens[end] - tokens[start]
            # The one ahead of the run is passed over.
            end = start - 1
            if end <= 0 or left < totals.least[end]:
                # Nothing older fits, however small.
                return
            start = min(first_within(tokens, left, end), end)


STRATEGY = Definition(
    id="budget_window",
    title="a token budget filled from the end, as commonly written",
    make=BudgetWindow,
    as_written=True,
)
