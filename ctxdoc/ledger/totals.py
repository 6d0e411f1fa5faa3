"""The totals of a replayed log: every report, output, limit and piece of advice reads its sums here.

A request counts once: another record of a response that is in the log does not, nor does one that the
API refused. What a bill has (cost, without a cache, at best) is summed apart for reported and for
simulated counters; what is judged (lost, avoidable, waste) and the share read are over both, and each
sum says what it rests on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from operator import attrgetter

from msgspec import Struct

from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.request_cost import Miss, RequestCost
from ctxdoc.pricing.cost import extra_passes_of, price
from ctxdoc.pricing.rates import MILLION, find_rates, own_price_of
from ctxdoc.pricing.table import OwnPrice
from ctxdoc.providers import are_rules_known, provider_of
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


def totals_of(rows: Sequence[RequestCost]) -> Totals:
    """The totals of some requests."""
    sent = [row for row in rows if counts(row)]
    known = [row for row in sent if row.counters is not None]
    measured = [row for row in known if row.reported is not None]
    guessed = [row for row in known if row.reported is None]
    checked = [row for row in sent if is_checked(row)]
    misses = [row for row in sent if row.miss is not None]
    twice = [row for row in measured if row.corrected is not None]
    unpriced = Counter(name_of(row) for row in known if row.cost is None)
    return Totals(
        requests=len(sent),
        repeated=sum(row.repeated for row in rows),
        refused=sum(_is_refused(row) and not row.repeated for row in rows),
        refused_by_shape=sum(
            row.miss is not None and row.miss.tokens is None and bool(row.miss.avoidable)
            for row in rows
        ),
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
        lost=_lost(checked, misses),
        avoidable=_lost(checked, [r for r in misses if r.miss and r.miss.avoidable]),
        unknown=_lost(checked, [r for r in misses if r.miss and r.miss.avoidable is None]),
        waste=_waste(checked),
        lost_tokens=_lost_tokens(checked, misses),
        counted_twice=_sum(twice, "cost"),
        corrected=_sum(twice, "corrected_cost"),
        unpriced=tuple(unpriced.most_common()),
        own_prices=tuple(_own_prices(known)),
    )


def priced_of(rows: Sequence[RequestCost]) -> Sum:
    """What some requests cost, simulated where nothing was reported: one of their totals, by itself."""
    return _sum([row for row in rows if counts(row) and row.counters is not None], "cost")


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
    amount = sum_of(row.oracle for row in bounded) if len(bounded) == len(priced) else None
    paid = sum_of(row.cost for row in priced)
    return Sum(
        amount=amount if amount is None or paid is None else min(amount, paid),
        basis=_basis(bounded),
        count=len(bounded),
        unpriced=len(rows) - len(bounded),
    )


def _lost(checked: Sequence[RequestCost], missed: Sequence[RequestCost]) -> Sum:
    """What misses cost."""
    misses = [row.miss for row in missed if row.miss is not None and row.miss.tokens is not None]
    return _judged(checked, [miss.cost for miss in misses])


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


def _lost_tokens(checked: Sequence[RequestCost], missed: Sequence[RequestCost]) -> int | None:
    found = [row.miss for row in missed if row.miss and row.miss.avoidable is not False]
    return sum(miss.tokens or 0 for miss in found) if found or checked else None


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


class Loss(Struct, frozen=True, kw_only=True):
    """All misses of one cause, or all that was wasted for it."""

    cause: str
    kind: str
    """miss or waste."""
    rows: tuple[RequestCost, ...]
    tokens: int | None
    """None where none of them tells."""
    cost: Decimal | None
    avoidable: bool | None
    """None where the log does not tell, or where some were and some were not."""
    partly: bool = False
    """Whether some were and some were not."""


def losses_of(rows: Iterable[RequestCost]) -> list[Loss]:
    """The misses and the waste by cause, the dearest first."""
    of_cause: defaultdict[tuple[str, str], list[RequestCost]] = defaultdict(list)
    for row in rows:
        if row.miss is not None:
            of_cause[row.miss.cause, "miss"].append(row)
        if row.waste is not None:
            of_cause[row.waste.cause, "waste"].append(row)
    found = [_loss(cause, kind, own) for (cause, kind), own in of_cause.items()]
    return sorted(found, key=lambda loss: (-(loss.cost or ZERO), loss.cause, loss.kind))


def _loss(cause: str, kind: str, rows: Sequence[RequestCost]) -> Loss:
    each = [found for row in rows if (found := row.miss if kind == "miss" else row.waste)]
    tokens = [found.tokens for found in each if found.tokens is not None]
    avoidable = {row.miss.avoidable for row in rows if row.miss} if kind == "miss" else {True}
    return Loss(
        cause=cause,
        kind=kind,
        rows=tuple(rows),
        tokens=sum(tokens) if tokens else None,
        cost=sum_of(found.cost for found in each),
        avoidable=next(iter(avoidable)) if len(avoidable) == 1 else None,
        partly=len(avoidable) > 1,
    )


def is_idle(row: RequestCost) -> bool:
    """Whether a request lost its prefix to a pause."""
    return row.miss is not None and CAUSES[row.miss.cause].is_idle


class Bridge(Struct, frozen=True, kw_only=True):
    """A way to keep entries alive over pauses, and what it would have been worth, in USD."""

    extra: Decimal
    """What it would have cost."""
    saved: Decimal
    """What it would have saved."""

    @property
    def pays(self) -> bool:
        """Whether it would have saved more than it costs."""
        return self.saved > self.extra


class Idle(Struct, frozen=True, kw_only=True):
    """What a log lost to pauses that were longer than the lifetime of its entries."""

    pauses: int
    cost: Decimal
    """USD, all of them together."""
    short: int
    """Pauses of up to an hour in which nothing else changed: a longer lifetime bridges them."""
    short_cost: Decimal
    longest: int
    """Pauses of an hour or more: no lifetime bridges them."""
    longest_cost: Decimal
    hour: Bridge
    """Writing for an hour throughout the log."""
    keep_alive: Bridge
    """Reading the cached prefix again within each five minutes of a short pause."""


def idle_of(replay: Ledger) -> Idle | None:
    """What pauses cost; None where none is priced."""
    lost = [(row, row.miss) for row in replay.rows if counts(row) and row.miss and is_idle(row)]
    priced = [(row, miss) for row, miss in lost if miss.cost is not None]
    if not priced:
        return None
    pauses = {row.number: _pause(replay, row) for row, _ in priced}
    longest = {row.number: provider_of(row.request.model).longest for row, _ in priced}
    long = [pair for pair in priced if (pauses[pair[0].number] or 0) >= longest[pair[0].number]]
    short = [
        (row, miss)
        for row, miss in priced
        if (pause := pauses[row.number]) is not None
        and pause < longest[row.number]
        and miss.avoidable
    ]
    saved = _costs(short)
    return Idle(
        pauses=len(priced),
        cost=_costs(priced),
        short=len(short),
        short_cost=saved,
        longest=len(long),
        longest_cost=_costs(long),
        hour=Bridge(extra=_premium(replay, {row.number: miss for row, miss in short}), saved=saved),
        keep_alive=Bridge(
            extra=sum((_kept(replay, row, pauses[row.number]) for row, _ in short), ZERO),
            saved=saved,
        ),
    )


def _costs(missed: Iterable[tuple[RequestCost, Miss]]) -> Decimal:
    return sum((miss.cost or ZERO for _, miss in missed), ZERO)


def _before(replay: Ledger, row: RequestCost) -> RequestCost | None:
    return replay.by_place.get(row.compared - 1) if row.compared is not None else None


def _pause(replay: Ledger, row: RequestCost) -> float | None:
    """Seconds from the start of the request before to the start of this one."""
    before = _before(replay, row)
    if before is None or before.request.at is None or row.request.at is None:
        return None
    return (row.request.at - before.request.at).total_seconds()


def _premium(replay: Ledger, bridged: dict[int, Miss]) -> Decimal:
    """What all five-minute writes of the log would have cost more for an hour, but for those that would
    not have been needed."""
    total = ZERO
    for row in replay.rows:
        usage = row.counters
        rates = find_rates(row.tariff, usage.input) if usage is not None and counts(row) else None
        if usage is None or rates is None or not rates.cache_write_1h or not rates.cache_write_5m:
            continue
        miss = bridged.get(row.number)
        written = max(0, usage.cache_write_5m - ((miss.tokens or 0) if miss else 0))
        total += written * (rates.cache_write_1h - rates.cache_write_5m) / MILLION
    return total


def _kept(replay: Ledger, row: RequestCost, pause: float | None) -> Decimal:
    """What it would have cost to read a cached prefix again and again over a pause, each time before five
    minutes are over."""
    before, lost = _before(replay, row), (row.miss.tokens if row.miss else 0) or 0
    usage = before.counters if before is not None else None
    size = max(lost, usage.cache_read + usage.cache_write if usage is not None else 0)
    read = Usage(uncached=0, cache_read=size, cache_write_5m=0, cache_write_1h=0)
    times = int((pause or 0) // provider_of(row.request.model).shortest)
    return times * (price(read, row.tariff) or ZERO)


def advisors_of(row: RequestCost) -> Iterator[tuple[str, Usage, Decimal | None]]:
    """The passes of advisors of a request: model, counters and cost of each."""
    response = row.request.response
    extra = extra_passes_of(row.request, row.tariff)
    for each, (usage, tariff) in zip(response.extra_passes if response else (), extra, strict=True):
        if each.kind == "advisor_message":
            yield tariff.model, usage, price(usage, tariff)
