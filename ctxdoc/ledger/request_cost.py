"""A replayed request: what it read, what it missed or wasted, and what it cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.diagnosis.api_word import api_word
from ctxdoc.diagnosis.by_counters import Rewrite
from ctxdoc.diagnosis.causes import CAUSES, Case, Confidence, Group, Part
from ctxdoc.diagnosis.causes.base import TOLERANCE_SHARE, TOLERANCE_TOKENS
from ctxdoc.diagnosis.diagnose import (
    Finding,
    bounded_loss,
    find_causes,
    is_daily,
    read_instead,
    wasted_tokens,
)
from ctxdoc.pricing.cost import Tariff, extra_passes_of, fees_of, price
from ctxdoc.prompt.diff import Place
from ctxdoc.providers import RULES
from ctxdoc.replay.measure import passed_often
from ctxdoc.request.model import Origin, Request, Section, Usage

BY_COUNTERS_OF_ONE_PASS = ("provider_side_miss", "unexplained")
"""Causes that rest on counters of a single pass over the prompt."""


class Fidelity(StrEnum):
    """How the simulated counters stand to the reported ones."""

    WITHIN = "within"
    """Each part within 3 % or 20 tokens."""
    WARMED = "warmed outside"
    """More was read than the log has written: calls that are not in it warmed the prefix."""
    LESS = "read less"
    """The rules let more be read than was."""
    PASSES = "several passes"
    """Server tools ran, and the counters add up several passes over the prompt."""
    OTHER = "other split"
    """As much was read; what was written and what paid in full differ."""


class Miss(Struct, frozen=True, kw_only=True):
    """Prefix that was cached and could have been read, but was not; or why there was no reading."""

    cause: str
    """Id of the cause."""
    confidence: Confidence
    explanation: str
    tokens: int | None
    """None for a request that was refused or recorded twice."""
    cost: Decimal | None
    avoidable: bool | None
    """None where the log does not tell what it was."""
    fix: str = ""
    """What to change in this case, where it is not what the cause says."""


class Waste(Struct, frozen=True, kw_only=True):
    """Money that is lost although nothing cached was missed: history behind the last breakpoint, no
    breakpoint at all."""

    cause: str
    explanation: str
    tokens: int
    """Paid in full, and sent before."""
    cost: Decimal | None


class Accounting(Struct, frozen=True, kw_only=True):
    """A fault in how a log or a tracker counts or prices a request; the cache has none."""

    cause: str
    confidence: Confidence
    explanation: str


class BelowMinimum(Struct, frozen=True, gc=False):
    """A marked prefix that the model does not cache: it is too short."""

    tokens: int
    """Up to the last breakpoint."""
    minimum: int

    @property
    def missing(self) -> int:
        """Tokens that it is too short by."""
        return self.minimum - self.tokens


class Row(Struct, kw_only=True):
    """One request as replayed."""

    number: int
    """Its place in the log, from 1."""
    request: Request
    session: str
    tariff: Tariff
    reported: Usage | None = None
    simulated: Usage | None = None
    origin: Origin = Origin.NONE
    """What the simulated sizes rest on."""
    reason: str | None = None
    """Why nothing is simulated."""
    fidelity: Fidelity | None = None
    repeated: bool = False
    """Whether it is another record of a response that is in the log: nothing is counted twice."""
    opaque: bool = False
    """Whether sizes are estimated although parts of the prompt do not show theirs."""
    judged: bool = False
    """Whether the log tells enough to say that nothing was missed."""
    miss: Miss | None = None
    waste: Waste | None = None
    accounting: Accounting | None = None
    corrected: Usage | None = None
    """The counters without the cached tokens that the log counts twice, where that is proved."""
    corrected_cost: Decimal | None = None
    """USD by those."""
    compared: int | None = None
    """The number of the request it was compared with."""
    related: bool = False
    """Whether that one should share its prefix."""
    opens: bool = False
    """Whether it begins a conversation: what it shares with another one is nobody's promise."""
    daily: bool = False
    """Whether only the day in its prefix is another one."""
    below: BelowMinimum | None = None
    """What its marked prefix lacks, where it is too short to be cached."""
    place: Place | None = None
    """Where it differs from that one, for the first misses of a cause if they were asked for."""
    cost: Decimal | None = None
    """USD, the compaction passes included; simulated where nothing was reported."""
    without_cache: Decimal | None = None
    oracle: Decimal | None = None
    """The bound: what will be sent again is written once and never expires; None where no body was
    compared."""

    @property
    def counters(self) -> Usage | None:
        """Reported ones, or else simulated ones."""
        return self.reported or self.simulated


def fidelity_of(reported: Usage, simulated: Usage) -> Fidelity:
    """Whether the model reproduces what was billed, and if not, in which way."""
    pairs = (
        (reported.cache_read, simulated.cache_read),
        (reported.cache_write, simulated.cache_write),
        (reported.uncached, simulated.uncached),
    )
    if all(_same(one, two) for one, two in pairs):
        return Fidelity.WITHIN
    if _same(*pairs[0]):
        return Fidelity.OTHER
    more = reported.cache_read > simulated.cache_read
    return Fidelity.WARMED if more else Fidelity.LESS


def _same(reported: int, simulated: int) -> bool:
    return abs(reported - simulated) <= max(TOLERANCE_TOKENS, TOLERANCE_SHARE * reported)


def judge(row: Row, case: Case) -> None:
    """What a request missed, or wastes."""
    if _is_plainly_healthy(case):
        return
    finding, also = find_causes(case)
    cause, match = finding.cause, finding.match
    often = passed_often(case.after.request) or passed_often(case.before.request)
    if often and cause.id in BY_COUNTERS_OF_ONE_PASS:
        return
    for each in (finding, *also):
        if each.cause.group is Group.ACCOUNTING and case.part is not Part.RECORD:
            row.accounting = Accounting(
                cause=each.cause.id,
                confidence=each.match.confidence,
                explanation=each.match.explanation,
            )
    row.corrected = case.after.corrected
    if row.corrected is not None:
        row.corrected_cost = price(row.corrected, row.tariff)
    refused = case.part in (Part.REFUSAL, Part.RECORD)
    lost = 0 if refused else bounded_loss(case)
    row.daily = cause.id == "timestamp_in_prefix" and is_daily(case)
    if lost > TOLERANCE_TOKENS or refused:
        row.miss = Miss(
            cause=cause.id,
            confidence=match.confidence,
            explanation=match.explanation + _beside(also, cause.id) + _api_text(case),
            tokens=None if refused else lost,
            cost=None if refused else _saved(case.counters, lost, row.tariff),
            avoidable=finding.avoidable and not _lasts_longer(case, cause.id),
            fix=match.fix,
        )
    elif case.is_loss:
        return
    elif cause.group is not Group.HEALTHY and finding.avoidable:
        tokens = wasted_tokens(case, cause.id)
        if tokens is None:
            return
        row.waste = Waste(
            cause=cause.id,
            explanation=match.explanation,
            tokens=tokens,
            cost=_saved(case.counters, tokens, row.tariff),
        )


def _lasts_longer(case: Case, cause: str) -> bool:
    """Whether a longer lifetime would not have helped: there is none for the pause, or the prompt
    changed as well."""
    longer = (case.gap or 0) >= RULES.ttl_seconds["1h"]
    return cause == "ttl_expired" and (longer or case.divergence is not None)


def _beside(also: Sequence[Finding], cause: str) -> str:
    """What changed beside a pause: either alone would have lost the prefix."""
    names = [finding.cause.id for finding in also]
    return f" Also: {', '.join(names)}." if names and cause == "ttl_expired" else ""


def _api_text(case: Case) -> str:
    word = api_word(case)
    return f" The API says {word.reason}: {word.text}." if word is not None else ""


def _is_plainly_healthy(case: Case) -> bool:
    """Whether nothing is lost and no cause but the healthy ones could match: the history is marked,
    and no tracker wrote a cost down. Most requests of a log are so."""
    after = case.after
    if case.part is not Part.NOTHING or case.is_loss or after.double_counted:
        return False
    response = case.before.request.response
    if response is not None and response.compacted:
        return False
    if after.request.cost_reported is not None or case.before.request.cost_reported is not None:
        return False
    marks = after.prefix.breakpoints
    return bool(marks) and after.prefix.segments[marks[-1]].section is Section.MESSAGES


def miss_of(rewrite: Rewrite, usage: Usage, tariff: Tariff) -> Miss:
    """The miss that counters alone show."""
    return Miss(
        cause=rewrite.cause,
        confidence=rewrite.confidence,
        explanation=rewrite.explanation,
        tokens=rewrite.tokens,
        cost=_saved(usage, rewrite.tokens, tariff),
        avoidable=None
        if rewrite.confidence is Confidence.POSSIBLE
        else CAUSES[rewrite.cause].avoidable and not rewrite.lasting,
    )


def _saved(usage: Usage, tokens: int, tariff: Tariff) -> Decimal | None:
    """USD that a request would have cost less, had so many tokens been read."""
    paid, instead = price(usage, tariff), price(read_instead(usage, tokens), tariff)
    return None if paid is None or instead is None else paid - instead


def price_row(row: Row, request: Request, usage: Usage) -> None:
    """What a request cost, with its compaction passes and searches, and what it would have without a
    cache."""
    fees, passes = fees_of(request), ((usage, row.tariff), *extra_passes_of(request, row.tariff))
    row.cost = _sum((fees, *(price(each, tariff) for each, tariff in passes)))
    bare = (price(_uncached(each), tariff) for each, tariff in passes)
    row.without_cache = _sum((fees, *bare))


def _uncached(usage: Usage) -> Usage:
    return replace(usage, uncached=usage.input, cache_read=0, cache_write_5m=0, cache_write_1h=0)


def _sum(costs: Iterable[Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def oracle_of(row: Row, least: Usage) -> Decimal | None:
    """The cost at best, by what the bound of all prompts lets a request read and write. One that writes
    for later ones may cost more than it did; all of them together never do."""
    found, own = price(least, row.tariff), row.counters
    if found is None or row.cost is None or own is None:
        return None
    # Further passes and searches cost what they cost.
    return found + row.cost - (price(own, row.tariff) or Decimal(0))


def below_minimum_of(case: Case) -> BelowMinimum | None:
    """How much a marked prefix that nothing was cached of is too short by."""
    after, counters = case.after, case.counters
    marks = after.prefix.breakpoints
    if not marks or counters.cache_read or counters.cache_write or case.refusal is not None:
        return None
    tokens, minimum = after.sizes.at(marks[-1]), after.prefix.rule.minimum
    return BelowMinimum(tokens, minimum) if tokens < minimum else None
