"""The breakpoint sits on or behind a part that differs every time.

What it is
    The marked block holds both what stays and what changes, such as instructions and a row of
    data; each request writes an entry that no other can read.
Why it breaks the prefix
    The entry covers the whole block. The write costs more than plain input and is never read.
Example
    One user message with instructions and the row, marked as a whole.
What to do
    Split the block at the boundary: what stays first, with the breakpoint; what changes behind it.
How sure it can be
    Certain where both requests wrote the entry and the counters of both agree. It is never said where an
    entry was read by any request: then it is of use to somebody.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.history_edits import asks_anew
from ctxdoc.request.request import Section


def _match(case: Case) -> Match | None:
    if case.unread or (case.parts[Part.DIVERGENCE] and _in_system(case)):
        return Match(
            explanation=f"{case.where} carries the first breakpoint and differs from call to call; each one "
            f"writes an entry that nothing read, although {case.identical:,} tokens ahead of it are the same.",
            confidence=case.proof,
            pointer=case.where,
        )
    if not case.parts[Part.DIVERGENCE] or not _is_next_question(case) or not _marks_change(case):
        return None
    return Match(
        explanation=f"{case.where} carries the first breakpoint and differs on every request; each "
        "one writes an entry that nothing can read.",
        confidence=case.proof,
        pointer=case.where,
    )


def _is_next_question(case: Case) -> bool:
    """Whether the first difference of all is another question behind the same history."""
    change = case.message_change
    if change is None or (
        change is not case.divergence and case.where != change.difference.pointer
    ):
        return False
    return asks_anew(case)


def _marks_change(case: Case) -> bool:
    """Whether the first breakpoint stands on the first difference or behind it."""
    marks, change = case.after.prefix.breakpoints, case.divergence
    return change is not None and bool(marks) and marks[0] >= change.index


def _in_system(case: Case) -> bool:
    """Whether it is a block of the system prompt, in calls that do not go on from each other."""
    change, prefix = case.divergence, case.after.prefix
    if change is None or change.difference.section is not Section.SYSTEM or case.was_read:
        return False
    if len(prefix.as_sent.row) > len(case.before.prefix.as_sent.row):
        return False
    return _marks_change(case) and case.identical >= prefix.rule.minimum


CAUSE = Cause(
    id="breakpoint_on_volatile_block",
    title="a breakpoint on a part that differs every time",
    group=Group.MARKERS,
    parts=frozenset({Part.DIVERGENCE, Part.WASTE}),
    fix="Split the block at the boundary: what stays first, with the breakpoint, what "
    "changes in a block behind it.",
    unstable=True,
    match=_match,
)
