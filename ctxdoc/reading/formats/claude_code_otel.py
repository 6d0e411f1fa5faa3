"""Claude Code's own request and response bodies, found through its OpenTelemetry events.

How to get one
    Start Claude Code with CLAUDE_CODE_ENABLE_TELEMETRY=1, OTEL_LOGS_EXPORTER=otlp and
    OTEL_LOG_RAW_API_BODIES=file:DIR. It writes DIR/<uuid>.request.json and
    DIR/<request id>.response.json, and from 2.1.274 on an index.jsonl beside them: give ctxdoc DIR.
    For older versions, and for counters, cost and failed attempts, have a collector write the
    events to a file (its file exporter, JSON) and put that file into DIR. One event a line works
    too, with its attributes at the top or under `attributes`. What OTEL_LOGS_EXPORTER=console
    prints is no JSON and cannot be read.

What a record holds
    `claude_code.api_request_body` and `claude_code.api_response_body`: `body_ref`, the name of the
    file, or `body` with the text; `claude_code.api_request`: counters, cost, duration;
    `claude_code.api_error`. They belong together by `request_body_id` (from 2.1.274 on), by
    `request_id`, or else by their order within session, model and `query_source`.

What it cannot tell
    OTEL_LOG_RAW_API_BODIES=1 puts the bodies into the events and cuts them at 60 KB: of a cut one
    only the counters are used. Thinking is always replaced by <REDACTED>, so a change in a thinking
    block is not seen, and the bytes are not exactly those that were sent. Without the
    response body, the lifetimes of the writes are unknown.

Privacy
    The bodies are your whole conversations, with file contents and tool results. Files are opened
    in the folder of the event log only, whatever path an event names. E-mail and account of an
    event are not kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path, PureWindowsPath
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxdoc.reading.formats.base import (
    UNREADABLE,
    Format,
    Item,
    read_body,
    read_duration,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared.answer import read_answer
from ctxdoc.reading.formats.shared.otel_events import (
    PREFIX,
    TAKERS,
    Attributes,
    Call,
    Event,
    calls_of,
    iter_events,
    iter_flat,
)
from ctxdoc.reading.formats.shared.usage import beside, count
from ctxdoc.reading.source import MAX_DOCUMENT, Source, reason_of
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Body, Request
from ctxdoc.request.response import Response

REQUEST_FILE, RESPONSE_FILE = ".request.json", ".response.json"
BODY_FILES = (REQUEST_FILE, RESPONSE_FILE)
EVENT, INDEXED = b"api_request_body", b'"request_file"'
"""What an event log and an index have in them."""
INDEX = frozenset({"request_file", "response_file", "request_id"})
MAIN = frozenset({"", "repl_main_thread", "sdk", "compact"})
"""Values of query_source whose requests continue the main conversation."""
COUNTERS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_creation_tokens",
)


def _matches(source: Source) -> bool:
    if _is_body_file(source):
        return True
    if INDEXED in source.head and source.has(*INDEX):
        return True
    if PREFIX.encode() not in source.head and b"api_request" not in source.head:
        return False
    if source.has("resourceLogs[].scopeLogs"):
        return PREFIX.encode() in source.head
    found = list(iter_flat(0, source.first))
    return bool(found) and (PREFIX.encode() in source.head or found[0].name in TAKERS)


def _is_body_file(source: Source) -> bool:
    if source.name.endswith(RESPONSE_FILE):
        return source.has("content", "usage") or source.has("type", "error")
    walked = source.walk is not None and source.name.endswith(REQUEST_FILE)
    return walked and source.has("messages") and _is_beside_log(source)


def _is_beside_log(source: Source) -> bool:
    """Whether a log in the folder being read names the body files."""
    walk = source.walk
    return walk is not None and any(walk.mentions(word, BODY_FILES) for word in (EVENT, INDEXED))


def _read(source: Source) -> Iterator[Item]:
    if source.name.endswith(BODY_FILES):
        if not _is_beside_log(source):
            reason = (
                "a response without its request: give the event log or index.jsonl of the folder"
            )
            yield Skipped(source.name, 1, reason)
        return
    if source.has(*INDEX):
        yield from _indexed(source)
        return
    events: list[Event] = []
    yield from _collect(source, events)
    for call in calls_of(events):
        try:
            yield _item(source, call)
        except UNREADABLE as error:
            yield Skipped(source.name, call.first.line, reason_of(error))


def _collect(source: Source, events: list[Event]) -> Iterator[Skipped]:
    """Appends the events of calls; what else is in the log is skipped by its name."""
    for document in source.documents():
        if isinstance(document, Skipped):
            yield document
            continue
        try:
            found = list(iter_events(document))
        except UNREADABLE as error:
            yield Skipped(source.name, document.line, reason_of(error))
            continue
        wanted = [event for event in found if event.name in TAKERS]
        events += wanted
        if not wanted:
            names = ", ".join(sorted({event.name for event in found})) or "no event of Claude Code"
            yield Skipped(source.name, document.line, f"no model call: {names[:80]}", other=True)


def _item(source: Source, call: Call) -> Item:
    notes: list[str] = []
    body = _body(source, call.sent, notes)
    response = _response(source, call, notes)
    if body is None and (response is None or response.usage is None):
        reason = notes[0] if notes else _failure(call) or "neither a body nor counters"
        return Skipped(source.name, call.first.line, reason)
    if call.guessed:
        notes.append("paired with its response by their order alone, other requests were open")
    attributes = call.first.attributes
    model = text_of(attributes.get("model")) or (response.model if response else "")
    return Request(
        source=source.name,
        line=call.first.line,
        model=(body.model if body else None) or model,
        body=body,
        at=_start_of(call),
        duration=_duration(call),
        session=_session(attributes, "session.id"),
        headers=_headers(call),
        response=response,
        cost_reported=_cost(call.counted),
        notes=tuple(notes),
    )


def _session(attributes: Attributes, name: str) -> str:
    """Sub-agents share the session's id and interleave with it: they get one of their own."""
    session = text_of(attributes.get(name))
    asked_by = text_of(attributes.get("query_source"))
    return session if asked_by in MAIN or not session else f"{session}/{asked_by}"


def _headers(call: Call) -> dict[str, str]:
    organization = text_of(call.first.attributes.get("organization.id"))
    rows = {"request-id": call.request_id, "anthropic-organization-id": organization}
    return {name: value for name, value in rows.items() if value}


def _start_of(call: Call) -> datetime | None:
    """A request is noted when it is sent, everything else when the response has ended."""
    if call.sent is not None or call.first.at is None:
        return call.first.at
    return call.first.at - timedelta(seconds=_duration(call) or 0)


def _duration(call: Call) -> float | None:
    if call.counted is not None:
        return read_duration(_number(call.counted.attributes.get("duration_ms")))
    if call.sent and call.answered and call.sent.at and call.answered.at:
        return read_duration((call.answered.at - call.sent.at).total_seconds() * 1000)
    return None


def _cost(event: Event | None) -> Decimal | None:
    if event is None:
        return None
    try:
        cost = Decimal(str(event.attributes.get("cost_usd")))
        return cost if 0 <= cost < 1_000_000 else None
    except InvalidOperation:
        return None


def _number(value: Any) -> Any:
    """A number that an exporter has spelled as text."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 20:
        return int(value)
    return value


def _body(source: Source, event: Event | None, notes: list[str]) -> Body | None:
    data = _data(source, event, "request", notes)
    if data is None:
        return None
    try:
        return read_body(data)
    except UNREADABLE as error:
        notes.append(f"body not used: {reason_of(error)}")
        return None


def _response(source: Source, call: Call, notes: list[str]) -> Response | None:
    response = None
    data = _data(source, call.answered, "response", notes)
    try:
        response = read_answer(data)
    except UNREADABLE as error:
        notes.append(f"response not used: {reason_of(error)}")
    response = _with_counters(response, call.counted, notes)
    failure = _failure(call)
    if failure:
        return replace(response or Response(), error=failure)
    if call.sent and not call.answered and not call.counted:
        notes.append("no response in the log: an attempt that failed, or the log ends here")
    return response


def _failure(call: Call) -> str:
    if call.failed is None:
        return ""
    attributes = call.failed.attributes
    return text_of(attributes.get("error")) or f"status {attributes.get('status_code')}"


def _with_counters(
    response: Response | None, event: Event | None, notes: list[str]
) -> Response | None:
    """The response's own counters know the lifetimes of the writes; those of the event are there
    when the body is cut."""
    if event is None:
        return response
    try:
        values = {name: _number(event.attributes.get(name)) for name in COUNTERS}
        total, output, read, written = (count(values, name) for name in COUNTERS)
    except msgspec.ValidationError as error:
        notes.append(f"counters not used: {error}")
        return response
    counted = beside(total, read, written, None, output)
    speed = "fast" if event.attributes.get("speed") == "fast" else ""
    if response is None or response.usage is None:
        return replace(response or Response(speed=speed), usage=counted)
    if (counted.input, counted.cache_read) != (response.usage.input, response.usage.cache_read):
        notes.append("the event's counters differ from those of the response, which are used")
    return response


def _data(source: Source, event: Event | None, what: str, notes: list[str]) -> bytes | None:
    """A body, from the event or from the file that it names."""
    if event is None:
        return None
    attributes = event.attributes
    if str(attributes.get("body_truncated")).lower() == "true":
        size = _number(attributes.get("body_length"))
        whole = f" of {size:,} characters" if isinstance(size, int) else ""
        notes.append(f"the recorder cut the {what} body{whole}")
        return None
    if isinstance(attributes.get("body"), str) and "body_ref" not in attributes:
        return str(attributes["body"]).encode("utf-8", "replace")
    named = text_of(attributes.get("body_ref"))
    if not named:
        notes.append(f"the event holds no {what} body")
        return None
    return _file(source.folder, named, notes)


def _file(folder: Path | None, named: str, notes: list[str]) -> bytes | None:
    """A body file of the log's own folder.

    The folder may have been moved since: only the name of the file counts, and nothing outside is
    opened, neither through `..` nor through a link.
    """
    path = PureWindowsPath(named)
    if folder is None:
        notes.append("the bodies are files beside the log: give the folder")
        return None
    if ".." in path.parts or not path.name.endswith(BODY_FILES):
        notes.append(f"not a body file of the log's folder: {named[:80]}")
        return None
    file = folder / path.name
    try:
        if not file.is_file() or not file.resolve().is_relative_to(folder.resolve()):
            notes.append(f"not beside the log: {path.name[:80]}")
            return None
        with file.open("rb") as stream:
            data = stream.read(MAX_DOCUMENT + 1)
    except (OSError, ValueError) as error:
        notes.append(f"cannot read {path.name[:80]}: {error}")
        return None
    if len(data) > MAX_DOCUMENT:
        notes.append(f"{path.name[:80]} is over {MAX_DOCUMENT >> 20} MB")
        return None
    return data


def _indexed(source: Source) -> Iterator[Item]:
    """The calls of an index.jsonl, and the request files that it does not name."""
    named: set[str] = set()
    for document in source.documents():
        if isinstance(document, Skipped):
            yield document
            continue
        try:
            row = msgspec.json.decode(document.data, type=dict[str, Any])
            named.add(PureWindowsPath(text_of(row.get("request_file"))).name)
            yield _item(source, _call_of_row(document.line, row))
        except UNREADABLE as error:
            yield Skipped(source.name, document.line, reason_of(error))
    if source.walk is not None and not source.walk.mentions(EVENT, BODY_FILES):
        for file in sorted(source.walk.folder.glob(f"*{REQUEST_FILE}")):
            if file.name not in named:
                reason = "is not in the index: an attempt that failed, or was still running"
                yield Skipped(source.name, 1, f"{file.name!a} {reason}")


def _call_of_row(line: int, row: Attributes) -> Call:
    shared = {
        "model": row.get("model"),
        "session.id": row.get("session_id"),
        "query_source": row.get("query_source"),
    }
    at = read_time(row.get("timestamp"))
    sent = Event(line, "api_request_body", {**shared, "body_ref": row.get("request_file")}, at)
    answered = {**shared, "body_ref": row.get("response_file")}
    return Call(
        sent,
        sent=sent,
        answered=Event(line, "api_response_body", answered, None),
        request_id=text_of(row.get("request_id")),
    )


FORMAT = Format(
    id="claude_code_otel",
    title="Claude Code raw bodies (OpenTelemetry)",
    example="bodies/index.jsonl",
    traits=frozenset({Trait.PARSED_BYTES, Trait.TIME, Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=_read,
)
