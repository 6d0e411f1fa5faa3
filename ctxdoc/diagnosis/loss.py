"""What a request lost, in tokens and dollars."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.diagnosis.case import TOLERANCE_SHARE, TOLERANCE_TOKENS
from ctxdoc.diagnosis.causes import Case, Part, compaction_state_lost
from ctxdoc.diagnosis.evidence import repeated_uncached
from ctxdoc.diagnosis.history_edits import ids_regenerated
from ctxdoc.pricing.cost import price
from ctxdoc.pricing.tariff import tariff_of
from ctxdoc.prompt.segments import Segment
from ctxdoc.request.request import Section
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.estimate import ERROR_SHARE


class Cost(Struct, frozen=True):
    """USD for the later request; None where the model is unpriced."""

    paid: Decimal | None
    """By the counters as they were reported."""
    if_hit: Decimal | None
    corrected: Decimal | None = None
    """Without the cached tokens that the log counts twice; None where it does not."""

    @property
    def lost(self) -> Decimal | None:
        """What the miss cost."""
        if self.paid is None or self.if_hit is None:
            return None
        return self.paid - self.if_hit


def bounded_loss(case: Case) -> int:
    """Lost tokens that the later prompt has: not what it left out, nor what is new at its end."""
    prefix, sizes = case.after.prefix, case.after.sizes
    had = {segment.digest for segment in case.before.prefix.segments}
    had |= set(_respelled(case))
    end = len(prefix.segments)
    messages = [s.digest in had for s in prefix.segments if s.section is Section.MESSAGES]
    if any(messages):
        while end and prefix.segments[end - 1].digest not in had:
            end -= 1
    most = max(0, sizes.at(end - 1) - case.counters.cache_read)
    slack = max(TOLERANCE_TOKENS, TOLERANCE_SHARE * most)
    lost = case.lost if case.lost <= most + slack else most
    return min(lost, max(0, case.counters.input - case.counters.cache_read))


def wasted_tokens(case: Case, cause: str) -> int | None:
    """Tokens that were sent before and are paid in full again; None where they are none, or fewer than
    the model caches."""
    if case.sharable or case.unread:
        return case.sharable or case.unread
    if cause == compaction_state_lost.CAUSE.id:
        # What it costs shows in the requests behind it.
        return 0
    if case.after.prefix.breakpoints:
        return min(repeated_uncached(case), case.counters.uncached)
    least: float = case.after.prefix.rule.minimum
    if case.after.sizes.origin is Origin.ESTIMATED:
        least *= 1 + ERROR_SHARE
    if case.alone or case.identical < least:
        return None
    return min(case.identical, case.counters.uncached) or None


RESPELLED = 0.2
"""Share of its size by which a block may differ and still be the same one in another spelling."""


def _respelled(case: Case) -> Iterator[bytes]:
    """The blocks of the later prompt that stand where the earlier one has about the same: they would have
    been read, had they not changed."""
    by_rank = case.before.prefix.by_rank
    if ids_regenerated(case):
        # All blocks behind the first one differ by their ids alone.
        yield from (s.digest for s in case.after.prefix.segments if s.rank in by_rank)
    changed = (change.after for change in case.changes if change.after is not None)
    yield from (s.digest for s in changed if _is_respelled(by_rank.get(s.rank), s))


def _is_respelled(before: Segment | None, after: Segment) -> bool:
    """Whether two blocks at one place are one in another spelling."""
    if before is None or before.kind != after.kind:
        return False
    return abs(before.size - after.size) <= RESPELLED * before.size


def cost_of(case: Case) -> Cost:
    """What the later request cost, and what it would have, had the lost tokens been read."""
    if case.part in (Part.RECORD, Part.REFUSAL):
        return Cost(None, None)
    tariff = tariff_of(case.after.request)
    paid, right = price(case.counters, tariff), case.after.corrected
    return Cost(
        paid,
        price(read_instead(case.counters, bounded_loss(case)), tariff),
        price(right, tariff) if right is not None and case.measured else None,
    )


def read_instead(usage: Usage, lost: int) -> Usage:
    """The same request, had the lost tokens been read; never more than were written or uncached."""
    left = lost
    taken = {}
    for name in ("cache_write_5m", "cache_write_1h", "uncached"):
        part = min(left, getattr(usage, name))
        taken[name] = getattr(usage, name) - part
        left -= part
    return replace(usage, **taken, cache_read=usage.cache_read + lost - left)
