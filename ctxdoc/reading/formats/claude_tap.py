"""claude-tap: the traffic of a coding agent through a local proxy, one request a line.

How to get one
    Run `claude-tap` instead of `claude`, then export the session as JSON lines, or as the compact
    trace that stores repeated messages once; both are read.

What a line holds
    `request` with method, path, headers and body, `response` with status, headers and body (and
    with the events, where they were kept), `timestamp`, `duration_ms`, `upstream_base_url`. The
    time is that of the end of the response: the start is that less the duration. The `host`
    header names the proxy; the host of the upstream stands in its place.

What it cannot tell
    Bodies were parsed and written again: the order of the keys is kept, the spelling of numbers
    and escapes may be the recorder's. Calls over a websocket are listed by their body only.

Privacy
    The bodies are your prompts. The proxy cuts tokens to their first characters before it writes,
    and ctxdoc keeps no header that can hold a secret.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw, Struct

from ctxdoc.reading.formats.base import (
    Format,
    Item,
    by_document,
    by_entry,
    read_duration,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared.members import members_of, required
from ctxdoc.reading.formats.shared.wire import HttpExchange, request_of
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Trait

COMPACT = "__claude_tap_compact_trace__"
WRAPPED = "__claude_tap_compact_record__"
"""Marks a record that has references."""
BLOB = "__claude_tap_blob_ref__"
MAX_RECORD = 32 << 20
"""Bytes that the references of one record may stand for: the API refuses longer bodies."""
MAX_RECORDS = 1 << 30
"""Bytes that all references of one compact trace may stand for."""


class _RecordedRequest(Struct):
    path: str
    headers: Any = None
    body: Any = None


class _RecordedResponse(Struct):
    status: Any = None
    headers: Any = None
    body: Any = None
    sse_events: Any = None


class _Record(Struct):
    request: _RecordedRequest
    response: _RecordedResponse | None = None
    timestamp: Any = None
    duration_ms: Any = None
    upstream_base_url: str = ""


class _Blob(Struct):
    payload: Raw


class _Compact(Struct):
    records: list[Raw]
    blobs: dict[str, _Blob]


def _matches(source: Source) -> bool:
    return source.has(COMPACT) or any(
        "request.path" in shape and "request.method" in shape and "request.url" not in shape
        for shape in source.shapes
    )


def _read(document: Document) -> Iterator[Item]:
    if f'"{COMPACT}"'.encode() in bytes(document.data)[:200]:
        yield from _read_compact(document)
    else:
        record = msgspec.json.decode(document.data, type=_Record)
        yield _request(document.source, document.line, record)


def _read_compact(document: Document) -> Iterator[Item]:
    compact = msgspec.json.decode(document.data, type=_Compact)
    blobs = _Blobs({name: blob.payload for name, blob in compact.blobs.items()})

    def read(number: int, entry: Raw | bytes) -> Item:
        stored = members_of(msgspec.json.decode(entry), "$")
        plain = blobs.restored(required(stored, "record") if WRAPPED in stored else stored)
        return _request(document.source, number, msgspec.convert(plain, _Record))

    yield from by_entry(document.source, compact.records, read)


class _Blobs:
    """The parts of a compact trace that are stored once, and how much may still be restored."""

    def __init__(self, payloads: dict[str, Raw]) -> None:
        self._payloads = payloads
        self._left = MAX_RECORDS

    def restored(self, record: Any) -> Any:
        """The record with its references replaced.

        Raises ValueError for a reference to nothing, and when a limit is reached.
        """
        end = max(self._left - MAX_RECORD, 0)

        def walk(value: Any) -> Any:
            if isinstance(value, list):
                return [walk(item) for item in value]
            if not isinstance(value, dict):
                return value
            # Only an object of that one member is a reference; a prompt may speak of one.
            if value.keys() == {BLOB}:
                return msgspec.json.decode(self._payload(value[BLOB], end))
            return {key: walk(item) for key, item in value.items()}

        return walk(record)

    def _payload(self, reference: Any, end: int) -> Raw:
        name = text_of(members_of(reference, f"$.{BLOB}").get("hash"))
        if name not in self._payloads:
            raise ValueError(f"the compact trace has no part {name[:20]}")
        payload = self._payloads[name]
        size = len(bytes(payload))
        # A part may be named any number of times: what it stands for is counted each time.
        if self._left - size < end:
            raise ValueError("the record unpacks to more than a request can be")
        self._left -= size
        return payload


def _request(source: str, line: int, record: _Record) -> Item:
    sent, got = record.request, record.response or _RecordedResponse()
    duration = read_duration(record.duration_ms)
    return request_of(
        HttpExchange(
            source=source,
            line=line,
            url=record.upstream_base_url.rstrip("/") + sent.path,
            request_headers=_headers(sent.headers, record.upstream_base_url),
            response_headers=got.headers,
            request=sent.body,
            answer=_events(got.sse_events) if got.body is None else got.body,
            status=got.status,
            at=_start(record.timestamp, duration),
            duration=duration,
        )
    )


def _start(end: Any, duration: float | None) -> datetime | None:
    at = read_time(end)
    return at - timedelta(seconds=duration or 0) if at else None


def _headers(headers: Any, upstream: str) -> dict[str, Any]:
    """Without the proxy's own host, which changes from run to run."""
    found = dict(headers) if isinstance(headers, Mapping) else {}
    kept = {name: value for name, value in found.items() if name.lower() != "host"}
    host = urlsplit(upstream).netloc.rpartition("@")[2]
    return {**kept, "host": host} if host else kept


def _events(events: Any) -> list[Any] | None:
    """What the events of a stream carried; None where they were not kept."""
    if not isinstance(events, list):
        return None
    return [event.get("data") for event in events if isinstance(event, Mapping)]


FORMAT = Format(
    id="claude_tap",
    title="claude-tap trace",
    example="trace.jsonl",
    traits=frozenset({Trait.PARSED_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS, Trait.SESSION}),
    matches=_matches,
    read=by_document(_read),
)
