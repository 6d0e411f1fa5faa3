"""Nothing could have been cached yet.

What it is
    The first request of a conversation: no earlier one wrote a prefix that it could read.
Why it breaks the prefix
    It does not. Zero reads on a first request are not a dead cache.
Example
    The record before belongs to another conversation, a title call of another model.
What to do
    Nothing. Compare requests of one conversation.
How sure it can be
    As sure as the log is whole: a request that is not in it may have written the prefix.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    if case.alone:
        text = "It is the first request of the log: nothing earlier is known."
        return Match(explanation=text, confidence=case.proof)
    why = (
        "The earlier request left no entry that this one could share"
        if case.related
        else "The two requests belong to different conversations"
    )
    return Match(explanation=f"{why}: there was nothing to read yet.", confidence=case.proof)


CAUSE = Cause(
    id="first_request",
    title="nothing could have been cached yet",
    group=Group.HEALTHY,
    parts=frozenset({Part.COLD}),
    fix="Nothing to do; compare requests of the same conversation.",
    avoidable=False,
    match=_match,
)
