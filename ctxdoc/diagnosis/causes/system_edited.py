"""The system prompt was edited in the middle of a session.

What it is
    Both requests hold the same conversation, and a part of the system prompt was reworded, added or taken
    out. No other cause knows what the text is.
Why it breaks the prefix
    The system prompt is rendered ahead of the messages: the whole conversation behind the edited place is
    written again.
Example
    "Be brief from now on." is added at the end of the system prompt before the third question.
What to do
    Fix the system prompt at the start of a session. Give new instructions in the newest message, or in a
    message of the role `system` where the model takes one.
How sure it can be
    Certain where both bodies and the counters agree. Where less than half of the prompt stays it is another
    agent's, which this cause does not claim.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import edited_system


def _match(case: Case) -> Match | None:
    found = edited_system(case)
    if found is None:
        return None
    return Match(
        explanation=f"The system prompt was edited in the middle of the conversation: {found.pointer} "
        f"{found.what}.",
        confidence=case.proof,
        pointer=found.pointer,
    )


CAUSE = Cause(
    id="system_edited",
    title="the system prompt was edited",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Fix the system prompt at the start of a session, and give new instructions in the newest "
    "message behind the last breakpoint.",
    general=True,
    unstable=True,
    match=_match,
)
