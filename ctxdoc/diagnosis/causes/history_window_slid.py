"""The oldest messages are dropped to keep a fixed window.

What it is
    The messages of the earlier request are still there, but the first ones are gone and all
    others moved up.
Why it breaks the prefix
    No message stands where it stood before, so the whole history is written again each turn.
Example
    messages[-8:] on every request.
What to do
    Drop many messages rarely, or compact once and then only append.
How sure it can be
    Certain where both bodies show that messages moved up unchanged, and counters and times agree.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.history_edits import dropped_messages


def _match(case: Case) -> Match | None:
    change = case.message_change
    dropped = dropped_messages(case)
    if change is None or not dropped:
        return None
    return Match(
        explanation=f"{dropped} messages from {change.difference.pointer.split('.content')[0]} on were "
        "dropped; every message behind them moved up, so the history is written again.",
        confidence=case.proof,
        pointer=change.difference.pointer,
    )


CAUSE = Cause(
    id="history_window_slid",
    title="the window over the history slid",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Move the window in large steps (drop many messages rarely), or compact once "
    "and then only append.",
    match=_match,
)
