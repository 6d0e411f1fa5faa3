"""A side call builds another prefix and cannot share the parent's cache.

What it is
    The request carries the parent's conversation, or quotes it in one message, but with other tools or
    another system prompt: a summary, title or sub-agent call.
Why it breaks the prefix
    Tools and system come first, so none of the conversation behind them can be read, at the moment
    when it is largest.
Example
    The compaction call is sent without the tool definitions. A title call has the whole conversation in
    one user message.
What to do
    Send the side call with the same model, tools and system, and append its instruction as the last
    user message.
How sure it can be
    Certain where the messages are the parent's and both bodies and the counters agree. Likely where they
    are quoted in one message (three whole ones, or 500 characters in a row), or where the call shares none
    of them.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.evidence import forked
from ctxdoc.diagnosis.history_edits import is_continued
from ctxdoc.diagnosis.quotes import quoted_history


def _match(case: Case) -> Match | None:
    what = forked(case)
    if what is None:
        return None
    whole = is_continued(case)
    how = "carries the same conversation" if whole else _how_quoted(case)
    return Match(
        explanation=f"The call {how} {what}; tools and system are rendered first, so it can read "
        "nothing of the parent's cache.",
        confidence=capped(case.proof, Confidence.CERTAIN if whole else Confidence.LIKELY),
        pointer=case.where,
    )


def _how_quoted(case: Case) -> str:
    messages = quoted_history(case)
    if messages is None:
        return "is sent"
    much = f"{messages} of its messages" if messages else "a long part of it"
    return f"quotes the conversation in one message ({much})"


CAUSE = Cause(
    id="fork_prefix_mismatch",
    title="a side call with another prefix",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Send the side call with the same model, tools and system, and append the "
    "instruction as the last user message.",
    is_fork=True,
    match=_match,
)
