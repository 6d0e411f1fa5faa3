"""Causes that explain a case, the first one and what else changed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgspec import Struct

from ctxdoc.diagnosis.causes import CAUSES, Case, Cause, Group, Match, Part, can_explain
from ctxdoc.prompt.diff import (
    Difference,
    find_unrendered,
)


class Finding(Struct, frozen=True, kw_only=True):
    """One cause in one request."""

    cause: Cause
    match: Match

    @property
    def fix(self) -> str:
        """What to change."""
        return self.match.fix or self.cause.fix

    @property
    def avoidable(self) -> bool:
        """Whether something can be done about it."""
        return self.cause.avoidable and self.match.avoidable


def find_causes(case: Case) -> tuple[Finding, tuple[Finding, ...]]:
    """The cause that explains the largest part of the loss at the first difference, and the other
    true ones."""
    found = list(_findings_of(case))
    # Causes stand in their order: the first that explains is the most specific one.
    primary = next((finding for finding in found if _explains(finding, case)), None)
    primary = primary or _last_resort(case)
    also = [f for f in found if f is not primary and _worth_saying(f, primary)]
    return primary, tuple(also)


def _findings_of(case: Case) -> Iterator[Finding]:
    """Every cause that can explain a part of the loss, and is there."""
    for cause in _causes_of(_open_parts(case)):
        match = cause.match(case)
        if match is not None:
            yield Finding(cause=cause, match=match)


def _last_resort(case: Case) -> Finding:
    """The last cause, which always matches."""
    last = CAUSES[CAUSES.names[-1]]
    match = last.match(case)
    assert match is not None
    return Finding(cause=last, match=match)


def _open_parts(case: Case) -> frozenset[Part]:
    """The parts of the loss that are there to be explained, and the accounting beside it."""
    if case.part in ALONE:
        return ALONE[case.part]
    lost = {part for part, tokens in case.parts.items() if tokens}
    if Part.EXPIRY in lost and case.divergence is not None:
        # What changed is worth a word although the pause alone explains the loss.
        lost.add(Part.DIVERGENCE)
    return NOTHING_LOST.union(lost)


NOTHING_LOST = frozenset((Part.WASTE, Part.ACCOUNTING, Part.NOTHING))
ALONE = {
    Part.RECORD: frozenset((Part.RECORD, Part.ACCOUNTING)),
    Part.REFUSAL: frozenset((Part.REFUSAL, Part.ACCOUNTING, Part.NOTHING)),
    Part.COLD: frozenset((Part.COLD, Part.ACCOUNTING, Part.NOTHING)),
    Part.NEVER_CACHED: frozenset((Part.NEVER_CACHED, Part.ACCOUNTING, Part.NOTHING)),
}
"""Parts that no other stands beside: nothing was there to be lost. A record that is there twice is not
asked what is healthy, the one before was."""


@cache
def _causes_of(parts: frozenset[Part]) -> tuple[Cause, ...]:
    """The causes that can explain one of the parts, in their order."""
    return tuple(CAUSES[name] for name in CAUSES.names if can_explain(name, parts))


def _explains(finding: Finding, case: Case) -> bool:
    cause = finding.cause
    if case.part is Part.NOTHING:
        return bool(cause.parts & {Part.WASTE, Part.ACCOUNTING, Part.NOTHING})
    if cause.fallback:
        return True
    if case.part not in cause.parts:
        return False
    match = finding.match
    return case.part is not Part.DIVERGENCE or (match.leading and match.pointer == case.where)


def _worth_saying(finding: Finding, primary: Finding) -> bool:
    cause = finding.cause
    if cause.group is Group.HEALTHY or cause.fallback:
        return False
    return not (cause.general and finding.match.pointer == primary.match.pointer)


def first_difference(case: Case) -> Difference | None:
    """Where a request first differs from the one it is compared with; None where it only appends."""
    if case.part is Part.RECORD:
        return None
    if case.by_server:
        return None
    if case.divergence is not None:
        return case.divergence.difference
    return find_unrendered(case.before.prefix, case.after.prefix)
