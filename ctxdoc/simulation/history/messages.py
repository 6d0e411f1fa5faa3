"""What a strategy works on: the messages of a conversation with the size of every block.

Messages are values that are made once: two requests that send the same message at the same place hold the
same object, so that what is equal is found by identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import TypeVar

import msgspec
from msgspec import Struct

from ctxdoc.pricing.tariff import Tariff
from ctxdoc.prompt.messages_form import THINKING_KINDS
from ctxdoc.prompt.segments import Segment
from ctxdoc.providers import ModelRule
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Request
from ctxdoc.request.usage import Usage

T = TypeVar("T")


class Message(Struct, frozen=True, eq=False, gc=False):
    """A message as it is sent, without breakpoints. Two are equal only if they are one."""

    role: str
    segments: tuple[Segment, ...]
    tokens: tuple[int, ...]
    """Of each segment."""
    raw: bytes
    """The message as JSON."""
    size: int
    """Tokens of the whole."""
    results: tuple[int, ...]
    """Indices of the tool results in it."""
    starts_turn: bool
    """Whether a user says something new: no answer to a tool call."""
    thinks: bool
    pictured: bool
    """Whether an image is in it."""

    @property
    def calls(self) -> frozenset[str]:
        """Ids of the tool calls in it."""
        return frozenset(self._ids("tool_use", "id"))

    @property
    def answers(self) -> frozenset[str]:
        """Ids of the tool calls that it answers."""
        return frozenset(self._ids("tool_result", "tool_use_id"))

    def _ids(self, kind: str, member: str) -> Iterator[str]:
        for segment in self.segments:
            found = member_of(segment, member) if segment.kind == kind else None
            if isinstance(found, str):
                yield found


def member_of(segment: Segment, name: str) -> Json:
    """A member of a block; None where it has none of that name."""
    value = segment.value
    return value.get(name) if isinstance(value, dict) else None


def message_of(segments: tuple[Segment, ...], tokens: Sequence[int], raw: bytes) -> Message:
    """A message of at least one block, with the size of each."""
    results = tuple(index for index, each in enumerate(segments) if each.kind == "tool_result")
    role = segments[0].role
    return Message(
        role=role,
        segments=segments,
        tokens=tuple(tokens),
        raw=raw,
        size=sum(tokens),
        results=results,
        starts_turn=role == "user" and not results,
        thinks=any(segment.kind in THINKING_KINDS for segment in segments),
        pictured=any(segment.pictured for segment in segments),
    )


def size_of(messages: Sequence[Message]) -> int:
    """Tokens of some messages."""
    return sum([message.size for message in messages])


class Head(Struct, frozen=True, eq=False, gc=False):
    """What is rendered ahead of the messages: tools, system prompt, settings."""

    segments: tuple[Segment, ...]
    tokens: tuple[int, ...]
    size: int


class BreakpointAt(Struct, frozen=True, gc=False):
    """Where a recorded breakpoint stands: a block of the head, or of a message counted from the last."""

    message: int
    """0 for the head, 1 for the last message, 2 for the one before it."""
    block: int
    ttl: str


class Call(Struct, frozen=True, eq=False, kw_only=True, gc=False):
    """A request of the session that is simulated."""

    number: int
    """Its place in the log, from 1."""
    thread: int
    """Requests that go on from each other have one."""
    head: Head
    line: list[Message]
    """The messages of the thread; later requests add to it."""
    count: int
    """How many of them this request sends."""
    marks: tuple[BreakpointAt, ...]
    """The breakpoints as they were sent."""
    root: str
    """The model that entries belong to."""
    rule: ModelRule
    tariff: Tariff
    at: datetime | None = None
    began: datetime | None = None
    scope: tuple[tuple[str, str], ...] = ()
    scale: float = 1.0
    """Tokens per unit of weight, as the counters of the conversation have shown."""
    output: int | None = None
    """Tokens of the answer; None where nothing tells."""
    reported: Usage | None = None
    beside: Decimal | None = Decimal(0)
    """USD billed beside that: compaction passes of the API, searches; None where it is unpriced."""
    is_subagent: bool = False
    """Whether its session stands below another one."""
    request: Request | None = None
    """What was recorded, for the bodies that are written; None for a made-up session."""

    @property
    def messages(self) -> list[Message]:
        """What this request sends."""
        return self.line[: self.count]


class Session(Struct, frozen=True, kw_only=True):
    """Requests in the order in which they are sent, and what could not be taken over."""

    calls: tuple[Call, ...]
    left_out: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Reason → requests that are not simulated."""
    assumptions: tuple[str, ...] = ()
    around: tuple[tuple[int, Call], ...] = ()
    """Requests of other sessions of the log, which share its cache: before which of the calls each was
    sent, and itself."""

    @property
    def has_bodies(self) -> bool:
        """Whether any request was recorded with its body."""
        return any(call.request is not None for call in self.calls)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Every message of the session, each once."""
        lines = {id(call.line): call.line for call in self.calls}.values()
        return tuple(dict.fromkeys(message for line in lines for message in line))


def thinks(session: Session) -> bool:
    """Whether any message of a session holds thinking."""
    return any(message.thinks for message in session.messages)


def pictured(session: Session) -> bool:
    """Whether any message of a session holds an image."""
    return any(message.pictured for message in session.messages)
