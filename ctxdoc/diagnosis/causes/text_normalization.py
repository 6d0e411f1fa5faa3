"""A text differs by trimming, line ends or Unicode normal form only.

What it is
    The replayed text reads the same, but white space or the encoding of a letter was tidied.
Why it breaks the prefix
    One line feed less is another prompt from there on.
Example
    An answer is stored after strip(); a no-break space became a space.
What to do
    Replay exactly what was sent; tidy only what people are shown.
How sure it can be
    Certain where both bodies show that nothing but white space or Unicode form differs, and counters and
    times agree.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.spelling import find_leaf, same_normalized


def _match(case: Case) -> Match | None:
    leaf = find_leaf(case, same_normalized)
    if leaf is None:
        return None
    return Match(
        explanation=f"{leaf.pointer} differs in white space or Unicode form only.",
        confidence=case.proof,
        pointer=leaf.pointer,
    )


CAUSE = Cause(
    id="text_normalization",
    title="the same text with other white space or Unicode form",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Replay exactly the text that was sent; trim and normalise only what is shown to people.",
    unstable=True,
    holds_for_builders=True,
    match=_match,
)
