"""Messages of the Claude Agent SDK, and what `claude -p` prints in its JSON forms.

How to get one
    `claude -p --verbose --output-format stream-json "..." > run.jsonl`; with
    `--include-partial-messages` the output counts are final. In code, write down each message as
    the SDK receives it, one a line, as a JSON array, or as a JSON or YAML document with `messages`.

What a record holds
    For each answer its model and counters, and the session. An answer that comes in several
    messages is one request. Sub-agents have a session of their own, named `<session>/<tool use>`
    after the call that started them.

What it cannot tell
    No system prompt, no tool schemas, no breakpoints and mostly no times: a cache miss can be
    seen, not explained. Without partial messages the output count is the one at the start of the
    answer. The result at the end adds up all calls, those to helper models too, and prices them by
    a table of the client: it is not used.

Privacy
    The messages hold your prompts, the replies and the files that were read; only counters, names
    of models, ids and times are kept while reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.reading.formats.base import UNREADABLE, Format, Item, text_of
from ctxdoc.reading.formats.shared.transcript import (
    BOUNDARIES,
    RESULT,
    Answers,
    Message,
    Notes,
    Part,
)
from ctxdoc.reading.source import Source, reason_of
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Event

SHAPES = (
    frozenset({"type", "session_id", "parent_tool_use_id", "message"}),
    frozenset({"type", "session_id", "parent_tool_use_id", "event"}),
    frozenset({"type", "subtype", "session_id", "permissionMode"}),
    frozenset({"type", "subtype", "session_id", "total_cost_usd"}),
    frozenset({"messages[].type", "messages[].session_id", "messages[].parent_tool_use_id"}),
)
YAML = re.compile(rb"^(?:- |messages:)", re.MULTILINE)
YAML_NAMES = tuple(
    re.compile(rb"^[ -]{0,8}" + name + rb":", re.MULTILINE)
    for name in (b"session_id", b"parent_tool_use_id")
)


class _Event(Struct):
    type: Any = None
    message: Message | None = None
    usage: dict[str, Any] | None = None


class _Entry(Struct):
    type: Any = None
    session_id: Any = None
    parent_tool_use_id: Any = None
    timestamp: Any = None
    message: Message | None = None
    event: _Event | None = None
    subtype: Any = None
    tools: Any = None
    mcp_servers: Any = None


class _Messages(Struct):
    messages: list[Raw]


def _is_json(source: Source) -> bool:
    return source.head.lstrip()[:1] in (b"{", b"[")


def _matches(source: Source) -> bool:
    if _is_json(source):
        return any(shape >= wanted for shape in source.shapes for wanted in SHAPES)
    head = source.head
    return bool(YAML.search(head)) and all(name.search(head) for name in YAML_NAMES)


def _read(source: Source) -> Iterator[Item]:
    run = _Run(source.name)
    for number, entry in _json(source) if _is_json(source) else _yaml(source):
        item = entry if isinstance(entry, Skipped) else run.add(number, entry)
        if item is not None:
            yield item
    yield from run.rest()


def _json(source: Source) -> Iterator[tuple[int, Any]]:
    """Each message as its bytes."""
    for document in source.documents():
        if isinstance(document, Skipped):
            yield document.line, document
            continue
        try:
            inside = msgspec.json.decode(document.data, type=_Messages).messages
        except UNREADABLE:
            yield document.line, document.data
        else:
            yield from enumerate(inside, start=1)


def _yaml(source: Source) -> Iterator[tuple[int, Any]]:
    """Each message as values."""
    from ctxdoc.reading.formats.shared.yaml_text import documents, entries

    if not source.head.startswith(b"- "):
        for entry in entries(source, "messages"):
            yield entry.line, entry if isinstance(entry, Skipped) else entry.value
        return
    for document in documents(source):
        if isinstance(document, Skipped):
            yield document.line, document
        elif isinstance(document.value, list):
            yield from enumerate(document.value, start=1)


class _Run:
    """One file: the answers whose messages are still coming in."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._answers = Answers(source)
        self._started: dict[str, Message] = {}
        self._notes = Notes()
        self._tools: dict[str, Any] = {}
        """Tools and servers by session, as it was last said that they are there."""
        self.rest = self._answers.rest

    def add(self, number: int, data: Any) -> Item | None:
        """Takes a message in; the answer that is complete with it, or why it is part of none."""
        try:
            # One way in for both: the values of YAML are written as JSON first.
            text = data if isinstance(data, bytes | Raw) else msgspec.json.encode(data)
            entry = msgspec.json.decode(text, type=_Entry)
            self._notes.add(_session(entry), *self._events(entry, text))
            return self._entry(number, entry)
        except UNREADABLE as error:
            return Skipped(self.source, number, reason_of(error))

    def _entry(self, number: int, entry: _Entry) -> Item | None:
        session = _session(entry)
        message = entry.message if entry.type == "assistant" else self._partial(session, entry)
        if message is None:
            why = "sums of a whole run" if entry.type == "result" else "no answer of a model"
            return Skipped(self.source, number, why, other=True)
        # The SDK repeats an answer for each of its blocks.
        if self._answers.merge(message):
            return None
        part = Part(number, session, message, at=entry.timestamp)
        part.events = self._notes.take(session, message)
        return self._answers.add(part)

    def _events(self, entry: _Entry, text: bytes | Raw) -> Iterator[Event]:
        """What a message between two answers tells."""
        match entry.type, text_of(entry.subtype):
            case "user", _ if RESULT not in bytes(text):
                yield Event.USER_TURN
            case "system", kind if kind in BOUNDARIES:
                yield BOUNDARIES[kind]
            case "system", "init" if self._has_other_tools(entry):
                yield Event.TOOLS

    def _has_other_tools(self, entry: _Entry) -> bool:
        """Whether the tools and servers are others than the session had before."""
        session, there = _session(entry), (_names(entry.tools), _names(entry.mcp_servers))
        before = self._tools.setdefault(session, there)
        self._tools[session] = there
        return bool(there != before)

    def _partial(self, session: str, entry: _Entry) -> Message | None:
        """The answer of a stream event, with the counters up to there."""
        event = entry.event
        if entry.type != "stream_event" or event is None:
            return None
        match event:
            case _Event(type="message_start", message=Message() as message):
                self._started[session] = message
                return message
            case _Event(type="message_delta", usage=dict() as counted):
                started = self._started.pop(session, None)
                return started and _with_counters(started, counted)
        return None


def _with_counters(started: Message, counted: dict[str, Any]) -> Message:
    """An answer with its last counters: those that the end does not repeat are as at the start."""
    usage = msgspec.json.decode(started.usage, type=dict[str, Any])
    usage.update((name, value) for name, value in counted.items() if value is not None)
    return replace(started, usage=Raw(msgspec.json.encode(usage)))


def _names(listed: Any) -> list[str]:
    """The names in a list of tools or servers, as they are ordered."""
    rows = listed if isinstance(listed, list) else []
    return [text_of(row.get("name") if isinstance(row, Mapping) else row) for row in rows]


def _session(entry: _Entry) -> str:
    """The session, or the sub-agent's own in it: it has a prompt and a cache prefix of its own."""
    session, agent = text_of(entry.session_id), text_of(entry.parent_tool_use_id)
    return f"{session}/{agent}" if agent else session


FORMAT = Format(
    id="agent_sdk",
    title="Claude Agent SDK messages",
    example="run.jsonl",
    traits=frozenset({Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=_read,
)
