"""Cassettes of the Datadog test agent: one request and its response a file, as JSON.

How to get one
    Run the test agent (`ddapm-test-agent`) and send the client's calls through its `/vcr/<provider>`
    address; the files stand in its cassette folder.

What a record holds
    The address, the headers and the body as text, and the same of the response. The time is the
    `date` of the response, to the second, where it was kept.

What it cannot tell
    How long a request took, and in which order the files of a folder were recorded within one
    second.

Privacy
    The bodies are your prompts. The agent leaves out the key; ctxdoc keeps no header that can hold
    a secret.
"""

from __future__ import annotations

import msgspec

from ctxdoc.reading.formats.base import Format, Item, by_document
from ctxdoc.reading.formats.shared.exchange_record import ExchangeRecord, exchange_of
from ctxdoc.reading.formats.shared.wire import request_of
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Trait

FOREIGN = frozenset({"request.timestamp", "request.body.b64", "captured_at", "interactions"})
"""What other recorders of the same shape have beside it."""


def _matches(source: Source) -> bool:
    return any(
        shape.issuperset(("request.url", "request.method")) and not shape & FOREIGN
        for shape in source.shapes
    )


def _read(document: Document) -> Item:
    record = msgspec.json.decode(document.data, type=ExchangeRecord)
    return request_of(exchange_of(document.source, document.line, record.request, record.response))


FORMAT = Format(
    id="test_agent",
    title="test agent cassette",
    example="anthropic_v1_messages_post_1a2b3c4d.json",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=by_document(_read),
)
