"""The task budget changed.

What it is
    `output_config.task_budget` differs: it came, went, or has another value.
Why it breaks the prefix
    The budget is a part of the rendered prompt; what was cached under another value cannot be read
    (task-budgets page, 2026-08-22).
Example
    The client counts the remaining tokens down and writes them into the budget before each request.
What to do
    Set the budget once for a session; the API counts it down by itself.
How sure it can be
    Likely: that a changed value loses what contains it is documented, the place at which it is rendered is
    not. It is taken to stand ahead of the messages.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.evidence import quote, setting_change


def _match(case: Case) -> Match | None:
    difference = setting_change(case, "$.output_config.task_budget")
    if difference is None:
        return None
    return Match(
        explanation=f"The task budget went from {quote(difference.before)} to {quote(difference.after)}; it is "
        "a part of the prompt, at a place that is not documented.",
        confidence=capped(case.proof, Confidence.LIKELY),
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="task_budget_changed",
    title="the task budget changed",
    group=Group.SETTINGS,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Set the budget once for a session and let the API count it down.",
    match=_match,
)
