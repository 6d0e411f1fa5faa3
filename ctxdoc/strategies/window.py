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

from typing import Annotated

from msgspec import Struct

from ctxdoc.history import Message, text_block
from ctxdoc.strategies.base import (
    COUNT,
    SUMMARY,
    WHOLE,
    Cut,
    Definition,
    History,
    Sent,
    iter_cuts,
    prompt,
    users_in,
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
        told = text_block(f"[summary of the {cut.index} messages before]")
        kept[0] = history.maker.with_block(kept[0], told, self.summary_tokens)
        return Sent(messages=kept, warnings=(UNCOUNTED,))

    def _cut(self, history: History) -> Cut:
        messages = history.messages
        if self._fits(history, messages, WHOLE):
            return WHOLE
        cut = WHOLE
        for further in iter_cuts(messages):
            cut = further
            if self._fits(history, messages, cut):
                break
        return cut

    def _fits(self, history: History, messages: list[Message], cut: Cut) -> bool:
        if self.turns:
            return users_in(messages, cut) <= self.turns
        ahead = messages[cut.opening].size if cut.opening is not None else 0
        behind = sum([message.size for message in messages[cut.index :]])
        room = self.max_tokens - history.head.size - ahead
        return behind + (self.summary_tokens if cut.index else 0) <= room


STRATEGY = Definition(id="window", title="slides over the newest turns, every request", make=Window)
