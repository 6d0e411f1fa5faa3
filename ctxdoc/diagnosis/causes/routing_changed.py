"""Another account, workspace, region or provider served the request.

What it is
    The same prefix, but the log names another place.
Why it breaks the prefix
    Each organization, workspace and upstream has entries of its own.
Example
    A router sends the second request to another cloud.
What to do
    Pin one provider for the conversation, or use a sticky session key.
How sure it can be
    Certain where the log names both places, and counters and times agree. Requests of two files are not
    compared across places: they need not have to do with each other.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.surroundings import place_change


def _match(case: Case) -> Match | None:
    change = place_change(case)
    if change is None or not case.parts[Part.PLACE]:
        return None
    return Match(
        explanation=f"The prefix was the same, but {change}; each place has a cache of its own.",
        confidence=case.proof,
    )


CAUSE = Cause(
    id="routing_changed",
    title="another place served the request",
    group=Group.TIME_AND_PLACE,
    parts=frozenset({Part.PLACE}),
    fix="Pin one provider, account and workspace for the conversation (fallbacks off, "
    "or a sticky session key).",
    match=_match,
)
