"""Cassettes of vcrpy (also through pytest-recording), with bodies as text or bytes.

How to get one
    Mark a test with `@pytest.mark.vcr` and run `pytest --record-mode=once`, or wrap the calls in
    `with vcr.use_cassette("calls.yaml"):`. Files written as JSON, packed with gzip, or with the
    top-level lists `requests` and `responses` are read as well.

What a record holds
    One entry of `interactions`: the body as it was sent, the headers that your filters left, and
    the answer, streamed or not, packed or not.

What it cannot tell
    When the request started: only the answer's `date` header is there, to the second and often
    filtered, and no duration. A cassette holds each distinct call once, so a file is no session
    unless the test was one. A body that a filter rewrote is not what was sent.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading, but they
    stand in the file unless `filter_headers` names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

from ctxdoc.reading.formats.base import Format, Item
from ctxdoc.reading.formats.shared.cassette import INTERACTIONS, interaction, is_go, requests_of
from ctxdoc.reading.formats.shared.members import required
from ctxdoc.reading.formats.shared.wire import HttpExchange
from ctxdoc.reading.formats.shared.yaml_text import PREFACE, entries
from ctxdoc.reading.formats.shared.yaml_values import Entry
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Skipped, Trait

LISTS = re.compile(
    PREFACE.encode() + rb"requests:[ \t]*\r?\n[ \t]*-[ \t]+"
    rb"(?:&\w+[ \t]*\r?\n[ \t]*)?(?:body|headers|method|uri):"
)
PARSED = re.compile(rb"^ {2,8}parsed_body:", re.MULTILINE)


def _matches(source: Source) -> bool:
    if source.head.lstrip()[:1] == b"{":
        return source.has("interactions[].request.uri") or source.has("requests[].uri")
    return is_vcrpy(source) and PARSED.search(source.head) is None


def is_vcrpy(source: Source) -> bool:
    """Whether a YAML file is a cassette of vcrpy, with bodies of either kind."""
    if LISTS.match(source.head):
        return True
    return INTERACTIONS.match(source.head) is not None and not is_go(source)


def read(source: Source) -> Iterator[Item]:
    """The requests of a cassette, in its order."""
    return requests_of(source, _paired(source), _exchange)


def _paired(source: Source) -> Iterator[Entry | Skipped]:
    """Entries that hold request and response: as they are, or made of the two lists."""
    apart: dict[str, list[Entry]] = {"requests": [], "responses": []}
    for entry in entries(source, "interactions", *apart):
        if isinstance(entry, Skipped) or entry.name == "interactions":
            yield entry
        else:
            apart[entry.name].append(entry)
    # The two lists run in step; a recording that was broken off has one request more.
    for request, response in zip_longest(apart["requests"], apart["responses"]):
        if request is None:
            yield Skipped(source.name, response.line, "a response without a request")
        else:
            whole = {"request": request.value, "response": response and response.value}
            yield Entry("interactions", request.line, whole)


def _exchange(source: Source, entry: Entry) -> HttpExchange:
    request = required(entry.value, "request")
    return interaction(source, entry.line, request, entry.value.get("response"))


FORMAT = Format(
    id="vcrpy",
    title="vcrpy cassette",
    example="tests/cassettes/test_agent.yaml",
    traits=frozenset({Trait.EXACT_BYTES, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=read,
)
