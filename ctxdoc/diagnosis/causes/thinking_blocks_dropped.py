"""Thinking blocks of earlier turns are no longer in the prompt.

What it is
    The client sent an assistant message again without its thinking; or the model does not keep
    the thinking of earlier turns and the server dropped it when a new user text came.
Why it breaks the prefix
    The assistant message is another one from its first block on.
Example
    thinking, text, tool_use is replayed as text, tool_use.
How sure it can be
    Certain where both bodies show it and the counters agree, and where the answer lists what was dropped
    (input_transformations, applied_edits). Which models strip thinking by themselves is a rule of the
    vendor's (facts 1.7).
What to do
    Replay thinking with its signature as long as the turn is in the history. Models from Opus 4.5,
    Sonnet 4.6 and Haiku 5.5 on keep it; on older ones this loss comes with each new user text.
"""

from __future__ import annotations

from ctxdoc.diagnosis.by_server import edits_of, told_proof
from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.history_edits import thinking_dropped
from ctxdoc.prompt.diff import Change
from ctxdoc.request.response import ServerEdit

DROPS = ("clear_thinking", "thinking_dropped")
"""What the API calls its edits of thinking."""
FIX_DROPPED = (
    "Keep the model and the prefix that the thinking was made under, or leave its blocks out "
    "yourself from one turn on."
)
FIX_CLEARED = (
    "Nothing to repair for one such rewrite; `keep: all` in context_management keeps the cache."
)


def _match(case: Case) -> Match | None:
    change = case.message_change
    if change is None:
        return None
    edits = _edits_of_thinking(case)
    if case.by_server and edits and change.before is not None:
        return _told(case, change, edits)
    who = thinking_dropped(case)
    if who is None:
        return None
    return Match(
        explanation=f"The {who} left out thinking that was in the earlier prompt; the history is "
        "lost from that message on.",
        confidence=case.proof,
        pointer=change.difference.pointer,
    )


def _edits_of_thinking(case: Case) -> list[ServerEdit]:
    return [edit for edit in edits_of(case) if edit.kind in DROPS]


def _told(case: Case, change: Change, edits: list[ServerEdit]) -> Match:
    """The match where the API itself says what it took out."""
    # It clears what the request asks it to, and drops what it cannot use: only that is to be mended.
    dropped = any(edit.kind == "thinking_dropped" for edit in edits)
    return Match(
        explanation=f"The API says that it {'dropped' if dropped else 'cleared'} thinking of earlier "
        f"turns ({sum(edit.count for edit in edits):,}): the prompt is another one from "
        f"{change.difference.pointer} on. No byte of the body differs there.",
        confidence=told_proof(case),
        pointer=case.where,
        avoidable=dropped,
        fix=FIX_DROPPED if dropped else FIX_CLEARED,
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
