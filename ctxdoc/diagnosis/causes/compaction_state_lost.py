"""A compaction block was not given back whole: the state in it is lost.

What it is
    The API put a summary of its own at the start of an answer. The next request leaves the block out, gives
    back its text alone, or another one.
Why it breaks the prefix
    The block is what tells the API to leave out everything ahead of it. Without it the whole history is the
    prompt again: it is paid again, and compacted again.
How sure it can be
    Certain where the answer with the block is in the log and the next body is: both are compared byte by
    byte.
Example
    A framework keeps only blocks of type text of an answer.
What to do
    Append the answer's content to the messages as it came, all blocks and all their members.
"""

from __future__ import annotations

from ctxdoc.diagnosis.by_server import lost_compaction
from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    pointer = lost_compaction(case)
    if pointer is None:
        return None
    return Match(
        explanation=f"The answer before begins with a compaction block, and {pointer} does not give it back "
        "as it came: the API sees the whole history again.",
        confidence=Confidence.CERTAIN,
        pointer=case.where if case.parts[Part.DIVERGENCE] else pointer,
    )


CAUSE = Cause(
    id="compaction_state_lost",
    title="a compaction block was not given back",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE, Part.WASTE}),
    fix="Append the content of an answer to the messages as it came, with all blocks and all their members.",
    match=_match,
)
