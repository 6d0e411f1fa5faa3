"""A log: its requests, what was passed over, and what it cannot tell."""

from __future__ import annotations

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
