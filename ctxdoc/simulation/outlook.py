"""The outlook of a session in hand: what going on costs, and what compacting, handing off or waiting would.

The session is projected: its last conversation goes on as it grew, call after call. Each way is the simulation
of the recorded and the projected calls together, so that it agrees with any simulation of the same session.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.errors import InputError, NoRequestError
from ctxdoc.pricing.cost import dollars
from ctxdoc.prompt.render import Renderer
from ctxdoc.replay.link import in_time
from ctxdoc.replay.sessions import Parter
from ctxdoc.request.log import Log
from ctxdoc.simulation.closed_forms import best_batch, compaction, factors_of
from ctxdoc.simulation.history.from_numbers import chat, exchange
from ctxdoc.simulation.history.messages import Call, Message, Session, size_of
from ctxdoc.simulation.placements import PLACEMENTS, Placement
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs

RECENT = 20
"""Calls from which growth, answers and pauses are taken."""
LEAST_CALLS, MOST_CALLS = 10, 200
"""Calls that are projected where nothing else is asked for: as many as there were, within these."""
USUAL_GAP = 20.0
SUMMARY_SHARE = 0.1
USUAL_SUMMARY = 3_500
"""Tokens of a summary, or that share of the history where it is shorter."""
WORTH = Decimal("0.01")
"""Share of what going on costs that another way has to save to be the advice."""


class Way(Struct, frozen=True, kw_only=True):
    """One of the things that can be done now."""

    id: str
    """go_on, compact, handoff or wait."""
    strategy: str
    """As `simulate` takes it."""
    once: Decimal | None
    """USD that the next call costs more than going on: the further call, and what is written again."""
    next_call: Decimal | None
    """USD of the next call, with the calls that are made ahead of it."""
    next_after_pause: Decimal | None
    """The same if it is sent once nothing is in the cache any more."""
    pays_after: int | None
    """Calls from which on it is cheaper in all than going on, to the end; 0 for going on, None if never."""
    total: Decimal | None
    """USD of all projected calls."""
    unseen: int
    """Tokens of the history that the model no longer has."""


class Window(Struct, frozen=True, kw_only=True):
    """Up to which size a prompt is best let grow before it is compacted."""

    by_formula: int | None
    """P + summary + a·√(2·C/(r·a)), tokens; None where nothing grows, or a price is missing."""
    turns: int | None
    """Calls between two compactions by the same formula."""


class Outlook(Struct, frozen=True, kw_only=True):
    """A session as it stands, and what can be done."""

    name: str
    model: str
    requests: int
    """Of the conversation that goes on."""
    prompt: int
    """Tokens of its last prompt."""
    fixed: int
    """Of them, tools and system prompt."""
    per_call: int
    """Tokens that a call adds."""
    window: int
    """Tokens that the model takes at most."""
    ttl: str
    last: datetime | None
    """When the last call was sent."""
    now: datetime | None
    alive_for: float | None
    """Seconds that the entry of the last call still lives; 0 once it has ended, None without times."""
    calls: int
    """Projected ones."""
    ways: tuple[Way, ...]
    best: Way
    summary: int
    """Tokens of a summary."""
    compact_at: Window

    @property
    def going_on(self) -> Way:
        """What is done if nothing is."""
        return self.ways[0]

    @property
    def saved(self) -> Decimal | None:
        """USD that the advice saves over the projected calls."""
        one, two = self.going_on.total, self.best.total
        return None if one is None or two is None else one - two


def latest_session(log: Log) -> str:
    """The name of the session that was worked on last, agents below another one aside.

    Raises NoRequestError for a log without requests.
    """
    parter, last = Parter(Renderer(lean=True)), ""
    for index in in_time(log.requests):
        parter.add(index, log.requests[index])
    parents = {each.id: each.parent for each in parter.sessions()}
    for index in in_time(log.requests):
        name = parter.names[index]
        if parents.get(name) is None:
            last = name
    if not last:
        raise NoRequestError("the log has no request", "ctxdoc replay shows what it holds")
    return last


def outlook_of(
    session: Session,
    name: str,
    *,
    now: datetime | None = None,
    calls: int | None = None,
    summary: int | None = None,
) -> Outlook:
    """The outlook of a session, over so many further calls.

    Raises InputError for a time before the last call.
    """
    state = _State.of(session, now, calls, summary)
    ways = tuple(state.ways())
    going_on = ways[0]
    priced = [way for way in ways if way.total is not None]
    best = min(priced, key=lambda way: way.total or Decimal(0), default=going_on)
    if going_on.total is not None and best.total is not None:
        # What saves next to nothing is not worth what it hides.
        worth = going_on.total - best.total > WORTH * going_on.total
        best = best if worth else going_on
    last = state.last
    return Outlook(
        name=name,
        model=last.rule.id,
        requests=state.number,
        prompt=state.prompt,
        fixed=last.head.size,
        per_call=state.per_call,
        window=last.rule.window,
        ttl=state.ttl,
        last=last.at,
        now=state.now,
        alive_for=state.alive_for,
        calls=state.calls,
        ways=ways,
        best=best,
        summary=state.summary,
        compact_at=state.window(),
    )


class _State(Struct, frozen=True, kw_only=True):
    """What the projection rests on."""

    session: Session
    last: Call
    number: int
    """Requests of its thread."""
    prompt: int
    per_call: int
    reply: int
    gap: float
    now: datetime | None
    ttl: str
    calls: int
    summary: int
    placement: Placement

    @classmethod
    def of(
        cls, session: Session, now: datetime | None, calls: int | None, summary: int | None
    ) -> _State:
        """The state of a session."""
        last = session.calls[-1]
        own = [call for call in session.calls if call.thread == last.thread]
        prompts = [call.head.size + size_of(call.messages) for call in own[-RECENT - 1 :]]
        grown = [two - one for one, two in pairwise(prompts) if two > one]
        rules = last.rule.rules
        ttl = max((mark.ttl for mark in last.marks), key=rules.seconds, default=rules.default_ttl)
        _check_now(now, last.at)
        per_call = round(median(grown)) if grown else 0
        history = prompts[-1] - last.head.size
        return cls(
            session=session,
            last=last,
            number=len(own),
            prompt=prompts[-1],
            per_call=per_call,
            reply=_reply_of(own, per_call),
            gap=_gap_of(own, rules.seconds(ttl)),
            now=now if last.at is not None else None,
            ttl=ttl,
            calls=calls or _calls_of(len(own), last.rule.window - prompts[-1], per_call),
            summary=summary or max(1, min(USUAL_SUMMARY, round(SUMMARY_SHARE * history))),
            placement=PLACEMENTS["recorded" if last.marks else "rolling"],
        )

    @property
    def lifetime(self) -> int:
        """Seconds that its entries live."""
        return self.last.rule.rules.seconds(self.ttl)

    @property
    def alive_for(self) -> float | None:
        """Seconds that the entry of the last call still lives."""
        if self.last.at is None or self.now is None:
            return None
        left = self.lifetime - (self.now - self.last.at).total_seconds()
        return max(0.0, left)

    @property
    def recorded(self) -> int:
        """The last number of a recorded request."""
        return max(call.number for call in self.session.calls)

    def ways(self) -> Iterator[Way]:
        """The ways, going on first."""
        number = self.number + 1
        # Of a log without bodies the last part of the head is a session's own; bodies have the same head again.
        fresh = self.last.head.tokens[-1] if len(self.last.head.tokens) > 1 else 0
        fresh = fresh if self.last.request is None else 0
        texts = {
            "compact": f"compact:at={number},summary_tokens={self.summary}",
            "handoff": f"handoff:at={number},summary_tokens={self.summary},fresh={fresh}",
        }
        going_on = self._row("keep", self._soon())
        yield self._way("go_on", "keep", going_on, going_on)
        for name, text in texts.items():
            yield self._way(name, text, self._row(text, self._soon()), going_on)
        # At the end of a pause the first call is written anew in full: that is when an edit is free.
        text = f"when_cold:at={number},after={self.lifetime}"
        yield self._way("wait", text, self._row(text, self._cold()), going_on)

    def _way(self, name: str, text: str, row: Result, going_on: Result) -> Way:
        costs, others = row.costs[-self.calls :], going_on.costs[-self.calls :]
        paused = self._row(text, self._cold()).costs[-self.calls]
        first, other = costs[0], others[0]
        return Way(
            id=name,
            strategy=text,
            once=None if first is None or other is None else dollars(first - other),
            next_call=None if first is None else dollars(first),
            next_after_pause=None if paused is None else dollars(paused),
            pays_after=0 if row is going_on else _pays_after(costs, others),
            total=_sum(costs),
            unseen=sum(item.tokens for item in row.lost if item.request > self.recorded),
        )

    def _row(self, text: str, session: Session) -> Result:
        return Simulation(session).rows(parse_specs(text), [self.placement])[0]

    def _soon(self) -> Session:
        """The session with its next calls, the first of them now."""
        at = self.last.at
        first = None if at is None else max(self.now or at, at + timedelta(seconds=self.gap))
        return self._projected(first)

    def _cold(self) -> Session:
        """The same with the first of them as soon as nothing is in the cache any more."""
        at = self.last.at
        if at is None:
            return self._projected(None)
        end = at + timedelta(seconds=self.lifetime)
        return self._projected(max(end, self.now or end))

    def _projected(self, first: datetime | None) -> Session:
        line = self.last.line[: self.last.count]
        counts: list[int] = []
        for number in range(1, self.calls + 1):
            line += self._turn(number, self.last.output if number == 1 else self.reply)
            counts.append(len(line))
        ahead = [
            replace(
                self.last,
                number=self.recorded + number,
                line=line,
                count=count,
                at=None if first is None else first + timedelta(seconds=self.gap * (number - 1)),
                began=None,
                output=self.reply,
                reported=None,
                beside=Decimal(0),
            )
            for number, count in enumerate(counts, start=1)
        ]
        return replace(self.session, calls=(*self.session.calls, *ahead))

    def _turn(self, number: int, answer: int | None) -> Iterator[Message]:
        """What comes to the prompt from one call to the next."""
        reply = min(self.reply if answer is None else answer, self.per_call)
        # Far behind the recorded ones: ids of made-up calls are made of it.
        index = 10**6 + number
        if any(message.results for message in self.last.messages[-RECENT:]):
            return exchange(index, reply, self.per_call - reply, 0)
        return chat(index, reply, self.per_call - reply)

    def window(self) -> Window:
        """The best window in closed form."""
        by = factors_of(self.last.tariff, self.prompt)
        if by is None or self.per_call <= 0:
            return Window(by_formula=None, turns=None)
        once = compaction(self.last.head.size, self.summary, self.per_call, by)
        turns = best_batch(self.per_call, once, by)
        if turns is None:
            return Window(by_formula=None, turns=None)
        size = self.last.head.size + self.summary + self.per_call * turns
        return Window(by_formula=round(size), turns=round(turns))


def _check_now(now: datetime | None, last: datetime | None) -> None:
    """Raises InputError for a time before the last call."""
    if now is not None and last is not None and now < last:
        raise InputError(
            f"--now is before the last call ({last.isoformat(timespec='seconds')})",
            "leave it out: it is the time of the clock",
        )


def _reply_of(calls: Sequence[Call], per_call: int) -> int:
    """Tokens of an answer; a fifth of what a call adds where none is known."""
    answers = [call.output for call in calls[-RECENT:] if call.output is not None]
    return min(round(median(answers)) if answers else per_call // 5, per_call)


def _calls_of(so_far: int, room: int, per_call: int) -> int:
    """As many calls as there were, and no more than the window has room for."""
    fit = room // per_call if per_call else MOST_CALLS
    return max(1, min(MOST_CALLS, max(LEAST_CALLS, so_far), fit))


def _gap_of(calls: Sequence[Call], ttl: int) -> float:
    """Seconds from one call to the next while somebody works: pauses beyond the lifetime aside."""
    times = [call.at for call in calls[-RECENT - 1 :] if call.at is not None]
    gaps = [(two - one).total_seconds() for one, two in pairwise(times)]
    short = [gap for gap in gaps if 0 < gap < ttl]
    return median(short) if short else USUAL_GAP


def _pays_after(costs: Sequence[int | None], others: Sequence[int | None]) -> int | None:
    """The call, from 1, from which on a way is cheaper in all, to the end."""
    ahead, since = 0, None
    for number, (own, other) in enumerate(zip(costs, others, strict=True), start=1):
        ahead += (other or 0) - (own or 0)
        since = (since or number) if ahead > 0 else None
    return since


def _sum(costs: Sequence[int | None]) -> Decimal | None:
    if any(cost is None for cost in costs):
        return None
    return dollars(sum(cost or 0 for cost in costs))


def by_clock() -> datetime:
    """The time of the clock, in UTC."""
    return datetime.now(UTC)
