"""Another model answered than the one that was asked.

What it is
    The requests ask for one model, and the answers say that two answered: a fallback, a router, an alias
    that moved.
Why it breaks the prefix
    Cache entries belong to one model.
How sure it can be
    Likely: the answers' own word, beside counters that read less than the rules allow. Where the counters
    show the prefix as read (the credit of a server-side fallback), nothing was lost and nothing is said.
Example
    claude-opus-5-5 was asked twice; the second answer says claude-opus-4-8 and read nothing.
What to do
    Pin the model at the router, or accept one rewrite for each change.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.providers import find_model


def _match(case: Case) -> Match | None:
    answers = case.before.request.response, case.after.request.response
    if not case.parts[Part.PROVIDER] or answers[0] is None or answers[1] is None:
        return None
    models = [answer.model for answer in answers if answer is not None]
    if not all(models) or find_model(models[0]).id == find_model(models[1]).id:
        return None
    return Match(
        explanation=f"Both requests ask for {case.after.prefix.model or 'one model'}, but {models[0]} answered "
        f"the first and {models[1]} the second; entries belong to one model.",
        confidence=capped(case.proof, Confidence.LIKELY),
        pointer="$.model",
    )


CAUSE = Cause(
    id="other_model_answered",
    title="another model answered",
    group=Group.TIME_AND_PLACE,
    parts=frozenset({Part.PROVIDER}),
    fix="Pin the model at the router or gateway, or accept one rewrite for each change.",
    match=_match,
)
