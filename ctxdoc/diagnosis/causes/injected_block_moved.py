"""An injected block stands at another place, or is missing on replay.

What it is
    A reminder, a skills list or a status note was sent with a message and is not there when that
    message is sent again; often it hangs on the newest message now. Or a gateway lifted it out of the
    messages into the system prompt.
Why it breaks the prefix
    The message it left is another one.
Example
    <reminder>Skills you may use: ...</reminder> before the first question, after a resume before
    the last one. A message of the role `system` becomes the last block of `system`.
What to do
    Store what was sent and replay it at the same place; add changes at the end only.
How sure it can be
    Certain where both bodies and the counters agree. In the system prompt the text has to be wrapped (a tag,
    a bracket, a heading of a block of its own) or to stand in the messages as well; other text that came or
    went there is `system_edited`.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote
from ctxdoc.diagnosis.injected_text import injected_difference, injected_system_text


def _match(case: Case) -> Match | None:
    found = injected_system_text(case) or injected_difference(case)
    if found is None:
        return None
    return Match(
        explanation=f"The text {quote(found.text)} is not at the place where it was sent: it "
        f"{found.what}.",
        confidence=case.proof,
        pointer=found.pointer,
    )


CAUSE = Cause(
    id="injected_block_moved",
    title="an injected block moved or went missing",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Store what was sent and replay it at the same place; add changes at the end only.",
    unstable=True,
    match=_match,
)
