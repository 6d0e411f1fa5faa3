"""Recordings of the Rust crate httpmock: several YAML documents a file, one for each call.

How to get one
    Start `MockServer::start_async()`, call `server.forward_to(...)` and `server.record(...)`, point
    the client at the server, and save with `recording.save(...)`.

What a record holds
    One document: `when`, the request with its body as it was sent, and `then`, the answer. Only
    the request headers that the recording names are kept.

What it cannot tell
    No host, so the provider is told by the path and the counters; no time and no duration, so
    nothing is said about lifetimes beyond what the counters show.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any

from ctxdoc.reading.formats.base import Format, Item, read_time, text_of
from ctxdoc.reading.formats.shared.cassette import requests_of
from ctxdoc.reading.formats.shared.headers import header
from ctxdoc.reading.formats.shared.members import members_of, required
from ctxdoc.reading.formats.shared.wire import HttpExchange
from ctxdoc.reading.formats.shared.yaml_text import PREFACE, documents
from ctxdoc.reading.formats.shared.yaml_values import Entry
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Trait

START = re.compile(PREFACE.encode() + rb"when:[ \t]*\r?\n[ \t]+[a-z_]+:")


def _matches(source: Source) -> bool:
    return START.match(source.head) is not None


def _read(source: Source) -> Iterator[Item]:
    return requests_of(source, documents(source), _exchange)


def _exchange(source: Source, entry: Entry) -> HttpExchange:
    when = members_of(required(entry.value, "when"), "$.when")
    then = members_of(entry.value.get("then"), "$.then")
    return HttpExchange(
        source=source.name,
        line=entry.line,
        url=text_of(when.get("path")),
        request_headers=when.get("header"),
        response_headers=then.get("header"),
        request=_body(when),
        answer=_body(then),
        status=then.get("status"),
        at=read_time(header(then.get("header"), "date")),
    )


def _body(part: Mapping[str, Any]) -> Any:
    """The body as text, as bytes where it is no text, or as values in a mock written by hand."""
    # Bodies that are no UTF-8, such as compressed ones, stand under a name of their own.
    packed = part.get("body_base64")
    if isinstance(packed, str):
        return b64decode(packed)
    return part["body"] if "body" in part else part.get("json_body")


FORMAT = Format(
    id="httpmock",
    title="httpmock recording",
    example="tests/cassettes/completion.yaml",
    traits=frozenset({Trait.EXACT_BYTES, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=_read,
)
