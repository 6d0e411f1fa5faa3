"""The totals of a replayed log: every report, output, limit and piece of advice reads its sums here.

A request counts once: another record of a response that is in the log does not, nor does one that the
API refused. What a bill has (cost, without a cache, at best) is summed apart for reported and for
simulated counters; what is judged (lost, avoidable, waste) and the share read are over both, and each
sum says what it rests on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import filterfalse
from operator import attrgetter

from msgspec import Struct

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.pricing.rates import own_price_of
from ctxdoc.pricing.table import OwnPrice
from ctxdoc.providers import are_rules_known
from ctxdoc.request.usage import Usage

PARTS = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output")
ZERO = Decimal(0)


class Basis(Struct, frozen=True, kw_only=True):
    """What a number rests on."""

    requests: int = 0
    simulated: int = 0
    """Of them, those without counters of their own."""

    @property
    def origin(self) -> str:
        """reported, simulated, mixed, or none."""
        if not self.requests:
            return "none"
        if not self.simulated:
            return "reported"
        return "simulated" if self.simulated == self.requests else "mixed"


class Tokens(Struct, frozen=True, kw_only=True):
    """Sums of counters, further passes included."""

    basis: Basis
    uncached: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int
    contradicted: int = 0
    """Requests whose counters contradict each other."""

    @property
    def cache_write(self) -> int:
        """Both lifetimes together."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def input(self) -> int:
        """All prompts."""
        return self.uncached + self.cache_read + self.cache_write


class Sum(Struct, frozen=True, kw_only=True):
    """Money, in USD."""

    amount: Decimal | None
    """None where nothing of it is known."""
    basis: Basis
    count: int = 0
    """Requests that add to it."""
    unpriced: int = 0
    """Requests that would, and have no price."""


class Totals(Struct, frozen=True, kw_only=True):
    """All sums of a log, or of some of its requests."""

    requests: int
    """That count."""
    repeated: int
    refused: int
    refused_by_shape: int
    """Requests that the API refuses by a rule on their shape or breakpoints, where no answer is logged."""
    checked: int
    """Requests of which it is known whether they missed something."""
    reported: Tokens | None
    simulated: Tokens | None
    """Of every request with a body, beside the reported ones."""
    every: Tokens | None
    """Reported counters, and simulated ones where there are none."""
    cost: Sum
    """Of the requests with counters."""
    without_cache: Sum
    oracle: Sum
    """None where not every request was compared by its body."""
    guessed_cost: Sum
    """Of the input of the requests without counters."""
    guessed_without_cache: Sum
    guessed_oracle: Sum
    priced: Sum
    """All that is priced, reported or simulated."""
    lost: Sum
    """To misses of all kinds."""
    avoidable: Sum
    unknown: Sum
    """To misses of which the log does not tell whether they could be avoided."""
    waste: Sum
    lost_tokens: int | None
    """Of misses that are avoidable, or may be."""
    counted_twice: Sum
    """As reported, of the requests whose log counts cached tokens twice."""
    corrected: Sum
    """Of the same requests without those tokens."""
    unpriced: tuple[tuple[str, int], ...]
    """What has no price → requests, those with most first."""
    own_prices: tuple[tuple[str, OwnPrice], ...]
    """Models that are priced by this project's own rows."""

    @property
    def guessed_output(self) -> int:
        """Tokens of simulated answers, as an emitted log has them; 0 where only inputs are simulated."""
        every, reported = self.every, self.reported
        return (every.output if every else 0) - (reported.output if reported else 0)

    @property
    def hit_ratio(self) -> Decimal | None:
        """Share of all input that was read; None where it rests on counters that contradict each other."""
        every = self.every
        if every is None or not every.input or every.contradicted:
            return None
        return Decimal(every.cache_read) / every.input

    @property
    def gated(self) -> Sum:
        """Lost to misses that are avoidable, or may be: what a limit is held against."""
        one, two = self.avoidable, self.unknown
        known = [each.amount for each in (one, two) if each.amount is not None]
        unpriced = one.unpriced + two.unpriced
        return Sum(
            amount=sum(known, ZERO) if known and not unpriced else None,
            basis=one.basis,
            count=one.count + two.count,
            unpriced=unpriced,
        )

    @property
    def wasted(self) -> Decimal:
        """What was for nothing, as far as it is priced: avoidable misses, those of unknown cause, waste."""
        return sum(
            (each.amount or ZERO for each in (self.avoidable, self.unknown, self.waste)), ZERO
        )


def sum_of(costs: Iterable[Decimal | None]) -> Decimal | None:
    """The sum of what is known; None where nothing is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known, ZERO) if known else None


def counts(row: RequestCost) -> bool:
    """Whether a request counts: it is no other record of a response, and was not refused."""
    return not row.repeated and not _is_refused(row)


def _is_refused(row: RequestCost) -> bool:
    return bool(row.request.refused) and not (row.counters is not None and row.counters.input)


def is_checked(row: RequestCost) -> bool:
    """Whether it is known what a request missed: it was looked at, by rules that are known."""
    return row.judged and are_rules_known(row.request.model)


def usages_of(row: RequestCost) -> tuple[Usage, ...]:
    """The counters of a request and of its further passes, which no other counter holds (facts 1.9);
    reported, or simulated where there are none."""
    counters, response = row.counters, row.request.response
    if counters is None:
        return ()
    if row.reported is None or response is None or not response.passes:
        return (counters,)
    return (counters, *(each.usage for each in response.extra_passes))


def _has_counters(row: RequestCost) -> bool:
    return row.counters is not None


def _is_reported(row: RequestCost) -> bool:
    return row.reported is not None


def _is_counted_twice(row: RequestCost) -> bool:
    return row.corrected is not None


def _is_avoidable(row: RequestCost) -> bool:
    return row.miss is not None and bool(row.miss.avoidable)


def _is_of_unknown_cause(row: RequestCost) -> bool:
    return row.miss is not None and row.miss.avoidable is None


def _is_refused_by_shape(row: RequestCost) -> bool:
    return _is_avoidable(row) and row.miss is not None and row.miss.tokens is None


def _is_refused_once(row: RequestCost) -> bool:
    return _is_refused(row) and not row.repeated


def totals_of(rows: Sequence[RequestCost]) -> Totals:
    """The totals of some requests."""
    sent = list(filter(counts, rows))
    known = list(filter(_has_counters, sent))
    # A bill is of what the provider counted: simulated money never adds to it, and stands beside it.
    measured = list(filter(_is_reported, known))
    guessed = list(filterfalse(_is_reported, known))
    # A request that nobody could judge makes no loss, and no proof that there was none.
    checked = list(filter(is_checked, sent))
    twice = list(filter(_is_counted_twice, measured))
    return Totals(
        requests=len(sent),
        repeated=sum(row.repeated for row in rows),
        refused=sum(map(_is_refused_once, rows)),
        refused_by_shape=sum(map(_is_refused_by_shape, rows)),
        checked=len(checked),
        reported=_tokens(measured),
        simulated=_simulated(sent),
        every=_tokens(known),
        cost=_sum(measured, "cost"),
        without_cache=_sum(measured, "without_cache"),
        oracle=_least(measured),
        guessed_cost=_sum(guessed, "cost"),
        guessed_without_cache=_sum(guessed, "without_cache"),
        guessed_oracle=_least(guessed),
        priced=_sum(known, "cost"),
        lost=_lost(checked, sent),
        avoidable=_lost(checked, filter(_is_avoidable, sent)),
        unknown=_lost(checked, filter(_is_of_unknown_cause, sent)),
        waste=_waste(checked),
        lost_tokens=_lost_tokens(checked, sent),
        counted_twice=_sum(twice, "cost"),
        corrected=_sum(twice, "corrected_cost"),
        unpriced=_unpriced(known),
        own_prices=tuple(_own_prices(known)),
    )


def priced_of(rows: Sequence[RequestCost]) -> Sum:
    """What some requests cost, simulated where nothing was reported: one of their totals, by itself."""
    return _sum(list(filter(_has_counters, filter(counts, rows))), "cost")


def lost_of(rows: Sequence[RequestCost]) -> Sum:
    """What misses of some requests cost: one of their totals, by itself."""
    sent = list(filter(counts, rows))
    return _lost(list(filter(is_checked, sent)), sent)


def is_idle(row: RequestCost) -> bool:
    """Whether a request lost its prefix to a pause."""
    return row.miss is not None and CAUSES[row.miss.cause].is_idle


def _basis(rows: Sequence[RequestCost]) -> Basis:
    return Basis(requests=len(rows), simulated=sum(row.reported is None for row in rows))


def _tokens(rows: Sequence[RequestCost]) -> Tokens | None:
    if not rows:
        return None
    usages = [usage for row in rows for usage in usages_of(row)]
    sums = {name: sum(map(attrgetter(name), usages)) for name in PARTS}
    wrong = sum(bool(row.counters and row.counters.contradiction) for row in rows)
    return Tokens(basis=_basis(rows), contradicted=wrong, **sums)


def _simulated(rows: Sequence[RequestCost]) -> Tokens | None:
    usages = [row.simulated for row in rows if row.simulated is not None]
    if not usages:
        return None
    sums = {name: sum(getattr(usage, name) for usage in usages) for name in PARTS[:4]}
    return Tokens(basis=Basis(requests=len(usages), simulated=len(usages)), output=0, **sums)


def _sum(rows: Sequence[RequestCost], name: str) -> Sum:
    cost_of = attrgetter(name)
    priced = [row for row in rows if cost_of(row) is not None]
    return Sum(
        amount=sum_of(map(cost_of, priced)),
        basis=_basis(priced),
        count=len(priced),
        unpriced=len(rows) - len(priced),
    )


def _least(rows: Sequence[RequestCost]) -> Sum:
    """The bound; of all that is priced, or it is none. It is never more than what was paid."""
    priced = [row for row in rows if row.cost is not None]
    bounded = [row for row in priced if row.oracle is not None]
    return Sum(
        # A bound of fewer requests than were paid would lie too low.
        amount=_bound(bounded) if len(bounded) == len(priced) else None,
        basis=_basis(bounded),
        count=len(bounded),
        unpriced=len(rows) - len(bounded),
    )


def _bound(rows: Sequence[RequestCost]) -> Decimal | None:
    """What requests cost at best. A log that ends early has writes whose reads it does not show: what
    was paid is then the better bound."""
    known = (sum_of(row.oracle for row in rows), sum_of(row.cost for row in rows))
    return min((each for each in known if each is not None), default=None)


def _lost(checked: Sequence[RequestCost], rows: Iterable[RequestCost]) -> Sum:
    """What misses cost. One of a refused request has no tokens: nothing was billed."""
    misses = (row.miss for row in rows if row.miss is not None)
    return _judged(checked, [miss.cost for miss in misses if miss.tokens is not None])


def _waste(checked: Sequence[RequestCost]) -> Sum:
    """What was paid in full although it had been sent before and never cached."""
    return _judged(checked, [row.waste.cost for row in checked if row.waste is not None])


def _judged(checked: Sequence[RequestCost], each: Sequence[Decimal | None]) -> Sum:
    """The sum of what was found: 0 where nothing was, None where nothing was checked or none is priced."""
    costs = [cost for cost in each if cost is not None]
    known = bool(costs) or (not each and any(row.cost is not None for row in checked))
    return Sum(
        amount=sum(costs, ZERO) if known else None,
        basis=_basis(checked),
        count=len(each),
        unpriced=len(each) - len(costs),
    )


def _lost_tokens(checked: Sequence[RequestCost], rows: Iterable[RequestCost]) -> int | None:
    misses = [row.miss for row in rows if row.miss is not None]
    found = [miss.tokens or 0 for miss in misses if miss.avoidable is not False]
    # 0 says that somebody looked.
    return sum(found) if found or checked else None


def _unpriced(rows: Iterable[RequestCost]) -> tuple[tuple[str, int], ...]:
    return tuple(Counter(name_of(row) for row in rows if row.cost is None).most_common())


def name_of(row: RequestCost) -> str:
    """What a request is billed as, in words."""
    how = " in fast mode" if row.tariff.fast else ""
    return f"{row.tariff.model or 'no model'}{how}"


def _own_prices(rows: Iterable[RequestCost]) -> Iterator[tuple[str, OwnPrice]]:
    tariffs = dict.fromkeys(row.tariff for row in rows if row.cost is not None)
    found = {}
    for tariff in tariffs:
        own = own_price_of(tariff)
        if own is not None:
            found[own.model] = own
    yield from sorted(found.items())
