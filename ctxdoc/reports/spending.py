"""The bill of a log in labelled lines: money, tokens, and how far to believe them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ctxdoc.ledger.advice import bridge_text
from ctxdoc.ledger.fidelity import Fidelity
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.pauses import Idle
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.ledger.totals import Sum, Tokens, Totals
from ctxdoc.outputs.numbers import counted, money_text, share_text
from ctxdoc.outputs.report import Row as Line
from ctxdoc.reports.growth import growth_rows
from ctxdoc.reports.json.replay import COMPARED
from ctxdoc.reports.miscounts import accounting_rows, below_rows
from ctxdoc.request.usage import Origin
from ctxdoc.tokens.estimate import ERROR_SHARE

SHOWN_NAMES = 4


def spending_rows(replay: Ledger, totals: Totals, idle: Idle | None) -> Iterator[Line]:
    """Lines on money, pauses, tokens, records, faults of counting and growth."""
    rows = replay.rows
    yield from _labelled("Money", _money(totals), strong=True)
    if idle is not None:
        yield Line("Pauses", _idle(idle))
    yield from _labelled("Tokens", _token_lines(rows, totals))
    merged = _merged(rows)
    if merged:
        yield Line("Records", merged)
    yield from below_rows(rows)
    yield from accounting_rows(rows, totals)
    fidelity = _fidelity(rows)
    if fidelity:
        yield Line("Check", fidelity)
    yield from growth_rows(replay)


def _labelled(label: str, lines: Iterable[str], *, strong: bool = False) -> Iterator[Line]:
    """Lines under one label; the first of them may be strong."""
    for index, line in enumerate(lines):
        yield Line("" if index else label, line, strong=strong and not index)


def _money(totals: Totals) -> Iterator[str]:
    """The bill, and beside it what is simulated of requests without counters."""
    first, *others = list(_bills(totals)) or ["-"]
    yield f"{first}{_unpriced(totals)}"
    yield from others
    for name, own in totals.own_prices:
        yield f"{name}: a price of our own table ({own.source}, {own.read:%Y-%m-%d}), not of genai-prices"


def _bills(totals: Totals) -> Iterator[str]:
    cost, guessed = totals.cost, totals.guessed_cost
    # Where there is one bill only it is of all requests, which the headline has said.
    several = cost.amount is not None and guessed.amount is not None
    if cost.amount is not None:
        paid = f"{money_text(cost.amount)} paid{_of(cost) if several else ''}"
        yield _bill(paid, totals.without_cache, totals.oracle)
    if guessed.amount is not None:
        part = "" if totals.guessed_output else " for the input"
        of = _of(guessed) if several else ""
        paid = f"about {money_text(guessed.amount)}{part}{of} (simulated)"
        yield _bill(paid, totals.guessed_without_cache, totals.guessed_oracle)


def _of(amount: Sum) -> str:
    without = "without counters" if amount.basis.simulated else "with counters"
    return f" by {counted(amount.basis.requests, 'request')} {without}"


def _bill(paid: str, without: Sum, oracle: Sum) -> str:
    best = "- at best (not every body was compared)"
    if oracle.amount is not None:
        best = f"{money_text(oracle.amount)} at best for these prompts (oracle)"
    return f"{paid} · {money_text(without.amount)} without a cache · {best}"


def _unpriced(totals: Totals) -> str:
    """What has no price, by name."""
    count = sum(requests for _, requests in totals.unpriced)
    if not count:
        return ""
    names = [f"{name}" for name, _ in totals.unpriced[:SHOWN_NAMES]]
    more = ", …" if len(totals.unpriced) > SHOWN_NAMES else ""
    return f"; {counted(count, 'request')} of unpriced models ({', '.join(names)}{more})"


def _idle(idle: Idle) -> str:
    """What was lost to pauses, and whether anything would have bridged them for less."""
    text = f"{money_text(idle.cost)} lost to {counted(idle.pauses, 'pause')} over the lifetime"
    if idle.longest:
        longest = money_text(idle.longest_cost)
        text += (
            f"; {longest} of it to {idle.longest:,} of an hour or more, which no lifetime bridges"
        )
    if idle.short:
        text += f"; for those of up to an hour {bridge_text(idle)}"
    return text


def _token_lines(rows: Sequence[RequestCost], totals: Totals) -> Iterator[str]:
    reported, simulated, every = totals.reported, totals.simulated, totals.every
    if reported is not None:
        without = totals.requests - reported.basis.requests
        rest = f"; {counted(without, 'request')} without counters" if without else ""
        yield f"{_tokens(reported)}; output {reported.output:,} (reported{rest})"
    if every is not None and every.basis.origin == "mixed":
        yield f"{_tokens(every)} (all that are known, {every.basis.simulated:,} simulated)"
    if simulated is not None:
        yield f"{_tokens(simulated)} ({_how(rows)})"
    if reported is None and simulated is None:
        yield "- (no request of the log has counters or a body)"


def _tokens(sums: Tokens) -> str:
    if sums.contradicted:
        who = counted(sums.contradicted, "request")
        who += " contradicts itself" if sums.contradicted == 1 else " contradict themselves"
        return (
            f"input - · read - (not known: {who}, as with more cached tokens than the prompt has)"
        )
    whole, written, hour = sums.input, sums.cache_write, sums.cache_write_1h
    parts = (
        f"read {share_text(sums.cache_read, whole)}",
        f"written {share_text(written, whole)}"
        + (f" (for an hour {share_text(hour, written)} of it)" if hour else ""),
        f"uncached {share_text(sums.uncached, whole)}",
    )
    return f"input {whole:,}: {' · '.join(parts)}"


def _merged(rows: Sequence[RequestCost]) -> str:
    """Records that told of one response, and responses that stand in the log again."""
    merged = [row.request.records for row in rows if row.request.records > 1]
    repeated = sum(row.repeated for row in rows)
    parts = []
    if merged:
        parts.append(f"{sum(merged):,} records of {counted(len(merged), 'response')} were merged")
    if repeated:
        verb = "repeats" if repeated == 1 else "repeat"
        parts.append(f"{counted(repeated, 'request')} {verb} a response that is counted once")
    return "; ".join(parts)


def _how(rows: Sequence[RequestCost]) -> str:
    guessed = any(row.origin is Origin.ESTIMATED for row in rows if row.simulated)
    return f"simulated; sizes estimated, ±{ERROR_SHARE:.0%}" if guessed else "simulated"


def _fidelity(rows: Sequence[RequestCost]) -> str:
    kinds = [row.fidelity for row in rows if row.fidelity is not None]
    if not kinds:
        return ""
    compared = sum(kind in COMPARED for kind in kinds)
    within = kinds.count(Fidelity.WITHIN)
    text = f"the cache model reproduces {within:,} of {counted(compared, 'request')}"
    if kinds.count(Fidelity.WARMED):
        text += f"; {kinds.count(Fidelity.WARMED):,} warmed by calls outside the log"
    if kinds.count(Fidelity.PASSES):
        text += f"; {kinds.count(Fidelity.PASSES):,} of several passes (server tools)"
    return text
