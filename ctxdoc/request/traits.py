"""What a log cannot tell: its formats do not carry it, or its requests do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ctxdoc.request.log import Log, Trait
from ctxdoc.request.request import Request

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
    lines = [] if Trait.HEADERS in log.traits else [HEADERS]
    for text, is_lacking in MISSING:
        lacking = sum(map(is_lacking, log.requests))
        if lacking:
            lines.append(text if lacking == whole else f"{lacking:,} of {whole:,} requests: {text}")
    notes = Counter(note for request in log.requests for note in request.notes)
    lines += [f"{count:,} x {note}" for note, count in notes.most_common(SHOWN_NOTES)]
    return tuple(lines)
