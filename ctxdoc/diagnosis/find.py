"""Causes that explain a case, the first one and what else changed."""

from __future__ import annotations

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
    found: list[Finding] = []
    for cause in _causes_of(_open_parts(case)):
        match = cause.match(case)
        if match is not None:
            found.append(Finding(cause=cause, match=match))
    primary = next((finding for finding in found if _explains(finding, case)), None)
    if primary is None:
        last = CAUSES[CAUSES.names[-1]]
        match = last.match(case)
        assert match is not None
        primary = Finding(cause=last, match=match)
    also = [f for f in found if f is not primary and _worth_saying(f, primary)]
    return primary, tuple(also)


def _open_parts(case: Case) -> frozenset[Part]:
    """The parts of the loss that are there to be explained, and the accounting beside it."""
    if case.part is Part.RECORD:
        return frozenset((Part.RECORD, Part.ACCOUNTING))
    if case.part in (Part.REFUSAL, Part.COLD, Part.NEVER_CACHED):
        return frozenset((case.part, Part.ACCOUNTING, Part.NOTHING))
    if case.part is Part.NOTHING and not any(case.parts.values()):
        return NOTHING_LOST
    lost = {part for part, tokens in case.parts.items() if tokens}
    if Part.EXPIRY in lost and case.divergence is not None:
        # What changed is worth a word although the pause alone explains the loss.
        lost.add(Part.DIVERGENCE)
    return NOTHING_LOST.union(lost)


NOTHING_LOST = frozenset((Part.WASTE, Part.ACCOUNTING, Part.NOTHING))


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
        return case.divergence.place
    return find_unrendered(case.before.prefix, case.after.prefix)
