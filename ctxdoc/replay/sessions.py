"""Parts the requests of a log into sessions, by the ids that the log has or by what they share.

A request continues the one whose messages it extends, even when earlier ones were edited or dropped: it
holds the last two messages of that request in a row. A branch, and a side call that carries the
conversation without the tools, is a session of its own that names its parent. Requests of which the log
has neither an id nor a body are the session of their file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.prompt.chain import next_key
from ctxdoc.prompt.render import Renderer, common_messages
from ctxdoc.request.request import Request


class Session(Struct, frozen=True, kw_only=True):
    """Requests of one conversation, in the order of the log."""

    id: str
    parent: str | None
    """The session that it was forked from."""
    requests: tuple[int, ...]
    """Their indices in the log, from 0."""


UUID_TAIL = re.compile(r"(?<=^[0-9a-f]{8})-[0-9a-f-]{27}")


def short_name(name: str) -> str:
    """A session's name as a person writes it: of an UUID the beginning."""
    return UUID_TAIL.sub("", name)


def named(sessions: Sequence[Session], name: str) -> tuple[Session, ...]:
    """The session of that name, or the only one whose name begins so.

    Raises InputError where none or several do.
    """
    found = _closest(sessions, name)
    if len(found) == 1:
        return (found[0],)
    raise InputError(
        f"{len(found) or 'no'} sessions begin with '{name}'", _hint(found, sessions, name)
    )


MATCHES: tuple[Callable[[str, str], bool], ...] = (
    lambda full, name: full == name,
    lambda full, name: short_name(full) == name,
    lambda full, name: full.startswith(name),
    lambda full, name: short_name(full).startswith(name),
)
"""Ways to name a session, the strictest first: a name that is one's whole id never means another."""


def _closest(sessions: Sequence[Session], name: str) -> list[Session]:
    """The sessions that a name means, in the strictest way that finds any."""
    for matches in MATCHES:
        found = [session for session in sessions if matches(session.id, name)]
        if found:
            return found
    return []


def _hint(found: Sequence[Session], sessions: Sequence[Session], name: str) -> str:
    """What a person may have meant: some of several, or names that are spelled nearly so."""
    every = [session.id for session in (found or sessions)]
    near = every[:3] if found else get_close_matches(name, every, n=3, cutoff=0.4)
    if near:
        return f"did you mean {', '.join(near)}?"
    return "ctxdoc replay LOG --format json lists all sessions"


def part(requests: Iterable[Request]) -> tuple[Session, ...]:
    """The sessions of a log, in the order in which they begin."""
    parter = Parter(Renderer())
    for index, request in enumerate(requests):
        parter.add(index, request)
    return parter.sessions()


class Parter:
    """Parts the requests of a log one after the other."""

    def __init__(self, renderer: Renderer) -> None:
        self.names: dict[int, str] = {}
        """Index of a request → its session."""
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

    def add(self, index: int, request: Request) -> None:
        """Puts a request into its session; in the order of the log."""
        row = EMPTY
        if request.body and not request.session:
            row = self._row(tuple(map(bytes, request.body.messages)))
        name, parent = self._session_of(request, row)
        if parent and parent != name:
            self._parents.setdefault(name, parent)
        self.names[index] = name
        self._members.setdefault(name, []).append(index)
        for key in row.chain[row.shared :]:
            self._inside.setdefault(key, name)
        if row.pairs:
            # Only the last request's end counts: what leaves from an earlier one is a branch.
            self._ends.pop(self._end_of.get(name, b""), None)
            self._ends[row.pairs[-1]] = (name, bool(request.body and request.body.tools))
            self._end_of[name] = row.pairs[-1]

    def sessions(self) -> tuple[Session, ...]:
        """The sessions so far, in the order in which they began."""
        return tuple(
            Session(id=name, parent=self._parents.get(name), requests=tuple(indices))
            for name, indices in self._members.items()
        )

    def _row(self, messages: tuple[bytes, ...]) -> _Row:
        """The hashes of the messages; those that the last request with the same start has too are
        taken over."""
        if not messages:
            return EMPTY
        old = self._rows.get(messages[0], EMPTY)
        shared = common_messages(old.messages, messages)
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

    def _session_of(self, request: Request, row: _Row) -> tuple[str, str | None]:
        """The session of a request and, for the first of a fork, the session it left."""
        if request.session:
            return self._named_by_log(request.session)
        if request.body is None:
            # Nothing tells these apart: one session a file.
            if request.source not in self._of_file:
                self._of_file[request.source] = self._new()
            return self._of_file[request.source], None
        return self._continued(row, has_tools=bool(request.body.tools))

    def _named_by_log(self, session: str) -> tuple[str, str | None]:
        """A session that the log names: an agent below another one has that one's name ahead."""
        head, slash, _ = session.rpartition("/")
        # A name that was made up here before is not the log's.
        name = f"{session} (log)" if session in self._made_up else session
        return name, head if slash else None

    def _continued(self, row: _Row, *, has_tools: bool) -> tuple[str, str | None]:
        """The session that the messages go on from, or a new one beside the one that they left."""
        # The latest pair first: an edited history still holds the end of the request before it.
        for key in reversed(row.pairs):
            if key in self._ends:
                name, had_tools = self._ends[key]
                # A summary or a title is asked for without tools: a side call, no turn of the agent.
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
