"""The output format or its schema changed.

What it is
    output_config.format (or output_format) differs.
Why it breaks the prefix
    The schema is part of what the messages are cached under (structured-outputs page, 2026-08-22).
Example
    Only the last request of a session asks for JSON.
How sure it can be
    Certain where counters, times and both bodies agree that the messages alone were lost. Where the
    counters lost more, likely: the vendor says that it may reach tools and system prompt (facts 1.7).
What to do
    Keep one format per conversation.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import setting_change
from ctxdoc.diagnosis.undocumented import reach_text, setting_proof


def _match(case: Case) -> Match | None:
    difference = setting_change(case, "$.output_config.format", "$.output_format")
    if difference is None:
        return None
    return Match(
        explanation=f"{difference.pointer} differs; {reach_text(case)}.",
        confidence=setting_proof(case),
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="output_format_changed",
    title="the output format changed",
    group=Group.SETTINGS,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Keep one output format per conversation; ask for the final shape in a message "
    "or with a tool.",
    holds_for_builders=True,
    match=_match,
)
