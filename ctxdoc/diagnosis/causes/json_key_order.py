"""A JSON object, or a list in a text, has the same members in another order.

What it is
    A tool schema, the input of a tool call, or an object that is written into the text of a prompt
    (JSON, or a dict as Python prints it) is equal as data; only its keys moved. The same of the lines or
    names of a list in a text.
Why it breaks the prefix
    The cache compares the written text. A comparison that sorts keys sees nothing.
Example
    {"type", "properties", "required"} becomes {"required", "properties", "type"}; a call's
    arguments are stored in a table that sorts them. "Tools: read, write" becomes "Tools: write, read",
    since the names come from a set.
What to do
    Keep the text of the first request, or write JSON with one fixed key order from the start; sort
    names before they are joined.
How sure it can be
    Certain where both bodies and the counters agree: both sides are compared member by member, and nothing
    but the order may differ. Possible for the keys of JSON itself where a recorder parsed the bodies: their
    order may be the recorder's. Text is kept by all of them.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.reordered import Order
from ctxdoc.diagnosis.spelling import find_key_order, spelling_proof


def _match(case: Case) -> Match | None:
    found = find_key_order(case)
    if found is None:
        return None
    difference = found.difference
    in_text = isinstance(difference.before, str) and isinstance(difference.after, str)
    data = "equal as data, " if found.order is Order.MEMBERS else ""
    return Match(
        explanation=f"{difference.pointer} holds the same {found.order} in another order: {data}another "
        "text in the prompt.",
        confidence=case.proof if in_text else spelling_proof(case),
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="json_key_order",
    title="the same JSON or list in another order",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Serialise with one fixed key order from the first request on, and replay a "
    "call's arguments as they were received; sort names before they are joined into text.",
    unstable=True,
    every_time=True,
    holds_for_builders=True,
    match=_match,
)
