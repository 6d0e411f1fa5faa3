"""Parts the requests of a log into sessions, by the ids that the log has or by what they share.

A request continues the one whose messages it extends, even when earlier ones were edited or dropped: it
holds the last two messages of that request in a row. A branch, and a side call that carries the
conversation without the tools, is a session of its own that names its parent. Requests of which the log
has neither an id nor a body are the session of their file.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from itertools import pairwise

import msgspec
from msgspec import Raw, Struct

from ctxdoc import canonical
from ctxdoc.model import Request


class Session(Struct, frozen=True, kw_only=True):
    """Requests of one conversation, in the order of the log."""

    id: str
    parent: str | None
    """The session that it was forked from."""
    requests: tuple[int, ...]
    """Their places in the log, from 0."""


def part(requests: Iterable[Request]) -> tuple[Session, ...]:
    """The sessions of a log, in the order in which they begin."""
    parter = _Parter()
    for number, request in enumerate(requests):
        parter.add(number, request)
    return tuple(
        Session(id=name, parent=parter.parents.get(name), requests=tuple(numbers))
        for name, numbers in parter.members.items()
    )


class _Parter:
    def __init__(self) -> None:
        self.members: dict[str, list[int]] = {}
        self.parents: dict[str, str] = {}
        self._ends: dict[bytes, tuple[str, bool]] = {}
        """Last two messages of a session's last request → it, and whether it had tools."""
        self._end_of: dict[str, bytes] = {}
        self._inside: dict[bytes, str] = {}
        """Chain of the messages up to one → the session that had it first."""
        self._digests: dict[bytes, bytes] = {}
        self._of_file: dict[str, str] = {}
        """Log → the session of its requests without a body."""

    def add(self, number: int, request: Request) -> None:
        digests = [self._digest(raw) for raw in request.body.messages] if request.body else []
        chain = _chain(digests)
        pairs = [one + two for one, two in pairwise([b"", *digests])]
        name, parent = self._place(request, chain, pairs)
        if parent and parent != name:
            self.parents.setdefault(name, parent)
        self.members.setdefault(name, []).append(number)
        for key in chain:
            self._inside.setdefault(key, name)
        if pairs:
            self._ends.pop(self._end_of.get(name, b""), None)
            self._ends[pairs[-1]] = (name, bool(request.body and request.body.tools))
            self._end_of[name] = pairs[-1]

    def _place(
        self, request: Request, chain: list[bytes], pairs: list[bytes]
    ) -> tuple[str, str | None]:
        """The session of a request and, for the first of a fork, the session it left."""
        if request.session:
            head, slash, _ = request.session.rpartition("/")
            return request.session, head if slash else None
        if request.body is None:
            # Nothing tells these apart: one session a file.
            return self._of_file.setdefault(request.source, self._new()), None
        has_tools = bool(request.body.tools)
        for key in reversed(pairs):
            if key in self._ends:
                name, had_tools = self._ends[key]
                return (self._new(), name) if had_tools and not has_tools else (name, None)
        shared = next((self._inside[key] for key in reversed(chain) if key in self._inside), None)
        return self._new(), shared

    def _new(self) -> str:
        return f"s{len(self.members) + 1}"

    def _digest(self, raw: Raw) -> bytes:
        """Of a message without its breakpoints; one that was seen is not decoded again."""
        seen = blake2b(raw, digest_size=16).digest()
        found = self._digests.get(seen)
        if found is None:
            try:
                value = canonical.decode(raw)
                if isinstance(value, dict):
                    value["content"] = canonical.lifted(value.get("content"))
                data = canonical.encode(canonical.canonical(value))
            except (msgspec.DecodeError, RecursionError):
                data = bytes(raw)
            found = self._digests[seen] = blake2b(data, digest_size=16).digest()
        return found


def _chain(digests: list[bytes]) -> list[bytes]:
    """A hash for every beginning of the messages."""
    key, chain = b"", []
    for digest in digests:
        key = blake2b(key + digest, digest_size=16).digest()
        chain.append(key)
    return chain
