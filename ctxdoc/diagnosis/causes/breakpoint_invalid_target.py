"""A breakpoint on something that cannot carry one: the request is refused.

What it is
    cache_control stands on a thinking block, a deferred tool or an empty text block.
Why it breaks the prefix
    The API answers 400.
Example
    A library marks the block before the last text, which is thinking.
What to do
    Walk back to the nearest text, tool_use or tool_result block.
How sure it can be
    Certain where the log holds the API's refusal, likely where it holds no answer: the rule is the vendor's
    (facts 1.2). An answer with counters says that it was accepted, and nothing is said.
"""

from __future__ import annotations

from ctxdoc.cache.breakpoint_rules import RefusalCode
from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import refused_for


def _match(case: Case) -> Match | None:
    return refused_for(case, RefusalCode.INVALID_TARGET, "it cannot carry a breakpoint")


CAUSE = Cause(
    id="breakpoint_invalid_target",
    title="a breakpoint on something that cannot carry one",
    group=Group.MARKERS,
    parts=frozenset({Part.REFUSAL}),
    fix="Walk back to the nearest text, tool_use or tool_result block when placing the breakpoint.",
    match=_match,
)
