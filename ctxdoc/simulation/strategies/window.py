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

from itertools import accumulate
from typing import Annotated

from msgspec import Struct

from ctxdoc.simulation.history.edit import text_block, told
from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.strategies.base import (
    COUNT,
    SUMMARY,
    WHOLE,
    Cut,
    Definition,
    History,
    Sent,
    iter_cuts,
    prompt,
)

UNCOUNTED = "the calls that would write the summaries are not counted"


class Window(Struct, frozen=True):
    """Sends the newest turns that fit."""

    max_tokens: Annotated[int, prompt(0.4)] = 50_000
    turns: Annotated[int, COUNT] = 0
    summary_tokens: Annotated[int, SUMMARY] = 0

    def send(self, history: History, memory: object) -> Sent:
        """The window as it stands at this request."""
        del memory
        messages = history.messages
        cut = self._cut(history)
        kept = cut.kept(messages)
        if cut is WHOLE or not self.summary_tokens:
            return Sent(messages=kept)
        block = text_block(told(messages, cut.index))
        kept[0] = history.maker.with_block(kept[0], block, self.summary_tokens)
        return Sent(messages=kept, warnings=(UNCOUNTED,))

    def _cut(self, history: History) -> Cut:
        messages = history.messages
        behind = self._behind(messages)
        if behind[0] <= self._room(history, WHOLE):
            return WHOLE
        cut = WHOLE
        for further in iter_cuts(messages):
            cut = further
            if behind[cut.index] <= self._room(history, cut):
                break
        return cut

    def _behind(self, messages: list[Message]) -> list[int]:
        """Of each message, what it and those behind it count: tokens, or messages of the user."""
        counts = (
            [message.role == "user" for message in reversed(messages)]
            if self.turns
            else [message.size for message in reversed(messages)]
        )
        return list(accumulate(counts))[::-1] or [0]

    def _room(self, history: History, cut: Cut) -> int:
        if self.turns:
            return self.turns
        ahead = history.messages[cut.opening].size if cut.opening is not None else 0
        summary = self.summary_tokens if cut.index else 0
        return self.max_tokens - history.head.size - ahead - summary


STRATEGY = Definition(id="window", title="slides over the newest turns, every request", make=Window)
