"""ctxdoc's own log: one request and its response a line.

How to get one
    Write a line for each call where your code or your proxy sees both: the body as it was handed to the
    client, and the answer with its `usage`.

What a line holds
    {"timestamp": start of the request, "headers": {...}, "request": the body as sent,
     "response": {"id", "model", "usage", ...} or null, "status", "duration_ms", "cost_usd"}
    `simulated` stands in the lines of `simulate --emit`: an answer's counters and edits as they were
    computed. They are never taken for the API's, and not looked at beside a `response`.
    A file may also be one such record, or an array of them. Only `request` is needed: without
    `timestamp` nothing is said about lifetimes, without `response.usage` the counters are
    simulated.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from ctxdoc.reading.formats.base import (
    Format,
    Item,
    by_record,
    read_body,
    read_cost,
    read_duration,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared.answer import response_of
from ctxdoc.reading.formats.shared.headers import kept_headers
from ctxdoc.reading.formats.shared.wire import EXCHANGE, OPENAI_ANSWER
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Request
from ctxdoc.request.response import NULL, Response

BODY = ("request.messages", "request.model")
OTHERS = (*EXCHANGE, *OPENAI_ANSWER, "request.tools[].function")
"""Members of logs of HTTP exchanges, and of calls to other APIs."""


class _Record(Struct):
    request: Raw
    timestamp: Any = None
    headers: Any = None
    response: Raw = NULL
    simulated: Raw = NULL
    status: Any = None
    duration_ms: Any = None
    session_id: Any = None
    cost_usd: Raw = NULL
    path: Any = None


def _matches(source: Source) -> bool:
    if b'"request"' not in source.head:
        return False
    return any(not s.isdisjoint(BODY) and s.isdisjoint(OTHERS) for s in source.shapes)


def _read(document: Document) -> Item:
    record = msgspec.json.decode(document.data, type=_Record)
    # The recorder notes calls that it only passes on.
    if bytes(record.request) == b"null" and isinstance(record.path, str):
        reason = f"a call to {record.path}"
        return Skipped(document.source, document.line, reason, other=True)
    response, notes = _response(record)
    simulated = _simulated(record)
    body = read_body(record.request)
    return Request(
        source=document.source,
        line=document.line,
        model=body.model or (response.model if response else ""),
        body=body,
        raw=record.request,
        at=read_time(record.timestamp),
        duration=read_duration(record.duration_ms),
        session=text_of(record.session_id),
        headers=kept_headers(record.headers),
        response=response,
        simulated=simulated,
        cost_reported=read_cost(record.cost_usd),
        notes=notes,
    )


def _response(record: _Record) -> tuple[Response | None, tuple[str, ...]]:
    status = record.status
    failed = isinstance(status, int) and not isinstance(status, bool) and status >= 400
    if bytes(record.response) == b"null":
        return (Response(error=f"status {status}") if failed else None), ()
    try:
        return _answer(record.response), ()
    except (msgspec.DecodeError, RecursionError) as error:
        return None, (f"response not used: {error}",)


def _simulated(record: _Record) -> Response | None:
    """What a simulation put in the place of an answer; None where there is none that can be read."""
    if bytes(record.simulated) == b"null":
        return None
    try:
        return _answer(record.simulated)
    except (msgspec.DecodeError, RecursionError):
        return None


def _answer(raw: Raw) -> Response:
    value = msgspec.json.decode(raw)
    if not isinstance(value, dict):
        raise msgspec.ValidationError("not an object")
    return response_of(value)


FORMAT = Format(
    id="native",
    title="ctxdoc's own log",
    example="agent.jsonl",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=by_record(_read),
)
