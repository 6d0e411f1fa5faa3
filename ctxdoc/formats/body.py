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
from msgspec import UNSET, Raw, Struct, UnsetType

from ctxdoc.formats.base import Document, Format, read_body
from ctxdoc.model import Request, Skipped, Trait


class _Probe(Struct):
    messages: Raw | UnsetType = UNSET


def _matches(document: Document) -> bool:
    try:
        return msgspec.json.decode(document.data, type=_Probe).messages is not UNSET
    except (msgspec.DecodeError, RecursionError):
        return False


def _read(document: Document) -> Request | Skipped:
    raw = document.data if isinstance(document.data, Raw) else Raw(document.data)
    return Request(source=document.source, line=document.line, body=read_body(raw), raw=raw)


FORMAT = Format(
    id="body",
    title="bare request bodies",
    traits=frozenset({Trait.EXACT_BYTES}),
    matches=_matches,
    read=_read,
)
