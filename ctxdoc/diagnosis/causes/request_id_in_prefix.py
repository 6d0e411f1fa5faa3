"""A value that is new for every request sits inside the cached prefix.

What it is
    A message id, nonce, trace id, hash or counter is written into the system prompt, a tool or an
    early message.
Why it breaks the prefix
    The cache compares the prompt byte by byte from its start; a value that never repeats makes
    each prompt a new one from that place on.
Example
    {"message_id": "682"} at the end of the system prompt; a session hash in a billing line; "turn 12",
    "tokens left: 51200".
    Inside a tool definition the finding is `tool_definition_changed`, and this one stands beside it.
What to do
    Put it into `metadata`, a header, or the newest user message behind the last breakpoint.
How sure it can be
    Certain for an id that its form or label tells, where both bodies and the counters agree. Likely for an
    id inside of a file's name, an address, code or what a user wrote, and for a number that its label says
    to count. Possible for numbers without a label that grew while nothing else changed: two requests do not
    show that they go on growing.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.evidence import find_value
from ctxdoc.diagnosis.text_values import Kind


def _match(case: Case) -> Match | None:
    found = find_value(case, Kind.ID) or find_value(case, Kind.COUNTER)
    if found is None:
        return None
    return Match(
        explanation=f"{found.pointer} holds a value that is new each time: {found.before} became "
        f"{found.after}; nothing behind it can be read again.",
        confidence=capped(case.proof, found.ceiling),
        pointer=found.pointer,
        leading=found.leading and not found.pointer.startswith("$.tools"),
    )


CAUSE = Cause(
    id="request_id_in_prefix",
    title="a value that is new on every request inside the cached prefix",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Move the value into metadata, a header, or the newest user message behind the "
    "last breakpoint.",
    unstable=True,
    every_time=True,
    holds_for_builders=True,
    match=_match,
)
