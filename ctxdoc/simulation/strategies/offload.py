"""Large tool results go to disk at once, and a pointer is sent in their place.

What it does
    A tool result, or a document, over `over` tokens is never sent: a pointer to a file stands in
    its place from the first sending on, so that nothing is rewritten later.
Parameters
    over=1000           tokens from which on a payload is offloaded
    pointer_tokens=15   of the pointer
    tool_tokens=0       of a tool definition for reading the file; 0: the agent has one already
    reread=0            share of the offloaded payloads that are read after all: a further request each,
                        and the payload stays in the history from then on
Rewrites the prefix
    no: everything is appended
What the model no longer sees
    the payloads that are not read again
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Struct

from ctxdoc.prompt.segments import Segment
from ctxdoc.prompt.settings import iter_tools
from ctxdoc.request.codec import Json
from ctxdoc.simulation.closed_forms import Figures, Law, saved_by_offload
from ctxdoc.simulation.history.edit import Edit, Maker, made_message, with_segment
from ctxdoc.simulation.history.messages import Head, Message
from ctxdoc.simulation.history.overlap import common_start
from ctxdoc.simulation.recipe import Recipe, pasted
from ctxdoc.simulation.strategies.base import (
    PAYLOAD,
    SHARE,
    Definition,
    Extra,
    History,
    Outgoing,
    payload,
)

CALL_TOKENS = 60
"""Of the call that reads a file again."""
ROUNDING = 1e-9
"""Ten times a tenth is one."""
PAYLOADS = frozenset({"tool_result", "document"})
READER: dict[str, Json] = {
    "name": "read_offloaded",
    "description": "Reads a stored result.",
    "input_schema": {"type": "object", "properties": {"file": {"type": "string"}}},
}


class Memory(Struct, frozen=True, eq=False, gc=False):
    """What stands in the place of messages with payloads, and how much of them is read again."""

    put: dict[Message, tuple[Message, ...]]
    due: float
    """Payloads that are to be read again, a fraction of one included."""
    had: list[Message] = []
    """The messages of the request before."""
    sent: list[Message] = []
    """What was sent for them, and read again."""


class Offload(Struct, frozen=True):
    """Sends pointers instead of payloads."""

    over: Annotated[int, payload(0.5)] = 1_000
    pointer_tokens: Annotated[int, PAYLOAD] = 15
    tool_tokens: Annotated[int, PAYLOAD] = 0
    reread: Annotated[float, SHARE] = 0.0

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with pointers."""
        known = memory if isinstance(memory, Memory) else Memory({}, 0.0)
        now, seen = self._offloaded(history, known)
        sent = now.sent
        # What is read again behind the last message is a request of its own.
        last = now.put.get(history.messages[-1])
        later = len(last) - 1 if last else 0
        upto = len(sent) - later
        return Outgoing(
            messages=sent[:upto],
            memory=now,
            head=history.maker.once(("reader", history.head), lambda: self._head(history.head)),
            seen=tuple(seen),
            warnings=thinking_warning(history) if later else (),
            extra=tuple(
                Extra(messages=sent[: upto + count], output=CALL_TOKENS, after=True)
                for count in range(2, later + 1, 2)
            ),
        )

    def _offloaded(self, history: History, known: Memory) -> tuple[Memory, list[Segment]]:
        """The memory with the payloads that are new, and those of them that are read after all."""
        # What only goes on is looked at behind what the request before had.
        goes_on = common_start(known.had, history.messages) == len(known.had)
        fresh = history.messages[len(known.had) if goes_on else 0 :]
        new: dict[Message, tuple[Message, ...]] = {}
        due = known.due
        seen: list[Segment] = []
        for message in fresh:
            if message.size <= self.over or message in known.put:
                continue
            places = self._places(message)
            if places:
                # A share is a whole payload every so often; the rest of one is carried on.
                due += self.reread * len(places)
                again = int(due + ROUNDING)
                due -= again
                seen += [message.segments[index] for index in places[:again]]
                new[message] = self._put(message, places, again, history)
        put = {**known.put, **new} if new else known.put
        sent = known.sent.copy() if goes_on else []
        for message in fresh:
            sent += put.get(message) or (message,)
        return Memory(put, due, history.messages, sent), seen

    def _put(
        self, message: Message, places: list[int], again: int, history: History
    ) -> tuple[Message, ...]:
        """A message with pointers, and the calls that read its first payloads after all."""
        pairs = [read_again(message, place, history.maker) for place in places[:again]]
        return (self._pointed(message, places, history), *(each for pair in pairs for each in pair))

    def _places(self, message: Message) -> list[int]:
        """The indices of the payloads."""
        return [
            index
            for index, segment in enumerate(message.segments)
            if segment.kind in PAYLOADS and message.tokens[index] > self.over
        ]

    def _pointed(self, message: Message, places: list[int], history: History) -> Message:
        edits = {place: self._pointer(message, place) for place in places}
        return history.maker.replaced(message, edits, history.call)

    def _pointer(self, message: Message, place: int) -> Edit:
        segment = message.segments[place]
        name = f"[{message.tokens[place]} tokens stored in {segment.digest.hex()[:12]}]"
        if segment.kind == "document":
            source = {"type": "text", "media_type": "text/plain", "data": name}
            return Edit("source", msgspec.json.encode(source).decode(), self.pointer_tokens)
        return Edit("content", msgspec.json.encode(name).decode(), self.pointer_tokens)

    def _head(self, head: Head) -> Head | None:
        if not self.tool_tokens:
            return None
        (segment,) = iter_tools((msgspec.json.encode(READER),))
        last = [s.rank for s in head.segments if s.kind == "tool"]
        rank = (segment.rank[0], max((rank[1] for rank in last), default=-1) + 1, 0)
        segment = msgspec.structs.replace(segment, rank=rank)
        return with_segment(head, segment, self.tool_tokens)


NO_THINKING = "the calls that read again carry no thinking, which the API asks for where it is on"


def thinking_warning(history: History) -> tuple[str, ...]:
    """What the API refuses of a made-up call: with thinking on, a turn that calls tools begins with it."""
    recorded = history.call.request.body if history.call.request else None
    asked = b"" if recorded is None else bytes(recorded.thinking)
    on = b"enabled" in asked or b"adaptive" in asked
    return (NO_THINKING,) if on else ()


def read_again(message: Message, place: int, maker: Maker) -> tuple[Message, Message]:
    """A call that reads a payload, and its result."""

    def made() -> tuple[Message, Message]:
        segment = message.segments[place]
        name = f"toolu_{segment.digest.hex()[:16]}"
        call: Json = {
            "type": "tool_use",
            "id": name,
            "name": READER["name"],
            "input": {"file": segment.digest.hex()[:12]},
        }
        value = segment.value
        content: Json = "[the stored document]"
        if segment.kind == "tool_result" and isinstance(value, dict):
            content = value.get("content")
        result: Json = {"type": "tool_result", "tool_use_id": name, "content": content}
        return (
            made_message({"role": "assistant", "content": [call]}, [CALL_TOKENS]),
            made_message({"role": "user", "content": [result]}, [message.tokens[place]]),
        )

    return maker.pair(("read again", message, place), made)


def _law(strategy: Offload, figures: Figures) -> Law | None:
    """What is saved by payloads that are never sent; None where one is read again."""
    if not figures.lost or figures.extra_calls or figures.rewrote:
        return None
    pointer, by = strategy.pointer_tokens, figures.by
    return Law(
        name="saves",
        formula="Σ (w + r·later turns)·(x − pointer)",
        unit="tokens",
        value=sum(saved_by_offload(tokens, pointer, later, by) for tokens, later in figures.lost),
        simulated=figures.saved,
    )


def _recipe(strategy: Offload) -> Recipe:
    return Recipe(
        do=f"write tool results over {strategy.over:,} tokens to a file when they come, and send the path",
        code=pasted(
            {
                "type": "tool_result",
                "tool_use_id": "toolu_…",
                "content": "stored in results/0001.txt",
            }
        ),
        proof=f"no tool result has more than {strategy.over:,} tokens, and few are read again",
    )


STRATEGY = Definition(
    recipe=_recipe,
    id="offload",
    title="payloads go to disk, a pointer is sent",
    make=Offload,
    edits=False,
    law=_law,
)
