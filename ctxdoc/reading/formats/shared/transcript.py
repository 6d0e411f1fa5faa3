"""Answers that a transcript spreads over several records, put together while these stream by."""

from __future__ import annotations

from collections.abc import Iterator
from sys import intern
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from ctxdoc.reading.formats.base import UNREADABLE, Item, read_cost, read_time, text_of
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.reading.formats.shared.answer import response_of
from ctxdoc.reading.source import reason_of
from ctxdoc.request.log import Skipped
from ctxdoc.request.request import Event, Request
from ctxdoc.request.response import NULL, Response

OPEN = 64
"""Answers whose further records are waited for; agents that run side by side interleave."""
EMPTY = frozenset({b"null", b"{}"})
BOUNDARIES = {
    "compact_boundary": Event.COMPACTION,
    "microcompact_boundary": Event.MICRO_COMPACTION,
}
"""Subtypes of the lines in which Claude Code notes what it did to the history."""
RESULT = b'"tool_result"'
"""In what is no word of the user's; inside of a text its quotes would be escaped."""
SYNTHETIC = "<synthetic>"
"""The model of messages that the program wrote itself, in place of an answer."""


class Message(Struct, gc=False):
    """What is needed of an answer; its text is not kept."""

    id: Any = None
    model: Any = None
    usage: Raw = NULL
    """Read when the answer is complete: most records of one repeat it as it was."""
    diagnostics: Any = None


class Part(Struct, gc=False):
    """An answer, as far as its records have come."""

    number: int
    """The line of its first record, or that record's number."""
    session: str
    message: Message
    request_id: str = ""
    at: Any = None
    cost: Any = None
    records: int = 1
    events: tuple[Event, ...] = ()
    """What the transcript notes since the request before."""


class Notes:
    """What a transcript notes between its calls, until one comes that it may explain."""

    def __init__(self) -> None:
        self._open: dict[str, dict[Event, None]] = {}

    def add(self, thread: str, *events: Event) -> None:
        """Notes what happened in a thread: the conversation itself, or a sub-agent."""
        if events:
            self._open.setdefault(thread, {}).update(dict.fromkeys(events))
        if len(self._open) > OPEN:
            del self._open[next(iter(self._open))]

    def take(self, thread: str, message: Message) -> tuple[Event, ...]:
        """What was noted before an answer; nothing for one that is no call."""
        if message.model == SYNTHETIC or bytes(message.usage) in EMPTY:
            return ()
        return tuple(self._open.pop(thread, ()))


class Answers:
    """The answers of one file whose records are still coming in: at most `OPEN` are held.

    The counters of an answer are those of the record with the most output, of equal ones the last;
    its place and time are those of the first.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self._open: dict[tuple[str, str], Part] = {}

    def merge(self, message: Message, request_id: str = "", cost: Any = None) -> bool:
        """Takes in a further record; False if no open answer has its ids."""
        earlier = self._open.get((text_of(message.id), request_id))
        if earlier is None:
            return False
        earlier.records += 1
        kept = earlier.message
        if message.usage == kept.usage:
            return True
        if _output(message.usage) >= _output(kept.usage):
            kept.usage, kept.diagnostics = message.usage.copy(), message.diagnostics
            earlier.cost = cost
        return True

    def add(self, part: Part) -> Item | None:
        """Takes in the first record of an answer; the answer that it pushes out, or why it is none."""
        message = part.message
        if message.model == SYNTHETIC:
            reason = f"no call: written by the program ({SYNTHETIC})"
            return Skipped(self.source, part.number, reason, other=True)
        if bytes(message.usage) in EMPTY:
            return Skipped(self.source, part.number, "an answer without counters")
        # A copy of its own: the counters would hold the whole line.
        message.usage = message.usage.copy()
        known = (text_of(message.id), part.request_id)
        self._open[known if any(known) else (f"record {part.number}", "")] = part
        return self._oldest() if len(self._open) > OPEN else None

    def rest(self) -> Iterator[Item]:
        """The answers that are still open."""
        while self._open:
            yield self._oldest()

    def _oldest(self) -> Item:
        part = self._open.pop(next(iter(self._open)))
        try:
            return _request(self.source, part)
        except UNREADABLE as error:
            return Skipped(self.source, part.number, reason_of(error))


class _Output(Struct, gc=False):
    output_tokens: int = -1


def _output(usage: Raw) -> int:
    """The output so far; -1 where it is not stated."""
    try:
        return msgspec.json.decode(usage, type=_Output).output_tokens
    except UNREADABLE:
        return -1


Count = Annotated[int, Meta(ge=0)]


class _Split(Struct, forbid_unknown_fields=True, gc=False):
    ephemeral_5m_input_tokens: Count
    ephemeral_1h_input_tokens: Count


class _Plain(Struct, forbid_unknown_fields=True, gc=False):
    """The counters of an ordinary answer; an answer with any other member takes the general way."""

    input_tokens: Count
    output_tokens: Count
    cache_creation_input_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    cache_creation: _Split | None = None
    service_tier: str = ""
    inference_geo: str = ""
    speed: str = ""
    server_tool_use: Any = None


_PLAIN = msgspec.json.Decoder(_Plain)


def read_response(message: Message) -> Response:
    """The response of an answer: most have few members, which are read three times as fast.

    Raises what `response_of` does.
    """
    try:
        plain = _PLAIN.decode(message.usage) if message.diagnostics is None else None
    except msgspec.DecodeError:
        plain = None
    if plain is None:
        usage = msgspec.json.decode(message.usage)
        whole = {"id": message.id, "model": message.model, "usage": usage}
        return response_of({**whole, "diagnostics": message.diagnostics})
    split, served = plain.cache_creation, plain.server_tool_use
    return Response(
        searches=counters.searches({"server_tool_use": served}) if served else 0,
        id=text_of(message.id),
        model=text_of(message.model),
        usage=counters.beside(
            plain.input_tokens,
            plain.cache_read_input_tokens,
            plain.cache_creation_input_tokens,
            split.ephemeral_1h_input_tokens if split else None,
            plain.output_tokens,
        ),
        speed=plain.speed,
        batch=plain.service_tier == "batch",
        us_only=plain.inference_geo == "us",
    )


def _request(source: str, part: Part) -> Item:
    message = part.message
    response = read_response(message)
    if response.usage is None:
        return Skipped(source, part.number, "counters of unknown names")
    return Request(
        source=source,
        line=part.number,
        model=intern(response.model),
        body=None,
        at=read_time(part.at),
        session=intern(part.session),
        headers={"request-id": part.request_id} if part.request_id else {},
        response=response,
        cost_reported=read_cost(part.cost),
        records=part.records,
        events=part.events,
    )
