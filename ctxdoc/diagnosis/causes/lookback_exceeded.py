"""The last written entry lies more than 20 positions before the breakpoint.

What it is
    Nothing changed, but so many blocks were appended at once that the breakpoint does not reach
    back to the entry of the earlier request.
Why it breaks the prefix
    From each breakpoint the API looks at 20 positions, the breakpoint's own included. A run of
    tool_use or of tool_result blocks is one position.
Example
    24 documents as 24 text blocks in one message.
What to do
    Leave a second breakpoint on the last block of the earlier request, or join blocks.
How sure it can be
    Certain where the times are known and the counters read just what the lookback reaches. That runs of
    tool calls count once holds on the Claude API; for other platforms it is not documented (facts 1.3).
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import positions_behind


def _match(case: Case) -> Match | None:
    behind = positions_behind(case)
    if behind is None:
        return None
    looked_at = case.after.prefix.rule.rules.lookback
    return Match(
        explanation=f"Nothing earlier changed, but the last entry lies {behind} positions before the "
        f"breakpoint, and only {looked_at} are looked at, the breakpoint's own included.",
        confidence=case.proof,
    )


CAUSE = Cause(
    id="lookback_exceeded",
    title="the earlier entry is out of the lookback",
    group=Group.MARKERS,
    parts=frozenset({Part.REACH}),
    fix="Leave a second breakpoint on the last block of the previous request (or one "
    "every fifteen blocks), or join the blocks into fewer.",
    match=_match,
)
