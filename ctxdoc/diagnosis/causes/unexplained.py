"""The prefix changed, and no other cause knows why.

What it is
    The two prompts differ before the end of what had been cached, and no rule recognises the
    difference.
Why it breaks the prefix
    The cache compares the prompt byte by byte from its start.
Example
    Most of the system prompt is another text, and the conversation is the same.
What to do
    Look at the first differing byte and find out what writes that place. If it has to differ, put it behind
    the last breakpoint, into the newest message.
How sure it can be
    The place is certain where both bodies and the counters agree. Nothing is said of why.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote


def _match(case: Case) -> Match | None:
    change = case.divergence
    if case.part is Part.NEVER_CACHED:
        text = "The body has a breakpoint and is long enough, yet nothing was written or read: the "
        text += "breakpoint did not reach the API, or the counters are not what it said."
    elif change is None:
        text = "The counters do not fit what the requests show, and no rule explains it."
    else:
        difference = change.difference
        before, after = (
            quote(difference.before, difference.byte),
            quote(difference.after, difference.byte),
        )
        text = f"{difference.pointer} went from {before} to {after}."
    return Match(explanation=text, confidence=case.proof, pointer=case.where)


CAUSE = Cause(
    id="unexplained",
    title="the prefix changed, and no rule knows why",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE, Part.NEVER_CACHED}),
    fix="Look at the first differing byte above and find out what in your code writes that place. If it "
    "has to differ, put it behind the last breakpoint, into the newest message.",
    general=True,
    fallback=True,
    unstable=True,
    rests_on_one_pass=True,
    match=_match,
)
