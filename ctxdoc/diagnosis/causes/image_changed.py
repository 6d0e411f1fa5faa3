"""An image in the history came, went or was encoded again.

What it is
    An image was removed, replaced by a text, or has other bytes; or the first image of the
    conversation came.
Why it breaks the prefix
    The place of the image is another prompt; and the first image to come or the last to go
    changes what all messages are cached under.
Example
    "[image data removed - already processed]" in place of the screenshot.
What to do
    Keep images for some turns and remove old ones rarely and together; send them smaller instead.
How sure it can be
    Certain where both bodies show it, and counters and times agree. That the first image to come moves all
    messages is the vendor's rule (facts 1.7).
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import image_difference


def _match(case: Case) -> Match | None:
    found = image_difference(case)
    if found is None:
        return None
    return Match(
        explanation=f"{found.what} at {found.pointer}; messages are another prompt with it.",
        confidence=case.proof,
        pointer=found.pointer,
    )


CAUSE = Cause(
    id="image_changed",
    title="an image came, went or changed",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Keep images and remove old ones rarely and together, at a point where the "
    "history is rewritten anyway; sending them smaller costs no rewrite.",
    holds_for_builders=True,
    match=_match,
)
