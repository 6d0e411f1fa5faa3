"""tool_choice changed.

What it is
    tool_choice, or disable_parallel_tool_use in it, differs (leaving it out is auto).
Why it breaks the prefix
    Messages are cached under it; tools and system stay readable.
Example
    The last step forces one tool for the final answer.
What to do
    Keep tool_choice at auto and ask for the tool in the prompt, or accept the one rewrite.
How sure it can be
    Certain where both bodies show it, and counters and times agree: what is lost by it is documented
    (facts 1.7).
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote, setting_change


def _match(case: Case) -> Match | None:
    difference = setting_change(case, "$.tool_choice")
    if difference is None:
        return None
    return Match(
        explanation=f"{difference.pointer} went from {quote(difference.before, default='auto')} to "
        f"{quote(difference.after, default='auto')}; tools and system stay cached, the messages do not.",
        confidence=case.proof,
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="tool_choice_changed",
    title="tool_choice changed",
    group=Group.SETTINGS,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Keep tool_choice as it is and ask for the final tool in the prompt, or accept "
    "the one-time rewrite.",
    holds_for_builders=True,
    match=_match,
)
