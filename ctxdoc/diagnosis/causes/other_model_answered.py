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
from ctxdoc.replay.measure import MeasuredRequest


def _match(case: Case) -> Match | None:
    one, two = _model_of(case.before), _model_of(case.after)
    if not case.parts[Part.PROVIDER] or not one or not two:
        return None
    # An alias and its dated name are one model.
    if find_model(one).id == find_model(two).id:
        return None
    return Match(
        explanation=f"Both requests ask for {case.after.prefix.model or 'one model'}, but {one} answered "
        f"the first and {two} the second; entries belong to one model.",
        confidence=capped(case.proof, Confidence.LIKELY),
        pointer="$.model",
    )


def _model_of(exchange: MeasuredRequest) -> str:
    """The model that an answer names; empty where there is none."""
    response = exchange.request.response
    return response.model if response is not None else ""


CAUSE = Cause(
    id="other_model_answered",
    title="another model answered",
    group=Group.TIME_AND_PLACE,
    parts=frozenset({Part.PROVIDER}),
    fix="Pin the model at the router or gateway, or accept one rewrite for each change.",
    match=_match,
)
