"""Results of parallel tool calls are replayed in another order.

What it is
    One message holds the same results, but they stand in another order.
Why it breaks the prefix
    The model does not mind the order, the cache does.
Example
    Sent in the order in which the calls finished, replayed in the order of the calls.
What to do
    Put the results into the order of their calls, on the first send as well.
How sure it can be
    Certain where both bodies hold the same blocks byte for byte, and counters and times agree.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.history_edits import message_blocks
from ctxdoc.prompt.segments import Segment


def _match(case: Case) -> Match | None:
    change = case.message_change
    if change is None:
        return None
    one, two = (_calls(message_blocks(each, change)) for each in (case.before, case.after))
    if one == two or sorted(one) != sorted(two):
        return None
    return Match(
        explanation=f"The {len(two)} results or calls of one message are the same, in another order.",
        confidence=case.proof,
        pointer=change.difference.pointer,
    )


def _calls(blocks: list[Segment]) -> list[bytes]:
    """The calls and results of a message; the text between them may change as it likes."""
    return [segment.digest for segment in blocks if segment.kind in ("tool_result", "tool_use")]


CAUSE = Cause(
    id="tool_result_order",
    title="parallel results in another order",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Sort the results of one batch into the order of their tool_use blocks, on the "
    "first send as well as on replay.",
    unstable=True,
    holds_for_builders=True,
    match=_match,
)
