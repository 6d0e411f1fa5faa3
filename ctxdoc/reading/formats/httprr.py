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

from ctxdoc.reading.formats.base import UNREADABLE, Format, Item, read_time
from ctxdoc.reading.formats.shared.headers import header
from ctxdoc.reading.formats.shared.wire import HttpExchange, request_of
from ctxdoc.reading.source import Source, reason_of
from ctxdoc.request.log import Skipped, Trait

MAGIC = b"httprr trace v1\n"
MAX_RECORDS = 100_000
LENGTHS = re.compile(rb"[ \t]*([0-9]{1,18})[ \t]+([0-9]{1,18})[ \t]*\r?\n")


def _matches(source: Source) -> bool:
    return source.head.replace(b"\r\n", b"\n", 1).startswith(MAGIC)


def _read(source: Source) -> Iterator[Item]:
    data = source.data()
    at, line = data.find(b"\n") + 1, 2
    for _ in range(MAX_RECORDS):
        if at >= len(data):
            return
        found = LENGTHS.match(data, at)
        if found is None:
            yield Skipped(source.name, line, "no line with the lengths of request and response")
            return
        middle = found.end() + int(found[1])
        end = middle + int(found[2])
        if end > len(data):
            yield Skipped(source.name, line, "the text ends too early")
            return
        yield _read_record(source.name, line, data[found.end() : middle], data[middle:end])
        line += data.count(b"\n", at, end)
        at = end
    if at < len(data):
        yield Skipped(source.name, line, f"more than {MAX_RECORDS:,} records")


def _read_record(source: str, line: int, sent: bytes, got: bytes) -> Item:
    from ctxdoc.reading.formats.shared.http_message import read_message

    try:
        request = read_message(sent, is_request=True)
        response = read_message(got, is_request=False)
        return request_of(
            HttpExchange(
                source=source,
                line=line,
                url=request.target,
                request_headers=request.headers,
                response_headers=response.headers,
                request=request.body or None,
                answer=response.body,
                status=response.status,
                at=read_time(header(response.headers, "date")),
            )
        )
    except UNREADABLE as error:
        return Skipped(source, line, reason_of(error))


FORMAT = Format(
    id="httprr",
    title="httprr trace",
    example="testdata/TestMessages.httprr",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=_read,
)
