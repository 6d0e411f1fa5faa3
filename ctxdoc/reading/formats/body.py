"""Bare Messages API bodies: one file, one a line, or an array.

How to get one
    Dump what your code hands to the client just before it is sent:
    `json.dump(kwargs, open("a.json", "w"))`. Two of them are enough for `ctxdoc diagnose`.

What it cannot tell
    No time, no counters, no headers: lifetimes, routing and the money that was really paid stay
    unknown, and the counters are simulated.

Privacy
    The bodies are your prompts.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from ctxdoc.reading.deduplicate import MARK
from ctxdoc.reading.formats.base import Format, Item, by_record, read_body
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Trait
from ctxdoc.request.request import Request


class _Message(Struct):
    """What tells a message of the API from one of a program's own."""

    role: str


def _matches(source: Source) -> bool:
    return any("messages" in shape for shape in source.shapes)


def _read(document: Document) -> Item:
    raw = document.data if isinstance(document.data, Raw) else Raw(document.data)
    body = read_body(raw)
    for message in body.messages:
        if bytes(message) != MARK:
            msgspec.json.decode(message, type=_Message)
    return Request(
        source=document.source, line=document.line, model=body.model or "", body=body, raw=raw
    )


FORMAT = Format(
    id="body",
    title="bare request bodies",
    example="before.json",
    traits=frozenset({Trait.EXACT_BYTES}),
    matches=_matches,
    read=by_record(_read),
)
