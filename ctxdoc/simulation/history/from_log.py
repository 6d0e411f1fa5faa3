"""A log as the session that strategies work on: the requests in time order, each block with its size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec.structs import replace

from ctxdoc.cache.simulator import FIRST_RESPONSE
from ctxdoc.diagnosis.by_counters import Counted
from ctxdoc.errors import NoRequestError
from ctxdoc.pricing.cost import extra_passes_of, fees_of, price
from ctxdoc.pricing.tariff import tariff_of
from ctxdoc.providers import are_rules_known, find_model
from ctxdoc.replay.measure import MeasuredRequest, lookup_of
from ctxdoc.replay.thread import Thread, Threads
from ctxdoc.replay.walk import Step, Walk
from ctxdoc.request.log import Log, Trait
from ctxdoc.request.request import Request
from ctxdoc.simulation.history.counted_thread import CountedThread, Starts
from ctxdoc.simulation.history.known_messages import KnownMessages, Line
from ctxdoc.simulation.history.messages import Call, Session
from ctxdoc.simulation.history.shapes import Shapes
from ctxdoc.tokens.estimate import Weigh, weight_of

BY_COUNTERS = (
    "the log has no bodies of {count}: what a prompt grows by counts as the answer before it and one "
    "tool result, the first prompt of each session as fixed"
)
ASSUMED_MARKS = (
    "the bodies of {count} lost their breakpoints in the log: assumed at the ends of tools, system prompt "
    "and messages, with the lifetime that the counters show"
)
NO_TIMES = "the log has no times: nothing expires"


def recorded_session(log: Log, *, only: str = "", weigh: Weigh = weight_of) -> Session:
    """The requests of a log, or of one session of it, that can be simulated.

    Raises InputError for a name that no session, or that several, begin with; NoRequestError where
    nothing can be simulated.
    """
    return _Reader(log, only, weigh).session()


class _Reader:
    """The state of reading one log. It lets go of bodies on the way."""

    def __init__(self, log: Log, only: str, weigh: Weigh) -> None:
        self.log = log
        self.walk = Walk(log.requests, only=only, weigh=weigh, consume=True)
        self.messages = KnownMessages()
        self.shapes = Shapes()
        self.threads = Threads()
        self.lines: dict[Thread, Line] = {}
        self.counted: dict[str, Counted] = {}
        self.heard: dict[Thread, CountedThread] = {}
        self.starts = Starts(log.requests)
        self.left_out: Counter[str] = Counter()
        self.by_counters = 0
        self.assumed = 0
        """Requests whose breakpoints are assumed."""

    def _is_kept(self, step: Step) -> bool:
        """Whether a request is one of the chosen session."""
        return self.walk.kept is None or step.index in self.walk.kept

    def session(self) -> Session:
        """What the log holds, read to its end."""
        calls, around = self._calls()
        calls = self._below(calls)
        _note_answers(calls)
        if self.walk.one_scope:
            # The scope then says nothing, and a made-up request beside the recorded ones has none.
            calls = [replace(call, scope=()) for call in calls]
            around = [(index, replace(call, scope=())) for index, call in around]
        if not calls:
            raise NoRequestError(
                "no request of the log can be simulated",
                "; ".join(self.left_out) or "ctxdoc replay shows what the log holds",
            )
        return Session(
            calls=tuple(map(_with_output, calls)),
            left_out=dict(self.left_out),
            assumptions=tuple(self._assumptions(calls)),
            around=tuple(around),
        )

    def _below(self, calls: list[Call]) -> list[Call]:
        """The requests, those of sessions below another one marked."""
        below = {each.id for each in self.walk.sessions() if each.parent is not None}
        names = self.walk.parter.names
        return [
            replace(call, is_subagent=True) if names[call.number - 1] in below else call
            for call in calls
        ]

    def _calls(self) -> tuple[list[Call], list[tuple[int, Call]]]:
        """The requests of the chosen session, and those around them: before which each was sent."""
        calls: list[Call] = []
        around: list[tuple[int, Call]] = []
        for step in self.walk.steps():
            for call in self._read(step):
                if self._is_kept(step):
                    calls.append(call)
                else:
                    around.append((len(calls), call))
        return calls, around

    def _assumptions(self, calls: Sequence[Call]) -> Iterator[str]:
        if self.by_counters:
            yield BY_COUNTERS.format(count=f"{self.by_counters:,} of {len(calls):,} requests")
        if self.assumed:
            yield ASSUMED_MARKS.format(count=f"{self.assumed:,} of {len(calls):,} requests")
        if Trait.TIME not in self.log.traits and not any(call.at for call in calls):
            yield NO_TIMES

    def _read(self, step: Step) -> Iterator[Call]:
        reason = _unfit(step)
        if reason:
            if self._is_kept(step):
                self.left_out[reason] += 1
            return
        if step.request.body is None:
            call = self._by_counters(step, step.request)
            if call is not None:
                yield call
            return
        reason = self._unknown_shape(step)
        if reason:
            self.left_out[reason] += 1
        elif step.replayed is not None:
            yield self._by_body(step, step.replayed.after)

    def _unknown_shape(self, step: Step) -> str:
        """Why the prompt of a request cannot be taken apart."""
        request, replayed = step.request, step.replayed
        if replayed is None:
            return step.reason.split(": ", 1)[-1]
        before = replayed.before
        if before is not None and request.is_same_response(before.request):
            return "another record of a response"
        if replayed.after.refusal is not None:
            # It read and wrote nothing, and no strategy is to blame for it.
            return "the API refuses it"
        known = request.body is not None and self.shapes.are_known(request.body)
        return "" if known else "a part of it has no known shape"

    def _by_body(self, step: Step, exchange: MeasuredRequest) -> Call:
        found, fresh = self.threads.go_on(step.index, step.session, step.earlier)
        thread = self.lines[found] = Line() if fresh else self.lines[found]
        head, marks = self.messages.take(exchange, thread)
        request = exchange.request
        self.assumed += exchange.breakpoints_assumed and self._is_kept(step)
        lookup = lookup_of(exchange)
        body = request.body
        return Call(
            number=step.index + 1,
            thread=found.number,
            head=head,
            line=thread.line,
            count=len(thread.line),
            marks=marks,
            root=exchange.prefix.root,
            rule=exchange.prefix.rule,
            tariff=tariff_of(request),
            at=lookup.at,
            began=lookup.began,
            scope=lookup.scope,
            scale=1.0 if exchange.sizes.ratio is None else exchange.sizes.ratio,
            output=_output_of(request),
            reported=exchange.usage,
            beside=_beside(request),
            # The messages are held by the line.
            request=replace(request, raw=None, body=replace(body, messages=()) if body else None),
        )

    def _by_counters(self, step: Step, request: Request) -> Call | None:
        usage = request.usage
        if usage is None:
            return None
        session = step.session
        told = self.counted.setdefault(session, Counted()).next(step.index, request)
        if told is None:
            self.left_out["no counters of its own"] += 1
            return None
        found, fresh = self.threads.counted(step.index, session, told.thread)
        if fresh:
            name = f"of {session}, thread {told.thread}"
            start = self.starts.of(request.model, usage, name)
            rules = find_model(request.model).rules
            self.heard[found] = CountedThread.begin(name, usage, start, rules, request.at)
        else:
            self.heard[found].go_on(step.index, usage, request.at)
        heard = self.heard[found]
        self.by_counters += self._is_kept(step)
        return Call(
            number=step.index + 1,
            thread=found.number,
            head=heard.head,
            line=heard.line,
            count=len(heard.line),
            marks=heard.marks(),
            root=find_model(request.model).id,
            rule=find_model(request.model),
            tariff=tariff_of(request),
            at=request.at,
            scope=request.scope,
            output=usage.output,
            reported=usage,
            beside=_beside(request),
        )


def _beside(request: Request) -> Decimal | None:
    """USD that a request was billed beside its own counters; None where it is unpriced."""
    total, tariff = fees_of(request), tariff_of(request)
    for usage, own in extra_passes_of(request, tariff):
        cost = price(usage, own)
        if cost is None:
            return None
        total += cost
    return total


def _unfit(step: Step) -> str:
    """Why a request cannot be simulated, whatever its body looks like."""
    request = step.request
    if request.refused:
        return "the API refused it"
    if request.body is None and request.usage is None:
        return "neither a body nor counters"
    if not are_rules_known(request.model):
        # Another provider's counters say nothing of what this one's rules would do. Replay refuses
        # the bodies that would be emitted, so that both price the same requests.
        return f"the cache rules of '{request.model}' are not known"
    if request.body is not None or request.session:
        return ""
    return "nothing says which request came before it"


def _note_answers(calls: list[Call]) -> None:
    """Notes when an answer had begun at the latest: once the next request of its thread gives it back."""
    last: dict[int, int] = {}
    for index, call in enumerate(calls):
        before = last.get(call.thread)
        last[call.thread] = index
        if before is not None and call.at is not None:
            calls[before] = _begun_by(calls[before], call, call.at)


def _begun_by(one: Call, later: Call, at: datetime) -> Call:
    """A request whose answer a later one, sent at a time, gives back."""
    if one.at is None or later.count <= one.count:
        return one
    # What is not known is assumed, and never later than that: a call that a strategy sends in
    # between reads what this one has written.
    is_later = (one.began or one.at + FIRST_RESPONSE) > at
    return replace(one, began=max(one.at, at)) if is_later else one


def _with_output(call: Call) -> Call:
    """The size of the answer, where the next request sends it."""
    if call.output is not None or call.count >= len(call.line):
        return call
    answer = call.line[call.count]
    return replace(call, output=answer.size) if answer.role == "assistant" else call


def _output_of(request: Request) -> int | None:
    """Tokens of the answer, reported or else simulated; None where neither is known."""
    usage = request.usage or request.simulated_usage
    return usage.output if usage else None
