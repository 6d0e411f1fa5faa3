"""A log as the session that strategies work on: the requests in time order, each block with its size."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.cache.simulator import FIRST_RESPONSE
from ctxdoc.diagnosis.by_counters import Counted
from ctxdoc.errors import NoRequestError
from ctxdoc.pricing.cost import extra_passes_of, fees_of, price
from ctxdoc.pricing.tariff import tariff_of
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.providers import are_rules_known, find_model
from ctxdoc.replay.bound import BlockSizes, block_of
from ctxdoc.replay.measure import MeasuredRequest, is_whole, lookup_of
from ctxdoc.replay.thread import Thread, Threads
from ctxdoc.replay.walk import Step, Walk
from ctxdoc.request import codec
from ctxdoc.request.log import Log, Trait
from ctxdoc.request.request import Body, Marked, Request
from ctxdoc.simulation.history.from_numbers import CountedThread
from ctxdoc.simulation.history.messages import Call, Head, Message, Place, Session, message_of
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
        self.messages = _Messages()
        self.shapes = _Shapes()
        self.threads = Threads()
        self.lines: dict[Thread, _Line] = {}
        self.counted: dict[str, Counted] = {}
        self.heard: dict[Thread, CountedThread] = {}
        self.left_out: Counter[str] = Counter()
        self.by_counters = 0
        self.assumed = 0
        """Requests whose breakpoints are assumed."""

    def _is_kept(self, step: Step) -> bool:
        """Whether a request is one of the chosen session."""
        return self.walk.kept is None or step.index in self.walk.kept

    def session(self) -> Session:
        calls: list[Call] = []
        around: list[tuple[int, Call]] = []
        for step in self.walk.steps():
            for call in self._read(step):
                if self._is_kept(step):
                    calls.append(call)
                else:
                    around.append((len(calls), call))
        _note_answers(calls)
        if self.walk.one_scope:
            calls = [replace(call, place=()) for call in calls]
            around = [(index, replace(call, place=())) for index, call in around]
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
        known = request.body is not None and self.shapes.are_known(request.body)
        return "" if known else "a part of it has no known shape"

    def _by_body(self, step: Step, exchange: MeasuredRequest) -> Call:
        found, fresh = self.threads.go_on(step.index, step.session, step.earlier)
        thread = self.lines[found] = _Line() if fresh else self.lines[found]
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
            place=lookup.scope,
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
            self.heard[found] = CountedThread.begin(name, usage)
        else:
            self.heard[found].go_on(step.index, usage)
        heard = self.heard[found]
        self.by_counters += self._is_kept(step)
        return Call(
            number=step.index + 1,
            thread=found.number,
            head=heard.head,
            line=heard.line,
            count=len(heard.line),
            marks=(),
            root=find_model(request.model).id,
            rule=find_model(request.model),
            tariff=tariff_of(request),
            at=request.at,
            place=request.place,
            output=usage.output,
            reported=usage,
            beside=_beside(request),
        )


class _Shapes:
    """Whether the parts of bodies can be taken apart and put together again, looked at once each."""

    def __init__(self) -> None:
        self._known: dict[bytes, bool] = {}

    def are_known(self, body: Body) -> bool:
        """Whether every tool, system block and message is what the API takes."""
        return (
            all(map(self._is_known, map(_plain, body.messages)))
            and all(bytes(tool).startswith(b"{") for tool in body.tools or ())
            and _is_text_or_blocks(bytes(body.system))
        )

    def _is_known(self, message: bytes) -> bool:
        found = self._known.get(message)
        if found is None:
            found = self._known[message] = _is_message(message)
        return found


def _plain(message: Raw | bytes | Marked) -> bytes:
    return message.plain if isinstance(message, Marked) else bytes(message)


def _is_message(message: bytes) -> bool:
    """Whether a message holds a text, or blocks of which each is what its type says."""
    try:
        members = msgspec.json.decode(message, type=dict[str, Raw])
        content = bytes(members.get("content", b"null"))
        if content.startswith(b'"'):
            return True
        blocks = msgspec.json.decode(content, type=list[dict[str, Raw]])
        return bool(blocks) and all(map(_is_block, blocks))
    except (msgspec.DecodeError, RecursionError):
        return False


def _is_block(block: dict[str, Raw]) -> bool:
    kind = bytes(block.get("type", b"null"))
    if kind == b'"tool_use"':
        return bytes(block.get("input", b"{}")).startswith(b"{")
    if kind == b'"tool_result"':
        return _is_text_or_blocks(bytes(block.get("content", b"null")))
    return kind.startswith(b'"')


def _is_text_or_blocks(value: bytes) -> bool:
    if value.startswith(b'"') or value == b"null":
        return True
    try:
        msgspec.json.decode(value, type=list[dict[str, Raw]])
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


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
        if before is None or call.at is None:
            continue
        one = calls[before]
        if one.at is None or call.count <= one.count:
            continue
        # What is not known is assumed, and never later than that: a call that a strategy sends in
        # between reads what this one has written.
        if (one.began or one.at + FIRST_RESPONSE) > call.at:
            calls[before] = replace(one, began=max(one.at, call.at))


def _with_output(call: Call) -> Call:
    """The size of the answer, where the next request sends it."""
    if call.output is not None or call.count >= len(call.line):
        return call
    answer = call.line[call.count]
    return replace(call, output=answer.size) if answer.role == "assistant" else call


class _Line(Struct):
    """The messages of a thread as they were sent last."""

    line: list[Message] = []
    ends: list[int] = []
    """Blocks up to the end of each message."""
    nodes: list[int] = []
    """What each message is known by."""
    segments: tuple[Segment, ...] = ()
    """Of the messages, as they were sent last."""


class _Messages:
    """Every message of the log, each once for its place behind the same others, and every head.

    A block has one size wherever it stands.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], tuple[int, Message]] = {}
        self._heads: dict[tuple[object, ...], Head] = {}
        self._sizes = BlockSizes()

    def take(self, exchange: MeasuredRequest, thread: _Line) -> tuple[Head, tuple[Place, ...]]:
        """Puts a request's messages into its thread's line; its head and its breakpoints."""
        prefix = exchange.prefix
        start = len(prefix.segments) - len(prefix.row)
        segments = prefix.segments[start:]
        count = self._shared(thread, segments)
        first = thread.ends[count - 1] if count else 0
        head_key = (
            prefix.rule.tokenizer,
            *[segment.digest for segment in prefix.segments[:start]],
        )
        head = self._heads.get(head_key)
        known = sum([message.size for message in thread.line[:count]]) + (head.size if head else 0)
        fresh = range(start + first, len(prefix.segments))
        self._settle(exchange, [*(range(start) if head is None else ()), *fresh], known)
        if head is None:
            own = prefix.segments[:start]
            tokens = self._of(prefix, own)
            head = Head(tuple(map(_unmarked, own)), tokens, sum(tokens))
            self._heads[head_key] = head
        ends = self._extend(thread, prefix, segments, count)
        thread.segments = segments
        return head, tuple(_places(exchange, start, ends))

    def _extend(
        self, thread: _Line, prefix: Prefix, segments: tuple[Segment, ...], count: int
    ) -> list[int]:
        """Adds the messages behind the shared ones; where all of them end."""
        at = thread.ends[count - 1] if count else 0
        node = thread.nodes[count - 1] if count else -1
        line, ends, nodes = thread.line, thread.ends[:count], thread.nodes[:count]
        for end in _ends_of(segments, at):
            node, message = self._message(node, prefix, segments[at:end])
            index = len(ends)
            if index < len(line) and line[index] is not message:
                # Requests before this one keep the line that they had.
                line = line[:index]
            if index == len(line):
                line.append(message)
            ends.append(end)
            nodes.append(node)
            at = end
        thread.line = line if len(ends) == len(line) else line[: len(ends)]
        thread.ends, thread.nodes = ends, nodes
        return ends

    def _settle(self, exchange: MeasuredRequest, places: Sequence[int], known: int) -> None:
        """Gives blocks that are seen for the first time their size."""
        prefix, upto = exchange.prefix, exchange.sizes.upto
        kind = prefix.rule.tokenizer
        self._sizes.settle(
            (
                (
                    block_of(kind, prefix.segments[place]),
                    upto[place] - (upto[place - 1] if place else 0),
                )
                for place in places
            ),
            known,
            exchange.usage.input if exchange.usage and is_whole(exchange) else None,
        )

    def _of(self, prefix: Prefix, segments: Sequence[Segment]) -> tuple[int, ...]:
        kind = prefix.rule.tokenizer
        return tuple([self._sizes[block_of(kind, segment)] for segment in segments])

    def _shared(self, thread: _Line, segments: Sequence[Segment]) -> int:
        """Leading messages that the request before has in the same form."""
        count = 0
        for one, two in zip(thread.segments, segments, strict=False):
            if one is not two:
                break
            count += 1
        return bisect_right(thread.ends, count)

    def _message(
        self, node: int, prefix: Prefix, segments: tuple[Segment, ...]
    ) -> tuple[int, Message]:
        key = (node, prefix.rule.tokenizer, segments[0].role, *[s.digest for s in segments])
        found = self._known.get(key)
        if found is None:
            raw = _raw_of(segments)
            made = message_of(tuple(map(_unmarked, segments)), self._of(prefix, segments), raw)
            found = self._known[key] = (len(self._known), made)
        return found


def _raw_of(segments: tuple[Segment, ...]) -> bytes:
    """A message as it was sent; made anew where the API took something out of it."""
    raw = next((segment.origin[0] for segment in segments if segment.origin[0]), b"")
    if raw and all(segment.held is None for segment in segments):
        return raw
    blocks = b",".join(segment.data for segment in segments)
    return b'{"role":%b,"content":[%b]}' % (codec.encode(segments[0].role), blocks)


def _unmarked(segment: Segment) -> Segment:
    return replace(segment, ttl=None) if segment.ttl else segment


def _ends_of(segments: Sequence[Segment], start: int) -> Iterator[int]:
    """Where the messages end, from a block on."""
    for index in range(start + 1, len(segments)):
        if segments[index].rank[1] != segments[index - 1].rank[1]:
            yield index
    if start < len(segments):
        yield len(segments)


def _places(exchange: MeasuredRequest, start: int, ends: Sequence[int]) -> Iterator[Place]:
    for mark in exchange.prefix.marks:
        if mark.index < start:
            yield Place(0, mark.index, mark.ttl)
            continue
        message = bisect_right(ends, mark.index - start)
        first = ends[message - 1] if message else 0
        yield Place(len(ends) - message, mark.index - start - first, mark.ttl)


def _output_of(request: Request) -> int | None:
    """Tokens of the answer, reported or else simulated; None where neither is known."""
    usage = request.usage or request.simulated_usage
    return usage.output if usage else None
