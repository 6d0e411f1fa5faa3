"""Tokens are right but priced at the wrong rate.

What it is
    The cost that a tracker wrote beside the request is not what its counters cost. Known mistakes:
    one-hour writes at the five-minute factor, reads at the input price, writes as plain input, the
    cache or the output left out, cached tokens twice; the price of a batch, of fast mode, of US-only
    inference or a regional profile, or of a long prompt, taken where it does not hold or left out
    where it does. Certain only where one known mistake, and no other, gives the recorded cost within
    1 %; likely where several do, or where none does and the cost is more than 5 % off. What a
    rounding to the last written place explains is no finding.
Why it breaks the prefix
    It does not; the bill will differ from the tracker.
Example
    One-hour writes cost 2 times the input price, and the tracker took 1.25.
What to do
    Price the parts apart: ephemeral_1h and ephemeral_5m writes, reads, and the uncached rest.
How sure it can be
    Certain where the recorded cost fits one known mistake within 1 %. Likely where several fit, or none and
    it is far off. A cost of 0 is at most possible: it may mean that nobody wrote it down.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from msgspec.structs import replace

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.pricing.cost import extra_passes_of, fees_of, price, usd_text
from ctxdoc.pricing.rates import find_tier
from ctxdoc.pricing.tariff import Tariff, tariff_of
from ctxdoc.replay.measure import MeasuredRequest
from ctxdoc.request.usage import Usage

TOLERANCE = Decimal("0.01")
"""Relative difference below which two costs are the same: trackers round."""
FAR = Decimal("0.05")
"""Relative difference from which on a cost is wrong although no known mistake fits it."""
SHOWN_FITS = 3
LONG = 200_000
"""Tokens above which prompts cost twice as much for input and half as much again for output: of models
with a larger window as a beta, and of 4.6 until 2026-03-13 (pricing page, 2026-10-10)."""


def find_wrong_rate(case: Case) -> Match | None:
    """A recorded cost that is far from the right one, with the mistake that it fits."""
    # The later request first: it is the one that the report is about.
    for exchange in (case.after, case.before):
        usage = exchange.usage
        if usage is None or usage.contradiction:
            continue
        bill = _bill_of(exchange, usage)
        found = _wrong(exchange, usage, bill) if bill is not None else None
        if found is not None:
            return found
    return None


class _Bill(NamedTuple):
    """What a tracker says that a request cost, and what it costs."""

    said: Decimal
    own: Decimal
    """By its counters."""
    extra: Decimal
    """Searches and further passes, which no counter of the request holds."""

    @property
    def right(self) -> Decimal:
        """All of it."""
        return self.own + self.extra

    @property
    def is_far_off(self) -> bool:
        """Whether the cost is wrong although no known mistake may fit it."""
        return abs(self.said - self.right) > FAR * max(abs(self.said), abs(self.right))


def _bill_of(exchange: MeasuredRequest, usage: Usage) -> _Bill | None:
    """The two costs; None where nothing was said, or the request is unpriced."""
    said = exchange.request.cost_reported
    if said is None:
        return None
    own, extra = price(usage, tariff_of(exchange.request)), _extra(exchange)
    return None if own is None or extra is None else _Bill(said, own, extra)


def _wrong(exchange: MeasuredRequest, usage: Usage, bill: _Bill) -> Match | None:
    if _same(bill.said, bill.right):
        return None
    fits = _fitting(usage, tariff_of(exchange.request), bill)
    if not fits and not bill.is_far_off:
        return None
    where = f"{exchange.request.source}, line {exchange.request.line}"
    return Match(
        explanation=f"The cost recorded in {where} ({bill.said} USD) {_told(bill, list(fits))}. "
        "The cache works.",
        confidence=_confidence(bill.said, list(fits.values())),
    )


def _fitting(usage: Usage, tariff: Tariff, bill: _Bill) -> dict[str, Decimal]:
    """The known mistakes that give the recorded cost, and what each gives."""
    fits: dict[str, Decimal] = {}
    for what, cost in _mistakes(usage, tariff, bill):
        # What costs the same is the same mistake, and what costs the right sum is none.
        known = cost is None or cost == bill.right or cost in fits.values()
        if cost is not None and not known and _same(bill.said, cost):
            fits[what] = cost
    return fits


def _told(bill: _Bill, mistakes: list[str]) -> str:
    """What is wrong with a recorded cost."""
    right = f"at the right rates it is {bill.right:.6f} USD"
    if len(mistakes) > SHOWN_FITS:
        return f"fits {len(mistakes)} known mistakes, as it is rounded; {right}"
    if mistakes:
        return f"prices {' or '.join(mistakes)}; {right}"
    off = _times(bill.said, bill.right)
    return f"is {off} the right one, {usd_text(bill.right)}, and fits no known mistake"


def _confidence(said: Decimal, fits: list[Decimal]) -> Confidence:
    """How sure a wrong cost is: only where one mistake, and no other, gives it to the hundredth. A cost of
    nothing may be a plan's."""
    if len(fits) == 1 and abs(said - fits[0]) <= TOLERANCE * max(abs(said), abs(fits[0])):
        return Confidence.CERTAIN
    return Confidence.LIKELY if said else Confidence.POSSIBLE


def _times(said: Decimal, right: Decimal) -> str:
    return f"{said / right:.3g} times" if right else "more than"


def _extra(exchange: MeasuredRequest) -> Decimal | None:
    """What the request is billed beside its counters; None where it is unpriced."""
    request = exchange.request
    total = fees_of(request)
    for usage, tariff in extra_passes_of(request, tariff_of(request)):
        cost = price(usage, tariff)
        if cost is None:
            return None
        total += cost
    return total


def _same(said: Decimal, cost: Decimal) -> bool:
    """Whether a recorded cost is a computed one, but for its rounding."""
    exponent = said.as_tuple().exponent
    half = Decimal(5).scaleb(exponent - 1) if isinstance(exponent, int) else Decimal(0)
    # Rounding can hide a whole cost: then it tells nothing.
    return abs(said - cost) <= max(TOLERANCE * max(abs(said), abs(cost)), half)


def _mistakes(usage: Usage, tariff: Tariff, bill: _Bill) -> Iterator[tuple[str, Decimal | None]]:
    """The known mistakes, each with the cost that it gives."""
    for what, cost in (*_of_counters(usage, tariff), *_of_tariff(usage, tariff)):
        yield what, None if cost is None else cost + bill.extra
    if bill.extra:
        yield "the counters alone, without searches and further passes", bill.own


def _of_counters(usage: Usage, tariff: Tariff) -> Iterator[tuple[str, Decimal | None]]:
    """Counters that were taken for others."""
    flat = {"cache_read": 0, "cache_write_5m": 0, "cache_write_1h": 0}
    written = usage.cache_write

    def cost(**changed: int) -> Decimal | None:
        return price(replace(usage, **changed), tariff)

    yield (
        "one-hour writes at the five-minute rate",
        cost(cache_write_5m=written, cache_write_1h=0),
    )
    yield (
        "five-minute writes at the one-hour rate",
        cost(cache_write_5m=0, cache_write_1h=written),
    )
    yield (
        "cache reads as plain input",
        cost(uncached=usage.uncached + usage.cache_read, cache_read=0),
    )
    yield (
        "cache writes as plain input",
        cost(uncached=usage.uncached + written, cache_write_5m=0, cache_write_1h=0),
    )
    yield "all input as uncached", cost(uncached=usage.input, **flat)
    yield "no cache tokens at all", cost(**flat)
    yield "cached tokens twice", cost(uncached=usage.input)
    yield "the input alone, and no output", cost(output=0)


def _of_tariff(usage: Usage, tariff: Tariff) -> Iterator[tuple[str, Decimal | None]]:
    """Another tariff than the request's."""
    for what, on, name in (
        ("the price of a batch", tariff.batch, "batch"),
        ("the price of fast mode", tariff.fast, "fast"),
    ):
        other = replace(tariff, **{name: not on})
        yield (f"a request without {what}" if on else what), price(usage, other)
    placed = tariff.us_only or tariff.regional
    plain, dear = replace(tariff, us_only=False, regional=False), replace(tariff, us_only=True)
    where = "US-only inference or a regional profile"
    yield (
        f"a request without the tenth for {where}" if placed else f"a tenth more, as for {where}",
        price(usage, plain if placed else dear),
    )
    yield from _of_length(usage, tariff)


def _of_length(usage: Usage, tariff: Tariff) -> Iterator[tuple[str, Decimal | None]]:
    """The row of another length of the prompt."""
    tier = find_tier(tariff, usage.input)
    if tier:
        yield "a long prompt at the rate of a short one", price(usage, tariff, size=0)
        return
    top = find_tier(tariff, 10**12)
    if top:
        yield "a short prompt at the rate of a long one", price(usage, tariff, size=top)
    elif usage.input > LONG:
        one, bare = price(usage, tariff), price(replace(usage, output=0), tariff)
        if one is not None and bare is not None:
            output = one - bare
            yield "a surcharge for prompts above 200,000 tokens", 2 * bare + output * 3 / 2


CAUSE = Cause(
    id="usage_wrong_rate",
    title="tokens priced at the wrong rate",
    group=Group.ACCOUNTING,
    parts=frozenset({Part.ACCOUNTING}),
    fix="Price the parts of cache_creation apart: ephemeral_1h_input_tokens at 2 times "
    "the input price, ephemeral_5m_input_tokens at 1.25; reads at the model's read "
    "price.",
    avoidable=False,
    match=find_wrong_rate,
)
