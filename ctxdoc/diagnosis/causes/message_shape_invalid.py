"""The API refuses the conversation for its shape.

What it is
    A tool_result stands without the tool_use that it answers in the message before it, as when a
    conversation begins with one or a trim cut between both; or a tool_use has no tool_result behind it.
Why it breaks the prefix
    The API answers 400: nothing is read, nothing is written.
Example
    messages[-8:] begins with the result of a call that was dropped.
What to do
    Cut a history between turns, and keep each call with its result.
How sure it can be
    Certain where the log holds the API's refusal. Where it holds no answer at all, likely: the rule is the
    vendor's. Where it holds an answer, the request was accepted and nothing is said.
"""

from __future__ import annotations

from ctxdoc.cache.breakpoint_rules import RefusalCode
from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    refusal = case.refusal
    if refusal is None or refusal.code is not RefusalCode.MESSAGE_SHAPE:
        return None
    return Match(
        explanation=f"{refusal.pointer} makes the API refuse the request: {refusal.text}.",
        confidence=case.proof,
        pointer=refusal.pointer,
    )


CAUSE = Cause(
    id="message_shape_invalid",
    title="the API refuses the conversation for its shape",
    group=Group.MARKERS,
    parts=frozenset({Part.REFUSAL}),
    fix="Cut the history between turns, never between a tool_use and its tool_result, and begin with a message "
    "of the user's own.",
    unstable=True,
    match=_match,
)
