"""Amazon Bedrock's model invocation log.

How to get one
    Switch on "Model invocation logging" in the settings of the Bedrock console (or call
    PutModelInvocationLoggingConfiguration), with text data, to S3 or CloudWatch Logs. From S3 take
    the .json.gz files below AWSLogs/ACCOUNT/BedrockModelInvocationLogs: `aws s3 sync` into a
    folder, and give ctxdoc the folder. From CloudWatch:
    `aws logs filter-log-events --log-group-name GROUP --output json > log.json`.

What a record holds
    One call a line: `operation` (InvokeModel, InvokeModelWithResponseStream, Converse,
    ConverseStream), `modelId`, `timestamp`, `input.inputBodyJson`, `output.outputBodyJson`, and the
    counters beside them. A Converse body of a Claude model is read as the Messages API body that it
    stands for, each cachePoint as a breakpoint on the block before it.

What it cannot tell
    Bodies over 100 KB are files of their own in S3, named by inputBodyS3Path; they are not fetched,
    and of such a call only the counters are used. Converse bodies with documents, images in S3,
    video or guard content have no such counterpart and are left out. Sessions are not in the log.

Privacy
    The bodies are your prompts. Account and region are kept, because each has a cache of its own;
    the caller's identity is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.reading.formats.base import (
    UNREADABLE,
    Format,
    Item,
    by_document,
    read_body,
    read_duration,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared import converse
from ctxdoc.reading.formats.shared.answer import read_answer
from ctxdoc.reading.formats.shared.body_kind import is_messages_body
from ctxdoc.reading.formats.shared.usage import beside, count
from ctxdoc.reading.source import Document, Source, reason_of
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Body, Request
from ctxdoc.request.response import NULL, Response
from ctxdoc.request.usage import Usage

NAME = "ModelInvocationLog"


class _Input(Struct, rename="camel"):
    input_body_json: Raw = NULL
    input_body_s3_path: Any = msgspec.field(default=None, name="inputBodyS3Path")
    input_token_count: Any = None
    cache_read_input_token_count: Any = None
    cache_write_input_token_count: Any = None


class _Output(Struct, rename="camel"):
    output_body_json: Raw = NULL
    output_body_s3_path: Any = msgspec.field(default=None, name="outputBodyS3Path")
    output_token_count: Any = None


class _Record(Struct, rename="camel"):
    schema_type: Any = None
    model_id: str = ""
    operation: Any = None
    timestamp: Any = None
    request_id: Any = None
    account_id: Any = None
    region: Any = None
    inference_region: Any = None
    error_code: Any = None
    input: _Input | None = None
    output: _Output | None = None
    events: list[dict[str, Any]] | None = None
    """What `aws logs filter-log-events` prints: the records are texts in there."""


def _matches(source: Source) -> bool:
    if NAME.encode() not in source.head:
        return False
    return source.has("schemaType", "modelId") or source.has("events[].message")


def _read(document: Document) -> Iterator[Item]:
    record = msgspec.json.decode(document.data, type=_Record)
    if record.events is None:
        yield _request(document.source, document.line, record)
        return
    for number, event in enumerate(record.events, start=1):
        try:
            inner = msgspec.json.decode(text_of(event.get("message")), type=_Record)
            yield _request(document.source, number, inner)
        except UNREADABLE as error:
            yield Skipped(document.source, number, reason_of(error))


def _request(source: str, line: int, record: _Record) -> Item:
    if record.schema_type != NAME:
        return Skipped(source, line, f"calls no model: no {NAME}", other=True)
    notes: list[str] = []
    body = _body(record, notes)
    response = _response(record, notes)
    if body is None and (response is None or response.usage is None):
        reason = text_of(record.error_code) or "neither a body nor counters of a model call"
        return Skipped(source, line, notes[0] if notes else reason)
    return Request(
        source=source,
        line=line,
        model=record.model_id,
        body=body,
        at=read_time(record.timestamp),
        duration=_duration(record),
        headers=_headers(record),
        response=response,
        notes=tuple(notes),
    )


def _headers(record: _Record) -> dict[str, str]:
    """Each account and each region has a cache of its own."""
    rows = {
        "x-account": text_of(record.account_id),
        "x-upstream": text_of(record.inference_region) or text_of(record.region),
        "request-id": text_of(record.request_id),
    }
    return {name: value for name, value in rows.items() if value}


def _body(record: _Record, notes: list[str]) -> Body | None:
    sent = record.input or _Input()
    if bytes(sent.input_body_json) == b"null":
        # Its counters are in the record all the same.
        if sent.input_body_s3_path:
            notes.append("the body is a file of its own in S3 (inputBodyS3Path)")
        return None
    try:
        if text_of(record.operation).startswith("Converse"):
            body = converse.read_body(sent.input_body_json, record.model_id)
        elif is_messages_body(msgspec.json.decode(sent.input_body_json)):
            body = read_body(sent.input_body_json)
        else:
            notes.append("body not used: it is none of the Messages API")
            return None
    except UNREADABLE as error:
        notes.append(f"body not used: {reason_of(error)}")
        return None
    return replace(body, model=record.model_id)


def _response(record: _Record, notes: list[str]) -> Response | None:
    response = _answer(record.output or _Output(), notes)
    counted = _counted(record, notes)
    # The counters in the answer know the lifetimes of the writes, those beside it do not.
    if counted is not None and (response is None or response.usage is None):
        response = replace(response or Response(), usage=counted)
    failure = text_of(record.error_code)
    return replace(response or Response(), error=failure) if failure else response


def _answer(output: _Output, notes: list[str]) -> Response | None:
    body = bytes(output.output_body_json)
    if body == b"null":
        return None
    try:
        return read_answer(body)
    except UNREADABLE as error:
        notes.append(f"response not used: {reason_of(error)}")
        return None


def _counted(record: _Record, notes: list[str]) -> Usage | None:
    """The counters beside the bodies; the input is what no cache was used for."""
    sent, output = record.input or _Input(), record.output or _Output()
    values = {
        "input": sent.input_token_count,
        "read": sent.cache_read_input_token_count,
        "written": sent.cache_write_input_token_count,
        "output": output.output_token_count,
    }
    # Zero is a count; without either there was no answer.
    if values["input"] is None and values["output"] is None:
        return None
    try:
        total, read, written, out = (count(values, name) for name in values)
    except msgspec.ValidationError as error:
        notes.append(f"counters not used: {error}")
        return None
    return beside(total, read, written, None, out)


class _Metrics(Struct):
    metrics: Any = None


def _duration(record: _Record) -> float | None:
    output = record.output or _Output()
    try:
        metrics = msgspec.json.decode(output.output_body_json, type=_Metrics).metrics
    except UNREADABLE:
        return None
    return read_duration(metrics.get("latencyMs")) if isinstance(metrics, Mapping) else None


FORMAT = Format(
    id="bedrock_log",
    title="Amazon Bedrock model invocation log",
    example="BedrockModelInvocationLogs/2026/11/01/00/log.json.gz",
    traits=frozenset({Trait.PARSED_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=by_document(_read),
)
