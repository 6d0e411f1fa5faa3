"""Finds, for each request of a log, the earlier one that it goes on from, and measures it by that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache.simulator import scopes_differ
from ctxdoc.prompt.diff import common_segments
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import AT
from ctxdoc.replay.measure import MeasuredRequest, Replayer
from ctxdoc.request.request import Request, Section

EARLIEST = datetime.min.replace(tzinfo=UTC)
RECENT = 64
"""Rendered requests that are held; an older one is rendered again when it is compared."""


REACH_BACK = 256
"""Blocks that a request may add to the one that it goes on from, to be found by that one's end."""


class Candidate(NamedTuple):
    """An earlier request that a later one may go on from."""

    number: int
    shares_much: bool
    """Whether they share a beginning of the prompt, or more than the first message."""
    if_begun: bool = False
    """Whether it is meant only if its messages are the beginning of the later one's."""


class _Kind(NamedTuple):
    """What a request was sent to, and the form of its tools and system prompt."""

    root: str
    scope: object
    form: object


class _Opening(Struct, frozen=True, gc=False):
    """How a request begins."""

    order: int
    """When it was added."""
    first: bytes
    """Its first message."""
    kind: _Kind


class Earlier:
    """Finds the request that another one continues: it holds the same messages in a row, or else
    the longest equal prefix."""

    def __init__(self) -> None:
        self._pairs: dict[bytes, int] = {}
        self._prefixes: dict[bytes, int] = {}
        """Up to the first message: what shares more than that shares a pair."""
        self._lines: dict[tuple[str, bytes], int] = {}
        """By session and first message: another session may hold the same messages."""
        self._marks: dict[bytes, int] = {}
        """Up to the last breakpoint."""
        self._last: dict[object, int] = {}
        """By session, by the form of tools and system prompt, and by nothing."""
        self._forms: dict[bytes, object] = {}
        """By the end of tools, system prompt and settings."""
        self._ends: dict[object, dict[bytes, int]] = {}
        """By scope and the whole prompt."""
        self._openings: dict[int, _Opening] = {}
        """By number: where a request stands in the log, not when it was sent."""
        self._kinds: dict[_Kind, _Kind] = {}
        """Each model, scope and form once."""

    def iter_found(self, prefix: Prefix, session: str, scope: object) -> Iterator[Candidate]:
        """The candidates, the best first: the request whose whole prompt is the beginning, the one with the
        same messages in a row, the one with the longest equal beginning; at the end the last request,
        which shares nothing."""
        yield from self._iter_same_messages(prefix, session, scope)
        yield from self._iter_same_beginning(prefix)
        # Nothing is shared from here on; a changed prefix is best told beside a call of its own kind.
        for name in (*([session] if session else ()), self._form(prefix), ""):
            if name in self._last:
                yield Candidate(self._last[name], shares_much=False)

    def _iter_same_messages(
        self, prefix: Prefix, session: str, scope: object
    ) -> Iterator[Candidate]:
        """The requests whose messages it goes on from, those of its own scope first."""
        pairs, row = self._pairs, prefix.row
        own = self._ended_here(prefix, scope)
        pair = _last_in(row, pairs)
        line = self._lines.get((session, row[0])) if row else None
        if pair is None:
            # Without two equal messages in a row nothing but a whole prompt, or the session, tells.
            if own is not None:
                yield Candidate(own, shares_much=True)
        else:
            # The first "pair" is the opening message alone, which many conversations share.
            by_pair = Candidate(pairs[pair], shares_much=pair != row[0])
            same = self._opens_so(by_pair.number, prefix, scope)
            # A history that was edited since has no equal end: the pair knows the later request.
            if same and (own is None or self._order(by_pair.number) > self._order(own)):
                yield by_pair
            if own is not None:
                yield Candidate(own, shares_much=True)
            # Another agent said the same two messages: the conversation with the same opening is
            # meant, unless its messages turned out differently.
            if line is not None and not same:
                yield Candidate(line, shares_much=True, if_begun=True)
            yield by_pair
        if session and line is not None:
            yield Candidate(line, shares_much=True)

    def _iter_same_beginning(self, prefix: Prefix) -> Iterator[Candidate]:
        """The requests that end inside the prompt, whatever their scope, and the one that shares most of
        what stands ahead of the messages."""
        tail = prefix.keys[-REACH_BACK:]
        for elsewhere in self._ends.values():
            end = _last_in(tail, elsewhere)
            if end is not None:
                yield Candidate(elsewhere[end], shares_much=True)
        key = _last_in(prefix.keys[: len(prefix.keys) - len(prefix.row) + 1], self._prefixes)
        if key is not None:
            yield Candidate(self._prefixes[key], shares_much=True)

    def _ended_here(self, prefix: Prefix, scope: object) -> int | None:
        """The request of a scope whose whole prompt is the beginning of this one; of two runs of one
        scenario the later one goes on."""
        ends = self._ends.get(scope, {})
        # Only so far back: a step that adds more blocks than that is not looked for by its end.
        found = [ends[key] for key in prefix.keys[-REACH_BACK:] if key in ends]
        return max(found, key=self._order, default=None)

    def marked_as_long(self, prefix: Prefix, least: int) -> int | None:
        """The request with a breakpoint at the end of the longest beginning that it shares with a
        prompt; None where none shares more than `least` segments."""
        for index in range(len(prefix.keys) - 1, least - 1, -1):
            if prefix.keys[index] in self._marks:
                return self._marks[prefix.keys[index]]
        return None

    def is_of_form(self, number: int, prefix: Prefix) -> bool:
        """Whether a request has the form of tools and system prompt that a prompt has."""
        opening = self._openings.get(number)
        return opening is not None and opening.kind.form == self._form(prefix)

    def _order(self, number: int) -> int:
        """When a request was added."""
        return self._openings[number].order

    def _form(self, prefix: Prefix) -> object:
        """What two prompts have in common that are one with other values: the model, the names of the
        tools, the number of system blocks and about their length."""
        count = len(prefix.keys) - len(prefix.row)
        key = prefix.keys[count - 1] if count else b""
        form = self._forms.get(key)
        if form is None:
            ahead = prefix.segments[:count]
            names = tuple([s.name for s in ahead if s.section is Section.TOOLS])
            system = [s.size for s in ahead if s.section is Section.SYSTEM]
            form = self._forms[key] = (prefix.root, names, len(system), sum(system).bit_length())
        return form

    def _opens_so(self, number: int, prefix: Prefix, scope: object) -> bool:
        """Whether a request begins with the same message, for the same model in the same scope."""
        opening = self._openings[number]
        kind = opening.kind
        return opening.first == prefix.row[0] and kind.root == prefix.root and kind.scope == scope

    def add(
        self, prefix: Prefix, marks: Sequence[int], session: str, scope: object, number: int
    ) -> None:
        """Makes a request one that later ones can continue."""
        form = self._form(prefix)
        kind = _Kind(prefix.root, scope, form)
        kind = self._kinds.setdefault(kind, kind)
        first = prefix.row[0] if prefix.row else b""
        self._openings[number] = _Opening(len(self._openings), first, kind)
        self._last[""] = self._last[form] = number
        if session:
            self._last[session] = number
        if prefix.row:
            self._lines[session, prefix.row[0]] = number
        if prefix.keys:
            self._ends.setdefault(scope, {})[prefix.keys[-1]] = number
        if marks:
            self._marks[prefix.keys[marks[-1]]] = number
        self._pairs.update(dict.fromkeys(prefix.row, number))
        ahead = len(prefix.keys) - len(prefix.row) + 1
        self._prefixes.update(dict.fromkeys(prefix.keys[:ahead], number))


def _last_in(keys: Sequence[bytes], known: Mapping[bytes, int]) -> bytes | None:
    """The last key that is known: keys are chained, so that it stands for the longest beginning."""
    return next((key for key in reversed(keys) if key in known), None)


SENT_SETTINGS = frozenset(
    index
    for name, index in AT.items()
    if name not in ("images", "citations", "tools", "system", "messages")
)
"""Settings that a request states by itself: what its messages hold does not come back with them."""


class Matcher:
    """Measures the requests of a log, one after the other, beside the right earlier one."""

    def __init__(
        self, requests: Sequence[Request], replayer: Replayer, *, consume: bool = False
    ) -> None:
        """With `consume` a body is taken out of `requests`, a list, once a later request holds all
        of it."""
        self.requests = requests
        self.consume = consume
        self._replayer = replayer
        self._index = Earlier()
        self._recent: dict[int, MeasuredRequest] = {}
        """Requests by their number, those last compared at the end."""
        self._gone: set[int] = set()
        """Requests that a later one goes on from, and holds all of."""

    def next(
        self, number: int, chosen: int | None = None
    ) -> tuple[MeasuredRequest, MeasuredRequest | None, int | None]:
        """A request as measured, the earlier one, and that one's number.

        Every number is asked for once, in the order of replay.

        Raises NoRequestError for a request that cannot be rendered.
        """
        request = self.requests[number]
        prefix = self._replayer.render(request)
        # A person's choice stands; only a guess may be bettered.
        earlier = chosen if chosen is not None else self._chosen(request, prefix)
        before = self._told(earlier, prefix) if earlier is not None else None
        exchange = self._replayer.measure(request, prefix, before)
        self._keep(number, exchange)
        # A refused request was never cached: none goes on from it.
        if not request.refused:
            self._learn(number, exchange, before, earlier)
        return exchange, before, earlier

    def _chosen(self, request: Request, prefix: Prefix) -> int | None:
        """The earlier request that fits best, by messages and then by settings."""
        earlier = self._find(request, prefix.as_sent)
        if earlier is None:
            return None
        returned = self._before_a_setting(self._exchange(earlier), prefix)
        return earlier if returned is None else returned

    def _told(self, earlier: int, prefix: Prefix) -> MeasuredRequest:
        """An earlier request, with what the later prompt tells of its answer."""
        before = self._exchange(earlier)
        told = self._replayer.told_by_replay(before, prefix)
        if told is not before:
            self._keep(earlier, told)
        return told

    def _learn(
        self,
        number: int,
        exchange: MeasuredRequest,
        before: MeasuredRequest | None,
        earlier: int | None,
    ) -> None:
        """Makes a request one that later ones can go on from, and lets go of the one that it holds."""
        request, sent = exchange.request, exchange.prefix.as_sent
        self._index.add(sent, sent.breakpoints, request.session, request.scope, number)
        if before is None or earlier is None:
            return
        # Of another session or scope it only shares text, and one of its own will go on from it yet.
        if not are_apart(before.request, request) and before.request.scope == request.scope:
            self._let_go(earlier, before.prefix.as_sent, sent)

    def _before_a_setting(self, before: MeasuredRequest, prefix: Prefix) -> int | None:
        """The request before a setting changed, where it is again what it was then: it did not change."""
        shared = common_segments(before.prefix, prefix)
        for segments in (before.prefix.segments, prefix.segments):
            if shared < len(segments) and segments[shared].rank[0] in SENT_SETTINGS:
                found = self._index.marked_as_long(prefix.as_sent, shared)
                return found if found is not None and self._is_held(found) else None
        return None

    def _is_held(self, number: int) -> bool:
        """Whether a request can be gone on from: one that another has all of is held by that one, be its
        body still there or not."""
        return number not in self._gone and (
            number in self._recent or self.requests[number].body is not None
        )

    def _begins(self, number: int, prefix: Prefix) -> bool:
        """Whether the messages of an earlier request are the beginning of a later one's, for one model."""
        before = self._exchange(number).prefix.as_sent
        return before.root == prefix.root and prefix.row[: len(before.row)] == before.row

    def _find(self, request: Request, prefix: Prefix) -> int | None:
        """The request that this one goes on from, or shares most with; None where nothing says that
        it came after any."""
        other: int | None = None
        for found in self._index.iter_found(prefix, request.session, request.scope):
            if not self._is_eligible(found, request, prefix):
                continue
            earlier = self.requests[found.number]
            if self._is_own(found.number, request, prefix):
                return found.number
            if not are_apart(earlier, request):
                # One of the same session goes before one of another that shares more.
                if other is None or found.shares_much:
                    return found.number
            elif found.shares_much and other is None:
                # Of another session: kept in case that the own one has nothing like it.
                other = found.number
        return other

    def _is_eligible(self, found: Candidate, request: Request, prefix: Prefix) -> bool:
        """Whether a candidate can be compared with at all."""
        if not self._is_held(found.number):
            return False
        if not may_follow(self.requests[found.number], request):
            return False
        # Asked last: it may have to render that request again.
        return not found.if_begun or self._begins(found.number, prefix)

    def _is_own(self, number: int, request: Request, prefix: Prefix) -> bool:
        """Whether the log says that both are one session, and they are calls of one kind."""
        same = bool(request.session) and self.requests[number].session == request.session
        return same and self._index.is_of_form(number, prefix)

    def _exchange(self, number: int) -> MeasuredRequest:
        found = self._recent.pop(number, None)
        if found is None:
            request = self.requests[number]
            found = self._replayer.measure_again(request, self._replayer.render(request))
        self._keep(number, found)
        return found

    def _let_go(self, number: int, before: Prefix, after: Prefix) -> None:
        """Forgets a prompt that a later one goes on from: no request will be compared with it."""
        if before.keys != after.keys[: len(before.keys)]:
            return
        self._gone.add(number)
        if self.consume and isinstance(self.requests, list):
            self._recent.pop(number, None)
            self.requests[number] = replace(self.requests[number], body=None, raw=None)

    def _keep(self, number: int, exchange: MeasuredRequest) -> None:
        self._recent[number] = exchange
        if len(self._recent) > RECENT:
            del self._recent[next(iter(self._recent))]


def are_apart(before: Request, after: Request) -> bool:
    """Whether nothing but a first message, or the order of the log, joins two requests: the log has
    them in two sessions, or in two files without times."""
    if before.session and after.session:
        return before.session != after.session
    return before.source != after.source and gap_between(before, after) is None


DAY = 86_400
"""Seconds after which a request goes on from none but one of its own session."""


def may_follow(before: Request, after: Request) -> bool:
    """Whether a request can go on from another, or share what that one cached.

    Files of a folder are no conversation: without times nothing says which came first. Nor is a call of
    another client or version, one in another file to another place, or one of another day, unless the log
    says that they are one session.
    """
    if before.session and before.session == after.session:
        return True
    if not _are_near(before, after):
        return False
    # Another client builds another prompt, be the messages the same: a test run, an upgrade.
    agents = [request.headers.get("user-agent") for request in (before, after)]
    return not all(agents) or agents[0] == agents[1]


def _are_near(before: Request, after: Request) -> bool:
    """Whether two requests of no known session are near each other, in time and in what served them."""
    gap = gap_between(before, after)
    # No entry lives for a day: what is that far apart shares text, but no cache.
    if gap is not None and abs(gap) >= DAY:
        return False
    if before.source == after.source:
        return True
    return gap is not None and not scopes_differ(before.scope, after.scope)


def gap_between(before: Request, after: Request) -> float | None:
    """Seconds from start to start; None where a time is missing."""
    if before.at is None or after.at is None:
        return None
    return (after.at - before.at).total_seconds()


def in_time(requests: Sequence[Request]) -> list[int]:
    """Indices in the order of their starts; one without a time stays behind the one before it in
    its file."""
    last: dict[str, datetime] = {}
    times = []
    for request in requests:
        at = request.at or last.get(request.source, EARLIEST)
        last[request.source] = at
        times.append(at)
    return sorted(range(len(times)), key=times.__getitem__)
