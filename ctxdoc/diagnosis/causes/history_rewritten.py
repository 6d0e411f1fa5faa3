"""An earlier message was edited in place.

What it is
    A message that had been sent now holds something else: a tool result was cleared, cut again, or
    a placeholder was renumbered. Server-side context editing does the same to the prompt.
Why it breaks the prefix
    All that stands behind the edited message is another prompt.
How sure it can be
    Certain where both bodies show the edit and counters and times agree, and where the answer lists what
    the API cleared (applied_edits): its own word. Clearing that the request asked for is expected, and no
    broken prefix.
Example
    "[Old tool result content cleared]" in place of the oldest result, one more on each request.
What to do
    Clear in rare, large batches, so that one rewrite buys many cheap requests; or keep it out of the
    context from the start.
"""

from __future__ import annotations

from ctxdoc.diagnosis.by_server import edits_of, told_proof
from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote
from ctxdoc.diagnosis.history_edits import asks_anew
from ctxdoc.prompt.diff import Change

CLEARED = ("tool_use", "tool_result")
"""Kinds of blocks that clearing of tool uses changes."""


def _match(case: Case) -> Match | None:
    change = case.message_change
    if change is None or change.before is None:
        return None
    if case.by_server:
        return _cleared(case, change) if change.before.kind in CLEARED else None
    if asks_anew(case):
        return None
    difference = change.difference
    return Match(
        explanation=f"{difference.pointer} was sent as {quote(difference.before, difference.byte)} and is now "
        f"{quote(difference.after, difference.byte)}; the history behind it is written again.",
        confidence=case.proof,
        pointer=difference.pointer,
    )


def _cleared(case: Case, change: Change) -> Match | None:
    """The match where the API itself says that it cleared results of tools."""
    edits = [each for each in edits_of(case) if each.kind == "clear_tool_uses"]
    if not edits:
        return None
    count, tokens = sum(e.count for e in edits), sum(e.tokens for e in edits)
    return Match(
        explanation=f"The API cleared the results of {count:,} tool uses ({tokens:,} tokens by its own "
        f"count), as the request asked it to: the prompt is another one from {change.difference.pointer} on. "
        "No byte of the body differs there.",
        confidence=told_proof(case),
        pointer=case.where,
        # The request asked for it: a rewrite that was meant is nothing to repair.
        avoidable=False,
        fix="Nothing to repair for one such rewrite; let the API clear seldom and much: raise trigger and "
        "clear_at_least in context_management.",
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
