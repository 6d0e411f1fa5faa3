"""The oldest turns are dropped in batches: at the high mark down to the low one.

What it does
    When the prompt is over `high`, the oldest turns are dropped until it is at most `low`; until
    it is over `high` again nothing is touched. Cuts are made where a turn begins; inside the last
    turn its opening message stays, and calls stay with their results.
Parameters
    high=100000     the mark at which it trims
    low=50000       the mark down to which it trims; low=high, or more, trims a little on every request
    unit=tokens     tokens of the prompt, or turns: user messages, tool results counted
Rewrites the prefix
    at each trim: what stays is written anew. Big batches, seldom, is what caching wants.
What the model no longer sees
    the dropped turns
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Struct

from ctxdoc.simulation.closed_forms import paid_back
from ctxdoc.simulation.history.messages import Message, size_of
from ctxdoc.simulation.recipe import Recipe
from ctxdoc.simulation.strategies.base import (
    WHOLE,
    Cut,
    Definition,
    History,
    Outgoing,
    iter_cuts,
    prompt,
    users_in,
)


class Memory(Struct, frozen=True, eq=False, gc=False):
    """Where the history is cut."""

    cut: Cut
    first: Message
    """The first message behind the cut: while it stands there the cut holds."""


class Trim(Struct, frozen=True):
    """Drops the oldest turns in batches."""

    high: Annotated[int, prompt(0.6)] = 100_000
    low: Annotated[int, prompt(0.3)] = 50_000
    unit: Literal["tokens", "turns"] = "tokens"

    def send(self, history: History, memory: object) -> Outgoing:
        """The history behind the cut, which moves when the high mark is passed."""
        messages = history.messages
        cut = held(memory, messages)
        if self._measure(history, cut) > self.high:
            cut = self._moved(history, cut)
        if cut is WHOLE:
            return Outgoing(messages=messages)
        return Outgoing(messages=cut.kept(messages), memory=Memory(cut, messages[cut.index]))

    def _measure(self, history: History, cut: Cut) -> int:
        if self.unit == "turns":
            return users_in(history.messages, cut)
        return history.head.size + size_of(cut.kept(history.messages))

    def _moved(self, history: History, cut: Cut) -> Cut:
        for further in iter_cuts(history.messages):
            if further.index > cut.index:
                cut = further
                if self._measure(history, cut) <= min(self.low, self.high):
                    break
        return cut


def held(memory: object, messages: Sequence[Message]) -> Cut:
    """The cut of the request before, where the history still has it."""
    if isinstance(memory, Memory):
        index = memory.cut.index
        if index < len(messages) and messages[index] is memory.first:
            return memory.cut
    return WHOLE


def _recipe(strategy: Trim) -> Recipe:
    return Recipe(
        do=f"drop the oldest turns in one go at {strategy.high:,} {strategy.unit}, down to {strategy.low:,}",
        proof="prompts fall seldom and by much, and only grow in between",
    )


STRATEGY = Definition(
    recipe=_recipe, id="trim", title="drops the oldest turns in batches", make=Trim, law=paid_back
)
