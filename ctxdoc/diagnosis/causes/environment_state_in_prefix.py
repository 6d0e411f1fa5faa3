"""Live state of the surroundings sits inside the cached prefix.

What it is
    Git status, working folder, open files, editor selection, mode or a directory listing is
    rendered into the prompt on each request.
Why it breaks the prefix
    The first edit, click or checkout changes the text, and with it all that stands behind it.
Example
    "Status: (clean)" becomes "Status: M src/parser.txt" in the second system block.
What to do
    Take the snapshot once a session, give changes in the newest message, or offer a tool for it.
How sure it can be
    Likely at most: that the text changed stands in both bodies; that it is live state is read from its
    label.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.evidence import find_value
from ctxdoc.diagnosis.text_values import Kind


def _match(case: Case) -> Match | None:
    found = find_value(case, Kind.ENVIRONMENT)
    if found is None:
        return None
    return Match(
        explanation=f"{found.pointer} describes the surroundings, and they changed: {found.before} "
        f"became {found.after}.",
        confidence=capped(case.proof, Confidence.LIKELY),
        pointer=found.pointer,
        leading=found.leading,
    )


CAUSE = Cause(
    id="environment_state_in_prefix",
    title="live state of the surroundings inside the cached prefix",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Take it out of the prefix: give it in the newest user message, behind the last breakpoint, "
    "or let the model ask for it with a tool; at most take one snapshot per session.",
    general=True,
    unstable=True,
    holds_for_builders=True,
    match=_match,
)
