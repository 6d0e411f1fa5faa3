"""No cause to report: what changed does not matter to the cache.

What it is
    Everything that had been cached was read, and the rest is new.
Why it breaks the prefix
    It does not. Moved breakpoints, other sampling fields, a string in place of one text block,
    white space and escapes of the body are no part of the prompt.
Example
    The breakpoint left the old last message and sits on the new one.
What to do
    Nothing.
How sure it can be
    As sure as the counters are: where they are reported, everything that was cached was read.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    if case.is_loss:
        return None
    return Match(
        explanation="Everything that had been cached and could be shared was read; the rest is new.",
        confidence=case.proof,
    )


CAUSE = Cause(
    id="none",
    title="nothing wrong",
    group=Group.HEALTHY,
    parts=frozenset({Part.NOTHING}),
    fix="Nothing to do.",
    avoidable=False,
    match=_match,
)
