"""What changes from request to request at one place: a clock, a day."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.diagnosis.attribution import case_of_pair
from ctxdoc.diagnosis.case import TOLERANCE_TOKENS
from ctxdoc.diagnosis.causes import Case, Part
from ctxdoc.diagnosis.clocks import DAYS
from ctxdoc.diagnosis.find import Finding, find_causes
from ctxdoc.diagnosis.text_values import compiled
from ctxdoc.prompt.diff import (
    Difference,
)
from ctxdoc.request.request import Request


class Drift(Struct, frozen=True, kw_only=True):
    """A prompt that should have been the same as another, and is not."""

    finding: Finding
    difference: Difference
    tokens: int
    """Estimated tokens of the marked prefix from the first block that differs on."""
    daily: bool
    """Whether only a day is another one: it holds for as long as most sessions do."""


def find_drift(before: Request, after: Request) -> Drift | None:
    """Where a prompt leaves another one ahead of that one's last breakpoint, or of its end where it has
    none; None where it does not.

    Raises NoRequestError for a body that cannot be rendered.
    """
    case = case_of_pair(before, after)
    change, prefix = case.divergence, case.before.prefix
    marks = prefix.breakpoints
    end = marks[-1] if marks else len(prefix.segments) - 1
    if change is None or change.index > end:
        return None
    sizes = case.before.sizes
    tokens = max(0, sizes.at(end) - sizes.at(change.index - 1))
    lost = max(tokens, TOLERANCE_TOKENS + 1)
    # Whether the cache would have held it is not asked: short prompts of a test are judged as well.
    case = replace(
        case,
        cached=lost,
        lost=lost,
        parts={**case.parts, Part.DIVERGENCE: lost},
        part=Part.DIVERGENCE,
        related=True,
        refusal=None,
        same_response=False,
    )
    finding, _ = find_causes(case)
    daily = finding.cause.is_clock and is_daily(case)
    return Drift(finding=finding, difference=change.difference, tokens=tokens, daily=daily)


def is_daily(case: Case) -> bool:
    """Whether the first difference is a day and no time of it: the prefix holds until midnight."""
    difference = case.divergence.difference if case.divergence else None
    if (
        difference is None
        or not isinstance(difference.before, str)
        or not isinstance(difference.after, str)
    ):
        return False
    days = compiled(DAYS)
    return days.sub("", difference.before) == days.sub("", difference.after)
