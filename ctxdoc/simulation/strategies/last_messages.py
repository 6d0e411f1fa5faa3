"""The last messages with a summary of the rest, as textbooks write it.

What it does
    `[summary] + messages[-keep:]`, on every request. It counts messages and not turns, so that it may
    begin in the middle of a tool call: the warnings say how often the API would refuse it.
Parameters
    keep=6              messages; 10 in the version with bullets
    summary_tokens=60   three lines; about 150 for bullets; 0 for none
    call=none           none: the calls that write the summaries are not counted; separate: one for
                        every request, paid in full
Rewrites the prefix
    on every request
What the model no longer sees
    everything but the last messages
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from ctxdoc.simulation.history.edit import text_block, told
from ctxdoc.simulation.strategies.base import COUNT, SUMMARY, Definition, Extra, History, Outgoing
from ctxdoc.simulation.strategies.compact import ASKED, ASKED_TOKENS
from ctxdoc.simulation.strategies.window import UNCOUNTED


class LastMessages(Struct, frozen=True):
    """Sends the last messages."""

    keep: Annotated[int, COUNT] = 6
    summary_tokens: Annotated[int, SUMMARY] = 60
    call: Literal["none", "separate"] = "none"

    def send(self, history: History, memory: object) -> Outgoing:
        """The summary and the last messages."""
        del memory
        messages, maker = history.messages, history.maker
        dropped = len(messages) - max(1, self.keep)
        if dropped <= 0:
            return Outgoing(messages=messages)
        rest = messages[dropped:]
        if not self.summary_tokens:
            return Outgoing(messages=rest)
        block = text_block(told(messages, dropped))
        asked = maker.message("user", text_block(ASKED), ASKED_TOKENS)
        separate = Extra(
            messages=[*messages[:dropped], asked], output=self.summary_tokens, cached=False
        )
        return Outgoing(
            messages=[maker.message("user", block, self.summary_tokens), *rest],
            extra=(separate,) if self.call == "separate" else (),
            warnings=(UNCOUNTED,) if self.call == "none" else (),
        )


STRATEGY = Definition(
    id="last_messages",
    title="the last messages and a summary, as textbooks write it",
    make=LastMessages,
    as_written=True,
)
