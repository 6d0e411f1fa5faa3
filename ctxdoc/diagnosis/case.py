"""A request beside the one it goes on from: what was lost, and what each rule accounts for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum, StrEnum
from functools import cached_property

from msgspec import Struct

from ctxdoc.cache.breakpoint_rules import Refusal
from ctxdoc.cache.simulator import Outcome
from ctxdoc.prompt.diff import Change
from ctxdoc.replay.measure import MeasuredRequest
from ctxdoc.request.request import Section
from ctxdoc.request.usage import Origin, Usage

# The API frames blocks and rounds sizes by a few tokens; what an edit costs is more.
TOLERANCE_TOKENS = 20
"""A difference of so few tokens is no loss."""
# Counters calibrate the ends of an interval: inside of it, a size is shared out by its bytes.
TOLERANCE_SHARE = 0.03
"""Relative error of a computed size."""


class Confidence(IntEnum):
    """How far a cause is proved."""

    POSSIBLE = 1
    LIKELY = 2
    CERTAIN = 3

    def __str__(self) -> str:
        return self.name.lower()


class Part(StrEnum):
    """The part of a loss that a cause can explain."""

    RECORD = "record"
    """The two records are one response."""
    REFUSAL = "refusal"
    COLD = "cold"
    """Nothing was there to be read."""
    NEVER_CACHED = "never cached"
    VISIBILITY = "visibility"
    """The entry was written but not readable yet."""
    EXPIRY = "expiry"
    PLACE = "place"
    REACH = "reach"
    """The entry was there but no breakpoint led to it."""
    DIVERGENCE = "divergence"
    PROVIDER = "provider"
    """All rules say it could be read, and it was not."""
    WASTE = "waste"
    """The cache works, and something is still paid in full each time."""
    ACCOUNTING = "accounting"
    NOTHING = "nothing"


class Case(Struct, frozen=True, kw_only=True, dict=True):
    """A request, the one it is compared with, and what the cache did."""

    before: MeasuredRequest
    after: MeasuredRequest
    outcome: Outcome
    counters: Usage
    """Of the later request; reported, or simulated where nothing was."""
    origin: Origin
    divergence: Change | None
    changes: tuple[Change, ...]
    """Every difference, the first one of each part of the prompt."""
    identical: int
    """Tokens of the leading blocks that are equal."""
    cached: int
    """Tokens of the earlier request's longest prefix that was in the cache and that a request
    like the later one would share."""
    lost: int
    """Tokens that had been cached and were not read."""
    parts: Mapping[Part, int]
    """Lost tokens by what they are due to."""
    part: Part
    """The one that explains most."""
    gap: float | None
    """Seconds from start to start, where both are known."""
    refusal: Refusal | None
    same_response: bool
    related: bool
    """Whether the later request continues the earlier one, or should share its prefix."""
    whole_log: bool = False
    """Whether everything earlier is known, and not just one request."""
    asked: bool = False
    """Whether a person named the two requests."""
    by_server: bool = False
    """Whether the first difference is none of the bodies: the API made it."""
    was_read: bool = False
    """Whether any request read an entry of the earlier one."""
    sharable: int = 0
    """Tokens of a long equal text behind a short difference, in first requests of two conversations:
    what every user could read, were it ahead of what is each one's own."""
    unread: int = 0
    """Tokens that calls of one form share ahead of a block that differs and carries the first breakpoint:
    each writes them anew, and nobody reads them."""
    beyond_setting: bool = False
    """Whether a setting changed whose reach nobody documents, and more was lost than it must cost."""
    api_agrees: bool = False
    """Whether the API itself says that the prompt differs where it does."""

    @property
    def alone(self) -> bool:
        """Whether there is no earlier request at all."""
        return self.before.request is self.after.request

    @property
    def is_loss(self) -> bool:
        """Whether tokens were lost that the tolerance does not explain."""
        return self.lost > TOLERANCE_TOKENS

    @property
    def measured(self) -> bool:
        """Whether the counters are the API's."""
        return self.origin is Origin.REPORTED

    @property
    def where(self) -> str:
        """The pointer of the first difference."""
        return self.divergence.difference.pointer if self.divergence else ""

    @cached_property
    def tool_change(self) -> Change | None:
        """The first difference in the tool definitions themselves."""
        return self._first(
            lambda c: c.difference.section is Section.TOOLS and c.level is Section.TOOLS
        )

    @cached_property
    def message_change(self) -> Change | None:
        """The first difference in messages that the earlier request had too."""
        return self._first(
            lambda c: c.difference.section is Section.MESSAGES and _kind(c) != "setting"
        )

    def _first(self, test: Callable[[Change], bool]) -> Change | None:
        return next((change for change in self.changes if test(change)), None)

    @property
    def proof(self) -> Confidence:
        """How far the two requests prove a cause.

        Certain: the API says so; or it reported the counters of both requests, the bodies are there,
        the times are known, and the model reads what was read. Likely: one of these is missing.
        """
        # The API's own word goes before every computed size: it compared the prompts themselves.
        if self.api_agrees or (self.part is Part.REFUSAL and self.after.request.refused):
            return Confidence.CERTAIN
        if not self.measured or not self.is_proved:
            return Confidence.LIKELY
        # Where the model reads something else than was read, it does not know all that the cache did.
        simulated = self.outcome.usage.cache_read
        off = abs(simulated - self.counters.cache_read)
        agree = off <= max(TOLERANCE_TOKENS, TOLERANCE_SHARE * simulated)
        return Confidence.CERTAIN if agree else Confidence.LIKELY

    @property
    def is_proved(self) -> bool:
        """Whether nothing is assumed that the cause rests on."""
        one, two = self.before, self.after
        if not self.is_loss:
            # Where nothing was lost, nothing of the earlier request is needed to say why.
            return not two.passes
        # Without a time a pause explains every loss as well, and without the model's rule its minimum.
        known = self.gap is not None and two.prefix.rule.known
        return known and one.usage is not None and _is_plain(one) and _is_plain(two)


def _is_plain(exchange: MeasuredRequest) -> bool:
    """Whether counters state the size of one prompt, and its breakpoints stand where the log has them."""
    return not (exchange.passes or exchange.breakpoints_assumed)


def _kind(change: Change) -> str:
    segment = change.after or change.before
    return segment.kind if segment else ""
