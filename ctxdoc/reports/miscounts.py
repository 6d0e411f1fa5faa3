"""Requests whose counters or breakpoints are at fault: too short a prefix, tokens counted twice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.ledger.totals import Totals
from ctxdoc.outputs.numbers import counted, money_text
from ctxdoc.outputs.report import Row as Line
from ctxdoc.providers.rules import short_model_id
from ctxdoc.reports.misses import numbers_text


def below_rows(rows: Sequence[RequestCost]) -> Iterator[Line]:
    """MarkedMessage prefixes that are too short to be cached, with what they lack."""
    of_model: defaultdict[tuple[str, int], list[RequestCost]] = defaultdict(list)
    for row in rows:
        if row.below is not None and not row.repeated:
            of_model[short_model_id(row.request.model), row.below.minimum].append(row)
    for index, ((model, minimum), own) in enumerate(of_model.items()):
        yield Line("" if index else "Minimum", _below_text(model, minimum, own))


def _below_text(model: str, minimum: int, rows: Sequence[RequestCost]) -> str:
    missing = [row.below.missing for row in rows if row.below]
    least, most = min(missing), max(missing)
    lack = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    verb = "marks" if len(rows) == 1 else "mark"
    return (
        f"{counted(len(rows), 'request')} {verb} a prefix that {model or 'the model'} does not cache: it "
        f"is {lack} tokens short of {minimum:,} ({numbers_text(rows)})"
    )


def accounting_rows(rows: Sequence[RequestCost], totals: Totals) -> Iterator[Line]:
    """Faults in how the log counts or prices, with both sums of money."""
    kinds: defaultdict[str, list[RequestCost]] = defaultdict(list)
    for row in rows:
        if row.accounting is not None and not row.repeated:
            kinds[row.accounting.cause].append(row)
    for index, (name, own) in enumerate(kinds.items()):
        text = f"{_accounting_text(name, own)}{_twice_text(name, totals)}"
        yield Line("" if index else "Counting", text)


def _accounting_text(name: str, rows: Sequence[RequestCost]) -> str:
    first = rows[0].accounting
    sure = f" ({first.confidence})" if first is not None else ""
    return f"{name}{sure}: {counted(len(rows), 'request')}, the first #{rows[0].number}"


def _twice_text(name: str, totals: Totals) -> str:
    """Both sums: which of them was billed only the provider knows."""
    twice, right = totals.counted_twice, totals.corrected
    if name != "usage_double_counted" or twice.amount is None:
        return ""
    return (
        f"; {money_text(twice.amount)} as reported, {money_text(right.amount)} without the tokens "
        "that are counted twice"
    )
