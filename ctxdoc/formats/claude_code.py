"""Session transcripts that Claude Code writes by itself.

How to get one
    Nothing to switch on: they stand below `~/.claude/projects`, one folder a project and one
    `.jsonl` file a session; those of sub-agents in `<session>/subagents`. Give the folder to see
    resumed sessions once: they repeat the responses of the session they continue.

What a record holds
    A line for each block of an answer, with the counters of the whole response, its model and the
    time when the block was complete. The lines of one response are one request here, with the
    counters of the line that has the most output: earlier ones hold a count in progress.
    Sub-agents have a session of their own, named `<session>/<agent>`.

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
from msgspec import Struct

from ctxdoc.formats.base import UNREADABLE, Format, Item, text_of
from ctxdoc.formats.source import Source, reason_of, shape_of
from ctxdoc.formats.transcript import Answers, Message, Part
from ctxdoc.model import Event, Skipped, Trait

KNOWN = 8192
"""Lines of unnamed sub-agents that a further line may continue."""
NO_ANSWER = "no answer of a model"
LINE = frozenset({"type", "parentUuid", "sessionId", "isSidechain"})
SUMMARY = frozenset({"type", "summary", "leafUuid"})
KIND = "agentType"
"""The member of the file that says of which kind a sub-agent is; beside its session."""
SIDECHAIN = b'"isSidechain":'
AGENT_FILE = re.compile(r"(?:^|[/\\])agent-([^/\\]+)\.jsonl")


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
    cost: Any = msgspec.field(name="costUSD", default=None)


_DECODER = msgspec.json.Decoder(_Line)


COMPACTED = b'"compact_boundary"'
HEAD_OF_LINE = 1024
"""Bytes of a line in which its type stands."""


def _matches(source: Source) -> bool:
    head = source.head
    at = head.find(SIDECHAIN)
    if at < 0:
        return any(
            shape >= SUMMARY or (KIND in shape and shape.isdisjoint(("messages", "request")))
            for shape in source.shapes
        )
    end = head.find(b"\n", at)
    line = head[head.rfind(b"\n", 0, at) + 1 : end if end >= 0 else len(head)]
    return shape_of(line) >= LINE


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
        found = AGENT_FILE.search(source)
        self._agent = found[1] if found else ""
        self._answers = Answers(source)
        self._threads: dict[str, str] = {}
        self._event: Event | None = None
        self.rest = self._answers.rest

    def add(self, number: int, data: bytes) -> Item | None:
        """Takes a line in; the answer that is complete with it, or why it is part of none."""
        if b'"assistant"' not in data:
            if data.find(COMPACTED, 0, HEAD_OF_LINE) >= 0:
                self._event = Event.COMPACTION
            if _in_sidechain(data):
                self._follow(data)
            return None if data.isspace() else Skipped(self.source, number, NO_ANSWER, other=True)
        try:
            line = _DECODER.decode(data)
        except UNREADABLE as error:
            return Skipped(self.source, number, reason_of(error))
        # Most lines are of no sub-agent.
        agent = self._agent_of(line) if line.is_sidechain is not False or line.agent_id else ""
        message = line.message
        if line.type != "assistant" or message is None:
            return Skipped(self.source, number, NO_ANSWER, other=True)
        request_id = text_of(line.request_id)
        if self._answers.merge(message, request_id, line.cost):
            return None
        session = text_of(line.session_id)
        session = f"{session}/{agent}" if agent else session
        part = Part(number, session, message, request_id, line.timestamp, line.cost)
        part.event, self._event = self._event, None
        return self._answers.add(part)

    def _agent_of(self, line: _Line) -> str:
        """The sub-agent of a line: it has a prompt and a cache prefix of its own."""
        if line.agent_id:
            return text_of(line.agent_id)
        return (self._agent or self._thread(line)) if line.is_sidechain is True else ""

    def _thread(self, line: _Line) -> str:
        """The first line of an unnamed sub-agent, found by the line that is continued."""
        own = text_of(line.uuid)
        thread = self._threads.get(text_of(line.parent_uuid), own)
        if own:
            self._threads[own] = thread
        if len(self._threads) > KNOWN:
            del self._threads[next(iter(self._threads))]
        return thread

    def _follow(self, data: bytes) -> None:
        """A line between the answers of a sub-agent; one that cannot be read continues nothing."""
        try:
            self._agent_of(_DECODER.decode(data))
        except UNREADABLE:
            return


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
