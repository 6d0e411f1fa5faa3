"""Observations exported from Langfuse: API pages, exported tables, blob storage files.

How to get one
    `GET /api/public/v2/observations?fields=core,basic,io,model,usage,metrics`, a trace from
    `GET /api/public/traces/ID`, an export of the observations table as JSON, or the files below
    `observations_v2/` of a blob storage export as JSON or JSONL.

What a record holds
    An observation; those of the type GENERATION are calls of a model, with `usageDetails`, model,
    start, end, cost and session (else the trace stands for it). Both spellings of the names are
    read. The place is the line, or the number of the observation where a document holds several.

What it cannot tell
    The body, unless the application gave Langfuse the whole Messages API body as `input`: mostly it
    is a list of messages. Langfuse's counters are buckets that do not overlap, but what an
    application stores is kept as it is: a `total` that shows that `input` holds the cached part is
    followed. Costs are Langfuse's own estimate unless the application gave them.

Privacy
    `input` and `output` are your prompts and answers; user ids and metadata are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxdoc.reading.formats.base import (
    UNREADABLE,
    Format,
    Item,
    between,
    read_cost,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared import tracked_usage
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.reading.formats.shared.body_kind import is_messages_body
from ctxdoc.reading.formats.shared.wire import HttpExchange, answered
from ctxdoc.reading.source import Document, Source, reason_of
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Request
from ctxdoc.request.response import Response
from ctxdoc.request.usage import Usage

Values = Mapping[str, Any]
HOLDERS = ("", "data[].", "observations[].", "data.")
BESIDE_OLD = frozenset({"unit", "inputCost", "outputCost", "totalCost"})
"""Members of an old `usage` that are no counters."""
INPUT_NOTE = "body not compared: the input that Langfuse keeps is no whole Messages API body"


def _matches(source: Source) -> bool:
    return any(
        source.has(f"{holder}{start}", f"{holder}type", f"{holder}{trace}")
        for holder in HOLDERS
        for start, trace in (("startTime", "traceId"), ("start_time", "trace_id"))
    )


def _read(source: Source) -> Iterator[Item]:
    number = 0
    for document in source.documents():
        if isinstance(document, Skipped):
            yield document
            continue
        found = list(_read_document(document, number))
        number += len(found)
        yield from found


def _read_document(document: Document, before: int) -> Iterator[Item]:
    try:
        values = msgspec.json.decode(document.data, type=dict[str, Any])
    except UNREADABLE as error:
        yield Skipped(document.source, document.line, reason_of(error))
        return
    rows = _rows(values)
    if rows is None:
        yield _read_row(document, values, values)
        return
    if not rows:
        yield Skipped(document.source, document.line, "a page without observations", other=True)
    items = [
        _read_row(Document(document.source, before + number, b""), row, values)
        for number, row in enumerate(rows, start=1)
    ]
    yield from _oldest_first(items)


def _rows(values: Values) -> list[Any] | None:
    """The observations of a page or of a trace; None for one that stands alone."""
    page = values.get("data")
    inner = page if isinstance(page, Mapping) else values
    # A trace holds them itself; the pages of the API hold a list as their data.
    rows = inner.get("observations") if "observations" in inner else page
    return rows if isinstance(rows, list) else None


def _oldest_first(items: list[Item]) -> list[Item]:
    """Pages of the API have the newest first (observations-api page, 2026-11-30)."""
    times = [item.at for item in items if isinstance(item, Request) and item.at]
    return items[::-1] if times and times[0] > times[-1] else items


def _read_row(place: Document, row: Any, around: Values) -> Item:
    try:
        if not isinstance(row, Mapping):
            return Skipped(place.source, place.line, "no observation")
        kind = text_of(row.get("type")).upper()
        if kind not in ("GENERATION", ""):
            reason = f"an observation of the type {kind[:40]}, no call of a model"
            return Skipped(place.source, place.line, reason, other=True)
        return _request(place, row, around)
    except UNREADABLE as error:
        return Skipped(place.source, place.line, reason_of(error))


def _request(place: Document, row: Values, around: Values) -> Item:
    response, stated = _response(row), _value(row.get("input"))
    body = dict(stated) if isinstance(stated, Mapping) and is_messages_body(stated) else None
    if body is None and response.usage is None and not response.error:
        return Skipped(place.source, place.line, "neither a body nor counters of a call")
    found = answered(_exchange(place, row, around, body), response, INPUT_NOTE if stated else "")
    model = text_of(_of(row, "model", "providedModelName")) or found.model
    return replace(found, model=model, cost_reported=read_cost(_cost(row)))


def _exchange(
    place: Document, row: Values, around: Values, body: dict[str, Any] | None
) -> HttpExchange:
    start = read_time(_of(row, "startTime"))
    # A trace has the session for all of its observations, and stands for one where it has none.
    session = _of(row, "sessionId") or _of(around, "sessionId") or _of(row, "traceId")
    return HttpExchange(
        source=place.source,
        line=place.line,
        request=body,
        at=start,
        duration=between(start, read_time(_of(row, "endTime"))),
        session=text_of(session),
    )


def _response(row: Values) -> Response:
    failed = row.get("level") == "ERROR"
    said = text_of(_of(row, "statusMessage")) or "error"
    return Response(id=text_of(row.get("id")), error=said if failed else "", usage=_usage(row))


def _usage(row: Values) -> Usage | None:
    """The counters; those of old versions are in `usage`, with a unit and costs beside them."""
    details = _value(_of(row, "usageDetails"))
    if isinstance(details, Mapping) and details:
        return tracked_usage.langfuse(details)
    old = counters.part(row, "usage")
    if old.get("unit") != "TOKENS":
        return None
    return tracked_usage.langfuse({name: old[name] for name in old.keys() - BESIDE_OLD})


def _cost(row: Values) -> Any:
    details = _value(_of(row, "costDetails"))
    stated = details.get("total") if isinstance(details, Mapping) else None
    return _of(row, "totalCost", "calculatedTotalCost") if stated is None else stated


def _of(row: Values, *names: str) -> Any:
    """A member by its name in the API, or as files spell it: `startTime`, `start_time`."""
    for name in names:
        snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
        for spelled in (name, snake):
            if row.get(spelled) not in (None, ""):
                return row[spelled]
    return None


def _value(stated: Any) -> Any:
    """A value that may be written as JSON inside of a text."""
    if isinstance(stated, str) and stated.lstrip()[:1] == "{":
        try:
            return msgspec.json.decode(stated)
        except (msgspec.DecodeError, RecursionError):
            return stated
    return stated


FORMAT = Format(
    id="langfuse",
    title="Langfuse observations",
    example="observations_v2/2026-11-20.jsonl",
    traits=frozenset({Trait.TIME, Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=_read,
)
