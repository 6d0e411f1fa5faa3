"""The same tools, unchanged, arrive in another order.

What it is
    Every definition of the earlier request is there, byte for byte, but at another place.
Why it breaks the prefix
    Tools are rendered first; the prompt is lost from the first tool that moved.
Example
    A tool server reconnects and its tools go to the end of the list; a set or a map is iterated.
What to do
    Sort the tools by name before every request.
How sure it can be
    Certain where both bodies hold the same definitions byte for byte, and counters and times agree.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import tool_data


def _match(case: Case) -> Match | None:
    change = case.tool_change
    if change is None:
        return None
    before, after = tool_data(case.before), tool_data(case.after)
    if sorted(before) != sorted(after):
        return None
    moved = sum(one != two for one, two in zip(before, after, strict=True))
    return Match(
        explanation=f"The {len(after)} tool definitions are equal as a set, but {moved} stand at "
        "another place; tools are rendered first, so nothing behind them can be read.",
        confidence=case.proof,
        pointer=change.difference.pointer,
    )


CAUSE = Cause(
    id="tool_order",
    title="the same tools in another order",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Sort the tools by name before every request: servers in a fixed order, tools "
    "sorted inside.",
    unstable=True,
    every_time=True,
    holds_for_builders=True,
    match=_match,
)
