"""More than four breakpoints: the request is refused.

What it is
    The request carries five or more cache_control breakpoints, counting the automatic one.
Why it breaks the prefix
    The API answers 400; nothing is sent to the model.
Example
    The client used four, a proxy added a fifth.
What to do
    Count the breakpoints of tools, system and messages together, and drop the oldest message's first.
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
    return refused_for(case, RefusalCode.OVER_LIMIT, "at most 4 are allowed")


CAUSE = Cause(
    id="breakpoint_over_limit",
    title="more than four breakpoints",
    group=Group.MARKERS,
    parts=frozenset({Part.REFUSAL}),
    fix="Count breakpoints over tools, system and messages together and drop the oldest "
    "message's breakpoint before adding one.",
    match=_match,
)
