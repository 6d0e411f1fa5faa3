"""The marked prefix is shorter than the model caches.

What it is
    The prompt up to the last breakpoint has fewer tokens than the model's smallest cacheable prefix.
Why it breaks the prefix
    The breakpoint is ignored without an error; both cache counters stay 0.
Example
    A 400-token system prompt marked on a model that caches nothing under 4,096.
What to do
    Put more stable content before the breakpoint, or drop it. The minimum counts the whole prefix,
    not the block.
How sure it can be
    Certain where both counters are 0 and the model's minimum is documented. Possible up to twice the
    minimum, where users measured another limit than the page says, and where the minimum is assumed.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped

MEASURED = {"claude-sonnet-4-6": 2048}
"""Minimums that users measured above the documented one, tokens."""


def _match(case: Case) -> Match | None:
    prefix, sizes = case.after.prefix, case.after.sizes
    marks, minimum = prefix.breakpoints, prefix.rule.minimum
    marked, what = (sizes.at(marks[-1]), "marked prefix") if marks else (sizes.total, "prompt")
    # Users measured 2,048 where the page says 1,024 (fact sheet 1.6): up to there a prefix that the API did
    # not cache may still be too short.
    grey = case.measured and minimum <= marked < MEASURED.get(prefix.rule.id, 0)
    if marked >= minimum and not grey:
        return None
    sure = case.measured and not prefix.rule.minimum_assumed and not grey
    return Match(
        explanation=f"The {what} has about {marked:,} tokens; {prefix.rule.id} caches nothing "
        f"under {minimum:,}.",
        confidence=capped(case.proof, Confidence.CERTAIN if sure else Confidence.POSSIBLE),
    )


CAUSE = Cause(
    id="below_minimum",
    title="the marked prefix is below the model's minimum",
    group=Group.MARKERS,
    parts=frozenset({Part.NEVER_CACHED}),
    fix="Put more stable content before the breakpoint, or drop the breakpoint; no "
    "error will ever be reported.",
    avoidable=False,
    match=_match,
)
