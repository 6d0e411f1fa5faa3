"""Cassettes of go-vcr, versions 1 and 2 of its files.

How to get one
    Hand `recorder.New("testdata/chat")` as the HTTP client's transport and run the test once.

What a record holds
    One entry of `interactions`: the body as it was sent, headers, the answer, and in version 2 how
    long it took.

What it cannot tell
    When the request started: only the answer's `date` header, where a hook has not removed it. What
    a `BeforeSave` hook rewrote is not what was sent.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading, but they
    stand in the file unless a hook removed them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ctxdoc.reading.formats.base import Format, Item, read_duration, text_of
from ctxdoc.reading.formats.shared.cassette import interaction, is_go, requests_of
from ctxdoc.reading.formats.shared.members import members_of, required
from ctxdoc.reading.formats.shared.wire import HttpExchange
from ctxdoc.reading.formats.shared.yaml_text import entries
from ctxdoc.reading.formats.shared.yaml_values import Entry
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Trait

MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1, "µs": 1e-3, "μs": 1e-3, "ns": 1e-6}
SPAN = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(h|ms|m|s|µs|μs|ns)")


def _read(source: Source) -> Iterator[Item]:
    return requests_of(source, entries(source, "interactions"), _exchange)


def _exchange(source: Source, entry: Entry) -> HttpExchange:
    response = members_of(entry.value.get("response"), "$.response")
    found = interaction(source, entry.line, required(entry.value, "request"), response)
    return replace(found, duration=_seconds(response.get("duration")))


def _seconds(span: Any) -> float | None:
    """Go's spelling of a time span, such as `1m2.5s`; None for anything else."""
    text = text_of(span)[:80]
    parts = SPAN.findall(text)
    # Whatever the pattern passed over makes it another text than a time span.
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return read_duration(sum(float(number) * MILLISECONDS[unit] for number, unit in parts))


FORMAT = Format(
    id="go_vcr",
    title="go-vcr cassette",
    example="testdata/chat.yaml",
    traits=frozenset({Trait.EXACT_BYTES, Trait.USAGE, Trait.HEADERS}),
    matches=is_go,
    read=_read,
)
