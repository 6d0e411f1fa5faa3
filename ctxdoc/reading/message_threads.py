"""Puts message threads together: a continue request sends only its new messages.

The API keeps the conversation, the system prompt and the tools of the create request under the
response's id, and puts them before what a continue request sends; settings and breakpoints are
those of the request itself (message-threads page, 2026-11-02; SDK 2.14.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.request.request import Body, MarkedMessage, Request
from ctxdoc.request.response import NULL, has_server_blocks

NOT_IN_LOG = "the thread's earlier request is not in the log"
NO_RESPONSE = "the thread's earlier response is not in the log: its blocks are left out"
TOO_LONG = "the thread is too long to be put together"
MAX_THREADS = 10_000
"""Responses that a later request can go on from."""
MAX_MESSAGES = 20_000_000
"""Messages that are repeated in all: a thread of n requests repeats about n² of them."""
_KEY = b'"cache_control"'
_UNREADABLE = (msgspec.MsgspecError, RecursionError)


class _Thread(Struct):
    type: str = ""
    previous_message_id: str = ""


class _HeldThread(Struct, frozen=True):
    """What the API keeps under a response's id."""

    body: Body
    line: list[Raw]
    """Messages without breakpoints, up to and with the response; later ones of the thread follow."""
    size: int
    """How many of the line are held."""
    gap: bool
    """Whether a response is missing."""


class _Shelf:
    """What is held of the requests so far."""

    def __init__(self) -> None:
        self.held: dict[str, _HeldThread | str] = {}
        """By response id; a text says why there is nothing to go on from."""
        self.left = MAX_MESSAGES

    def keep(self, name: str, held: _HeldThread | str) -> None:
        self.held[name] = held
        if len(self.held) > MAX_THREADS:
            del self.held[next(iter(self.held))]


def stitched(requests: Iterable[Request]) -> Iterator[Request]:
    """The requests in order, those that continue a thread with their whole body.

    One that cannot be put together keeps its body as it was sent, its `thread`, and a note.
    """
    shelf = _Shelf()
    for request in requests:
        thread = _thread(request)
        if request.body is None or thread.type not in ("create", "continue"):
            yield without_content(request)
            continue
        previous: _HeldThread | str | None = None
        if thread.type == "continue":
            previous = shelf.held.get(thread.previous_message_id, NOT_IN_LOG)
        found = _joined(request.body, previous, shelf)
        # Only a response with an id can be gone on from.
        if request.id:
            shelf.keep(
                request.id, found if isinstance(found, str) else _held(request, found, previous)
            )
        yield without_content(_shown(request, found, previous))


def without_content(request: Request) -> Request:
    """A request whose response keeps only what the cache is concerned with: the blocks of an answer
    that the API itself has put behind the prompt, as bytes of their own."""
    response = request.response
    if response is None or response.content is NULL:
        return request
    kept = response.content.copy() if has_server_blocks(response.content) else NULL
    return replace(request, response=replace(response, content=kept))


def has_thread(request: Request) -> bool:
    """Whether it creates or continues a thread."""
    return request.body is not None and bytes(request.body.thread) != b"null"


def _thread(request: Request) -> _Thread:
    if request.body is None:
        return _Thread()
    try:
        return msgspec.json.decode(request.body.thread, type=_Thread | None) or _Thread()
    except _UNREADABLE:
        return _Thread()


def _joined(body: Body, held: _HeldThread | str | None, shelf: _Shelf) -> Body | str:
    """The whole body, or why there is none."""
    if held is None or isinstance(held, str):
        return body if held is None else held
    # Bounded in all: a log of continue requests could ask for a square of its length.
    size = held.size + len(body.messages)
    if size > shelf.left:
        return TOO_LONG
    shelf.left -= size
    return replace(
        body,
        messages=(*held.line[: held.size], *body.messages),
        system=held.body.system,
        tools=held.body.tools,
        thread=NULL,
    )


def _shown(request: Request, found: Body | str, held: _HeldThread | str | None) -> Request:
    # Half a body would be compared as if it were whole.
    if isinstance(found, str):
        return replace(request, notes=(*request.notes, found))
    if not isinstance(held, _HeldThread):
        return request
    notes = (*request.notes, NO_RESPONSE) if held.gap else request.notes
    return replace(request, body=found, raw=None, notes=notes)


def _held(request: Request, whole: Body, previous: _HeldThread | str | None) -> _HeldThread:
    before = previous if isinstance(previous, _HeldThread) else None
    said = _said(request)
    line = _line_before(before)
    line += map(_unmarked, request.body.messages if request.body else ())
    line += said
    gap = not said or (before is not None and before.gap)
    return _HeldThread(body=whole, line=line, size=len(line), gap=gap)


def _said(request: Request) -> list[Raw]:
    """The response as the message that follows the request; none where the log has no blocks of it."""
    content = request.response.content if request.response else NULL
    if bytes(content) in (b"null", b"[]"):
        return []
    return [Raw(b'{"role":"assistant","content":%b}' % bytes(content))]


def _line_before(held: _HeldThread | None) -> list[Raw]:
    """The line that a request goes on from: the same list, of which each request holds a part, so that
    a thread of n requests is held in the space of its last one."""
    if held is None:
        return []
    # Another request went on from there already.
    return held.line[: held.size] if held.size < len(held.line) else held.line


class _BlockMessage(Struct):
    """A message whose content is a list of blocks."""

    content: list[dict[str, Raw]]


def _unmarked(message: Raw | bytes | MarkedMessage) -> Raw:
    """A message without the breakpoints on its blocks, everything else to the byte; one that a reader
    has parted stays as it is held."""
    plain = message.plain if isinstance(message, MarkedMessage) else message
    if _KEY not in bytes(plain):
        return plain  # type: ignore[return-value]
    try:
        members: dict[str, Any] = msgspec.json.decode(plain, type=dict[str, Raw])
        blocks = msgspec.json.decode(plain, type=_BlockMessage).content
    except _UNREADABLE:
        return plain  # type: ignore[return-value]
    # Breakpoints are those of each request alone; the API does not keep them.
    for block in blocks:
        block.pop("cache_control", None)
    return Raw(msgspec.json.encode({**members, "content": blocks}))
