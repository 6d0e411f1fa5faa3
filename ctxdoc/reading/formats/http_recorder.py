"""Cassettes of http-recorder, a recorder for Effect: several requests a file, as JSON.

How to get one
    Put `HttpRecorder.layerFetch("name")` (npm package @opencode-ai/http-recorder) under the client
    and run the test once; the files stand below `test/fixtures/recordings`.

What a record holds
    Each interaction has the address, the headers and the body as text, and the same of the
    response; binary bodies are in base64. The time is the `date` of the response where it was kept,
    or else the time of the recording when the file has one interaction only.

What it cannot tell
    How long a request took; most headers are dropped, and with them the time of each request of a
    longer file. Calls over a websocket are skipped.

Privacy
    The bodies are your prompts. The recorder masks keys; ctxdoc keeps no header that can hold a
    secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.reading.formats.base import Format, Item, by_document, by_entry, read_base64, read_time
from ctxdoc.reading.formats.shared.exchange_record import (
    RecordedRequest,
    RecordedResponse,
    exchange_of,
)
from ctxdoc.reading.formats.shared.wire import request_of
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Skipped, Trait


class _RecordedResponse(RecordedResponse):
    body_encoding: Any = msgspec.field(name="bodyEncoding", default=None)


class _Interaction(Struct):
    request: RecordedRequest | None = None
    response: _RecordedResponse | None = None
    transport: str = "http"


class _Metadata(Struct, rename="camel"):
    recorded_at: Any = None


class _Cassette(Struct):
    interactions: list[Raw]
    metadata: _Metadata | None = None


def _matches(source: Source) -> bool:
    return source.has("version", "interactions[].request.url") or source.has(
        "version", "interactions[].transport"
    )


def _read(document: Document) -> Iterator[Item]:
    cassette = msgspec.json.decode(document.data, type=_Cassette)
    # The time of a recording is that of its end: with one call only it is near enough.
    alone = len(cassette.interactions) == 1
    at = read_time(cassette.metadata.recorded_at) if cassette.metadata and alone else None

    def read(number: int, raw: Raw | bytes) -> Item:
        return _read_interaction(document.source, number, raw, at)

    return by_entry(document.source, cassette.interactions, read)


def _read_interaction(source: str, number: int, raw: Raw | bytes, at: datetime | None) -> Item:
    interaction = msgspec.json.decode(raw, type=_Interaction)
    sent, got = interaction.request, interaction.response or _RecordedResponse()
    if sent is None:
        return Skipped(
            source, number, f"no request over HTTP: {interaction.transport[:80]}", other=True
        )
    exchange = exchange_of(source, number, sent, got)
    return request_of(
        replace(
            exchange,
            answer=read_base64(got.body) if got.body_encoding == "base64" else got.body,
            at=exchange.at or at,
        )
    )


FORMAT = Format(
    id="http_recorder",
    title="http-recorder cassette",
    example="test/fixtures/recordings/messages.json",
    traits=frozenset({Trait.EXACT_BYTES, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=by_document(_read),
)
