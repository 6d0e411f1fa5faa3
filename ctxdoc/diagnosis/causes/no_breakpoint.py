"""No breakpoint reached the API, so nothing is cached at all.

What it is
    The request carries no cache_control: neither on a block nor at the top level.
Why it breaks the prefix
    An entry is written only at a breakpoint. Without one the whole prompt is paid in full each time.
Example
    A framework was given another provider's marker and dropped it.
What to do
    Mark the last system block and the newest message, or set cache_control at the top level of the
    body; check the body that leaves the process.
How sure it can be
    Certain where both counters are 0. Where the log has no counters, a breakpoint may have been added behind
    the recorder: likely.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    prefix = case.after.prefix
    if prefix.breakpoints or case.counters.cache_write or case.counters.cache_read:
        return None
    if case.after.sizes.total < prefix.rule.minimum:
        return None
    return Match(
        explanation="The request carries no cache_control, so nothing is written and the "
        f"{case.after.sizes.total:,} tokens are paid in full each time.",
        confidence=case.proof,
    )


CAUSE = Cause(
    id="no_breakpoint",
    title="no breakpoint reached the API",
    group=Group.MARKERS,
    parts=frozenset({Part.NEVER_CACHED, Part.REACH}),
    fix="Put cache_control on the last system block and on the newest message (or at "
    "the top level of the body), and check the body that leaves the process.",
    match=_match,
)
