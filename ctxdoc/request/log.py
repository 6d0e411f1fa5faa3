"""A log: its requests, what was passed over, and what it cannot tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from ctxdoc.request.request import Request


class Trait(StrEnum):
    """What a log format can tell."""

    EXACT_BYTES = "exact bytes"
    """Bodies stand in the log as they were sent."""
    PARSED_BYTES = "parsed bodies"
    """Bodies are there, but key order and spelling may be the recorder's."""
    TIME = "time"
    USAGE = "usage"
    HEADERS = "headers"
    SESSION = "session"
    """The log says which requests belong together."""


class Skipped(Struct, frozen=True, gc=False):
    """A record that is no request, and why."""

    source: str
    line: int
    reason: str
    other: bool = False
    """Whether it is in its place and was never meant to be one: a tool result of a transcript, a
    call to another service."""


class Log(Struct, frozen=True, kw_only=True):
    """Requests in the order of the log, and what was passed over."""

    requests: tuple[Request, ...]
    skipped: tuple[Skipped, ...] = ()
    traits: frozenset[Trait] = frozenset()
    """What every format that was read carries."""
    formats: tuple[str, ...] = ()
    files: int = 1
    records: int = 0
    """Records that were read, those of one response and the skipped ones counted each."""


MISSING: tuple[tuple[str, Callable[[Request], bool]], ...] = (
    ("no times: lifetimes, pauses and parallel starts", lambda r: r.at is None),
    ("no counters: what was really read, written and paid", lambda r: r.usage is None),
    (
        "no bodies: where a prefix changed, what changed it, and which blocks cost most",
        lambda r: r.body is None,
    ),
    (
        "bodies as the recorder parsed them: key order and the spelling of numbers",
        lambda r: r.body is not None and not r.is_exact,
    ),
)


HEADERS = "no headers: beta features, account and upstream"


SHOWN_NOTES = 5


def missing_of(log: Log) -> tuple[str, ...]:
    """What cannot be checked, a line each; with the number of requests where only some lack it.

    After it the notes of the requests, such as a body that could not be read.
    """
    whole = len(log.requests)
    # Requests hold only few headers, so that none says nothing: the format has to tell.
    lines = [] if Trait.HEADERS in log.traits else [HEADERS]
    for text, is_lacking in MISSING:
        lacking = sum(map(is_lacking, log.requests))
        if lacking:
            lines.append(text if lacking == whole else f"{lacking:,} of {whole:,} requests: {text}")
    notes = Counter(note for request in log.requests for note in request.notes)
    lines += [f"{count:,} x {note}" for note, count in notes.most_common(SHOWN_NOTES)]
    return tuple(lines)
