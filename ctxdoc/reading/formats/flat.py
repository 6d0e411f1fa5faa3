"""One object a line with the counters of a call, and its body or not.

How to get one
    Append `{"timestamp", "session_id", "model", "usage": response.usage}` to a file after each call.
    With the fields of the request in the same object, `{**body, "usage": ...}`, causes are found
    too.

What a record holds
    Time, session, model and `usage` as the provider spells it; or the counters beside the model
    without a `usage` around them. Where the Messages API's `messages` stand in the object, they and
    their `tools`, `system` and settings are the body. `cost_usd` and `duration_ms` are read.

What it cannot tell
    Without body: what changed between two calls. With it: the order of the fields as sent, which is
    the recorder's. A file whose first line is longer than 256 kB and ends with `usage` is taken for
    bare bodies: put `usage` and `timestamp` before `messages`.

Privacy
    Without body the lines hold no prompt; `session_id` is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ctxdoc.reading.formats.base import (
    Format,
    Item,
    by_document,
    opens_json,
    read_body,
    read_cost,
    read_duration,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared.answer import response_of
from ctxdoc.reading.formats.shared.body_kind import OPENAI_BODY, is_messages_body
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Body, Request
from ctxdoc.request.response import Response

Values = Mapping[str, Any]
COUNTERS = ("input_tokens", "prompt_tokens", "inputTokens", "promptTokenCount")
OTHERS = frozenset(
    (
        "message",
        "subtype",
        "request",
        "response",
        "call_type",
        "kwargs",
        "events",
        "samples",
        "event",
        "attributes",
        "interactions",
        "usageDetails",
        "usage_details",
        "traceId",
        "trace_id",
    )
)
"""Members of logs that have a format of their own."""
TIMES = ("timestamp", "ts", "time", "created_at", "created")
SESSIONS = ("session_id", "sessionId", "session", "conversation_id")
ANSWER_IDS = ("msg_", "chatcmpl-", "resp_", "gen-")


def _matches(source: Source) -> bool:
    shapes = source.shapes if opens_json(source) else ()
    return all(shape.isdisjoint(OTHERS) for shape in shapes) and any(map(_is_flat, shapes))


def _is_flat(shape: frozenset[str]) -> bool:
    if any(f"usage.{name}" in shape for name in COUNTERS):
        return True
    return "model" in shape and not shape.isdisjoint(COUNTERS)


def _read(document: Document) -> Item:
    values = msgspec.json.decode(document.data, type=dict[str, Any])
    notes: list[str] = []
    response = _response(values)
    body = _body(document, values, notes)
    if body is None and response is None and not notes:
        return Skipped(document.source, document.line, "neither a body nor counters of a call")
    return Request(
        source=document.source,
        line=document.line,
        model=text_of(values.get("model")),
        body=body,
        at=read_time(_first(values, TIMES)),
        duration=read_duration(_first(values, ("duration_ms", "latency_ms"))),
        session=text_of(_first(values, SESSIONS)),
        response=response,
        cost_reported=read_cost(_first(values, ("cost_usd", "cost"))),
        notes=tuple(notes),
    )


def _response(values: Values) -> Response | None:
    usage = values.get("usage")
    # Some write the counters beside the model, without a `usage` around them.
    stated = usage if isinstance(usage, Mapping) and usage else values
    found = response_of({"id": _answer_id(values), "error": values.get("error"), "usage": stated})
    return found if found.usage is not None or found.error else None


def _answer_id(values: Values) -> str:
    """The id of the answer; an `id` of another kind may be that of a row, a user or a session."""
    named = text_of(_first(values, ("response_id", "message_id")))
    # An id of a row, taken for that of an answer, would make two records one request.
    own = text_of(values.get("id"))
    return named or (own if own.startswith(ANSWER_IDS) else "")


def _body(document: Document, values: Values, notes: list[str]) -> Body | None:
    if is_messages_body(values):
        try:
            return read_body(document.data)
        except msgspec.MsgspecError as error:
            notes.append(f"body not used: {error}")
    elif isinstance(values.get("messages"), list):
        notes.append(OPENAI_BODY)
    return None


def _first(values: Values, names: tuple[str, ...]) -> Any:
    return next((values[name] for name in names if values.get(name) is not None), None)


FORMAT = Format(
    id="flat",
    title="usage by line",
    example="usage.jsonl",
    traits=frozenset({Trait.PARSED_BYTES, Trait.TIME, Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=by_document(_read),
)
