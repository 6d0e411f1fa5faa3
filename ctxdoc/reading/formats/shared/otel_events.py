"""Claude Code's OpenTelemetry events, and which of them belong to one call."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from ctxdoc.reading.formats.base import read_time, text_of
from ctxdoc.reading.source import Document

PREFIX = "claude_code."
Attributes = Mapping[str, Any]


class Event(Struct, frozen=True):
    """One log event."""

    line: int
    name: str
    """Without `claude_code.`."""
    attributes: Attributes
    at: datetime | None


class Call(Struct):
    """The events of one call, as they come together."""

    first: Event
    sent: Event | None = None
    answered: Event | None = None
    counted: Event | None = None
    failed: Event | None = None
    request_id: str = ""
    guessed: bool = False
    """Whether several calls were open when the answer came, and nothing but the order told which."""


def iter_events(document: Document) -> Iterator[Event]:
    """The events of a document: an OTLP export, or one event.

    Raises what a broken document makes of that: ctxdoc.reading.formats.base.UNREADABLE.
    """
    value = msgspec.json.decode(document.data)
    if not isinstance(value, dict):
        return
    if not isinstance(value.get("resourceLogs"), list):
        yield from iter_flat(document.line, value)
        return
    for record in msgspec.convert(value, _Export).records():
        yield from _otlp(document.line, record)


class _Attribute(Struct):
    key: Any = None
    value: Any = None


class _Record(Struct, rename="camel"):
    attributes: list[_Attribute] | None = None
    body: Any = None
    event_name: Any = None
    time_unix_nano: Any = None
    observed_time_unix_nano: Any = None


class _Scope(Struct, rename="camel"):
    log_records: list[_Record] | None = None


class _Resource(Struct, rename="camel"):
    scope_logs: list[_Scope] | None = None


class _Export(Struct, rename="camel"):
    """An OTLP export of logs (opentelemetry-proto, logs.proto)."""

    resource_logs: list[_Resource]

    def records(self) -> Iterator[_Record]:
        """The records of all resources and scopes."""
        for resource in self.resource_logs:
            for scope in resource.scope_logs or ():
                yield from scope.log_records or ()


def _otlp(line: int, record: _Record) -> Iterator[Event]:
    """One OTLP log record."""
    attributes = {text_of(row.key): _plain(row.value) for row in record.attributes or ()}
    nanoseconds = text_of(record.time_unix_nano or record.observed_time_unix_nano)
    at = int(nanoseconds) / 1e9 if nanoseconds.isdecimal() and len(nanoseconds) < 20 else None
    yield from _event(line, (_plain(record.body), record.event_name), attributes, at)


def _plain(value: Any) -> Any:
    """The value of an OTLP AnyValue; 64-bit numbers are spelled as text there."""
    if isinstance(value, Mapping) and len(value) == 1:
        (kind, inner), *_ = value.items()
        return int(inner) if kind == "intValue" and isinstance(inner, str) else inner
    return None


def iter_flat(line: int, record: Mapping[str, Any]) -> Iterator[Event]:
    """One event as an object, its attributes at the top or below `attributes`."""
    inner = record.get("attributes")
    attributes = inner if isinstance(inner, Mapping) else record
    names = (record.get(key) for key in ("body", "name", "event", "eventName", "event_name"))
    yield from _event(line, names, attributes, record.get("timestamp"))


def _event(line: int, names: Any, attributes: Attributes, at: Any) -> Iterator[Event]:
    stated = (name for name in names if text_of(name).startswith(PREFIX))
    name = text_of(attributes.get("event.name")) or next(stated, "")
    if name:
        time = read_time(attributes.get("event.timestamp")) or read_time(at)
        yield Event(line, name.removeprefix(PREFIX), attributes, time)


def calls_of(events: list[Event]) -> list[Call]:
    """The calls in the order of their first event."""
    # Exporters send in batches of their own order; without times that of the file has to do.
    if all(event.at for event in events):
        events = sorted(events, key=_order)
    calls: list[Call] = []
    for event in events:
        TAKERS[event.name](calls, event)
    return calls


def _order(event: Event) -> tuple[datetime, int]:
    sequence = event.attributes.get("event.sequence")
    assert event.at is not None
    return event.at, sequence if isinstance(sequence, int) else 0


def _take_request(calls: list[Call], event: Event) -> None:
    calls.append(Call(event, sent=event))


def _take_answer(calls: list[Call], event: Event) -> None:
    call = _call_of(calls, event, lambda call: call.answered is None and call.failed is None)
    call.answered = event


def _take_counters(calls: list[Call], event: Event) -> None:
    call = _call_of(calls, event, lambda call: call.counted is None and call.failed is None)
    call.counted = event


def _take_error(calls: list[Call], event: Event) -> None:
    call = _call_of(calls, event, lambda call: call.answered is None and call.counted is None)
    call.failed = event


TAKERS: Mapping[str, Callable[[list[Call], Event], None]] = {
    "api_request_body": _take_request,
    "api_response_body": _take_answer,
    "api_request": _take_counters,
    "api_error": _take_error,
}
_NEAR = 256
"""Calls back in which an event's own call is looked for."""


class _Ids(Struct, frozen=True):
    """What an event says of the call that it is part of; either may be empty."""

    body: str
    request: str

    def is_body_of(self, call: Call) -> bool:
        """Whether the call was noted with that body."""
        return bool(self.body) and self.body == call.first.attributes.get("request_body_id")

    def is_request_of(self, call: Call) -> bool:
        """Whether an earlier event of the call names that request."""
        return bool(self.request) and self.request == call.request_id

    def differ_from(self, call: Call) -> bool:
        """Whether an id of the call says that an event is not its own."""
        own = call.first.attributes.get("request_body_id")
        return bool((self.request and call.request_id) or (self.body and own))


def _call_of(calls: list[Call], event: Event, is_open: Callable[[Call], bool]) -> Call:
    """The call that an event belongs to: a new one when there is none."""
    ids = _Ids(
        text_of(event.attributes.get("request_body_id")),
        text_of(event.attributes.get("request_id")),
    )
    near = [call for call in calls[: -_NEAR - 1 : -1] if is_open(call)]
    opened = [call for call in near if _key(call.first) == _key(event)]
    found = _named(near, opened, ids)
    if found is None:
        found = _next_in_order(opened, event, ids)
    if found is None:
        found = Call(event)
        calls.append(found)
    found.request_id = found.request_id or ids.request
    return found


def _named(near: list[Call], opened: list[Call], ids: _Ids) -> Call | None:
    """The call that an id names: that of the body, which older versions do not write, counts more."""
    by_body = next(filter(ids.is_body_of, opened), None)
    return by_body or next(filter(ids.is_request_of, near), None)


def _next_in_order(opened: list[Call], event: Event, ids: _Ids) -> Call | None:
    """The call by order alone: one that has an answer or counters already waits for the other."""
    ordered = sorted(
        (call for call in opened if not ids.differ_from(call)),
        key=lambda call: call.answered is None and call.counted is None,
    )
    if not ordered:
        return None
    if event.name == "api_response_body":
        ordered[0].guessed = len(ordered) > 1
    return ordered[0]


def _key(event: Event) -> tuple[Any, ...]:
    names = ("session.id", "query_source", "model")
    return tuple(text_of(event.attributes.get(name)) for name in names)
