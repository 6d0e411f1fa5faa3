"""Cassettes of vcrpy whose serializer wrote JSON bodies as YAML trees (pydantic-ai, logfire).

How to get one
    Use a serializer that stores `parsed_body`, as the test suites of pydantic-ai and logfire do,
    and record with `pytest --record-mode=once`.

What a record holds
    One entry of `interactions`: the request as values, and the answer as values, or as text where
    it was streamed.

What it cannot tell
    The bytes of the body: the order of its keys and the spelling of its numbers and strings are
    the serializer's, so that a difference in those is neither seen nor ruled out. Also no start
    and no duration.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading.
"""

from __future__ import annotations

from ctxdoc.reading.formats.base import Format
from ctxdoc.reading.formats.vcrpy import PARSED, is_vcrpy, read
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Trait


def _matches(source: Source) -> bool:
    return is_vcrpy(source) and PARSED.search(source.head) is not None


FORMAT = Format(
    id="vcrpy_parsed",
    title="vcrpy cassette with parsed bodies",
    example="tests/cassettes/test_agent.yaml",
    traits=frozenset({Trait.PARSED_BYTES, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=read,
)
