"""HAR 1.2: what browsers, proxies and Polly.JS save.

How to get one
    mitmproxy: `mitmdump -w flows`, then `mitmdump -nr flows --set hardump=log.har`; Proxyman,
    Charles and Fiddler export it; a browser saves it from the network tab ("with content"); Polly.JS
    writes one `recording.har` for each test.

What a record holds
    Each entry has the address, the headers, the body as text, the start and how long it took.
    Entries that call no model are skipped and counted, so a whole browser log can be given.

What it cannot tell
    Browsers leave out the content of streamed responses, and with it the counters.

Privacy
    A HAR holds all headers, cookies and tokens too, unless you exported it sanitised. ctxdoc keeps
    no header that can hold a secret, but don't pass the file on.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ctxdoc.reading.formats.base import (
    Format,
    Item,
    by_document,
    by_entry,
    read_base64,
    read_duration,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared.wire import HttpExchange, request_of
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Trait


class _Content(Struct):
    text: str | None = None
    encoding: str | None = None


class _RecordedRequest(Struct, rename="camel"):
    url: str
    headers: Any = None
    post_data: _Content | None = None


class _RecordedResponse(Struct):
    status: Any = None
    headers: Any = None
    content: _Content | None = None


class _Entry(Struct, rename="camel"):
    request: _RecordedRequest
    response: _RecordedResponse | None = None
    started_date_time: Any = None
    time: Any = None


class _Log(Struct):
    entries: list[Raw]


class _Har(Struct):
    log: _Log


def _matches(source: Source) -> bool:
    return source.has("log.entries[].request") or source.has("log.entries", "log.version")


def _read(document: Document) -> Iterator[Item]:
    har = msgspec.json.decode(document.data, type=_Har)
    return by_entry(document.source, har.log.entries, partial(_read_entry, document.source))


def _read_entry(source: str, number: int, raw: Raw | bytes) -> Item:
    entry = msgspec.json.decode(raw, type=_Entry)
    sent, got = entry.request, entry.response or _RecordedResponse()
    return request_of(
        HttpExchange(
            source=source,
            line=number,
            url=sent.url,
            request_headers=sent.headers,
            response_headers=got.headers,
            request=_data(sent.post_data),
            answer=_data(got.content),
            status=got.status,
            at=read_time(entry.started_date_time),
            duration=read_duration(entry.time),
        )
    )


def _data(content: _Content | None) -> bytes | str | None:
    """Content as it was, where it was written in base64; Polly.JS writes compressed content as a
    list of pieces that are in base64 once more."""
    if content is None or content.encoding != "base64":
        return content.text if content else None
    data = read_base64(content.text)
    # Only a compressed body has pieces; a plain one begins with an object or an event.
    if not data.startswith(b'["'):
        return data
    pieces = msgspec.json.decode(data, type=list[str])
    return b"".join(read_base64(text_of(piece)) for piece in pieces)


FORMAT = Format(
    id="har",
    title="HTTP archive (HAR)",
    example="recording.har",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=by_document(_read),
)
