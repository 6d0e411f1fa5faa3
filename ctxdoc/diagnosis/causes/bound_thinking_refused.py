"""The API refused thinking that is bound to a prompt which was changed.

What it is
    A thinking block goes back with a request whose tools, system prompt or earlier messages are no longer
    what they were when the block was made (preserved-thinking page, 2026-10-08): on Fable 5.1 and 5.2, Opus
    5.5, Sonnet 5.5 and Haiku 5.5 the request is refused with 400 instead of being merely dearer.
Why it breaks the prefix
    The same change would have lost the cache from its place on; here nothing is read at all.
Example
    The instructions are made anew for each run and list another ticket; the thinking of the run before
    stands in the history.
What to do
    Keep tools, system prompt and earlier messages of a session as they were, and append what is new. Until
    then leave the thinking out, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".
    Breakpoints, effort, `max_tokens`, `output_config`, `tool_choice` and `metadata` are not checked, and the
    API's own clearing and compaction never trip it.
How sure it can be
    Certain: the API says it. Accounts made before 2026-08-31 are not checked by default (but for Fable 5.2,
    as is reported), so that the same requests of another account show a lost prefix instead. The place is
    that of the first difference between the two requests, and unknown where the log has no earlier one.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote
from ctxdoc.diagnosis.history_edits import refuses_thinking


def _match(case: Case) -> Match | None:
    error = case.after.request.refused
    if not refuses_thinking(error):
        return None
    change = None if case.alone else case.divergence
    if change is None:
        where = " The log does not show what changed."
    else:
        difference = change.difference
        byte = f", byte {difference.byte:,}" if difference.byte is not None else ""
        before, after = (
            quote(difference.before, difference.byte),
            quote(difference.after, difference.byte),
        )
        where = f" The first difference is {difference.pointer}{byte}: {before} became {after}."
    return Match(
        explanation=f"The API answered {quote(error, size=len(error))}.{where}",
        confidence=Confidence.CERTAIN,
        pointer=case.where,
    )


CAUSE = Cause(
    id="bound_thinking_refused",
    title="thinking is bound to a prompt that was changed",
    group=Group.CONTENT,
    parts=frozenset({Part.REFUSAL}),
    fix="Keep tools, system prompt and earlier messages as they were and append what is new; until then set "
    "thinking.block_binding.prefix_mismatch_behavior to drop_block, or leave the thinking out.",
    unstable=True,
    match=_match,
)
