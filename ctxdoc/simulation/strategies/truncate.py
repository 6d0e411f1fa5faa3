"""Long tool results are cut to a size before they are sent for the first time.

What it does
    Of a tool result of text over `tokens`, only the head, the tail, or half of each is ever sent, with a note
    of how much is left out. It is cut before its first sending, so that nothing is rewritten later.
Parameters
    tokens=2000     what stays of a result
    part=both       head, tail, or both: half of each
Rewrites the prefix
    no: everything is appended
What the model no longer sees
    what is cut out of each result
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from ctxdoc.prompt.segments import Segment
from ctxdoc.request.codec import Json
from ctxdoc.simulation.closed_forms import Figures, Law, saved_by_offload
from ctxdoc.simulation.history.edit import Edit
from ctxdoc.simulation.history.mapped import Mapped
from ctxdoc.simulation.history.messages import Message, member_of
from ctxdoc.simulation.recipe import Recipe
from ctxdoc.simulation.strategies.base import Definition, History, Outgoing, payload

NOTE_TOKENS = 12
"""Of the note that stands where something was cut out."""


class Truncate(Struct, frozen=True):
    """Sends long tool results cut to a size."""

    tokens: Annotated[int, payload(0.5)] = 2_000
    part: Literal["head", "tail", "both"] = "both"

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with shorter results; those cut before are taken over."""
        known = memory if isinstance(memory, Mapped) else Mapped()
        shortened: list[tuple[Segment, int]] = []
        now = known.next(
            history.messages, lambda fresh: [self._cut(each, history, shortened) for each in fresh]
        )
        return Outgoing(
            messages=now.sent if now.differs else history.messages,
            memory=now,
            partly=tuple(shortened),
        )

    def _cut(
        self, message: Message, history: History, shortened: list[tuple[Segment, int]]
    ) -> Message:
        """A message whose results are cut; what is still seen of them is noted."""
        edits: dict[int, Edit] = {}
        for index in message.results:
            segment, tokens = message.segments[index], message.tokens[index]
            text = None if segment.pictured else _text_of(member_of(segment, "content"))
            if text is not None and tokens > self.tokens + NOTE_TOKENS:
                told = msgspec.json.encode(self._shortened(text, tokens)).decode()
                # Of a text that is known, its size is too; a made-up one stands for more than it says.
                stated = self.tokens + NOTE_TOKENS if history.call.request is None else None
                edits[index] = Edit("content", told, stated)
                shortened.append((segment, self.tokens))
        return history.maker.replaced(message, edits, history.call) if edits else message

    def _shortened(self, text: str, tokens: int) -> str:
        """As much of a text as so many of its tokens, with the note."""
        room = len(text) * self.tokens // tokens
        note = f"[{tokens - self.tokens} tokens left out]"
        if self.part == "head":
            return f"{text[:room]}\n{note}"
        if self.part == "tail":
            return f"{note}\n{text[len(text) - room :]}"
        first = room // 2
        return f"{text[:first]}\n{note}\n{text[len(text) - (room - first) :]}"


def _text_of(content: Json) -> str | None:
    """The text of a tool result; None where it is not of text alone."""
    if isinstance(content, str):
        return content
    parts: list[str] = []
    for part in content if isinstance(content, list) else []:
        text = part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None
        if not isinstance(text, str):
            return None
        parts.append(text)
    return "\n".join(parts) if parts else None


def _law(strategy: Truncate, figures: Figures) -> Law | None:
    """What is saved by the parts that are never sent; None where one is read again."""
    del strategy
    if not figures.lost or figures.extra_calls or figures.rewrote:
        return None
    return Law(
        name="saves",
        formula="Σ (w + r·later turns)·(left out − note)",
        unit="tokens",
        value=sum(
            saved_by_offload(tokens, NOTE_TOKENS, later, figures.by)
            for tokens, later in figures.lost
        ),
        simulated=figures.saved,
    )


def _recipe(strategy: Truncate) -> Recipe:
    which = {"head": "the head", "tail": "the tail", "both": "head and tail"}[strategy.part]
    return Recipe(
        do=f"cut tool results to {strategy.tokens:,} tokens ({which}) before they are sent first",
        proof=f"no tool result has more than {strategy.tokens:,} tokens, and the same call is not made again",
    )


STRATEGY = Definition(
    recipe=_recipe,
    id="truncate",
    title="long tool results are cut before they are sent",
    make=Truncate,
    edits=False,
    law=_law,
)
