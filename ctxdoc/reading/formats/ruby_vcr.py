"""Cassettes of the Ruby gem VCR.

How to get one
    Put `VCR.use_cassette("chat") do ... end` around the calls, or tag an RSpec example with `:vcr`,
    and run with `record: :once`.

What a record holds
    One entry of `http_interactions`: the body as it was sent, text or `!binary`, the headers that
    your filters left, the answer, and `recorded_at`.

What it cannot tell
    `recorded_at` is when the answer was complete, to the second; there is no start and no
    duration. What `filter_sensitive_data` replaced is not what was sent.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading, but they
    stand in the file unless a filter replaced them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxdoc.reading.formats.base import Format, Item
from ctxdoc.reading.formats.shared.cassette import interaction, requests_of
from ctxdoc.reading.formats.shared.members import required
from ctxdoc.reading.formats.shared.wire import HttpExchange
from ctxdoc.reading.formats.shared.yaml_text import PREFACE, entries
from ctxdoc.reading.formats.shared.yaml_values import Entry
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Trait

START = re.compile(PREFACE.encode() + rb"http_interactions:[ \t]*(?:\[\][ \t]*)?\r?\n")

R_MARKS = re.compile(
    rb"^recorded_with: VCR-vcr/|^ {2,6}status: \d+[ \t]*\r?$|^ +status_code: ", re.MULTILINE
)
"""Where the R package differs: its name at the end, and a status that is a plain number."""


def _matches(source: Source) -> bool:
    if source.head.lstrip()[:1] == b"{":
        return source.has("http_interactions[].request.uri")
    return is_cassette(source) and R_MARKS.search(source.head) is None


def is_cassette(source: Source) -> bool:
    """Whether a YAML file has the names that the gem and the R package share."""
    return START.match(source.head) is not None


def read(source: Source) -> Iterator[Item]:
    """The requests of a cassette, in its order."""
    return requests_of(source, entries(source, "http_interactions"), _exchange)


def _exchange(source: Source, entry: Entry) -> HttpExchange:
    value = entry.value
    return interaction(
        source,
        entry.line,
        required(value, "request"),
        value.get("response"),
        recorded=value.get("recorded_at"),
    )


FORMAT = Format(
    id="ruby_vcr",
    title="Ruby VCR cassette",
    example="spec/fixtures/vcr_cassettes/chat.yml",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=read,
)
