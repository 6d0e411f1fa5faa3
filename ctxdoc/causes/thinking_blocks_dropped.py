"""Thinking blocks of earlier turns are no longer in the prompt.

What it is
    The client sent an assistant message again without its thinking; or the model does not keep
    the thinking of earlier turns and the server dropped it when a new user text came.
Why it breaks the prefix
    The assistant message is another one from its first block on.
Example
    thinking, text, tool_use is replayed as text, tool_use.
What to do
    Replay thinking with its signature as long as the turn is in the history. Models from Opus 4.5,
    Sonnet 4.6 and Haiku 5.5 on keep it; on older ones this loss comes with each new user text.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Group, Match, Part
from ctxdoc.causes.history import thinking_dropped


def _match(case: Case) -> Match | None:
    change = case.message_change
    who = thinking_dropped(case)
    if change is None or who is None:
        return None
    return Match(
        explanation=f"The {who} left out thinking that was in the earlier prompt; the history is "
        "lost from that message on.",
        confidence=case.proof,
        pointer=change.place.pointer,
    )


CAUSE = Cause(
    id="thinking_blocks_dropped",
    title="thinking of earlier turns was dropped",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Replay thinking blocks with their signatures for as long as the turn is in the "
    "history; on models that do not keep them, expect this once per user turn.",
    match=_match,
)
