"""The effort changed.

What it is
    output_config.effort differs (leaving it out is the model's default).
Why it breaks the prefix
    Messages are cached under the effort; on some models tools and system too.
Example
    "medium" in one request, "low" in the next.
How sure it can be
    Certain where counters, times and both bodies agree that the messages alone were lost. Where the
    counters lost more, likely: the vendor says that it may reach tools and system prompt (facts 1.7).
What to do
    Choose the effort at the start of a session, or change it in a message where the model can.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote, setting_change
from ctxdoc.diagnosis.undocumented import reach_text, setting_proof


def _match(case: Case) -> Match | None:
    difference = setting_change(case, "$.output_config.effort")
    if difference is None:
        return None
    return Match(
        explanation=f"The effort went from {quote(difference.before, default='the default')} to "
        f"{quote(difference.after, default='the default')}; {reach_text(case)}.",
        confidence=setting_proof(case),
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="effort_changed",
    title="the effort changed",
    group=Group.SETTINGS,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Choose the effort at the start of the session, or carry the change inside the "
    "conversation where the model supports it.",
    holds_for_builders=True,
    match=_match,
)
