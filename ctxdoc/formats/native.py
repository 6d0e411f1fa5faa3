"""The log that `ctxdoc record` writes: one request and its response a line.

How to get one
    Run your agent under `ctxdoc record -- CMD`, or write the lines yourself.

What a line holds
    {"timestamp": start of the request, "headers": {...}, "request": the body as sent,
     "response": {"id", "model", "usage", ...} or null, "status", "duration_ms", "cost_usd"}
    A file may also be one such record, or an array of them. Only `request` is needed: without
    `timestamp` nothing is said about lifetimes, without `response.usage` the counters are
    simulated.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ctxdoc.formats.base import (
    Document,
    Format,
    anthropic_response,
    read_body,
    read_duration,
    read_time,
)
from ctxdoc.model import KEPT_HEADERS, NULL, Request, Response, Skipped, Trait

MAX_COST = 1_000_000
"""USD; a request that is said to cost more is not believed."""


class _Record(Struct):
    request: Raw
    timestamp: Any = None
    headers: Any = None
    response: Raw = NULL
    status: Any = None
    duration_ms: Any = None
    session_id: Any = None
    cost_usd: Raw = NULL


class _Probe(Struct):
    request: Raw | UnsetType = UNSET


def _matches(document: Document) -> bool:
    try:
        probe = msgspec.json.decode(document.data, type=_Probe)
    except (msgspec.DecodeError, RecursionError):
        return False
    return probe.request is not UNSET and bytes(probe.request).lstrip()[:1] == b"{"


def _read(document: Document) -> Request | Skipped:
    record = msgspec.json.decode(document.data, type=_Record)
    response, note = _read_response(record)
    headers = record.headers if isinstance(record.headers, dict) else {}
    return Request(
        source=document.source,
        line=document.line,
        body=read_body(record.request),
        raw=record.request,
        at=read_time(record.timestamp),
        duration=read_duration(record.duration_ms),
        session=record.session_id if isinstance(record.session_id, str) else "",
        headers={
            name.lower(): value
            for name, value in headers.items()
            if name.lower() in KEPT_HEADERS and isinstance(value, str)
        },
        response=response,
        cost_reported=_cost(record.cost_usd),
        notes=note,
    )


def _cost(raw: Raw) -> Decimal | None:
    """USD as it was spelled, in quotes or not; None for what is no amount."""
    try:
        cost = Decimal(bytes(raw).decode("ascii", "replace").strip('"'))
        return cost if 0 <= cost < MAX_COST else None
    except InvalidOperation:
        return None


def _read_response(record: _Record) -> tuple[Response | None, tuple[str, ...]]:
    if bytes(record.response) == b"null":
        failed = isinstance(record.status, int) and record.status >= 400
        return (Response(error=f"status {record.status}") if failed else None), ()
    try:
        value = msgspec.json.decode(record.response)
        if not isinstance(value, dict):
            raise msgspec.ValidationError("not an object")
        return anthropic_response(value), ()
    except msgspec.DecodeError as error:
        return None, (f"response not used: {error}",)


FORMAT = Format(
    id="native",
    title="ctxdoc's own log",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=_read,
)
