"""What was missed and wasted, cause by cause, and what could not be judged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from ctxdoc.ledger.losses import Loss, losses_of
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.outputs.numbers import counted, money_text, tokens_text
from ctxdoc.outputs.report import Notes, Part, Table

SHOWN_CAUSES = 8
SHOWN_REQUESTS = 4
SHOWN_REASONS = 5


def numbers_text(rows: Sequence[RequestCost]) -> str:
    """The numbers of requests, the first few of many."""
    numbers = ", ".join(f"{row.number}" for row in rows[:SHOWN_REQUESTS])
    return f"#{numbers}{', …' if len(rows) > SHOWN_REQUESTS else ''}"


def misses_parts(rows: Sequence[RequestCost]) -> Iterator[Part]:
    """A table of misses and waste, the dearest cause first."""
    losses = losses_of(rows)
    if not losses:
        return
    columns = ("cause", "kind", "requests", "tokens", "lost", "avoidable", "where")
    yield Table("Misses and waste", columns, tuple(map(_cells, losses[:SHOWN_CAUSES])))
    if len(losses) > SHOWN_CAUSES:
        yield Notes("", (f"… and {counted(len(losses) - SHOWN_CAUSES, 'more cause')}",))


def _cells(loss: Loss) -> tuple[str, ...]:
    return (
        loss.cause,
        loss.kind,
        f"{len(loss.rows):,}",
        tokens_text(loss.tokens),
        money_text(loss.cost),
        "partly" if loss.partly else AVOIDABLE[loss.avoidable],
        numbers_text(loss.rows),
    )


AVOIDABLE = {True: "yes", False: "no", None: "unknown"}


def not_judged(rows: Sequence[RequestCost]) -> Iterator[str]:
    """Why requests were not looked at, with how many of them."""
    reasons: defaultdict[str, int] = defaultdict(int)
    for row in rows:
        if row.reason and not row.judged:
            reasons[row.reason] += 1
    ranked = sorted(reasons, key=lambda reason: (-reasons[reason], reason))
    for reason in ranked[:SHOWN_REASONS]:
        yield f"{counted(reasons[reason], 'request')}: misses, because {reason}"
    opaque = sum(row.opaque for row in rows)
    if opaque:
        yield f"{counted(opaque, 'request')}: sizes of documents, files, servers or provider tools"
