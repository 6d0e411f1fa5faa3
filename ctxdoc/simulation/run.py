"""One session under many strategies and placements: the same cache, the same prices."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache.prefix_tree import PrefixTree
from ctxdoc.cache.simulator import FIRST_RESPONSE, Cache, Lookup
from ctxdoc.pricing.cost import Meter, dollars, meter_of
from ctxdoc.replay.bound import BoundOfTree, warm_of
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.history.assemble import Lane, Prompt
from ctxdoc.simulation.history.edit import Maker
from ctxdoc.simulation.history.messages import Call, Head, Message, Session
from ctxdoc.simulation.history.validity import BOUND_THINKING, OVER_WINDOW, Checker, has_thinking
from ctxdoc.simulation.placements import Placement
from ctxdoc.simulation.result import Lost, Result
from ctxdoc.simulation.strategies import Extra, History, Sent, Spec
from ctxdoc.simulation.strategies.spec import by_server
from ctxdoc.tokens.estimate import Weigh, weight_of

NO_HEAD = Head((), (), 0)


class Sending(Struct, frozen=True, eq=False, gc=False):
    """A prompt that is sent, with its answer's size."""

    prompt: Prompt
    output: int
    cached: bool
    """Whether it carries breakpoints at all."""
    order: int
    """0 for the request itself, -1 for what is sent ahead of it, 1, 2 … for what follows it."""
    at: datetime | None = None
    began: datetime | None = None
    """When its response began; None where that is assumed."""


class Simulation:
    """A session, ready to be run under strategies."""

    def __init__(self, session: Session, weigh: Weigh = weight_of) -> None:
        self.session = session
        self._weigh = weigh

    def rows(self, specs: tuple[Spec, ...], placements: Sequence[Placement]) -> list[Result]:
        """A strategy under each of the placements."""
        run = _Run(specs, placements, self._weigh)
        around = iter(self.session.around)
        ahead = next(around, None)
        for place, call in enumerate(self.session.calls):
            while ahead is not None and ahead[0] <= place:
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
        bill = _Bill(placement)
        for sending in self.iter_sent(specs, placement):
            yield sending, bill.bill(sending.prompt.call, sending)[0]

    def iter_sent(self, specs: tuple[Spec, ...], placement: Placement) -> Iterator[Sending]:
        """The prompts of a strategy in the order in which they are sent."""
        run = _Run(specs, (placement,), self._weigh)
        for call in self.session.calls:
            yield from run.send(call)


class _Thread:
    """What is known of the requests that go on from each other."""

    def __init__(self, count: int) -> None:
        self.memories: list[object] = [None] * count
        self.number = 0
        self.lane = Lane()
        self.line: list[Message] | None = None
        self.seen = 0
        """Messages of the line that a request before had."""
        self.sent: Sequence[Message] = ()
        """What that one sent."""
        self.begun: datetime | None = None
        """When its response began at the latest: what goes on from it cannot start sooner."""


class _Run:
    """One strategy over the session."""

    def __init__(
        self, specs: tuple[Spec, ...], placements: Sequence[Placement], weigh: Weigh
    ) -> None:
        self.specs = specs
        self.maker = Maker(weigh)
        self.checker = Checker()
        self.threads: dict[int, _Thread] = {}
        self.bills = [_Bill(placement) for placement in placements]
        self.warnings: Counter[str] = Counter()
        self.lost: dict[tuple[Message, bytes], Lost] = {}
        self.shown: set[bytes] = set()
        """Digests of recorded blocks that the model sees in another form."""
        self.recorded: set[bytes] = set()
        """Digests of the blocks that the log has."""
        self.prompts: list[int] = []
        self.uncached: list[int | None] = []
        self.rewrote: list[tuple[int, int]] = []
        self.extra_calls = 0
        self.changed = 0
        self.fits = True
        self.client_edits = any(spec.definition.edits and not by_server(spec) for spec in specs)
        self.coarsens = any(spec.definition.coarsens for spec in specs)
        self.server_edits = any(map(by_server, specs))

    def send(self, call: Call) -> list[Sending]:
        """Runs one recorded request."""
        thread = self.threads.setdefault(call.thread, _Thread(len(self.specs)))
        thread.number += 1
        recorded = call.messages
        messages, head, passing = recorded, call.head, 0
        extras: list[tuple[Head, Extra]] = []
        # In the order in which they were found, whatever a set's would be.
        warnings: dict[str, None] = {}
        for place, spec in enumerate(self.specs):
            history = History(call, head, messages, thread.number, self.maker)
            sent: Sent = spec.strategy.send(history, thread.memories[place])
            thread.memories[place] = sent.memory
            messages, head = sent.messages, sent.head or head
            passing += sent.passing
            extras += [(head, extra) for extra in sent.extra]
            warnings.update(dict.fromkeys(sent.warnings))
            self.shown.update([segment.digest for segment in sent.seen])
        self.changed += head is not call.head or (messages is not recorded and messages != recorded)
        self._note_lost(call, thread, messages)
        sendings = self._sendings(call, thread, extras, (head, messages, passing))
        self._check(call, sendings, None if messages is recorded else messages, warnings)
        for bill in self.bills:
            bill.add(call, sendings)
        self._add_uncached(call, sendings)
        return sendings

    def pass_by(self, call: Call) -> None:
        """Lets a request of another session write its entries: it is sent as recorded and not counted."""
        thread = self.threads.setdefault(call.thread, _Thread(len(self.specs)))
        prompt = thread.lane.prompt(call, call.head, call.messages)
        for bill in self.bills:
            bill.pass_by(call, Sending(prompt, 0, True, 0, call.at, call.began))

    def _sendings(
        self,
        call: Call,
        thread: _Thread,
        extras: Sequence[tuple[Head, Extra]],
        main: tuple[Head, list[Message], int],
    ) -> list[Sending]:
        """The further calls and the request itself, in order."""
        head, messages, passing = main
        ahead = [pair for pair in extras if not pair[1].after]
        behind = [pair for pair in extras if pair[1].after]
        self.extra_calls += len(extras)
        at, began = _ahead_of(call, thread.begun)
        found = [
            Sending(
                self._extra(call, thread, own, extra), extra.output, extra.cached, -1, at, began
            )
            for own, extra in ahead
        ]
        prompt = thread.lane.prompt(call, head, messages, passing)
        found.append(Sending(prompt, call.output or 0, True, 0, call.at, call.began))
        if call.at is not None:
            thread.begun = call.began or call.at + FIRST_RESPONSE
        self.prompts.append(prompt.sizes.total)
        if prompt.dropped:
            self.rewrote.append((len(self.prompts) - 1, prompt.rewritten))
        for number, (own, extra) in enumerate(behind, start=1):
            more = self._extra(call, thread, own, extra)
            # Each starts when the first response before it has begun.
            at = None if call.at is None else call.at + number * FIRST_RESPONSE
            found.append(Sending(more, extra.output, extra.cached, number, at))
        return found

    def _extra(self, call: Call, thread: _Thread, head: Head, extra: Extra) -> Prompt:
        lane = thread.lane if extra.cached else Lane()
        return lane.prompt(call, head if extra.cached else NO_HEAD, extra.messages)

    def _check(
        self,
        call: Call,
        sendings: Sequence[Sending],
        changed: Sequence[Message] | None,
        warnings: dict[str, None],
    ) -> None:
        """Notes what the API would refuse of a request, whose messages a strategy may have changed."""
        prompt = next(sending.prompt for sending in sendings if not sending.order)
        if prompt.sizes.total > call.rule.window:
            self.fits = False
            warnings[OVER_WINDOW] = None
        if self.client_edits and prompt.dropped and call.rule.binds_thinking:
            index = bisect_right(prompt.ends, prompt.kept)
            if changed is not None and has_thinking(changed[index:]):
                warnings[BOUND_THINKING] = None
        if self.client_edits and not self.server_edits and changed is not None:
            found = tuple(self.checker.faults(changed))
            if found:
                # What the log has itself is no fault of the strategy.
                own = self.checker.faults_of_line(call.line)
                warnings.update(dict.fromkeys(fault for fault in found if fault not in own))
        self.warnings.update(list(warnings))

    def _note_lost(self, call: Call, thread: _Thread, messages: Sequence[Message]) -> None:
        """What this request had in the log and does not send. Looked at is what is new in the log, and
        what the request before sent."""
        goes_on = thread.line is call.line
        new = call.line[thread.seen if goes_on else 0 : call.count]
        before = thread.sent if goes_on else ()
        for message in new:
            self.recorded.update([segment.digest for segment in message.segments])
        thread.line, thread.seen, thread.sent = call.line, call.count, messages
        if [*before, *new] == messages:
            # Only appended: nothing can be gone.
            return
        kept = set(messages)
        gone = [message for message in (*before, *new) if message not in kept]
        if not gone:
            return
        # A block may have moved into a message that is new, be it made or recorded.
        moved = {s.digest for message in kept.difference(before) for s in message.segments}
        for message in gone:
            for place, segment in enumerate(message.segments):
                key = (message, segment.digest)
                if segment.digest in self.shown or segment.digest in moved:
                    continue
                if segment.digest not in self.recorded:
                    continue
                if key not in self.lost and not (segment.pictured and self.coarsens):
                    self.lost[key] = Lost(segment, message.tokens[place], call.number)

    def _add_uncached(self, call: Call, sendings: Sequence[Sending]) -> None:
        meter = meter_of(call.tariff)
        costs = [meter.cost(_plain(sending)) for sending in sendings]
        self.uncached.append(_total(costs))

    def rows(self) -> list[Result]:
        """The results, in the order of the placements."""
        return [self._row(bill) for bill in self.bills]

    def _row(self, bill: _Bill) -> Result:
        costs = bill.costs()
        cost, without = _of_known(costs), _of_known(self.uncached)
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
            lost=tuple(self.lost.values()),
            warnings=dict(self.warnings),
            prompts=tuple(self.prompts),
            costs=tuple(costs),
        )


def _plain(sending: Sending) -> Usage:
    return Usage(
        uncached=sending.prompt.sizes.total,
        cache_read=0,
        cache_write_5m=0,
        cache_write_1h=0,
        output=sending.output,
    )


def _of_known(costs: Sequence[int | None]) -> int | None:
    """The sum of what is priced; None where nothing is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _total(costs: Sequence[int | None]) -> int | None:
    total = 0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


class _Bill:
    """What the prompts of a strategy cost under one placement."""

    def __init__(self, placement: Placement) -> None:
        self.placement = placement
        self._cache = Cache()
        self._bound = BoundOfTree(PrefixTree())
        self._billed: list[list[tuple[Meter, Usage, int | None]]] = []
        """By request: each prompt's rates and usage, and its number in the tree of the bound."""

    def add(self, call: Call, sendings: Sequence[Sending]) -> None:
        """Sends the prompts of one request."""
        meter = meter_of(call.tariff)
        self._billed.append([(meter, *self.bill(call, sending)) for sending in sendings])

    def pass_by(self, call: Call, sending: Sending) -> None:
        """Sends a prompt that is billed to somebody else."""
        self.bill(call, sending)

    def bill(self, call: Call, sending: Sending) -> tuple[Usage, int | None]:
        """What one prompt reads, writes and pays; its number in the tree where the end decides it."""
        if not sending.cached:
            return _plain(sending), None
        if self.placement.bound:
            return _plain(sending), self._add(call, sending.prompt)
        usage = self._cache.bill(_step(call, sending, self.placement))
        return (replace(usage, output=sending.output) if sending.output else usage), None

    def _add(self, call: Call, prompt: Prompt) -> int:
        upto = prompt.sizes.upto
        warm = warm_of(call.reported, call.request)
        if warm and (prompt.head is not call.head or prompt.messages != call.messages):
            # What was read is known of the recorded prompt only.
            warm = 0
        return self._bound.add(
            prompt.prefix.keys, call.rule.minimum, lambda known, _: upto[known:], warm
        )

    def usages(self) -> Iterator[list[tuple[Meter, Usage]]]:
        """What is billed, request by request; of the bound it is known at the end only."""
        for row in self._billed:
            yield [
                (meter, usage if number is None else _bounded(usage, self._bound.parts(number)))
                for meter, usage, number in row
            ]

    def usage(self) -> Usage:
        """All of it together."""
        every = [usage for row in self.usages() for _, usage in row]
        return Usage(
            uncached=sum(usage.uncached for usage in every),
            cache_read=sum(usage.cache_read for usage in every),
            cache_write_5m=sum(usage.cache_write_5m for usage in every),
            cache_write_1h=sum(usage.cache_write_1h for usage in every),
            output=sum(usage.output for usage in every),
        )

    def costs(self) -> list[int | None]:
        """Of each request with its further calls."""
        return [_total([meter.cost(usage) for meter, usage in row]) for row in self.usages()]


def _bounded(usage: Usage, parts: tuple[int, int, int]) -> Usage:
    read, written, uncached = parts
    return replace(usage, uncached=uncached, cache_read=read, cache_write_5m=written)


def _step(call: Call, sending: Sending, placement: Placement) -> Lookup:
    prompt = sending.prompt
    return Lookup(
        prefix=prompt.prefix,
        sizes=prompt.sizes,
        marks=placement.place(prompt),
        at=sending.at,
        began=sending.began,
        scope=call.place,
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
