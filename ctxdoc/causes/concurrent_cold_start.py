"""Parallel requests started before the first response began.

What it is
    Requests with one prefix were sent together, so each one wrote it.
Why it breaks the prefix
    An entry can be read only once the response that writes it has begun.
Example
    Three gradings of three essays started within half a second.
What to do
    Send one request, wait for its first token, then start the others.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Group, Match, Part
from ctxdoc.causes.content import duration_text


def _match(case: Case) -> Match | None:
    if not case.parts[Part.VISIBILITY] or case.gap is None:
        return None
    return Match(
        explanation=f"The request started {duration_text(case.gap)} after one with the same prefix, "
        "before that one's response had begun; both wrote it.",
        confidence=case.proof,
    )


CAUSE = Cause(
    id="concurrent_cold_start",
    title="parallel requests on a cold cache",
    group=Group.TIME_AND_PLACE,
    parts=frozenset({Part.VISIBILITY}),
    fix="Send one request, wait for its first token, then start the others.",
    match=_match,
)
