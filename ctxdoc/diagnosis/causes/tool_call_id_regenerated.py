"""The ids of tool calls are made anew for the same calls.

What it is
    Calls and results are the same, but their ids differ.
Why it breaks the prefix
    The id is part of the prompt; the history is lost from the first call on.
Example
    A translator gives random ids to calls that come without one, on every request.
What to do
    Keep the id that the API gave, or derive it from the call's position or content.
How sure it can be
    Certain where both bodies show the same calls under other ids, each old one with one new one, and
    counters and times agree.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote
from ctxdoc.diagnosis.history_edits import ids_regenerated


def _match(case: Case) -> Match | None:
    change = case.message_change
    if change is None or not ids_regenerated(case):
        return None
    difference = change.difference
    return Match(
        explanation=f"The same calls have other ids ({quote(difference.before)} became "
        f"{quote(difference.after)}); the history is lost from the first of them on.",
        confidence=case.proof,
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="tool_call_id_regenerated",
    title="tool calls got new ids",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Keep the ids that the API gave; where they must be made, derive them from the "
    "call's position or content.",
    unstable=True,
    holds_for_builders=True,
    match=_match,
)
