"""Requests as rendered, measured and answered by the cache, one after the other."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache import FIRST_RESPONSE_SECONDS, Cache, Outcome, Step, find_refusal
from ctxdoc.diff import common_segments
from ctxdoc.model import Origin, Request, Usage
from ctxdoc.prefix import Prefix
from ctxdoc.providers import RULES
from ctxdoc.render import Renderer
from ctxdoc.tokens import Ledger, Sizes, Weigh, weight_of


class Exchange(Struct, frozen=True, kw_only=True):
    """A request as rendered and measured."""

    request: Request
    prefix: Prefix
    sizes: Sizes
    usage: Usage | None
    """Reported counters, corrected where they counted the cached part twice."""
    double_counted: bool = False
    breakpoints_assumed: bool = False
    """The API cached although the recorded body has no breakpoint."""


class Replayer:
    """Feeds requests to the cache one by one and keeps what a comparison needs."""

    def __init__(self, renderer: Renderer | None = None, weigh: Weigh = weight_of) -> None:
        self.renderer = renderer or Renderer()
        self.cache = Cache()
        self.ledger = Ledger(weigh)
        self._ttls: dict[str, str] = {}
        """Lifetimes that counters have shown, by model."""

    def render(self, request: Request) -> Prefix:
        """The prompt of a request; raises NoRequestError for a body that cannot be rendered."""
        return self.renderer.render(request)

    def measure(self, request: Request, prefix: Prefix, before: Exchange | None = None) -> Exchange:
        """Sizes a rendered prompt."""
        usage = request.usage
        assumed = bool(usage and usage.cache_read + usage.cache_write and not prefix.breakpoints)
        if usage is not None and assumed:
            prefix = _with_assumed_breakpoints(prefix, self._ttl_of(prefix, usage))
        corrected = _corrected(prefix, usage)
        if before is not None and corrected is not None:
            self._note_read(before, prefix, corrected.cache_read)
        return Exchange(
            request=request,
            prefix=prefix,
            sizes=self.ledger.measure(
                prefix,
                None if _passed_often(request) else corrected,
                (before.prefix, before.sizes) if before else None,
                request.counted,
            ),
            usage=corrected,
            double_counted=corrected is not usage,
            breakpoints_assumed=assumed,
        )

    def measure_again(self, request: Request, prefix: Prefix) -> Exchange:
        """A request that was measured before and let go; nothing is learned from it again."""
        ledger, self.ledger = self.ledger, self.ledger.copied()
        try:
            return self.measure(request, prefix)
        finally:
            self.ledger = ledger

    def _ttl_of(self, prefix: Prefix, usage: Usage) -> str:
        """The lifetime that the counters show; where a request writes nothing, the last one shown for
        its model (facts of the recorders: read the lifetime from the counters)."""
        if usage.cache_write:
            self._ttls[prefix.root] = "1h" if usage.cache_write_1h else "5m"
        return self._ttls.get(prefix.root, "5m")

    def _note_read(self, before: Exchange, prefix: Prefix, tokens: int) -> None:
        """What was read ends at the earlier request's breakpoint of the nearest size."""
        if before.usage and tokens == before.usage.cache_read + before.usage.cache_write:
            # Its last breakpoint, which its own counters have shown.
            return
        shared = common_segments(before.prefix, prefix)
        marks = [m for m in before.prefix.breakpoints if m < shared]
        if not tokens or not marks:
            return
        nearest = min(marks, key=lambda m: abs(before.sizes.at(m) - tokens))
        if prefix.keys[nearest] not in self.ledger.known:
            self.ledger.note(prefix, tokens, nearest)

    def send(self, exchange: Exchange) -> Outcome:
        """Looks the request up and stores what it writes; a refused one writes nothing."""
        step = step_of(exchange)
        if exchange.request.refused or (not exchange.usage and find_refusal(exchange.prefix)):
            return Cache().send(
                replace(step, prefix=replace(step.prefix, segments=()), sizes=NO_SIZES, marks=())
            )
        return self.cache.send(step)

    def alive_for(self, before: Exchange, after: Exchange) -> int | None:
        """Tokens of an earlier prompt whose entries still live when a later request is sent; None
        where its lifetimes do not tell that any is gone."""
        one, two = before.request.at, after.request.at
        lives = [before.prefix.segments[mark].ttl for mark in before.prefix.breakpoints]
        if one is None or two is None or not lives:
            return None
        shortest = min(RULES.ttl_seconds[life or "5m"] for life in lives)
        if (two - one).total_seconds() < shortest:
            return None
        return before.sizes.at(self.cache.longest_live(before.prefix, step_of(after)))


def _passed_often(request: Request) -> bool:
    """Whether the counters add up several passes over the prompt, and so tell no size of it."""
    return request.response is not None and request.response.several_passes


def is_whole(exchange: Exchange) -> bool:
    """Whether its counters state the size of its prompt."""
    return bool(exchange.usage and exchange.usage.input) and not _passed_often(exchange.request)


NO_SIZES = Sizes(upto=(), total=0, origin=Origin.NONE)


def step_of(exchange: Exchange) -> Step:
    """A measured request as the cache meets it."""
    request = exchange.request
    return Step(
        prefix=exchange.prefix,
        sizes=exchange.sizes,
        marks=exchange.prefix.marks,
        at=request.at,
        began=_began(request),
        place=request.place,
    )


def _began(request: Request) -> datetime | None:
    """Start of the response: not known better than by the assumption, or by the end if sooner."""
    if request.at is None:
        return None
    seconds = FIRST_RESPONSE_SECONDS
    if request.duration is not None:
        seconds = min(seconds, request.duration)
    return request.at + timedelta(seconds=seconds)


def _corrected(prefix: Prefix, usage: Usage | None) -> Usage | None:
    """Counters without the cached part that some loggers count in input_tokens as well.

    The evidence: input_tokens is at least as large as reads and writes together, although next to
    nothing stands behind the last breakpoint.
    """
    if usage is None or not prefix.breakpoints:
        return usage
    cached = usage.cache_read + usage.cache_write
    rest = usage.uncached - cached
    if not cached or rest < 0:
        return usage
    behind = prefix.segments[prefix.breakpoints[-1] + 1 :]
    share = sum(s.size for s in behind) / max(1, sum(s.size for s in prefix.segments))
    if share > 0.5 * usage.uncached / (usage.uncached + cached):
        return usage
    return replace(usage, uncached=rest)


def _with_assumed_breakpoints(prefix: Prefix, ttl: str) -> Prefix:
    """Breakpoints at the ends of tools, system and messages, for a body that lost them in the log."""
    ends = {s.section: i for i, s in enumerate(prefix.segments) if s.is_block and not s.mark_fault}
    segments = tuple(
        replace(s, ttl=ttl) if ends.get(s.section) == i else s
        for i, s in enumerate(prefix.segments)
    )
    return replace(prefix, segments=segments)
