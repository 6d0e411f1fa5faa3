"""The same JSON value is written another way.

What it is
    A number is spelled otherwise (1.0 and 1), or a text that holds JSON was dumped again with
    other spaces or escapes.
Why it breaks the prefix
    Inside free JSON and text the spelling is part of the prompt. (Escapes of the body itself are not:
    they are gone once the body is parsed.)
Example
    {"value": 1.0} in a stored tool call comes back as {"value": 1}.
What to do
    Store and replay argument texts as they were received.
How sure it can be
    Certain where the log keeps the bodies as they were sent, and counters and times agree. Where a recorder
    parsed them, possible: the spelling may be the recorder's.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.spelling import find_leaf, same_json_value, spelling_proof


def _match(case: Case) -> Match | None:
    leaf = find_leaf(case, same_json_value)
    if leaf is None:
        return None
    return Match(
        explanation=f"{leaf.pointer} has the same value in another spelling; the prompt holds the "
        "spelling.",
        confidence=spelling_proof(case),
        pointer=leaf.pointer,
    )


CAUSE = Cause(
    id="json_value_encoding",
    title="the same JSON value written another way",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Store and replay the argument text as it was received instead of parsing and "
    "dumping it again.",
    unstable=True,
    holds_for_builders=True,
    match=_match,
)
