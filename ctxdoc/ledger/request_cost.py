"""A replayed request: what it read, what it missed or wasted, and what it cost."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.diagnosis.causes import Confidence
from ctxdoc.ledger.fidelity import Fidelity
from ctxdoc.pricing.cost import extra_passes_of, fees_of, price, whole_sum_of
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.prompt.diff import Difference
from ctxdoc.request.request import Request
from ctxdoc.request.usage import Origin, Usage


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


class RequestCost(Struct, kw_only=True):
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
    difference: Difference | None = None
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


def price_row(row: RequestCost, request: Request, usage: Usage) -> None:
    """What a request cost, with its compaction passes and searches, and what it would have without a
    cache."""
    fees, passes = fees_of(request), ((usage, row.tariff), *extra_passes_of(request, row.tariff))
    row.cost = whole_sum_of((fees, *(price(each, tariff) for each, tariff in passes)))
    bare = (price(_uncached(each), tariff) for each, tariff in passes)
    row.without_cache = whole_sum_of((fees, *bare))


def _uncached(usage: Usage) -> Usage:
    return replace(usage, uncached=usage.input, cache_read=0, cache_write_5m=0, cache_write_1h=0)


def oracle_of(row: RequestCost, least: Usage) -> Decimal | None:
    """The cost at best, by what the bound of all prompts lets a request read and write. One that writes
    for later ones may cost more than it did; all of them together never do."""
    found, own = price(least, row.tariff), row.counters
    if found is None or row.cost is None or own is None:
        return None
    # Further passes and searches cost what they cost.
    return found + row.cost - (price(own, row.tariff) or Decimal(0))


def advisors_of(row: RequestCost) -> Iterator[tuple[str, Usage, Decimal | None]]:
    """The passes of advisors of a request: model, counters and cost of each."""
    response = row.request.response
    extra = extra_passes_of(row.request, row.tariff)
    for each, (usage, tariff) in zip(response.extra_passes if response else (), extra, strict=True):
        if each.kind == "advisor_message":
            yield tariff.model, usage, price(usage, tariff)
