"""A clock, date or other time text sits inside the cached prefix.

What it is
    The system prompt, a tool or a reminder in an early message holds the current time, and the
    time went on between the two requests.
Why it breaks the prefix
    The cache compares the prompt byte by byte from its start. Everything behind the time, the
    whole conversation included, is another prompt each time.
Example
    "Current time is 15:09:20. You are ..." at the head of the system prompt.
What to do
    Give the time in the newest user message, behind the last breakpoint, or let a tool tell it. If
    the day is enough, write only the day.
How sure it can be
    Certain where the form or a label with such a form tells the time and both bodies and the counters agree.
    Likely where the label alone tells it ("Current time: half past nine"), for a bare day, and inside of code,
    a table, an address or what a user wrote. A date in a file's name is no clock.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.evidence import find_value
from ctxdoc.diagnosis.text_values import Kind


def _match(case: Case) -> Match | None:
    found = find_value(case, Kind.TIME)
    if found is None:
        return None
    return Match(
        explanation=f"A time in {found.pointer} changed from {found.before} to {found.after}; "
        "everything behind it is another prompt on every request.",
        confidence=capped(case.proof, found.ceiling),
        pointer=found.pointer,
        leading=found.leading,
    )


CAUSE = Cause(
    id="timestamp_in_prefix",
    title="a time inside the cached prefix",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Take the time out of the prefix: give it in the newest user message, behind "
    "the last breakpoint, or round it to the day if the day is enough.",
    unstable=True,
    is_clock=True,
    every_time=True,
    holds_for_builders=True,
    match=_match,
)
