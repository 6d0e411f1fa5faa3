"""One session under many strategies and placements: the same cache, the same prices."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache.simulator import FIRST_RESPONSE
from ctxdoc.pricing.cost import dollars, meter_of
from ctxdoc.providers import find_model
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.bill import Bill, Sending, sum_of_known, total_cost, uncached_usage
from ctxdoc.simulation.history.assemble import Lane, Prompt
from ctxdoc.simulation.history.edit import Maker
from ctxdoc.simulation.history.messages import Call, Head, Message, Session, thinks
from ctxdoc.simulation.history.picture_setting import PictureSetting
from ctxdoc.simulation.history.validity import BOUND_THINKING, OVER_WINDOW, Checker, has_thinking
from ctxdoc.simulation.placements import Placement
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.strategies import Extra, History, Outgoing, Spec
from ctxdoc.simulation.strategies.spec import by_server
from ctxdoc.simulation.unseen import Unseen
from ctxdoc.tokens.estimate import Weigh, weight_of

NO_HEAD = Head((), (), 0)


class Simulation:
    """A session, ready to be run under strategies."""

    def __init__(
        self, session: Session, weigh: Weigh = weight_of, *, renews_shorter: bool = False
    ) -> None:
        """With `renews_shorter` the entries of shorter prefixes live on when a longer one is read."""
        self.session = session
        self.renews_shorter = renews_shorter
        self._weigh = weigh
        self._setting = PictureSetting(session)
        self._made: dict[object, Message] = {}
        """What strategies have put in the place of messages, over all runs."""

    def rows(self, specs: tuple[Spec, ...], placements: Sequence[Placement]) -> list[Result]:
        """A strategy under each of the placements."""
        run = self._run(specs, placements)
        around = iter(self.session.around)
        ahead = next(around, None)
        for index, call in enumerate(self.session.calls):
            while ahead is not None and ahead[0] <= index:
                run.pass_by(ahead[1])
                ahead = next(around, None)
            run.send(call)
        return run.rows()

    def usages(self, specs: tuple[Spec, ...], placement: Placement) -> list[Usage]:
        """What each request reads, writes and pays in full, its further calls left out."""
        billed = self.iter_billed(specs, placement)
        return [usage for sending, usage in billed if not sending.order]

    def iter_billed(
        self, specs: tuple[Spec, ...], placement: Placement
    ) -> Iterator[tuple[Sending, Usage]]:
        """The prompts of a strategy in their order, each with what it reads, writes and pays in full."""
        bill = Bill(placement, renews_shorter=self.renews_shorter)
        for sending in self.iter_sent(specs, placement):
            yield sending, bill.bill(sending.prompt.call, sending)[0]

    def iter_sent(self, specs: tuple[Spec, ...], placement: Placement) -> Iterator[Sending]:
        """The prompts of a strategy in the order in which they are sent."""
        run = self._run(specs, (placement,))
        for call in self.session.calls:
            yield from run.send(call)

    def _run(self, specs: tuple[Spec, ...], placements: Sequence[Placement]) -> _Run:
        bills = [Bill(each, renews_shorter=self.renews_shorter) for each in placements]
        maker = Maker(self._weigh, self._made)
        return _Run(specs, bills, maker, self._setting, thinks=thinks(self.session))

    def otherwise(self) -> Simulation:
        """The same session under the other assumption on entries of shorter prefixes."""
        return Simulation(self.session, self._weigh, renews_shorter=not self.renews_shorter)


class _ThreadState:
    """What a strategy has sent so far in one thread, and what it keeps for the next request of it."""

    def __init__(self, count: int) -> None:
        self.memories: list[object] = [None] * count
        self.number = 0
        self.lane = Lane()
        self.checker = Checker()
        self.begun: datetime | None = None
        """When the last response began at the latest: what goes on from it cannot start sooner."""


class _Outcome(Struct, gc=False):
    """A request behind all strategies that are joined."""

    head: Head
    messages: list[Message]
    passing: int = 0
    ahead: list[tuple[Head, Extra]] = []
    """Calls that are sent before it, each with the head that it goes on from."""
    behind: list[tuple[Head, Extra]] = []
    warnings: dict[str, None] = {}
    """In the order in which they were found, whatever a set's would be."""

    def add(self, sent: Outgoing) -> None:
        """Takes over what one strategy sends."""
        self.messages, self.head = sent.messages, sent.head or self.head
        self.passing += sent.passing
        for extra in sent.extra:
            pair = (extra.head or self.head, extra)
            (self.behind if extra.after else self.ahead).append(pair)
        self.warnings.update(dict.fromkeys(sent.warnings))


class _Run:
    """One strategy over the session."""

    def __init__(
        self,
        specs: tuple[Spec, ...],
        bills: list[Bill],
        maker: Maker,
        setting: PictureSetting,
        *,
        thinks: bool,
    ) -> None:
        self.specs = specs
        self.maker = maker
        self.setting = setting
        self.threads: dict[int, _ThreadState] = {}
        self.bills = bills
        self.warnings: Counter[str] = Counter()
        self.unseen = Unseen(coarsens=any(spec.definition.coarsens for spec in specs))
        self.prompts: list[int] = []
        self.uncached: list[int | None] = []
        self.rewrote: list[tuple[int, int]] = []
        self.extra_calls = 0
        self.changed = 0
        self.fits = True
        self.thinks = thinks
        """Whether any message of the session holds thinking."""
        self.client_edits = any(spec.definition.edits and not by_server(spec) for spec in specs)
        self.server_edits = any(map(by_server, specs))

    def send(self, call: Call) -> list[Sending]:
        """Runs one recorded request."""
        state = self.threads.setdefault(call.thread, _ThreadState(len(self.specs)))
        state.number += 1
        recorded = call.messages
        outcome = self._outcome(call, recorded, state)
        messages = outcome.messages
        self.changed += outcome.head is not call.head or not _is_same(messages, recorded)
        self.unseen.note(call, messages)
        sendings = self._sendings(call, state, outcome)
        prompt = next(sending.prompt for sending in sendings if not sending.order)
        changed = None if messages is recorded else messages
        found = dict.fromkeys(self._refusals(call, state.checker, prompt, changed))
        self.warnings.update(list(outcome.warnings | found))
        for bill in self.bills:
            bill.add(call, sendings)
        self.uncached.append(total_cost([_uncached_cost(each) for each in sendings]))
        return sendings

    def _outcome(self, call: Call, recorded: list[Message], state: _ThreadState) -> _Outcome:
        """What is left to send behind one strategy after the other."""
        outcome = _Outcome(call.head, recorded)
        for index, spec in enumerate(self.specs):
            history = History(call, outcome.head, outcome.messages, state.number, self.maker)
            sent = spec.strategy.send(history, state.memories[index])
            state.memories[index] = sent.memory
            outcome.add(sent)
            self.unseen.show(sent.seen)
            self.unseen.shorten(sent.partly)
        if outcome.messages is not recorded:
            outcome.head = self.setting.fitting(outcome.head, outcome.messages)
        return outcome

    def pass_by(self, call: Call) -> None:
        """Lets a request of another session write its entries: it is sent as recorded and not counted."""
        state = self.threads.setdefault(call.thread, _ThreadState(len(self.specs)))
        prompt = state.lane.prompt(call, call.head, call.messages)
        for bill in self.bills:
            bill.pass_by(call, Sending(prompt, 0, True, 0, call.at, call.began))

    def _sendings(self, call: Call, state: _ThreadState, outcome: _Outcome) -> list[Sending]:
        """The further calls and the request itself, in order."""
        self.extra_calls += len(outcome.ahead) + len(outcome.behind)
        at, began = _ahead_of(call, state.begun)
        found = [
            self._beside(
                call, state.lane, pair, -1, (pair[1].at, None) if pair[1].at else (at, began)
            )
            for pair in outcome.ahead
        ]
        prompt = state.lane.prompt(call, outcome.head, outcome.messages, outcome.passing)
        found.append(Sending(prompt, call.output or 0, True, 0, call.at, call.began))
        if call.at is not None:
            state.begun = call.began or call.at + FIRST_RESPONSE
        self.prompts.append(prompt.sizes.total)
        if prompt.dropped:
            self.rewrote.append((len(self.prompts) - 1, prompt.rewritten))
        for number, pair in enumerate(outcome.behind, start=1):
            # Each starts when the first response before it has begun.
            at = None if call.at is None else call.at + number * FIRST_RESPONSE
            found.append(self._beside(call, state.lane, pair, number, (at, None)))
        return found

    def _beside(
        self,
        call: Call,
        lane: Lane,
        pair: tuple[Head, Extra],
        order: int,
        times: tuple[datetime | None, datetime | None],
    ) -> Sending:
        """A further call, with the head that its messages have."""
        head, extra = pair
        fitting = self.setting.fitting(head, extra.messages)
        return _sent_beside(call, lane, (fitting, extra), order, times)

    def _refusals(
        self, call: Call, checker: Checker, prompt: Prompt, changed: list[Message] | None
    ) -> Iterator[str]:
        """What the API would refuse of a request, whose messages a strategy may have changed."""
        if prompt.sizes.total > call.rule.window:
            self.fits = False
            yield OVER_WINDOW
        if changed is None or not self.client_edits:
            # The server's own edits are never refused, and a fault of the log is not the strategy's.
            return
        if self.thinks and prompt.dropped and call.rule.binds_thinking:
            index = bisect_right(prompt.ends, prompt.kept)
            if has_thinking(changed[index:]):
                yield BOUND_THINKING
        if not self.server_edits:
            yield from checker.own_faults(changed, call.line)

    def rows(self) -> list[Result]:
        """The results, in the order of the placements."""
        return [self._row(bill) for bill in self.bills]

    def _row(self, bill: Bill) -> Result:
        costs = bill.costs()
        cost, without = sum_of_known(costs), sum_of_known(self.uncached)
        return Result(
            specs=self.specs,
            placement=bill.placement,
            requests=len(self.prompts),
            extra_calls=self.extra_calls,
            changed=self.changed,
            usage=bill.usage(),
            cost=None if cost is None else dollars(cost),
            cost_without_cache=None if without is None else dollars(without),
            rewrites=len(self.rewrote),
            rewrote=tuple(self.rewrote),
            rewritten_tokens=sum(tokens for _, tokens in self.rewrote),
            peak=max(self.prompts, default=0),
            fits=self.fits,
            lost=self.unseen.lost,
            warnings=dict(self.warnings),
            prompts=tuple(self.prompts),
            costs=tuple(costs),
        )


def _uncached_cost(sending: Sending) -> int | None:
    return meter_of(sending.prompt.call.tariff).cost(uncached_usage(sending))


def _is_same(messages: list[Message], recorded: list[Message]) -> bool:
    return messages is recorded or messages == recorded


def _sent_beside(
    call: Call,
    lane: Lane,
    pair: tuple[Head, Extra],
    order: int,
    times: tuple[datetime | None, datetime | None],
) -> Sending:
    """A further call: behind the same prefix, or without any and in nobody's lane."""
    head, extra = pair
    lane, head = (lane, head) if extra.cached else (Lane(), NO_HEAD)
    if extra.model:
        call = _of_model(call, extra.model)
    prompt = lane.prompt(call, head, extra.messages)
    return Sending(prompt, extra.output, extra.cached, order, *times)


def _of_model(call: Call, model: str) -> Call:
    """A call that is sent to another model: nothing of the request is asked of that one."""
    rule = find_model(model)
    return replace(
        call, root=rule.id, rule=rule, tariff=replace(call.tariff, model=model), request=None
    )


def _ahead_of(call: Call, begun: datetime | None) -> tuple[datetime | None, datetime | None]:
    """Start of a call that is sent ahead of a request, and of its response."""
    if call.at is None:
        return None, None
    at = call.at - FIRST_RESPONSE
    if begun is not None and at < begun <= call.at:
        # It goes on from an answer, so that it starts no sooner, and the request holds what it said.
        return begun, call.at
    return at, None
