"""The one walk over a log: each request in the order of time, beside the one that it goes on from, with its
sizes and with what the cache did.

Diagnosis, ledger and simulation take these steps and walk no log themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ctxdoc.cache.simulator import Outcome
from ctxdoc.errors import NoRequestError
from ctxdoc.prompt.render import Renderer
from ctxdoc.providers import are_rules_known
from ctxdoc.replay.link import Matcher, in_time
from ctxdoc.replay.measure import MeasuredRequest, Replayer
from ctxdoc.replay.sessions import Parter, Session, named
from ctxdoc.request.request import Request, Section
from ctxdoc.tokens.estimate import Weigh, weight_of


class ReplayedRequest(Struct, frozen=True, kw_only=True, gc=False):
    """A measured request beside the earlier one that it goes on from, and what the cache did for it."""

    after: MeasuredRequest
    before: MeasuredRequest | None
    """None for one that goes on from none."""
    outcome: Outcome
    gives_back: bool = False
    """Whether it gives back the answer of the earlier one, as it was or changed."""
    alive: int | None = None
    """Tokens of the earlier prompt whose entries still lived; None where none is known to be gone."""
    was_read: bool = False
    """Whether an entry of the earlier one had been read by then."""
    asked: bool = False
    """Whether a person chose the earlier one."""
    in_log: bool = True
    """Whether everything that the log has before it was replayed."""


class Step(Struct, frozen=True, kw_only=True, gc=False):
    """One request of a log as the walk comes to it."""

    index: int
    """In the log, from 0."""
    request: Request
    session: str
    earlier: int | None = None
    """Index of the one that it is compared with."""
    replayed: ReplayedRequest | None = None
    """None where it has no body that can be rendered, or cache rules that are not known."""
    reason: str = ""
    """Why it is not compared, where it has a body."""


class Walk:
    """A log on its way through the cache."""

    def __init__(
        self,
        requests: Sequence[Request],
        *,
        only: str = "",
        weigh: Weigh = weight_of,
        consume: bool = False,
        any_model: bool = False,
    ) -> None:
        """With `only` the sessions are parted ahead, and `kept` are the requests of that one. With
        `consume` the blocks of messages are made again when they are looked at, and a body is let go
        once a later request holds all of it. With `any_model` requests of models whose cache rules are
        not known are walked by the rules of the Claude API as well.

        Raises InputError for a name that no session, or that several, begin with.
        """
        self.requests: Sequence[Request] = list(requests) if consume else requests
        self.order = tuple(in_time(requests))
        self.kept: frozenset[int] | None = None
        """Indices of the requests of the chosen session; None for all."""
        renderer = Renderer(lean=consume)
        self.parter = Parter(renderer)
        self._any_model = any_model
        self._replayer = Replayer(renderer, weigh)
        self._matcher = Matcher(self.requests, self._replayer, consume=consume)
        if only:
            for index in self.order:
                self.parter.add(index, self.requests[index])
            self.kept = frozenset(named(self.parter.sessions(), only)[0].requests)

    def steps(self) -> Iterator[Step]:
        """Every request, in the order of time."""
        return map(self.step, self.order)

    def step(self, index: int, chosen: int | None = None) -> Step:
        """The step of a request; `chosen` is the index of the one that it is to be compared with.

        Each is asked for once, in the order of replay. Raises NoRequestError for a chosen one that
        cannot be rendered.
        """
        request = self.requests[index]
        if index not in self.parter.names:
            self.parter.add(index, request)
        session = self.parter.names[index]
        if request.body is None and not self._any_model:
            return Step(index=index, request=request, session=session)
        if not (self._any_model or are_rules_known(request.model)):
            reason = f"the cache rules of '{request.model}' are not known"
            return Step(index=index, request=request, session=session, reason=reason)
        try:
            after, before, earlier = self._matcher.next(index, chosen)
        except NoRequestError as error:
            return Step(index=index, request=request, session=session, reason=error.message)
        return Step(
            index=index,
            request=request,
            session=session,
            earlier=earlier,
            replayed=_replayed(self._replayer, before, after, asked=chosen is not None),
        )

    @property
    def one_scope(self) -> bool:
        """Whether counters showed that what the log calls different scopes share their entries."""
        return self._replayer.one_scope

    def was_read(self, keys: Iterable[bytes]) -> bool:
        """Whether an entry of one of some prefixes was read by any request so far."""
        return any(map(self._replayer.cache.is_used, keys))

    def sessions(self) -> tuple[Session, ...]:
        """The sessions so far, in the order in which they began."""
        return self.parter.sessions()


def replayed_pair(before: Request, after: Request) -> ReplayedRequest:
    """Two requests of which nothing earlier is known."""
    replayer = Replayer()
    prefixes = replayer.render(before), replayer.render(after)
    one = replayer.told_by_replay(replayer.measure(before, prefixes[0]), prefixes[1])
    replayer.send(one)
    two = replayer.measure(after, prefixes[1], one)
    return _replayed(replayer, one, two, asked=True, in_log=False)


def _replayed(
    replayer: Replayer,
    before: MeasuredRequest | None,
    after: MeasuredRequest,
    *,
    asked: bool,
    in_log: bool = True,
) -> ReplayedRequest:
    """Sends a request to the cache, once what the earlier one tells is known."""
    if before is None:
        return ReplayedRequest(after=after, before=None, outcome=replayer.send(after))
    back = gives_back(before, after)
    if back:
        replayer.note_answer(before, after)
    # What lived and what had been read by then is asked before the request changes it.
    alive, was_read = replayer.alive_for(before, after), replayer.was_read(before)
    return ReplayedRequest(
        after=after,
        before=before,
        outcome=replayer.send(after),
        gives_back=back,
        alive=alive,
        was_read=was_read,
        asked=asked,
        in_log=in_log,
    )


def gives_back(before: MeasuredRequest, after: MeasuredRequest) -> bool:
    """Whether a request gives back the answer of another, as it was or changed."""
    body = before.request.body
    index = len(body.messages) if body is not None else -1
    for segment in reversed(after.prefix.segments):
        if segment.section is not Section.MESSAGES or segment.rank[1] < index:
            return False
        if segment.rank[1] == index and segment.role == "assistant":
            return True
    return False
