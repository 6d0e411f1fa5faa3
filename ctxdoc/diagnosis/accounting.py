"""The cost that a tracker writes beside a request, held against the right one and against known mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec.structs import replace

from ctxdoc.diagnosis.case import Case, Confidence
from ctxdoc.diagnosis.cause import Match
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
    for exchange in (case.after, case.before):
        usage = exchange.usage
        if usage is None or usage.contradiction:
            continue
        found = _wrong(exchange, usage)
        if found is not None:
            return found
    return None


def _wrong(exchange: MeasuredRequest, usage: Usage) -> Match | None:
    request = exchange.request
    said, tariff, extra = request.cost_reported, tariff_of(request), _extra(exchange)
    own = price(usage, tariff)
    right = None if own is None or extra is None else own + extra
    if said is None or right is None or extra is None or _same(said, right):
        return None
    fits: list[tuple[str, Decimal]] = []
    seen = {right}
    for what, wrong in _mistakes(usage, tariff, extra, own or Decimal(0)):
        # What costs the same is the same mistake.
        if wrong is None or wrong in seen or not _same(said, wrong):
            continue
        seen.add(wrong)
        fits.append((what, wrong))
    far = abs(said - right) > FAR * max(abs(said), abs(right))
    if not fits and not far:
        return None
    where = f"{request.source}, line {request.line}"
    if len(fits) > SHOWN_FITS:
        text = f"fits {len(fits)} known mistakes, as it is rounded; at the right rates it is {right:.6f} USD"
    elif fits:
        text = f"prices {' or '.join(what for what, _ in fits)}; at the right rates it is {right:.6f} USD"
    else:
        text = (
            f"is {_times(said, right)} the right one, {usd_text(right)}, and fits no known mistake"
        )
    return Match(
        explanation=f"The cost recorded in {where} ({said} USD) {text}. The cache works.",
        confidence=_confidence(said, [wrong for _, wrong in fits]),
    )


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


def _mistakes(
    usage: Usage, tariff: Tariff, extra: Decimal, own: Decimal
) -> Iterator[tuple[str, Decimal | None]]:
    """The known mistakes, each with the cost that it gives."""
    for what, cost in (*_of_counters(usage, tariff), *_of_tariff(usage, tariff)):
        yield what, None if cost is None else cost + extra
    if extra:
        yield "the counters alone, without searches and further passes", own


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
