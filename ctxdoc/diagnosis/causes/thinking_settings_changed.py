"""Thinking was switched, or its budget changed.

What it is
    The `thinking` settings of the two requests differ.
Why it breaks the prefix
    Messages are cached under the thinking settings. On models that render them ahead of the tools
    the loss is total; which ones do is not documented.
Example
    budget_tokens 4000, then 8000.
How sure it can be
    Certain where counters, times and both bodies agree that the messages alone were lost. Where the
    counters lost more, likely: the vendor says that it may reach tools and system prompt (facts 1.7).
What to do
    Keep one thinking setting per conversation.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote, setting_change
from ctxdoc.diagnosis.undocumented import reach_text, setting_proof


def _match(case: Case) -> Match | None:
    difference = setting_change(case, "$.thinking")
    if difference is None:
        return None
    return Match(
        explanation=f"{difference.pointer} went from {quote(difference.before)} to {quote(difference.after)}; "
        f"{reach_text(case)}.",
        confidence=setting_proof(case),
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="thinking_settings_changed",
    title="the thinking settings changed",
    group=Group.SETTINGS,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Keep one thinking setting per conversation.",
    holds_for_builders=True,
    match=_match,
)
