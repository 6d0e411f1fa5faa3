"""A setting changed of which nobody says whether it is a part of the prompt.

What it is
    The prompts are equal and in time, tokens were lost all the same, and something beside the prompt
    differs: the place of inference, the service tier or a batch, context_management, the container,
    fallbacks, the API version, or a member of the body that ctxdoc does not know.
Why it breaks the prefix
    It is not documented that it does. Other hardware may have other entries, and a setting may be
    rendered.
How sure it can be
    Possible: it is what differs, and no page says more.
Example
    inference_geo "us" in one request, left out in the next, which read nothing.
What to do
    Keep it as it was for a conversation, and see whether the loss is gone; if it stays, report both request
    ids.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.undocumented import undocumented_changes


def _match(case: Case) -> Match | None:
    changed = undocumented_changes(case)
    if not case.parts[Part.PROVIDER] or not changed:
        return None
    return Match(
        explanation=f"By the rules {case.outcome.usage.cache_read:,} tokens could be read, and "
        f"{case.counters.cache_read:,} were. What differs beside the prompt: {', '.join(changed)}; nobody "
        "documents what that does to the cache.",
        confidence=Confidence.POSSIBLE,
    )


CAUSE = Cause(
    id="undocumented_setting_changed",
    title="a setting changed whose effect on the cache is not documented",
    group=Group.SETTINGS,
    parts=frozenset({Part.PROVIDER}),
    fix="Keep it as it was for a whole conversation and see whether the loss is gone; if it stays, report both "
    "request ids.",
    match=_match,
)
