"""Only tools and system are marked; the growing history is paid in full each time.

What it is
    Everything that was ever cached is read, but the messages behind the last breakpoint are sent
    again and again at the full input price.
Why it breaks the prefix
    It does not; the money is lost in uncached input.
Example
    One breakpoint on the system prompt, and a tool loop of twenty requests behind it.
What to do
    Add one breakpoint on the last block of the newest message, and move it with the conversation.
How sure it can be
    Certain where both bodies show it and the counters agree: what is equal behind the last breakpoint was
    paid in full. It is waste and no miss, since nothing of it was cached.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import repeated_uncached


def _match(case: Case) -> Match | None:
    tokens = repeated_uncached(case)
    if not tokens:
        return None
    return Match(
        explanation=f"{tokens:,} tokens of history stood in the earlier request too and are paid in "
        "full again, because no breakpoint follows them.",
        confidence=case.proof,
    )


CAUSE = Cause(
    id="breakpoint_missing_on_history",
    title="the history carries no breakpoint",
    group=Group.MARKERS,
    parts=frozenset({Part.WASTE, Part.REACH}),
    fix="Add one moving breakpoint on the last block of the newest message.",
    match=_match,
)
