"""Fixtures of ReqLLM, an Elixir client: one request and its response a file, as JSON.

How to get one
    `REQ_LLM_FIXTURES_MODE=record mix test` in a project with ReqLLM's test support; the files stand
    below `test/support/fixtures`.

What a record holds
    The request's bytes in base64 (`canonical_json` beside it is the same with sorted keys, and is
    not used), the response as values, or the pieces of a stream in base64. The time is the `date`
    of the response or else `captured_at`, which is written at the end.

What it cannot tell
    How long a request took.

Privacy
    The bodies are your prompts. The recorder masks the keys; ctxdoc keeps no header that can hold
    a secret.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.reading.formats.base import Format, Item, by_document, read_base64, read_time
from ctxdoc.reading.formats.shared.exchange_record import (
    ExchangeRecord,
    RecordedRequest,
    exchange_of,
)
from ctxdoc.reading.formats.shared.wire import request_of
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Trait


class _Piece(Struct):
    b64: str


class _RecordedRequest(RecordedRequest):
    body: _Piece = msgspec.field(default_factory=lambda: _Piece(""))


class _Record(ExchangeRecord):
    request: _RecordedRequest
    chunks: list[_Piece] | None = None
    captured_at: Any = None


def _matches(source: Source) -> bool:
    return source.has("request.body.b64") or source.has("captured_at", "chunks[].b64")


def _read(document: Document) -> Item:
    record = msgspec.json.decode(document.data, type=_Record)
    sent, got = record.request, record.response
    exchange = exchange_of(document.source, document.line, sent, got)
    return request_of(
        replace(
            exchange,
            # These are the bytes that were sent; the JSON beside them has its keys sorted.
            request=read_base64(sent.body.b64),
            answer=_answer(exchange.answer, record.chunks),
            at=exchange.at or read_time(record.captured_at),
        )
    )


def _answer(body: Any, chunks: list[_Piece] | None) -> Any:
    """The body, or the pieces put together: an event may begin in one and end in the next."""
    if body is None and chunks:
        return b"".join(read_base64(chunk.b64) for chunk in chunks)
    return body


FORMAT = Format(
    id="req_llm",
    title="ReqLLM fixture",
    example="test/support/fixtures/anthropic/basic.json",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=by_document(_read),
)
