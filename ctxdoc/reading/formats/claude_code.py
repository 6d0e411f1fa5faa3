"""Session transcripts that Claude Code writes by itself.

How to get one
    Nothing to switch on: they stand below `~/.claude/projects`, one folder a project and one
    `.jsonl` file a session; those of sub-agents in `<session>/subagents`. Give the folder to see
    resumed sessions once: they repeat the responses of the session they continue.

What a record holds
    A line for each block of an answer, with the counters of the whole response, its model and the
    time when the block was complete. The lines of one response are one request here, with the
    counters of the line that has the most output: earlier ones hold a count in progress.
    Sub-agents have a session of their own, named `<session>/<agent>`; calls of theirs that stand
    only in the progress of the main session are read from there. What stands between the answers is
    noted where it can explain a miss: compactions, clearings, tools and MCP servers that came or
    went, logins, another effort, and where a turn of the user begins. Without session ids the file
    is the session.

What it cannot tell
    No system prompt, no tools, no breakpoints: a cache miss can be seen and dated, not explained
    by content. No start of a request: its time is that of its first block. Calls that the agent
    makes beside the conversation, such as titles and summaries, are not in it.

Privacy
    The lines hold your prompts, the replies and the files that were read; only counters, names of
    models, ids and times are kept while reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ctxdoc.reading.formats.base import UNREADABLE, Format, Item, text_of
from ctxdoc.reading.formats.shared.transcript import (
    BOUNDARIES,
    RESULT,
    Answers,
    Message,
    Notes,
    Part,
)
from ctxdoc.reading.shape import shape_of
from ctxdoc.reading.source import Source, reason_of
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Event
from ctxdoc.request.response import NULL

KNOWN = 8192
"""Lines of unnamed sub-agents that a further line may continue."""
NO_ANSWER = "no answer of a model"
SUMMARY = frozenset({"type", "summary", "leafUuid"})
KIND = "agentType"
"""The member of the file that says of which kind a sub-agent is; beside its session."""
SIDECHAIN = b'"isSidechain":'
SDK = "parent_tool_use_id"
"""A member of the messages of the Agent SDK, which are alike."""
AGENT_FILE = re.compile(r"(?:^|[/\\])agent-([^/\\]+)\.jsonl")
FILE = re.compile(r"([^/\\:]+?)(?:\.jsonl)?$")


class _Line(Struct, rename="camel", gc=False):
    """What is needed of a line; the text of the message is not kept."""

    type: Any = None
    message: Message | None = None
    session_id: Any = None
    agent_id: Any = None
    is_sidechain: Any = None
    uuid: Any = None
    parent_uuid: Any = None
    request_id: Any = None
    timestamp: Any = None
    effort: Any = None
    data: Raw = NULL
    parent_tool_use_id: Any = msgspec.field(name="parentToolUseID", default=None)
    cost: Any = msgspec.field(name="costUSD", default=None)


class _Progress(Struct, rename="camel", gc=False):
    """What a sub-agent did, as the main session notes it."""

    type: Any = None
    agent_id: Any = None
    message: _Line | None = None


class _Told(Struct, rename="camel", gc=False):
    """What is needed of a line between the answers."""

    type: Any = None
    subtype: Any = None
    agent_id: Any = None
    is_sidechain: Any = None
    uuid: Any = None
    parent_uuid: Any = None
    is_meta: Any = None
    is_compact_summary: Any = None
    attachment: Raw = NULL
    content: Raw = NULL
    message: Raw = NULL


_DECODER = msgspec.json.Decoder(_Line)
_PROGRESS = msgspec.json.Decoder(_Progress)
_TOLD = msgspec.json.Decoder(_Told)

DELTAS = frozenset({"mcp_instructions_delta", "deferred_tools_delta", "agent_listing_delta"})
"""Types of attachments that tell of tools, MCP servers or agents that came or went."""
OUTPUT = re.compile(rb"<local-command-stdout>(?:\\u001b\[[0-9;]*m|\s)*")
LOGIN = re.compile(OUTPUT.pattern + rb"Login successful")
CONNECTED = re.compile(OUTPUT.pattern + rb"(?:Reconnected to|Successfully reconnected to)")


def _matches(source: Source) -> bool:
    head = source.head
    at = head.find(SIDECHAIN)
    if at < 0:
        return any(map(_is_line, source.shapes))
    end = head.find(b"\n", at)
    line = head[head.rfind(b"\n", 0, at) + 1 : end if end >= 0 else len(head)]
    shape = shape_of(line)
    return {"type", "isSidechain"} <= shape and not shape.isdisjoint(("uuid", "parentUuid"))


def _is_line(shape: frozenset[str]) -> bool:
    """Whether a document is a line of a transcript that does not say whose it is."""
    if shape >= SUMMARY or (KIND in shape and shape.isdisjoint(("messages", "request"))):
        return True
    return {"type", "uuid", "message.usage"} <= shape and SDK not in shape


def _read(source: Source) -> Iterator[Item]:
    transcript = _Transcript(source.name)
    for number, line in source.lines():
        item = line if isinstance(line, Skipped) else transcript.add(number, line)
        if item is not None:
            yield item
    yield from transcript.rest()


class _Transcript:
    """One file: which thread a line is of, and the answers whose lines are still coming in."""

    def __init__(self, source: str) -> None:
        self.source = source
        found, name = AGENT_FILE.search(source), FILE.search(source)
        self._agent = found[1] if found else ""
        self._name = name[1] if name else source
        """Of the session, where the lines do not say."""
        self._answers = Answers(source)
        self._threads: dict[str, str] = {}
        self._notes = Notes()
        self._efforts: dict[str, str] = {}
        self.rest = self._answers.rest

    def add(self, number: int, data: bytes) -> Item | None:
        """Takes a line in; the answer that is complete with it, or why it is part of none."""
        if b'"assistant"' not in data:
            if data.isspace():
                return None
            self._note(data)
            return Skipped(self.source, number, NO_ANSWER, other=True)
        try:
            line = _DECODER.decode(data)
            if line.type == "progress":
                return self._progress(number, line)
        except UNREADABLE as error:
            return Skipped(self.source, number, reason_of(error))
        message = line.message
        if line.type != "assistant" or message is None:
            self._note(data)
            return Skipped(self.source, number, NO_ANSWER, other=True)
        # Most lines are of no sub-agent.
        agent = self._agent_of(line) if line.is_sidechain is not False or line.agent_id else ""
        return self._answer(number, line, line, agent)

    def _progress(self, number: int, line: _Line) -> Item | None:
        """What a sub-agent answered, if that is what is told."""
        told = _PROGRESS.decode(line.data) if b"agent_progress" in bytes(line.data) else None
        inner = told.message if told is not None and told.type == "agent_progress" else None
        if told is None or inner is None or inner.type != "assistant" or inner.message is None:
            return Skipped(self.source, number, NO_ANSWER, other=True)
        agent = text_of(told.agent_id or inner.agent_id or line.parent_tool_use_id)
        return self._answer(number, line, inner, agent or self._agent)

    def _answer(self, number: int, line: _Line, told: _Line, agent: str) -> Item | None:
        """The answer in a line, or in what the line tells of."""
        message = told.message
        assert message is not None
        request_id = text_of(told.request_id)
        if self._answers.merge(message, request_id, told.cost):
            return None
        session = text_of(line.session_id) or self._name
        session = f"{session}/{agent}" if agent else session
        self._note_effort(agent, text_of(told.effort))
        part = Part(
            number, session, message, request_id, told.timestamp or line.timestamp, told.cost
        )
        part.events = self._notes.take(agent, message)
        return self._answers.add(part)

    def _note_effort(self, agent: str, effort: str) -> None:
        if effort and effort != self._efforts.setdefault(agent, effort):
            self._efforts[agent] = effort
            self._notes.add(agent, Event.EFFORT)

    def _agent_of(self, line: _Line | _Told) -> str:
        """The sub-agent of a line: it has a prompt and a cache prefix of its own."""
        if line.agent_id:
            return text_of(line.agent_id)
        return (self._agent or self._thread(line)) if line.is_sidechain is True else ""

    def _thread(self, line: _Line | _Told) -> str:
        """The first line of an unnamed sub-agent, found by the line that is continued."""
        own = text_of(line.uuid)
        thread = self._threads.get(text_of(line.parent_uuid), own)
        if own:
            self._threads[own] = thread
        if len(self._threads) > KNOWN:
            del self._threads[next(iter(self._threads))]
        return thread

    def _note(self, data: bytes) -> None:
        """A line between the answers; one that cannot be read tells nothing."""
        # Most are results of tools, which tell nothing of the main thread.
        if RESULT in data and not _in_sidechain(data):
            return
        try:
            line = _TOLD.decode(data)
        except UNREADABLE:
            return
        agent = self._agent_of(line)
        if RESULT not in data:
            self._notes.add(agent, *_events(line))


def _events(line: _Told) -> Iterator[Event]:
    """What a line between two answers tells."""
    if line.type == "attachment":
        if _has_delta(line.attachment):
            yield Event.TOOLS
        return
    if line.type in ("user", "system"):
        if line.is_compact_summary is True:
            yield Event.COMPACTION
        if line.type == "system" and text_of(line.subtype) in BOUNDARIES:
            yield BOUNDARIES[line.subtype]
        yield from _said_events(line)


def _said_events(line: _Told) -> Iterator[Event]:
    """What the words of a line of the user or of the program tell."""
    said = bytes(line.message if line.type == "user" else line.content)
    if LOGIN.search(said):
        yield Event.LOGIN
    elif CONNECTED.search(said):
        yield Event.TOOLS
    elif line.type == "user" and not line.is_meta and not OUTPUT.search(said):
        yield Event.USER_TURN


def _has_delta(attachment: Raw) -> bool:
    """Whether an attachment names what came or went."""
    if not any(name.encode() in bytes(attachment) for name in DELTAS):
        return False
    try:
        values = msgspec.json.decode(attachment, type=dict[str, Any])
    except UNREADABLE:
        return False
    if text_of(values.get("type")) not in DELTAS or values.get("isInitial") is True:
        return False
    return any(values[name] for name in values if name.startswith(("added", "removed", "readded")))


def _in_sidechain(data: bytes) -> bool:
    """Whether a line is one of a sub-agent, without decoding it."""
    at = data.find(SIDECHAIN)
    after = at + len(SIDECHAIN)
    return at >= 0 and data[after : after + 8].lstrip().startswith(b"true")


FORMAT = Format(
    id="claude_code",
    title="Claude Code sessions",
    example="~/.claude/projects",
    traits=frozenset({Trait.TIME, Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=_read,
)
