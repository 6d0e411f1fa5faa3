"""One response is logged in several records.

What it is
    Both records carry the same response id: one line per content block, or a resumed file.
Why it breaks the prefix
    It does not; whoever sums the records bills the response twice.
Example
    Two records with msg_same0001 and the same usage.
What to do
    Group by response id and count each once, keeping the record with the largest output count.
How sure it can be
    Certain: both records carry one response id. An id that a recorder blotted out names no response.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    if not case.same_response:
        return None
    return Match(
        explanation=f"Both records carry the response id {case.after.request.id}: it is one response, "
        "and summing them bills it twice.",
        confidence=Confidence.CERTAIN,
    )


CAUSE = Cause(
    id="usage_duplicate_records",
    title="one response in several records",
    group=Group.ACCOUNTING,
    parts=frozenset({Part.RECORD}),
    fix="Group records by response id and count each id once, keeping the one with the "
    "largest output count.",
    avoidable=False,
    match=_match,
)
