"""Reads what many requests repeat once: the history, the tools and the system prompt of a log's bodies.

An agent sends its whole context again on every request, so that most bytes of a log stand in it many
times. A part that stands in a line exactly as in an earlier one is compared as memory, cut out before
the line is decoded, and put back behind it. A mark takes its place; only if the decoded body has the
mark where the part belongs was the cut right, otherwise the line is decoded as it is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from sys import intern
from typing import TypeAlias

from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.request.request import Body, MarkedMessage, Request

LANES = 512
"""Conversations that are held."""
KEY = 192
"""Bytes of the first message by which a conversation is known again."""
SHORT = 512
"""Parts below this are not worth a cut."""
_LIST = re.compile(rb'"messages"\s*:\s*\[\s*')
_TOOLS = re.compile(rb'"tools"\s*:\s*')
_SYSTEM = re.compile(rb'"system"\s*:\s*')
_OPEN, _CLOSE = re.compile(rb"\[\s*"), re.compile(rb"\s*\]")
_COMMA = re.compile(rb"\s*,\s*")
# As good as the module secrets, whose import loads OpenSSL.
MARK = f'"{os.urandom(12).hex()}"'.encode()
"""Stands for what was cut out; no log can know it."""


_BREAKPOINT = re.compile(rb',\s*"cache_control"\s*:\s*\{[^{}]*\}')


Message: TypeAlias = bytes | MarkedMessage


class FoldedLine(Struct, frozen=True):
    """A line, and what was cut out of it."""

    data: bytes
    messages: tuple[Message, ...] = ()
    tools: tuple[bytes, ...] | None = None
    system: bytes | None = None


class Folder:
    """What the lines so far have shown."""

    def __init__(self) -> None:
        self._lanes: dict[bytes, tuple[Message, ...]] = {}
        self._parts: dict[bytes, bytes] = {}
        """Every part, held once."""
        self._tools: tuple[bytes, tuple[bytes, ...]] = (b"", ())
        """The last tools as they stood in a line, and one by one."""
        self._system = b""
        self._starts: dict[bytes, int] = {}

    def fold(self, line: bytes) -> FoldedLine:
        """The line without what an earlier one has too."""
        line, messages = self._without_history(line)
        # The last ones stand for all: an agent changes its tools and its system prompt seldom.
        tools, system = None, None
        if self._tools[0]:
            start = self._find(line, b'"tools"')
            line, cut = _without(line, start, _TOOLS, self._tools[0], b"[" + MARK + b"]")
            tools = self._tools[1] if cut else None
        if self._system:
            start = self._find(line, b'"system"')
            line, cut = _without(line, start, _SYSTEM, self._system, MARK)
            system = self._system if cut else None
        return FoldedLine(line, messages, tools, system)

    def _without_history(self, line: bytes) -> tuple[bytes, tuple[Message, ...]]:
        for start in self._histories(line):
            lane = self._lanes.get(line[start : start + KEY])
            if lane:
                return _without_messages(line, start, lane)
        return line, ()

    def _histories(self, line: bytes) -> Iterator[int]:
        """Where the first item of each list of messages stands; a text may hold such a name too."""
        start = self._find(line, b'"messages"')
        while start >= 0:
            found = _LIST.match(line, start)
            if found:
                yield found.end()
            start = line.find(b'"messages"', start + 1)

    def unfold(self, request: Request, folded: FoldedLine, line: bytes) -> Request | None:
        """The request with all of its parts; None if a mark does not stand where its part belongs."""
        body = request.body
        if body is None:
            return request if folded.data is line else None
        if not _has_its_marks(body, folded):
            return None
        rest: Iterable[Raw | Message] = body.messages[1:] if folded.messages else body.messages
        messages = (*folded.messages, *map(self._message, rest))
        tools = folded.tools if folded.tools is not None else self._parts_of(body.tools)
        system = self._part(body.system if folded.system is None else folded.system)
        self._learn(line, messages, tools, system)
        return _with_body(request, _small(body, messages, tools, system))

    def condensed(self, request: Request) -> Request:
        """A request of which every part is held once, and no longer the line that it came from."""
        body = request.body
        if body is None or any(
            isinstance(each, bytes | MarkedMessage) for each in body.messages[:1]
        ):
            return request
        messages = tuple(map(self._message, body.messages))
        tools = self._parts_of(body.tools)
        return _with_body(request, _small(body, messages, tools, self._part(body.system)))

    def _message(self, part: Raw | Message) -> Message:
        data = bytes(part)
        found = _BREAKPOINT.search(data) if b'"cache_control"' in data else None
        if found is None:
            return self._part(data)
        # The next request sends the message without its breakpoint: both share these bytes.
        plain = self._part(data[: found.start()] + data[found.end() :])
        return MarkedMessage(plain, found.start(), found[0])

    def _part(self, part: Raw | bytes) -> bytes:
        data = bytes(part)
        return self._parts.setdefault(data, data)

    def _parts_of(self, parts: tuple[Raw, ...] | None) -> tuple[bytes, ...] | None:
        return None if parts is None else tuple(map(self._part, parts))

    def _find(self, line: bytes, name: bytes) -> int:
        """Where a member's name stands: mostly where it stood in the line before."""
        # The members before it rarely change their length, and a search goes through the whole line.
        start = self._starts.get(name, 0)
        if not line.startswith(name, start):
            start = self._starts[name] = line.find(name)
        return start

    def _learn(
        self,
        line: bytes,
        messages: tuple[Message, ...],
        tools: tuple[bytes, ...] | None,
        system: bytes,
    ) -> None:
        """Remembers how the parts of a line are spelled."""
        if messages:
            self._learn_history(line, messages)
        # The same tuple means that these tools were cut out, and are known.
        if tools and tools is not self._tools[1]:
            self._learn_tools(line, tools)
        if len(system) > SHORT:
            self._system = system

    def _learn_history(self, line: bytes, messages: tuple[Message, ...]) -> None:
        first = bytes(messages[0])
        start = next((at for at in self._histories(line) if line.startswith(first, at)), None)
        if start is None:
            return
        self._lanes[line[start : start + KEY]] = messages
        if len(self._lanes) > LANES:
            # The conversation that was begun first is the likeliest to have ended.
            del self._lanes[next(iter(self._lanes))]

    def _learn_tools(self, line: bytes, tools: tuple[bytes, ...]) -> None:
        found = _TOOLS.search(line)
        if found is None:
            return
        end = _end_of_list(line, found.end(), tools)
        if end - found.end() > SHORT:
            self._tools = (line[found.end() : end], tools)


def _has_its_marks(body: Body, folded: FoldedLine) -> bool:
    """Whether a mark stands in the decoded body for each part that was cut out of its line."""
    if folded.messages and (not body.messages or bytes(body.messages[0]) != MARK):
        return False
    if folded.tools is not None and list(map(bytes, body.tools or ())) != [MARK]:
        return False
    return folded.system is None or bytes(body.system) == MARK


def _without_messages(
    line: bytes, start: int, lane: tuple[Message, ...]
) -> tuple[bytes, tuple[Message, ...]]:
    """Cuts the messages out that stand in the line exactly as before, in a row from the first; one
    that was marked may have lost its breakpoint."""
    at, cut, comma = start, list[Message](), b""
    for message in lane:
        found_as = _as_in(line, at, message)
        if found_as is None:
            break
        cut.append(found_as)
        at += len(bytes(found_as))
        # A recorder spells the comma alike everywhere; the first one shows how.
        comma = comma or _comma_at(line, at)
        if not comma or not line.startswith(comma, at):
            # The end of the list, or another spelling.
            return line[:start] + MARK + line[at:], tuple(cut)
        at += len(comma)
    # A cut copies the whole line, which a few bytes are not worth.
    if at - start < SHORT:
        return line, ()
    return line[:start] + MARK + comma + line[at:], tuple(cut)


def _comma_at(line: bytes, at: int) -> bytes:
    found = _COMMA.match(line, at)
    return found[0] if found else b""


def _as_in(line: bytes, at: int, message: Message) -> Message | None:
    """The message as it stands in the line, if it does."""
    if isinstance(message, bytes):
        return message if line.startswith(message, at) else None
    if line.startswith(message.plain, at):
        return message.plain
    return message if line.startswith(bytes(message), at) else None


def _without(
    line: bytes, start: int, spelled: re.Pattern[bytes], part: bytes, mark: bytes
) -> tuple[bytes, bool]:
    """Cuts a member's value out where it is the part; `start` is where its name stands first."""
    found = spelled.match(line, start) if start >= 0 else None
    if found and line.startswith(part, found.end()):
        return line[: found.end()] + mark + line[found.end() + len(part) :], True
    return line, False


def _end_of_list(line: bytes, start: int, items: tuple[bytes, ...]) -> int:
    """Where a list ends whose items are known; the start where it is not that list."""
    opened = _OPEN.match(line, start)
    if opened is None:
        return start
    at = opened.end()
    for index, item in enumerate(items):
        if index:
            comma = _comma_at(line, at)
            if not comma:
                return start
            at += len(comma)
        if not line.startswith(item, at):
            return start
        at += len(item)
    closed = _CLOSE.match(line, at)
    return closed.end() if closed else start


def _small(
    body: Body, messages: tuple[Message, ...], tools: tuple[bytes, ...] | None, system: bytes
) -> Body:
    """The body with parts of its own: the rest would hold the whole line."""
    values = {
        # Most are left out: a copy of null for each would cost more than all the others.
        name: Raw(bytes(getattr(body, name)))
        for name in SETTINGS
        if bytes(getattr(body, name)) != b"null"
    }
    return Body(
        messages=messages,  # type: ignore[arg-type]
        model=intern(body.model) if body.model else body.model,
        tools=tools,  # type: ignore[arg-type]
        system=system,  # type: ignore[arg-type]
        max_tokens=body.max_tokens,
        others=body.others,
        **values,
    )


def _with_body(request: Request, body: Body) -> Request:
    return replace(
        request,
        model=intern(request.model),
        session=intern(request.session),
        headers=request.headers or NO_HEADERS,
        body=body,
        raw=None,
        exact=request.raw is not None,
    )


NO_HEADERS: dict[str, str] = {}
SETTINGS = (
    "cache_control",
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "context_management",
    "inference_geo",
    "service_tier",
    "fallbacks",
    "speed",
    "mcp_servers",
    "container",
    "metadata",
    "thread",
)
