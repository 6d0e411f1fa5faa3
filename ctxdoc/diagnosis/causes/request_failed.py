"""The request failed, and not for its breakpoints.

What it is
    The API refused the request (400, 413), was overloaded (529) or limited the rate (429).
Why it breaks the prefix
    It does not. A failed request reads and writes nothing.
Example
    A prompt longer than the model's window; too many requests a minute.
What to do
    See the API's message, and compare requests that were answered.
How sure it can be
    Certain: the log holds the API's answer.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote


def _match(case: Case) -> Match | None:
    error = case.after.request.refused
    if not error or case.refusal is not None:
        return None
    return Match(
        explanation=f"The API answered {quote(error, size=len(error))}; a failed request reads and writes "
        "nothing.",
        confidence=Confidence.CERTAIN,
    )


CAUSE = Cause(
    id="request_failed",
    title="the request failed for another reason",
    group=Group.HEALTHY,
    parts=frozenset({Part.REFUSAL}),
    fix="See the API's message, and compare requests that were answered.",
    avoidable=False,
    match=_match,
)
