"""A window slides over the history: on every request the newest turns that fit are sent.

What it does
    System prompt and tools stay; of the messages the newest are sent that fit into `max_tokens`, or the
    last `turns`. With `summary_tokens` a summary of what is left out stands ahead of them.
Parameters
    max_tokens=50000    of the whole prompt
    turns=0             user messages to keep instead, tool results counted; 0 counts tokens
    summary_tokens=0    of the summary ahead; the calls that would write it are not counted
Rewrites the prefix
    on every request once it is full: all of the window is written, and nothing of it read.
What the model no longer sees
    everything older than the window
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated

from msgspec import Struct

from ctxdoc.simulation.closed_forms import Figures, Law, window_loses_until
from ctxdoc.simulation.history.edit import text_block, told
from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.history.totals import Totals, first_within
from ctxdoc.simulation.strategies.base import (
    COUNT,
    SUMMARY,
    WHOLE,
    Cut,
    Definition,
    History,
    Outgoing,
    is_reply,
    iter_inner_cuts,
    prompt,
)

UNCOUNTED = "the calls that would write the summaries are not counted"


class Window(Struct, frozen=True):
    """Sends the newest turns that fit."""

    max_tokens: Annotated[int, prompt(0.4)] = 50_000
    turns: Annotated[int, COUNT] = 0
    summary_tokens: Annotated[int, SUMMARY] = 0

    def send(self, history: History, memory: object) -> Outgoing:
        """The window as it stands at this request."""
        messages = history.messages
        totals = memory if isinstance(memory, Totals) else Totals()
        totals.go_on(messages)
        cut = self._cut(history, totals)
        kept = cut.kept(messages)
        if cut is WHOLE or not self.summary_tokens:
            return Outgoing(messages=kept, memory=totals)
        block = text_block(told(messages, cut.index))
        kept[0] = history.maker.with_block(kept[0], block, self.summary_tokens)
        return Outgoing(messages=kept, memory=totals, warnings=(UNCOUNTED,))

    def _cut(self, history: History, totals: Totals) -> Cut:
        """The cut that drops the least of those behind which everything fits; else the last one."""
        counts = totals.users if self.turns else totals.tokens
        room = self._room(history)
        if counts[-1] <= room:
            return WHOLE
        if not self.turns:
            # A summary stands ahead of what is cut only.
            room -= self.summary_tokens
        first = max(1, first_within(counts, room))
        after = bisect_left(totals.starts, first)
        if after < len(totals.starts):
            return Cut(totals.starts[after])
        return self._inner(history, totals, room)

    def _inner(self, history: History, totals: Totals, room: int) -> Cut:
        """The cut inside of the last turn, as not even that turn fits."""
        if not totals.starts:
            return WHOLE
        messages, opening = history.messages, totals.starts[-1]
        counts = totals.users if self.turns else totals.tokens
        if not self.turns:
            # The message that opens the turn stays, and takes its room.
            room -= messages[opening].size
        fitting = iter_inner_cuts(messages, opening, first_within(counts, room))
        last = Cut(opening) if opening else WHOLE
        return next(fitting, None) or _last_inner(messages, opening) or last

    def _room(self, history: History) -> int:
        return self.turns or self.max_tokens - history.head.size


def _last_inner(messages: list[Message], opening: int) -> Cut | None:
    """The cut that drops the most of a turn; None where it has one answer at most."""
    for index in range(len(messages) - 1, opening + 1, -1):
        if is_reply(messages, index):
            return Cut(index, opening=opening)
    return None


def _law(strategy: Window, figures: Figures) -> Law | None:
    """Up to which turn a window that slides on every request costs more than keeping everything."""
    del strategy
    if not figures.rewrote or figures.per_turn <= 0:
        return None
    # The window is what stands behind tools and system prompt, which are read either way.
    until = window_loses_until(figures.peak - figures.head, figures.per_turn, figures.by)
    slides = len(figures.rewrote) == figures.requests - figures.rewrote[0][0]
    if not slides or until is None or until >= figures.requests:
        return None
    return Law(
        name="costs more a turn",
        formula="until turn w·(W − a)/(r·a)",
        unit="request",
        value=until,
        simulated=figures.cheaper_from,
    )


STRATEGY = Definition(
    id="window", title="slides over the newest turns, every request", make=Window, law=_law
)
