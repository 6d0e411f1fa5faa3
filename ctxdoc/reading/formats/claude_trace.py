"""claude-trace: the traffic of Claude Code on the wire, one request and its response a line.

How to get one
    Run `claude-trace` instead of `claude` (npm package @mariozechner/claude-trace, and its forks).
    The logs are the `.jsonl` files in `.claude-trace` below the folder where you ran it.

What a line holds
    The request with its time, address, headers and body, and the response with its time, status,
    headers and body; a streamed response as the text of its events. A request that got no response
    stands alone.

What it cannot tell
    Bodies were parsed and written again: the order of the keys is kept, the spelling of numbers
    and escapes may be the recorder's.

Privacy
    The files hold your prompts, and where the recorder did not mask it the bearer token of your
    account. ctxdoc keeps no header that can hold a secret, but don't pass the file on.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from ctxdoc.reading.formats.base import Format, Item, by_document, read_duration, read_time
from ctxdoc.reading.formats.shared.exchange_record import (
    ExchangeRecord,
    RecordedRequest,
    RecordedResponse,
    exchange_of,
)
from ctxdoc.reading.formats.shared.wire import request_of
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Trait


class _RecordedRequest(RecordedRequest):
    timestamp: Any = None


class _RecordedResponse(RecordedResponse):
    status_code: Any = None
    timestamp: Any = None
    body_raw: Any = None


class _Record(ExchangeRecord):
    request: _RecordedRequest
    response: _RecordedResponse | None = None


def _matches(source: Source) -> bool:
    return source.has("request.timestamp", "request.url")


def _read(document: Document) -> Item:
    record = msgspec.json.decode(document.data, type=_Record)
    sent, got = record.request, record.response or _RecordedResponse()
    return request_of(
        replace(
            exchange_of(document.source, document.line, sent, got),
            # A streamed answer is kept as the text of its events.
            answer=got.body_raw if got.body is None else got.body,
            status=got.status_code,
            at=read_time(sent.timestamp),
            duration=_seconds(sent.timestamp, got.timestamp),
        )
    )


def _seconds(start: Any, end: Any) -> float | None:
    """Both are seconds since 1970; None where one is no number, or no float can hold it."""
    if not isinstance(start, int | float) or not isinstance(end, int | float):
        return None
    try:
        return read_duration((end - start) * 1000)
    except OverflowError:
        return None


FORMAT = Format(
    id="claude_trace",
    title="claude-trace log",
    example=".claude-trace/log-2026-11-02-09-14-07.jsonl",
    traits=frozenset({Trait.PARSED_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS, Trait.SESSION}),
    matches=_matches,
    read=by_document(_read),
)
