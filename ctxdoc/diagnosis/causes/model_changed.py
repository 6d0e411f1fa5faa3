"""The model changed.

What it is
    The two requests go to different models.
Why it breaks the prefix
    Cache entries belong to one model.
Example
    A fallback, a picker, an advisor, a router.
What to do
    Do not switch inside a session; give side work to another model with a small context of its own.
How sure it can be
    Certain where both requests hold one conversation, and counters and times agree; entries belong to one
    model (facts 1.1). Two conversations with two models are no change.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    before, after = case.before.prefix, case.after.prefix
    if before.root == after.root:
        return None
    return Match(
        explanation=f"The model went from {before.model} to {after.model}; entries belong to one "
        "model, so the whole context is paid again.",
        confidence=case.proof,
        pointer="$.model",
    )


CAUSE = Cause(
    id="model_changed",
    title="the model changed",
    group=Group.SETTINGS,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Stay on one model inside a session; give side work for another model a small "
    "context of its own, and do not switch back and forth.",
    holds_for_builders=True,
    match=_match,
)
