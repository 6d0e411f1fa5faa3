"""Session transcripts of pi, the coding agent.

How to get one
    Nothing to switch on: they stand below `~/.pi/agent/sessions`, one `.jsonl` file a session.

What a record holds
    For each answer its model, the counters with the cached part beside the input, the price that
    pi worked out, when the request started and when the answer was complete. A request that was
    aborted has the counters up to there, or zeros.

What it cannot tell
    No system prompt, no tools, no breakpoints: a cache miss can be seen and dated, not explained
    by content. The lifetimes of cache writes are not stated. The call that writes a compaction's
    summary is not in it. A session that was branched into a file of its own repeats the answers of
    the one it came from, without ids to tell: read one of the two.

Privacy
    The lines hold your prompts, the replies and the files that were read; only counters, names of
    models, ids and times are kept while reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.reading.formats.base import (
    UNREADABLE,
    Format,
    Item,
    between,
    read_cost,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.reading.source import Source, reason_of
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Event, Request
from ctxdoc.request.response import Response
from ctxdoc.request.usage import Usage


class _Message(Struct, rename="camel"):
    role: Any = None
    model: Any = None
    usage: Any = None
    stop_reason: Any = None
    error_message: Any = None
    response_id: Any = None
    timestamp: Any = None


class _Line(Struct, rename={"thinking_level": "thinkingLevel"}):
    type: Any = None
    id: Any = None
    timestamp: Any = None
    thinking_level: Any = None
    message: _Message | None = None


_DECODER = msgspec.json.Decoder(_Line)


def _matches(source: Source) -> bool:
    first = source.first
    return first.get("type") == "session" and {"id", "timestamp", "cwd"} <= first.keys()


def _read(source: Source) -> Iterator[Item]:
    session = _Session(source.name)
    for number, data in source.lines():
        if isinstance(data, Skipped):
            yield data
        elif data.strip():
            try:
                yield session.add(number, _DECODER.decode(data))
            except UNREADABLE as error:
                yield Skipped(source.name, number, reason_of(error))


class _Session:
    """One file: what was noted since the last call."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._name = ""
        self._events: dict[Event, None] = {}
        self._level = ""
        """The level of thinking that is set."""
        self._turn_level = ""
        """That of the turn: it holds from a word of the user's on."""
        self._sent_level: str | None = None
        self._ended = True
        """Whether the last answer ended its turn."""

    def add(self, number: int, line: _Line) -> Item:
        """Takes a line in; the call in it, or why there is none."""
        self._note(line)
        item = _item(self.source, number, line, self._name)
        if not isinstance(item, Request) or item.refused or not item.usage or not item.usage.input:
            # What was noted so far is for the next one that reached the model.
            return item
        if self._has_new_level():
            self._events[Event.THINKING] = None
        self._ended = line.message is None or line.message.stop_reason != "toolUse"
        item = replace(item, events=tuple(self._events))
        self._events = {}
        return item

    def _has_new_level(self) -> bool:
        """Whether thinking is at another level than in the request before."""
        # A turn may begin without a word of the user's: the level is then the one that is set.
        if self._ended and Event.USER_TURN not in self._events:
            self._turn_level = self._level
        before, self._sent_level = self._sent_level, self._turn_level
        return before is not None and before != self._turn_level

    def _note(self, line: _Line) -> None:
        match line.type:
            case "session":
                self._name = text_of(line.id) or self._name
                self._level = self._turn_level = text_of(line.thinking_level)
            case "compaction":
                self._events[Event.COMPACTION] = None
            case "thinking_level_change":
                self._level = text_of(line.thinking_level)
            case "message" if line.message and line.message.role == "user":
                self._turn_level = self._level
                self._events[Event.USER_TURN] = None


def _item(source: str, number: int, line: _Line, session: str) -> Item:
    message = line.message
    if line.type != "message" or message is None:
        return _no_call(source, number, text_of(line.type) or "no type")
    if message.role != "assistant":
        return _no_call(source, number, text_of(message.role) or "no role")
    if not isinstance(message.usage, dict):
        return Skipped(source, number, "an answer without counters")
    usage = _usage(message.usage)
    # The message is dated when its request starts, the line when it is written.
    ended, started = read_time(line.timestamp), read_time(message.timestamp)
    return Request(
        source=source,
        line=number,
        model=text_of(message.model),
        body=None,
        at=started or ended,
        duration=between(started, ended),
        session=session,
        response=Response(
            id=text_of(message.response_id),
            model=text_of(message.model),
            error=_error(message, usage),
            usage=usage,
        ),
        cost_reported=read_cost(counters.part(message.usage, "cost").get("total")),
    )


def _no_call(source: str, number: int, kind: str) -> Skipped:
    return Skipped(source, number, f"no call: {kind[:40]}", other=True)


def _usage(usage: counters.Counters) -> Usage:
    """The input leaves the cached part out for every provider (pi-ai types, 2026)."""
    return counters.beside(
        counters.count(usage, "input"),
        counters.count(usage, "cacheRead"),
        counters.count(usage, "cacheWrite"),
        None,
        counters.count(usage, "output"),
    )


def _error(message: _Message, usage: Usage) -> str:
    """Why there was no answer; one that broke off after its counters came was billed."""
    if message.stop_reason not in ("error", "aborted") or usage.input or usage.output:
        return ""
    return text_of(message.error_message) or message.stop_reason


FORMAT = Format(
    id="pi_session",
    title="pi sessions",
    example="~/.pi/agent/sessions",
    traits=frozenset({Trait.TIME, Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=_read,
)
