"""The history was replaced by a summary.

What it is
    Many messages gave way to a few, of which the first is new.
Why it breaks the prefix
    The messages are another prompt by design; tools and system stay readable where a breakpoint
    stands behind them.
Example
    "Summary of the work so far: ..." in place of thirteen messages.
What to do
    Nothing for one such rewrite. Compact rarely, and keep tools and system equal to the byte.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Confidence, Group, Match, Part, capped
from ctxdoc.causes.history import looks_like_summary, message_count, replaced_by_few


def _match(case: Case) -> Match | None:
    change = case.message_change
    if change is None or not replaced_by_few(case):
        return None
    said = looks_like_summary(case)
    before, after = message_count(case.before), message_count(case.after)
    return Match(
        explanation=f"{before} messages became {after}"
        + (", the first new one a summary" if said else "")
        + ": an expected rewrite of the history.",
        confidence=capped(case.proof, Confidence.CERTAIN if said else Confidence.LIKELY),
        pointer=change.place.pointer,
    )


CAUSE = Cause(
    id="history_compacted",
    title="the history was replaced by a summary",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Nothing to repair for one such rewrite; compact rarely, and check that tools "
    "and system stay byte-identical across it.",
    avoidable=False,
    match=_match,
)
