"""Parts the requests of a log into sessions, by the ids that the log has or by what they share.

A request continues the one whose messages it extends, even when earlier ones were edited or dropped: it
holds the last two messages of that request in a row. A branch, and a side call that carries the
conversation without the tools, is a session of its own that names its parent. Requests of which the log
has neither an id nor a body are the session of their file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.prompt.chain import next_key
from ctxdoc.prompt.render import Renderer
from ctxdoc.request.request import Request


class Session(Struct, frozen=True, kw_only=True):
    """Requests of one conversation, in the order of the log."""

    id: str
    parent: str | None
    """The session that it was forked from."""
    requests: tuple[int, ...]
    """Their places in the log, from 0."""


UUID_TAIL = re.compile(r"(?<=^[0-9a-f]{8})-[0-9a-f-]{27}")


def short_name(name: str) -> str:
    """A session's name as a person writes it: of an UUID the beginning."""
    return UUID_TAIL.sub("", name)


def named(sessions: Sequence[Session], name: str) -> tuple[Session, ...]:
    """The session of that name, or the only one whose name begins so.

    Raises InputError where none or several do.
    """
    found = [s for s in sessions if s.id == name]
    found = found or [s for s in sessions if short_name(s.id) == name]
    found = found or [s for s in sessions if s.id.startswith(name)]
    found = found or [s for s in sessions if short_name(s.id).startswith(name)]
    if len(found) == 1:
        return (found[0],)
    every = [session.id for session in (found or sessions)]
    near = every[:3] if found else get_close_matches(name, every, n=3, cutoff=0.4)
    hint = (
        f"did you mean {', '.join(near)}?"
        if near
        else "ctxdoc replay LOG --format json lists all sessions"
    )
    raise InputError(f"{len(found) or 'no'} sessions begin with '{name}'", hint)


def part(requests: Iterable[Request]) -> tuple[Session, ...]:
    """The sessions of a log, in the order in which they begin."""
    parter = Parter(Renderer())
    for place, request in enumerate(requests):
        parter.add(place, request)
    return parter.sessions()


class Parter:
    """Parts the requests of a log one after the other."""

    def __init__(self, renderer: Renderer) -> None:
        self.names: dict[int, str] = {}
        """Place of a request → its session."""
        self._renderer = renderer
        self._members: dict[str, list[int]] = {}
        self._parents: dict[str, str] = {}
        self._ends: dict[bytes, tuple[str, bool]] = {}
        """Last two messages of a session's last request → it, and whether it had tools."""
        self._end_of: dict[str, bytes] = {}
        self._inside: dict[bytes, str] = {}
        """Chain of the messages up to one → the session that had it first."""
        self._rows: dict[bytes, _Row] = {}
        """First message → the last request that began with it."""
        self._made_up: set[str] = set()
        self._of_file: dict[str, str] = {}
        """Log → the session of its requests without a body."""

    def add(self, place: int, request: Request) -> None:
        """Puts a request into its session; in the order of the log."""
        row = EMPTY
        if request.body and not request.session:
            row = self._row(tuple(map(bytes, request.body.messages)))
        name, parent = self._place(request, row)
        if parent and parent != name:
            self._parents.setdefault(name, parent)
        self.names[place] = name
        self._members.setdefault(name, []).append(place)
        for key in row.chain[row.shared :]:
            self._inside.setdefault(key, name)
        if row.pairs:
            self._ends.pop(self._end_of.get(name, b""), None)
            self._ends[row.pairs[-1]] = (name, bool(request.body and request.body.tools))
            self._end_of[name] = row.pairs[-1]

    def sessions(self) -> tuple[Session, ...]:
        """The sessions so far, in the order in which they began."""
        return tuple(
            Session(id=name, parent=self._parents.get(name), requests=tuple(places))
            for name, places in self._members.items()
        )

    def _row(self, messages: tuple[bytes, ...]) -> _Row:
        """The hashes of the messages; those that the last request with the same start has too are
        taken over."""
        if not messages:
            return EMPTY
        old = self._rows.get(messages[0], EMPTY)
        shared = 0
        for one, two in zip(old.messages, messages, strict=False):
            if one is not two and one != two:
                break
            shared += 1
        digests, chain, pairs = list(old.digests[:shared]), old.chain[:shared], old.pairs[:shared]
        last, key = (digests[-1], chain[-1]) if shared else (b"", b"")
        for index in range(shared, len(messages)):
            digest = self._renderer.message_digest(messages[index], index)
            key = next_key(key, digest)
            digests.append(digest)
            chain.append(key)
            pairs.append(last + digest)
            last = digest
        row = _Row(messages, digests, chain, pairs, shared)
        self._rows[messages[0]] = row
        return row

    def _place(self, request: Request, row: _Row) -> tuple[str, str | None]:
        """The session of a request and, for the first of a fork, the session it left."""
        if request.session:
            head, slash, _ = request.session.rpartition("/")
            # A name that was made up here before is not the log's.
            name = (
                f"{request.session} (log)" if request.session in self._made_up else request.session
            )
            return name, head if slash else None
        if request.body is None:
            # Nothing tells these apart: one session a file.
            if request.source not in self._of_file:
                self._of_file[request.source] = self._new()
            return self._of_file[request.source], None
        has_tools = bool(request.body.tools)
        for key in reversed(row.pairs):
            if key in self._ends:
                name, had_tools = self._ends[key]
                return (self._new(), name) if had_tools and not has_tools else (name, None)
        chain = reversed(row.chain)
        shared = next((self._inside[key] for key in chain if key in self._inside), None)
        return self._new(), shared

    def _new(self) -> str:
        number = len(self._members) + 1
        while f"s{number}" in self._members:
            number += 1
        self._made_up.add(f"s{number}")
        return f"s{number}"


class _Row(Struct, frozen=True, gc=False):
    """The messages of a request, with a hash of each, of each beginning, and of each with the one
    before it."""

    messages: tuple[bytes, ...]
    digests: list[bytes]
    chain: list[bytes]
    pairs: list[bytes]
    shared: int
    """How many a request before it has too."""


EMPTY = _Row((), [], [], [], 0)
