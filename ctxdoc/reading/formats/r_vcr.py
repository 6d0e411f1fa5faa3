"""Cassettes of the R package vcr.

How to get one
    Call `vcr::local_cassette("chat")` in a test, or `vcr::use_cassette("chat", { ... })` around the
    calls, and run them once.

What a record holds
    One entry of `http_interactions`: the body as it was sent, the answer, its headers, and
    `recorded_at`.

What it cannot tell
    `recorded_at` is when the answer was complete, to the second and without a zone (read as UTC);
    there is no start and no duration. Version 2 keeps no request headers, so a beta that one of
    them switched on is not seen.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading.
"""

from __future__ import annotations

from ctxdoc.reading.formats.base import Format
from ctxdoc.reading.formats.ruby_vcr import R_MARKS, is_cassette, read
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Trait


def _matches(source: Source) -> bool:
    return is_cassette(source) and R_MARKS.search(source.head) is not None


FORMAT = Format(
    id="r_vcr",
    title="R vcr cassette",
    example="tests/testthat/_vcr/chat.yml",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE, Trait.HEADERS}),
    matches=_matches,
    read=read,
)
