"""Raw HTTP text, taken apart by h11; loaded only where such text is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import h11
from msgspec import Struct

MAX_HEADERS = 1 << 18
MAX_EVENTS = 1 << 17
"""Pieces of one chunked body."""
_END_OF_HEADERS = re.compile(rb"\n\r?\n")


class Message(Struct, frozen=True):
    """A request or a response."""

    target: str
    """Of a request; empty for a response."""
    status: int | None
    """Of a response."""
    headers: dict[str, str]
    body: bytes


def read_message(data: bytes, *, is_request: bool) -> Message:
    """One message; raises ValueError for what is none."""
    if not _END_OF_HEADERS.search(data, 0, MAX_HEADERS):
        raise ValueError("not HTTP: the headers do not end")
    try:
        return _message(_connection(data, is_request=is_request))
    except h11.ProtocolError as error:
        raise ValueError(f"not HTTP: {error}") from error


def _connection(data: bytes, *, is_request: bool) -> h11.Connection:
    role = h11.SERVER if is_request else h11.CLIENT
    connection = h11.Connection(role, max_incomplete_event_size=MAX_HEADERS)
    if not is_request:
        # h11 reads a response only behind a request that was sent.
        connection.send(h11.Request(method="GET", target="/", headers=[("host", "-")]))
        connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    # Nothing more: a body without a length ends here.
    connection.receive_data(b"")
    return connection


def _message(connection: h11.Connection) -> Message:
    start: h11.Request | h11.Response | None = None
    body: list[bytes] = []
    for event in _events(connection):
        match event:
            case h11.Request() | h11.Response():
                start = event
            case h11.Data(data=piece):
                body.append(bytes(piece))
    if start is None:
        raise ValueError("not HTTP: no start line")
    names = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in start.headers)
    return Message(
        target=start.target.decode() if isinstance(start, h11.Request) else "",
        status=start.status_code if isinstance(start, h11.Response) else None,
        headers=dict(names),
        body=b"".join(body),
    )


def _events(connection: h11.Connection) -> Iterator[Any]:
    """The events of a message up to its end, or to where the text ends; a 1xx response is passed over."""
    for _ in range(MAX_EVENTS):
        event = connection.next_event()
        if not isinstance(event, h11.Request | h11.Response | h11.Data | h11.InformationalResponse):
            return
        yield event
    raise ValueError("the body is in too many pieces")
