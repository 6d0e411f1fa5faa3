"""Thinking was switched, or its budget changed.

What it is
    The `thinking` settings of the two requests differ.
Why it breaks the prefix
    Messages are cached under the thinking settings. On models that render them ahead of the tools
    the loss is total; which ones do is not documented.
Example
    budget_tokens 4000, then 8000.
What to do
    Keep one thinking setting per conversation.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Group, Match, Part
from ctxdoc.causes.content import quote, setting_change


def _match(case: Case) -> Match | None:
    place = setting_change(case, "$.thinking")
    if place is None:
        return None
    return Match(
        explanation=f"{place.pointer} went from {quote(place.before)} to {quote(place.after)}; the "
        "messages are cached under the thinking settings.",
        confidence=case.proof,
        pointer=place.pointer,
    )


CAUSE = Cause(
    id="thinking_settings_changed",
    title="the thinking settings changed",
    group=Group.SETTINGS,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Keep one thinking setting per conversation.",
    match=_match,
)
