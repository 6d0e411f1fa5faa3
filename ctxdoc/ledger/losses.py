"""Losses of a log by cause: its misses, and what was wasted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc.ledger.request_cost import Miss, RequestCost, Waste
from ctxdoc.ledger.totals import ZERO, sum_of


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
    found: list[Miss | Waste] = [row.waste for row in rows if row.waste is not None]
    # What was never cached could have been: waste is always avoidable.
    avoidable: set[bool | None] = {True}
    if kind == "miss":
        misses = [row.miss for row in rows if row.miss is not None]
        found, avoidable = [*misses], {miss.avoidable for miss in misses}
    tokens = [each.tokens for each in found if each.tokens is not None]
    return Loss(
        cause=cause,
        kind=kind,
        rows=tuple(rows),
        tokens=sum(tokens) if tokens else None,
        cost=sum_of(each.cost for each in found),
        avoidable=next(iter(avoidable)) if len(avoidable) == 1 else None,
        partly=len(avoidable) > 1,
    )
