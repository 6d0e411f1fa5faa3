"""A tool result that is in the history already is sent as a pointer.

What it does
    Where a tool gives back, to the byte, what another call gave before (the same file read again), one of the
    two is replaced by a note that names the other.
Parameters
    which=later     later: the new one is the pointer, and nothing is rewritten; first: the old one becomes it,
                    and the newest copy stands at the end, where models look first
    over=100        tokens from which on a result is worth it
Rewrites the prefix
    with which=later no: everything is appended; with which=first from the older copy on
What the model no longer sees
    nothing: one copy of each result stays
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from ctxdoc.prompt.segments import Segment
from ctxdoc.request import codec
from ctxdoc.request.digest import blake2b
from ctxdoc.simulation.history.edit import Edit
from ctxdoc.simulation.history.messages import Message, Session, member_of
from ctxdoc.simulation.history.overlap import common_start
from ctxdoc.simulation.recipe import Recipe, pasted
from ctxdoc.simulation.strategies.base import PAYLOAD, Definition, History, Outgoing

POINTER_TOKENS = 15


class Memory(Struct, frozen=True, eq=False, gc=False):
    """What was seen of the history, and what stands in the place of copies."""

    had: list[Message] = []
    copies: dict[bytes, tuple[Message, int]] = {}
    """Content of a result → where the copy that stays stands."""
    edits: dict[Message, dict[int, Edit]] = {}


class Dedupe(Struct, frozen=True):
    """Sends one copy of each result."""

    which: Literal["later", "first"] = "later"
    over: Annotated[int, PAYLOAD] = 100

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with pointers in the place of copies."""
        known = memory if isinstance(memory, Memory) else Memory()
        shared = common_start(known.had, history.messages)
        if shared < len(known.had):
            # Another history: which copies it holds is looked up anew.
            known, shared = Memory(), 0
        copies, edits, seen = dict(known.copies), dict(known.edits), list[Segment]()
        for message in history.messages[shared:]:
            for index in message.results:
                pair = self._copied(message, index, copies)
                if pair is not None:
                    owner, at = pair
                    edits[owner] = {**edits.get(owner, {}), at: self._pointer(owner, at)}
                    seen.append(owner.segments[at])
        sent = history.messages
        if edits:
            sent = [self._put(each, edits, history) for each in history.messages]
        now = Memory(history.messages, copies, edits)
        return Outgoing(messages=sent, memory=now, seen=tuple(seen))

    def _copied(
        self, message: Message, index: int, copies: dict[bytes, tuple[Message, int]]
    ) -> tuple[Message, int] | None:
        """The copy that becomes a pointer now that a result is there; None where it is the first one."""
        if message.tokens[index] <= max(self.over, POINTER_TOKENS):
            return None
        content = _content_of(message.segments[index])
        before = copies.get(content)
        if before is None or self.which == "first":
            copies[content] = (message, index)
        if before is None:
            return None
        return (message, index) if self.which == "later" else before

    def _pointer(self, message: Message, index: int) -> Edit:
        which = "an earlier" if self.which == "later" else "a later"
        name = _content_of(message.segments[index]).hex()[:8]
        told = f"[the same as {which} result, {message.tokens[index]} tokens, {name}]"
        return Edit("content", msgspec.json.encode(told).decode(), POINTER_TOKENS)

    def _put(
        self, message: Message, edits: dict[Message, dict[int, Edit]], history: History
    ) -> Message:
        own = edits.get(message)
        return history.maker.replaced(message, own, history.call) if own else message


def _content_of(segment: Segment) -> bytes:
    return blake2b(codec.encode(member_of(segment, "content")), digest_size=16).digest()


def _has_copies(session: Session) -> bool:
    """Whether any result stands in the session twice."""
    contents = [
        _content_of(message.segments[index])
        for message in session.messages
        for index in message.results
    ]
    return len(set(contents)) < len(contents)


def _recipe(strategy: Dedupe) -> Recipe:
    del strategy
    return Recipe(
        do="send a pointer where a tool gives back what is in the history already",
        code=pasted(
            {
                "type": "tool_result",
                "tool_use_id": "toolu_…",
                "content": "[the same as toolu_… above]",
            }
        ),
        proof="no two tool results of a prompt are equal",
    )


STRATEGY = Definition(
    recipe=_recipe,
    id="dedupe",
    title="one copy of each tool result",
    make=Dedupe,
    edits=False,
    applies=_has_copies,
)
