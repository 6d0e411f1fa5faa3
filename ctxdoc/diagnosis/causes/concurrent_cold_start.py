"""Parallel requests started before the first response began.

What it is
    Requests with one prefix were sent together, so each one wrote it.
Why it breaks the prefix
    An entry can be read only once the response that writes it has begun.
How sure it can be
    Likely at most: no log says when the first response began. It is the cause where the second request
    started while the first was answered, or within 10 seconds where the log does not tell how long that
    took, and both wrote the same prefix.
Example
    Three gradings of three essays started within half a second.
What to do
    Send one request, wait for its first token, then start the others.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.evidence import duration_text
from ctxdoc.diagnosis.undocumented import both_of_a_batch


def _match(case: Case) -> Match | None:
    if not case.parts[Part.VISIBILITY] or case.gap is None:
        return None
    if both_of_a_batch(case):
        return Match(
            explanation="Both requests are items of one batch: these run side by side, and none sees what "
            "another wrote.",
            confidence=capped(case.proof, Confidence.LIKELY),
            fix="Send one item as a batch of its own, wait for its end, then submit the others.",
        )
    return Match(
        explanation=f"The request started {duration_text(case.gap)} after one with the same prefix, "
        "before that one's response can be known to have begun; both wrote it.",
        confidence=capped(case.proof, Confidence.LIKELY),
    )


CAUSE = Cause(
    id="concurrent_cold_start",
    title="parallel requests on a cold cache",
    group=Group.TIME_AND_PLACE,
    parts=frozenset({Part.VISIBILITY}),
    fix="Send one request, wait for its first token, then start the others.",
    match=_match,
)
