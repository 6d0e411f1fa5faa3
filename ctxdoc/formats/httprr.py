"""httprr: the raw HTTP text that Go tests record.

How to get one
    `go test -httprecord=. ./...` in a project that uses an httprr package; the files are
    `testdata/*.httprr`.

What a record holds
    A line with the lengths of the request and the response, then both as they went over the wire.
    The time is the `date` of the response, to the second, where it was kept.

What it cannot tell
    How long a request took. Recorders scrub headers, and some scrub bodies.

Privacy
    The bodies are your prompts. Most recorders mask the tokens; ctxdoc keeps no header that can
    hold a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import h11
from msgspec import Struct

from ctxdoc.formats.base import UNREADABLE, Format, Item, read_time
from ctxdoc.formats.source import Source, reason_of
from ctxdoc.formats.wire import Exchange, header, request_of
from ctxdoc.model import Skipped, Trait

MAGIC = b"httprr trace v1\n"
MAX_HEADERS = 1 << 18
MAX_EVENTS = 1 << 17
"""Pieces of one chunked body."""
MAX_RECORDS = 100_000
_END_OF_HEADERS = re.compile(rb"\n\r?\n")


class _Message(Struct, frozen=True):
    """A request or a response, taken apart."""

    start: h11.Request | h11.Response
    headers: dict[str, str]
    body: bytes


def _matches(source: Source) -> bool:
    return source.head.replace(b"\r\n", b"\n", 1).startswith(MAGIC)


def _read(source: Source) -> Iterator[Item]:
    data = source.data()
    at, line = data.find(b"\n") + 1, 2
    for _ in range(MAX_RECORDS):
        if at >= len(data):
            return
        start = data.find(b"\n", at, at + 50) + 1
        lengths = data[at:start].split()
        if len(lengths) != 2 or not all(length.isdigit() for length in lengths):
            yield Skipped(source.name, line, "no line with the lengths of request and response")
            return
        middle = start + int(lengths[0])
        end = middle + int(lengths[1])
        if end > len(data):
            yield Skipped(source.name, line, "the text ends too early")
            return
        yield _read_record(source.name, line, data[start:middle], data[middle:end])
        line += data.count(b"\n", at, end)
        at = end
    if at < len(data):
        yield Skipped(source.name, line, f"more than {MAX_RECORDS:,} records")


def _read_record(source: str, line: int, sent: bytes, got: bytes) -> Item:
    try:
        return _request(source, line, _parsed(h11.SERVER, sent), _parsed(h11.CLIENT, got))
    except h11.ProtocolError as error:
        return Skipped(source, line, f"not HTTP: {error}")
    except UNREADABLE as error:
        return Skipped(source, line, reason_of(error))


def _request(source: str, line: int, sent: _Message, got: _Message) -> Item:
    status = got.start.status_code if isinstance(got.start, h11.Response) else None
    return request_of(
        Exchange(
            source=source,
            line=line,
            url=sent.start.target.decode() if isinstance(sent.start, h11.Request) else "",
            request_headers=sent.headers,
            response_headers=got.headers,
            request=sent.body or None,
            answer=got.body,
            status=status,
            at=read_time(header(got.headers, "date")),
        )
    )


def _parsed(role: type[h11.SERVER] | type[h11.CLIENT], data: bytes) -> _Message:
    """One message; raises h11.ProtocolError or ValueError for what is none."""
    if not _END_OF_HEADERS.search(data, 0, MAX_HEADERS):
        raise ValueError("not HTTP: the headers do not end")
    connection = h11.Connection(role, max_incomplete_event_size=MAX_HEADERS)
    if role is h11.CLIENT:
        connection.send(h11.Request(method="GET", target="/", headers=[("host", "-")]))
        connection.send(h11.EndOfMessage())
    connection.receive_data(data)
    connection.receive_data(b"")
    start: h11.Request | h11.Response | None = None
    body: list[bytes] = []
    for _ in range(MAX_EVENTS):
        match connection.next_event():
            case h11.Request() | h11.Response() as start:
                continue
            case h11.Data(data=piece):
                body.append(bytes(piece))
            case h11.InformationalResponse():
                continue
            case _:
                break
    else:
        raise ValueError("the body is in too many pieces")
    if start is None:
        raise ValueError("not HTTP: no start line")
    names = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in start.headers)
    return _Message(start, dict(names), b"".join(body))


FORMAT = Format(
    id="httprr",
    title="httprr trace",
    example="testdata/TestMessages.httprr",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=_read,
)
