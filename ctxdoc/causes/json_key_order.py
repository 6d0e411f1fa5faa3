"""A JSON object has the same members in another order.

What it is
    A tool schema or the input of a tool call is equal as data; only its keys moved.
Why it breaks the prefix
    The cache compares the written text. A comparison that sorts keys sees nothing.
Example
    {"type", "properties", "required"} becomes {"required", "properties", "type"}; a call's
    arguments are stored in a table that sorts them.
What to do
    Keep the text of the first request, or write JSON with one fixed key order from the start.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Group, Match, Part
from ctxdoc.causes.content import find_key_order


def _match(case: Case) -> Match | None:
    place = find_key_order(case)
    if place is None:
        return None
    return Match(
        explanation=f"{place.pointer} holds the same members in another order: equal as data, "
        "another text in the prompt.",
        confidence=case.proof,
        pointer=place.pointer,
    )


CAUSE = Cause(
    id="json_key_order",
    title="the same JSON with its keys in another order",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Serialise with one fixed key order from the first request on, and replay a "
    "call's arguments as they were received.",
    unstable=True,
    match=_match,
)
