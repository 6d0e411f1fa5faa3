"""Requests as rendered, measured and answered by the cache, one after the other."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache.breakpoint_rules import Refusal, RefusalCode, find_refusal
from ctxdoc.cache.simulator import FIRST_RESPONSE_SECONDS, Cache, Lookup, Outcome, scopes_differ
from ctxdoc.prompt.diff import common_segments
from ctxdoc.prompt.message_shape import lifetime_conflict, shape_fault
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.render import SERVER_RESULTS, Renderer
from ctxdoc.replay.answer import end_of_answer, is_near
from ctxdoc.replay.counted_bytes import can_have, corrected_of
from ctxdoc.request.request import Request, Section
from ctxdoc.request.response import Response
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.estimate import Weigh, weight_of
from ctxdoc.tokens.ledger import Sizes, TokenLedger


class MeasuredRequest(Struct, frozen=True, kw_only=True):
    """A request as rendered and measured."""

    request: Request
    prefix: Prefix
    """The prompt as the cache saw it."""
    sizes: Sizes
    usage: Usage | None
    """Reported counters, as they were reported."""
    corrected: Usage | None = None
    """The counters without the cached part, where it is proved that the log counts it twice."""
    refusal: Refusal | None = None
    """Why the API refuses the request, by its body; None where the log says that it was accepted."""
    passes: bool = False
    """Whether the counters add up several passes over the prompt, and so tell no size of it."""
    breakpoints_assumed: bool = False
    """The API cached although the recorded body has no breakpoint."""
    hour_lost: bool = False
    """Whether the body asks for entries of an hour, and the counters show five-minute ones only."""
    answered: MeasuredRequest | None = None
    """The same with the calls and results of server tools in its answer, which the API had in the prompt
    of its later passes."""

    @property
    def double_counted(self) -> bool:
        """Whether the log counts the cached part twice."""
        return self.corrected is not None

    @property
    def cached(self) -> int | None:
        """Tokens that its counters show in the cache behind it; None where they do not tell.

        Of several passes that are not listed it is a bound: the first one read at most half of what
        all of them read.
        """
        usage, rules = self.usage, self.prefix.rule.rules
        if usage is None:
            return None
        if not rules.charges_writes:
            # Its counters say only what was read; what it wrote is the whole prompt, in whole steps.
            written = rules.readable(usage.input)
            return written if written >= self.prefix.rule.minimum else 0
        listed = listed_passes(self.request)
        if listed:
            return listed[-1].cache_read + listed[-1].cache_write
        if self.passes:
            bound = usage.cache_write + usage.cache_read // 2
            marks = self.prefix.breakpoints
            return min(bound, self.sizes.at(marks[-1])) if marks else bound
        return usage.cache_read + usage.cache_write


class Replayer:
    """Feeds requests to the cache one by one and keeps what a comparison needs."""

    def __init__(self, renderer: Renderer | None = None, weigh: Weigh = weight_of) -> None:
        self.renderer = renderer or Renderer()
        self.cache = Cache()
        self.ledger = TokenLedger(weigh)
        self._ttls: dict[str, str] = {}
        """Lifetimes that counters have shown, by model."""
        self.one_scope = False
        """Whether counters show that what the log calls different scopes share their entries."""
        self._hours_lost: set[str] = set()
        """Models whose entries of an hour are cut to five minutes on the way."""

    def render(self, request: Request) -> Prefix:
        """The prompt of a request; raises NoRequestError for a body that cannot be rendered."""
        return self.renderer.render(request)

    def measure(
        self, request: Request, prefix: Prefix, before: MeasuredRequest | None = None
    ) -> MeasuredRequest:
        """Sizes a rendered prompt."""
        usage, passes = request.usage, passed_often(request)
        if before is not None and _reads_elsewhere(before, request):
            self.one_scope = True
        # First what the log lost, then what the API did: sizes rest on the prompt that was cached.
        lost = self._ttl_of(prefix, usage) if usage and not prefix.breakpoints else None
        if lost is not None:
            prefix = _with_assumed_breakpoints(prefix, lost)
        prefix = self._behind_summary(request, prefix, before)
        hour_lost = self._is_hour_lost(prefix, usage, passes)
        if hour_lost:
            prefix = _with_five_minutes(prefix)
        # The proof needs the true index of the last breakpoint, and the counters of one pass.
        corrected = None if lost or passes else corrected_of(prefix, usage)
        found = MeasuredRequest(
            request=request,
            prefix=prefix,
            sizes=self._sized(
                request, prefix, before, _sizing(request, corrected or usage, passes)
            ),
            usage=usage,
            corrected=corrected,
            refusal=_refusal(request, prefix, before),
            passes=passes,
            breakpoints_assumed=lost is not None,
            hour_lost=hour_lost,
        )
        return self._with_answer(found) if passes else found

    def _sized(
        self,
        request: Request,
        prefix: Prefix,
        before: MeasuredRequest | None,
        stated: Usage | None,
    ) -> Sizes:
        """The sizes of a prompt, by the counters that state it and by the request before."""
        sizing = stated or request.simulated_usage
        if before is None:
            return self.ledger.measure(prefix, sizing, None, request.counted)
        # What was read tells a size of the earlier prompt: noted first, this one is sized by it too.
        if sizing is not None and not before.passes:
            self._note_read(before, prefix, sizing.cache_read)
            self._note_answer(before, prefix, sizing.input)
        return self.ledger.measure(prefix, sizing, (before.prefix, before.sizes), request.counted)

    def _with_answer(self, found: MeasuredRequest) -> MeasuredRequest:
        """A request of several passes with what its later ones had in the prompt, where it is known."""
        longer = self.renderer.answered(found.request, found.prefix)
        if longer is None:
            return found
        sizes = self.ledger.measure(longer, None, (found.prefix, found.sizes), None)
        return replace(found, answered=replace(found, prefix=longer, sizes=sizes))

    def measure_again(
        self, request: Request, prefix: Prefix, *, often: bool = False
    ) -> MeasuredRequest:
        """A request that was measured before and let go; nothing is learned from it again. With
        `often` its counters turned out to add up several passes."""
        ledger, self.ledger = self.ledger, self.ledger.copied()
        try:
            if not often:
                return self.measure(request, prefix)
            found = self.measure(replace(request, response=None), prefix)
            return replace(found, request=request, usage=request.usage, passes=True)
        finally:
            self.ledger = ledger

    def told_by_replay(self, before: MeasuredRequest, prefix: Prefix) -> MeasuredRequest:
        """An earlier request beside a later one that gives its answer back: where that holds calls of
        server tools, its counters add up several passes, though the log does not hold the answer."""
        if before.passes or before.usage is None or not _replays_server_tools(before, prefix):
            return before
        for mark in before.prefix.breakpoints:
            self.ledger.known.pop(before.prefix.keys[mark], None)
        return self.measure_again(before.request, before.prefix, often=True)

    def _behind_summary(
        self, request: Request, prefix: Prefix, before: MeasuredRequest | None
    ) -> Prefix:
        """The prompt behind the summary that the API made for this answer, where the counters are
        those of that prompt: they are far below what the body holds."""
        usage = request.usage
        if usage is None or request.response is None or not request.response.compacted:
            return prefix
        compacted = self.renderer.compacted(request, prefix)
        if compacted is None:
            return prefix
        whole = self._whole(request.response, prefix, before)
        return compacted if usage.input < SUMMARY_SHARE * whole else prefix

    def _whole(self, response: Response, prefix: Prefix, before: MeasuredRequest | None) -> int:
        """Tokens of a prompt before the summary: what the pass that made it read, or what was known of
        its beginning, whichever is more; estimated where neither is there."""
        read = [each.usage.input for each in response.passes if each.kind == "compaction"]
        known = before.sizes.at(common_segments(before.prefix, prefix) - 1) if before else 0
        return max((*read, known)) or self.ledger.measure(prefix, None).total

    def _is_hour_lost(self, prefix: Prefix, usage: Usage | None, passes: bool) -> bool:
        """Whether the markers of an hour reached the API as plain ones: what is written says so, and
        where nothing is, what was written last for the model."""
        asked = {mark.ttl for mark in prefix.marks}
        if asked != {"1h"}:
            return False
        # A write of several passes may be the API's own, which lives five minutes (facts 1.2).
        if usage is not None and _tells_lifetime(usage) and not passes:
            lost = usage.cache_write_1h == 0
            (self._hours_lost.add if lost else self._hours_lost.discard)(prefix.root)
        return prefix.root in self._hours_lost

    def _ttl_of(self, prefix: Prefix, usage: Usage) -> str | None:
        """The lifetime that the counters show; where a request writes nothing, the last one shown for
        its model. None where nothing was cached."""
        if usage.cache_write:
            self._ttls[prefix.root] = "1h" if usage.cache_write_1h else "5m"
        elif not usage.cache_read:
            return None
        return self._ttls.get(prefix.root, "5m")

    def _note_read(self, before: MeasuredRequest, prefix: Prefix, tokens: int) -> None:
        """What was read ends at the earlier request's breakpoint of the nearest size."""
        if before.cached is not None and tokens == before.cached:
            # Its last breakpoint, which its own counters have shown.
            return
        shared = common_segments(before.prefix, prefix)
        marks = [m for m in before.prefix.breakpoints if m < shared]
        if not tokens or not marks:
            return
        # The counters do not say which entry was read; the sizes known so far tell it apart, unless the
        # prompt has too few bytes there for so many tokens.
        nearest = min(marks, key=lambda m: abs(before.sizes.at(m) - tokens))
        if not can_have(prefix, nearest, tokens):
            return
        if prefix.keys[nearest] not in self.ledger.known:
            self.ledger.note(prefix, tokens, nearest)

    def _note_answer(self, before: MeasuredRequest, prefix: Prefix, most: int) -> None:
        """Where a prompt gives back the earlier request's answer, its end is known by the counted answer."""
        usage = before.usage
        # Sizes that somebody states need no counter to tell an answer from a result.
        if usage is None or before.passes or before.corrected or self.ledger.weigh is not weight_of:
            return
        end = end_of_answer(before.prefix, prefix)
        tokens = usage.input + usage.output
        if end is None or tokens >= most:
            return
        answer = prefix.segments[len(before.prefix.segments) : end]
        weight = (before.sizes.ratio or 1.0) * sum(weight_of(each, prefix.rule) for each in answer)
        if is_near(usage.output, weight):
            self.ledger.known.setdefault(prefix.keys[end - 1], tokens)

    def send(self, exchange: MeasuredRequest) -> Outcome:
        """Looks the request up and stores what it writes; one that was refused, or whose counters say
        that nothing was cached, writes nothing."""
        lookup = lookup_of(exchange)
        if self.one_scope:
            lookup = replace(lookup, scope=())
        if exchange.request.refused or exchange.refusal is not None:
            # An empty cache and an empty prompt: it neither finds nor leaves anything.
            return Cache().send(
                replace(
                    lookup, prefix=replace(lookup.prefix, segments=()), sizes=NO_SIZES, marks=()
                )
            )
        if exchange.cached == 0:
            return self.cache.send(lookup, stores=False)
        outcome = self.cache.send(lookup)
        if exchange.answered is not None and exchange.answered.prefix.marks:
            # The last mark is the API's own, behind the results.
            self.cache.store(lookup_of(exchange.answered), exchange.answered.prefix.marks[-1])
        return outcome

    def note_answer(self, before: MeasuredRequest, after: MeasuredRequest) -> None:
        """Notes that a request gives back the answer of an earlier one: that one had begun by then, unless
        the counters say that what it wrote was not read."""
        usage = after.usage
        unread = usage is not None and usage.cache_read < (before.cached or 0)
        if after.request.at is not None and not unread:
            keys = [before.prefix.keys[mark] for mark in before.prefix.breakpoints]
            self.cache.show(keys, after.request.at)

    def was_read(self, exchange: MeasuredRequest) -> bool:
        """Whether an entry of a request was read, by its own counters or by a later request."""
        usage = exchange.usage
        if usage is not None and usage.cache_read:
            return True
        return any(self.cache.is_used(exchange.prefix.keys[m]) for m in exchange.prefix.breakpoints)

    def alive_for(self, before: MeasuredRequest, after: MeasuredRequest) -> int | None:
        """Tokens of an earlier prompt whose entries still live when a later request is sent; None
        where its lifetimes do not tell that any is gone."""
        one, two = before.request.at, after.request.at
        lives = [before.prefix.segments[mark].ttl for mark in before.prefix.breakpoints]
        if one is None or two is None or not lives:
            return None
        shortest = min(map(before.prefix.rule.rules.seconds, lives))
        if (two - one).total_seconds() < shortest:
            return None
        return before.sizes.at(self.cache.longest_live(before.prefix, lookup_of(after)))


def _refusal(request: Request, prefix: Prefix, before: MeasuredRequest | None) -> Refusal | None:
    """Why the API refuses a request, where the log does not say that it was accepted. A simulation takes
    what it sends for accepted, and tells of what would be refused in its own table."""
    if _is_accepted(request):
        return None
    sent = prefix.as_sent
    found = find_refusal(sent)
    if found is not None or request.body is None:
        return found
    conflict = lifetime_conflict(request.body, sent)
    if conflict is not None:
        return Refusal(RefusalCode.LIFETIMES, *conflict)
    # What an accepted request holds was looked at with that one: work grows with what is new.
    fault = shape_fault(sent, _new_from(before.prefix.as_sent, sent) if before is not None else 0)
    return Refusal(RefusalCode.MESSAGE_SHAPE, *fault) if fault is not None else None


def _is_accepted(request: Request) -> bool:
    """Whether there is an answer, or what a simulation has in its place, that is no refusal."""
    answer = request.response or request.simulated
    return answer is not None and not request.refused


def _tells_lifetime(usage: Usage) -> bool:
    """Whether counters state for how long something was written."""
    return usage.split_known and usage.cache_write > 0


def _new_from(before: Prefix, after: Prefix) -> int:
    """Index of the message in which a prompt leaves an earlier one; 0 ahead of the messages."""
    shared = common_segments(before, after)
    last = after.segments[shared - 1] if shared else None
    return last.rank[1] if last is not None and last.section is Section.MESSAGES else 0


def _reads_elsewhere(before: MeasuredRequest, request: Request) -> bool:
    """Whether a request read all that another had cached, though the log names two scopes: the counters
    are believed."""
    usage, cached = request.usage, before.cached
    if usage is None or not cached or before.passes:
        return False
    return usage.cache_read >= cached and scopes_differ(before.request.scope, request.scope)


SUMMARY_SHARE = 0.8
"""Counters of less than so much of a prompt are those of another one, which a summary begins."""


def passed_often(request: Request) -> bool:
    """Whether the counters add up several passes over the prompt, and so tell no size of it."""
    response = request.response
    return response is not None and (response.several_passes or len(response.prompt_passes) > 1)


def _sizing(request: Request, usage: Usage | None, passes: bool) -> Usage | None:
    """The counters that tell the size of the prompt as it was sent: of several passes the first, where
    they are listed."""
    listed = listed_passes(request)
    if listed:
        return listed[0]
    return None if passes else usage


def listed_passes(request: Request) -> tuple[Usage, ...]:
    """The counters of each pass over the prompt, in their order, where the answer lists them. A request
    for nothing but a summary has no other pass than that (compaction page, 2026-10-08)."""
    response = request.response
    if response is None or response.usage is None:
        return ()
    if response.usage.input == 0:
        return tuple(each.usage for each in response.passes if each.kind == "compaction")
    return response.prompt_passes


def _replays_server_tools(before: MeasuredRequest, prefix: Prefix) -> bool:
    """Whether a later prompt gives back an answer in which the API ran tools."""
    body = before.request.body
    index = len(body.messages) if body is not None else -1
    return any(
        s.section is Section.MESSAGES
        and s.rank[1] == index
        and s.role == "assistant"
        and s.kind in SERVER_RESULTS
        for s in prefix.segments[len(before.prefix.segments) :]
    )


def is_whole(exchange: MeasuredRequest) -> bool:
    """Whether its counters state the size of its prompt."""
    return bool(exchange.usage and exchange.usage.input) and not exchange.passes


NO_SIZES = Sizes(upto=(), total=0, origin=Origin.NONE)


def lookup_of(exchange: MeasuredRequest) -> Lookup:
    """A measured request as the cache meets it."""
    request = exchange.request
    return Lookup(
        prefix=exchange.prefix,
        sizes=exchange.sizes,
        marks=exchange.prefix.marks,
        at=request.at,
        began=_began(request),
        scope=request.scope,
    )


def _began(request: Request) -> datetime | None:
    """Start of the response: not known better than by the assumption, or by the end if sooner."""
    if request.at is None:
        return None
    seconds = FIRST_RESPONSE_SECONDS
    if request.duration is not None:
        seconds = min(seconds, request.duration)
    return request.at + timedelta(seconds=seconds)


def _with_five_minutes(prefix: Prefix) -> Prefix:
    """A prompt whose breakpoints lost their hour on the way."""
    segments = tuple(replace(s, ttl="5m") if s.ttl else s for s in prefix.segments)
    return replace(prefix, segments=segments)


def _with_assumed_breakpoints(prefix: Prefix, ttl: str) -> Prefix:
    """Breakpoints at the ends of tools, system and messages, for a body that lost them in the log."""
    ends = {s.section: i for i, s in enumerate(prefix.segments) if s.is_block and not s.mark_fault}
    segments = tuple(
        replace(s, ttl=ttl) if ends.get(s.section) == i else s
        for i, s in enumerate(prefix.segments)
    )
    return replace(prefix, segments=segments)
