"""Thinking of old turns is taken out, as the API's clear_thinking does.

What it does
    Thinking blocks stay in the last `keep` turns; a turn is what one user message started, with all
    its tool calls. Older ones are taken out.
Parameters
    keep=1      turns whose thinking stays
    by=server   server: the API takes it out; client: the body is changed
Rewrites the prefix
    when a new turn begins: from the first thinking block that goes
What the model no longer sees
    the old thinking
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Struct

from ctxdoc.prompt.messages_form import THINKING_KINDS
from ctxdoc.request.codec import Json
from ctxdoc.simulation.history.edit import LEFT_OUT
from ctxdoc.simulation.history.messages import Message, thinks
from ctxdoc.simulation.strategies.base import COUNT, Definition, History, Outgoing


class ClearThinking(Struct, frozen=True):
    """Takes the thinking of old turns out."""

    keep: Annotated[int, COUNT] = 1
    by: Literal["server", "client"] = "server"

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with the thinking of the last turns only."""
        del memory
        messages = history.messages
        starts = [index for index, message in enumerate(messages) if message.starts_turn]
        kept = max(1, self.keep)
        first = starts[-kept] if len(starts) >= kept else 0
        if not any(message.thinks for message in messages[:first]):
            return Outgoing(messages=messages)
        old = [self._without(message, history) for message in messages[:first]]
        return Outgoing(messages=[*old, *messages[first:]])

    def _without(self, message: Message, history: History) -> Message:
        if not message.thinks:
            return message
        gone = [p for p, s in enumerate(message.segments) if s.kind in THINKING_KINDS]
        if len(gone) == len(message.segments):
            # A message of thinking alone: the API takes none without content.
            return message
        return history.maker.replaced(message, dict.fromkeys(gone, LEFT_OUT), history.call)


def _edit(strategy: ClearThinking) -> dict[str, Json]:
    """The API's own edit (context-editing page, 2026-10-08)."""
    return {
        "type": "clear_thinking_20251015",
        "keep": {"type": "thinking_turns", "value": max(1, strategy.keep)},
    }


def _applied_edit(
    strategy: ClearThinking, messages: Sequence[Message], left: Sequence[Message]
) -> dict[str, object] | None:
    """How many turns lost their thinking."""
    pairs = [(one, two) for one, two in zip(messages, left, strict=True) if one is not two]
    if not pairs:
        return None
    freed = sum(one.size - two.size for one, two in pairs)
    kind = _edit(strategy)["type"]
    return {"type": kind, "cleared_thinking_turns": len(pairs), "cleared_input_tokens": freed}


STRATEGY = Definition(
    id="clear_thinking",
    title="takes the thinking of old turns out",
    make=ClearThinking,
    server_edit=_edit,
    applied_edit=_applied_edit,
    applies=thinks,
)
