"""An earlier message was edited in place.

What it is
    A message that had been sent now holds something else: a tool result was cleared, cut again, or
    a placeholder was renumbered. Server-side context editing does the same to the prompt.
Why it breaks the prefix
    All that stands behind the edited message is another prompt.
Example
    "[Old tool result content cleared]" in place of the oldest result, one more on each request.
What to do
    Clear in rare, large batches, so that one rewrite buys many cheap requests; or keep it out of the
    context from the start.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Group, Match, Part
from ctxdoc.causes.content import quote
from ctxdoc.causes.history import asks_anew


def _match(case: Case) -> Match | None:
    change = case.message_change
    if change is None or change.before is None or asks_anew(case):
        return None
    place = change.place
    return Match(
        explanation=f"{place.pointer} was sent as {quote(place.before, place.byte)} and is now "
        f"{quote(place.after, place.byte)}; the history behind it is written again.",
        confidence=case.proof,
        pointer=place.pointer,
    )


CAUSE = Cause(
    id="history_rewritten",
    title="an earlier message was edited",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Edit history rarely and in large batches (when the window is nearly full), or "
    "let it stay; better, keep large results out of the context from the start.",
    general=True,
    match=_match,
)
