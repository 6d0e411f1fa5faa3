"""OpenTelemetry traces as OTLP JSON, with the attributes of the GenAI convention.

How to get one
    Let an OpenTelemetry Collector write with its `file` exporter (`format: json`), or save what
    your SDK posts to `/v1/traces` with `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/json`.

What a record holds
    Each trace span; its place is its number in the file. Calls of a model have `gen_ai.usage.*`
    counters, model, start, end and mostly `gen_ai.conversation.id`. Both generations of the
    convention are read (`prompt_tokens` and `input_tokens`), and OpenInference's `llm.token_count.*`.

What it cannot tell
    The body: `gen_ai.input.messages` and `gen_ai.prompt` have a shape of their own, without
    cache_control. Only where an attribute holds a whole Messages API body (OpenInference's
    `input.value`) is it used. The lifetimes of writes are not in the convention. By the convention
    the input holds the cached part; an instrumentation that passes on Anthropic's own
    `input_tokens` contradicts itself when the cache is large, and is not noticed when it is small.
    A trace span around other calls sums them up and is skipped.

Privacy
    Prompts are in the attributes only if your instrumentation captures content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.reading.formats.base import UNREADABLE, Format, Item, between, read_time, text_of
from ctxdoc.reading.formats.shared import tracked_usage
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.reading.formats.shared.body_kind import is_messages_body
from ctxdoc.reading.formats.shared.members import objects_in
from ctxdoc.reading.formats.shared.wire import HttpExchange, answered
from ctxdoc.reading.source import Document, Source, reason_of
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.response import Response
from ctxdoc.request.usage import Usage

Values = Mapping[str, Any]
CALLS = ("chat", "text_completion", "generate_content", "completion")
OPERATION = "gen_ai.operation.name"
MODELS = ("gen_ai.request.model", "llm.model_name", "gen_ai.response.model")
SESSIONS = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
)
PROMPTS = ("gen_ai.prompt", "gen_ai.input.messages", "gen_ai.prompt.0.role", "input.value")
MAX_DIGITS = 20
"""A 64-bit integer has no more."""
PROMPT_NOTE = "body not compared: the trace keeps the messages in a shape of its own"


class _Call(Struct, frozen=True):
    """A trace span with its attributes as plain values."""

    span: Values
    attributes: Values
    usage: Usage | None

    @property
    def id(self) -> str:
        return text_of(self.span.get("spanId"))

    @property
    def parent(self) -> str:
        return text_of(self.span.get("parentSpanId"))


def _matches(source: Source) -> bool:
    return source.has("resourceSpans")


def _read(source: Source) -> Iterator[Item]:
    number = 0
    for document in source.documents():
        if isinstance(document, Skipped):
            yield document
            continue
        for item in _read_document(document, number):
            number += 1
            yield item


def _read_document(document: Document, before: int) -> Iterator[Item]:
    try:
        values = msgspec.json.decode(document.data, type=dict[str, Any])
        spans = list(_spans(values))
    except UNREADABLE as error:
        yield Skipped(document.source, before + 1, reason_of(error))
        return
    if not spans:
        yield Skipped(document.source, before + 1, "an export without trace spans", other=True)
    places = [Document(document.source, before + n, b"") for n in range(1, len(spans) + 1)]
    found = [_call_or_skipped(place, span) for place, span in zip(places, spans, strict=True)]
    sums = _around([call for call in found if isinstance(call, _Call)], spans)
    for place, call in zip(places, found, strict=True):
        yield call if isinstance(call, Skipped) else _item(place, call, sums)


def _item(place: Document, call: _Call, sums: frozenset[str]) -> Item:
    """The request of a call; the counters of a trace span around others would count these twice."""
    if call.id in sums:
        reason = "a trace span around other calls: its counters are their sum"
        return Skipped(place.source, place.line, reason, other=True)
    return _request(place, call)


def _spans(values: Values) -> Iterator[Values]:
    """The trace spans of an export; `instrumentationLibrarySpans` is the name before 2022."""
    for resource in objects_in(values.get("resourceSpans")):
        old = resource.get("instrumentationLibrarySpans")
        for scope in objects_in(resource.get("scopeSpans") or old):
            yield from objects_in(scope.get("spans"))


def _call_or_skipped(place: Document, span: Values) -> _Call | Skipped:
    try:
        attributes: dict[str, Any] = {}
        # Older conventions put prompts into events; what the span itself says wins.
        for holder in (*objects_in(span.get("events")), span):
            attributes.update(_attributes(holder))
        operation = text_of(attributes.get(OPERATION))
        if operation and operation not in CALLS:
            return Skipped(
                place.source, place.line, f"no call of a model: {operation[:40]}", other=True
            )
        usage = tracked_usage.otel(attributes)
    except UNREADABLE as error:
        return Skipped(place.source, place.line, reason_of(error))
    # A call that failed may have no counters; its operation still names it.
    if usage is None and not operation:
        named = text_of(span.get("name"))[:40]
        return Skipped(
            place.source, place.line, f"a trace span without counters: {named}", other=True
        )
    return _Call(span, attributes, usage)


def _attributes(holder: Values) -> dict[str, Any]:
    """Attributes as plain values; lists and objects stay in their OTLP form."""
    found: dict[str, Any] = {}
    for row in objects_in(holder.get("attributes")):
        value = row.get("value")
        if isinstance(value, Mapping):
            found[text_of(row.get("key"))] = _plain(value)
    return found


def _plain(value: Values) -> Any:
    """A value of OTLP JSON: 64-bit integers are strings there."""
    if "intValue" in value:
        digits = str(value["intValue"])
        if len(digits) > MAX_DIGITS:
            raise ValueError("an intValue of more than 64 bits")
        return int(digits)
    return next(
        (value[kind] for kind in ("stringValue", "doubleValue", "boolValue") if kind in value),
        value,
    )


def _around(calls: list[_Call], spans: list[Values]) -> frozenset[str]:
    """The ids of the trace spans that have a call with counters below them."""
    parents = {text_of(s.get("spanId")): text_of(s.get("parentSpanId")) for s in spans}
    around: set[str] = set()
    for call in calls:
        # Up to where another call has been already: trace spans that name each other end too.
        above = call.parent if call.usage is not None else ""
        while above and above not in around:
            around.add(above)
            above = parents.get(above, "")
    return frozenset(around)


def _request(place: Document, call: _Call) -> Item:
    attributes, response, body = call.attributes, _response(call), _body(call.attributes)
    if body is None and response.usage is None and not response.error:
        return Skipped(place.source, place.line, "neither a body nor counters of a call")
    start = _nanoseconds(call.span.get("startTimeUnixNano"))
    exchange = HttpExchange(
        source=place.source,
        line=place.line,
        request=body,
        at=start,
        duration=between(start, _nanoseconds(call.span.get("endTimeUnixNano"))),
        session=_first(attributes, SESSIONS) or text_of(call.span.get("traceId")),
    )
    prompted = any(name in attributes for name in PROMPTS)
    found = answered(exchange, response, PROMPT_NOTE if prompted else "")
    return replace(found, model=_first(attributes, MODELS) or found.model)


def _response(call: _Call) -> Response:
    status = counters.part(call.span, "status")
    failed = status.get("code") in (2, "STATUS_CODE_ERROR")
    said = text_of(status.get("message")) or text_of(call.attributes.get("error.type"))
    return Response(
        id=text_of(call.attributes.get("gen_ai.response.id")),
        model=text_of(call.attributes.get("gen_ai.response.model")),
        error=(said or "error") if failed else "",
        usage=call.usage,
    )


def _body(attributes: Values) -> dict[str, Any] | None:
    """A whole Messages API body, if an attribute holds one as text."""
    for name in PROMPTS:
        text = text_of(attributes.get(name))
        if text.lstrip()[:1] == "{":
            try:
                values = msgspec.json.decode(text)
            except (msgspec.DecodeError, RecursionError):
                continue
            if is_messages_body(values) and isinstance(values, dict):
                return values
    return None


def _nanoseconds(value: Any) -> datetime | None:
    """A time as OTLP JSON has it: nanoseconds since 1970 as text, or as a number."""
    digits = str(int(value) if isinstance(value, float) else value)
    return read_time(int(digits) / 1e9) if digits.isdecimal() and len(digits) < MAX_DIGITS else None


def _first(attributes: Values, names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := text_of(attributes.get(name)))), "")


FORMAT = Format(
    id="otlp",
    title="OpenTelemetry traces (OTLP JSON)",
    example="traces.jsonl",
    traits=frozenset({Trait.TIME, Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=_read,
)
