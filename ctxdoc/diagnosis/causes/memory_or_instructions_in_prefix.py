"""Recalled memories, a skills list or an instruction file changed inside the cached prefix.

What it is
    Notes found for the newest question, a list of skills, or a file such as AGENTS.md are read
    again and written into the system prompt or the first message.
Why it breaks the prefix
    Another question finds other notes; the text ahead of the conversation changes with it.
Example
    "# Recalled notes" at the head of the system prompt, with other notes on each turn.
What to do
    Fetch memories once a session, or append them to the newest user message behind the last
    breakpoint; read instruction files at the start only.
How sure it can be
    Likely at most: that the text changed stands in both bodies; that it was recalled or read again is read
    from its label.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.evidence import find_value
from ctxdoc.diagnosis.text_values import Kind


def _match(case: Case) -> Match | None:
    found = find_value(case, Kind.MEMORY)
    if found is None:
        return None
    return Match(
        explanation=f"Recalled or re-read text in {found.pointer} changed: {found.before} became "
        f"{found.after}.",
        confidence=capped(case.proof, Confidence.LIKELY),
        pointer=found.pointer,
        leading=found.leading,
    )


CAUSE = Cause(
    id="memory_or_instructions_in_prefix",
    title="recalled or re-read text inside the cached prefix",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Fetch memories and instructions once per session, or append them to the newest "
    "user message behind the last breakpoint.",
    general=True,
    unstable=True,
    match=_match,
)
