"""A side call builds another prefix and cannot share the parent's cache.

What it is
    The request carries the parent's conversation, but other tools or another system prompt: a
    summary, title or sub-agent call.
Why it breaks the prefix
    Tools and system come first, so none of the conversation behind them can be read, at the moment
    when it is largest.
Example
    The compaction call is sent without the tool definitions.
What to do
    Send the side call with the same model, tools and system, and append its instruction as the last
    user message.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Group, Match, Part
from ctxdoc.causes.content import forked


def _match(case: Case) -> Match | None:
    what = forked(case)
    if what is None:
        return None
    return Match(
        explanation=f"The call carries the same conversation {what}; tools and system are rendered "
        "first, so it can read nothing of the parent's cache.",
        confidence=case.proof,
        pointer=case.where,
    )


CAUSE = Cause(
    id="fork_prefix_mismatch",
    title="a side call with another prefix",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Send the side call with the same model, tools and system, and append the "
    "instruction as the last user message.",
    match=_match,
)
