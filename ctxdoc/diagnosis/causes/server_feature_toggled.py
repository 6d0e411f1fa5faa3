"""Web search, citations, skills or speed was switched.

What it is
    A feature that the platform renders ahead of the system prompt was switched on or off.
Why it breaks the prefix
    System and messages are another prompt; tools stay readable where a breakpoint stands on them.
Example
    A search tool is added for one turn; speed "fast" for one request.
What to do
    Send the same features all session long, and say in a message when one is wanted.
How sure it can be
    Certain where both bodies show it, and counters and times agree: what is lost by it is documented
    (facts 1.7).
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import feature_change


def _match(case: Case) -> Match | None:
    difference = feature_change(case)
    if difference is None:
        return None
    what = (
        "added"
        if difference.before is None
        else "removed"
        if difference.after is None
        else "changed"
    )
    return Match(
        explanation=f"{difference.pointer} was {what}; the platform renders it ahead of the system "
        "prompt, so system and messages are written again.",
        confidence=case.proof,
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="server_feature_toggled",
    title="a server feature was switched",
    group=Group.SETTINGS,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Send the same server features on every request of a conversation and say in "
    "the message when one is wanted; switch speed between conversations.",
    holds_for_builders=True,
    match=_match,
)
