"""Text or tools of one user stand ahead of a long text that all users share.

What it is
    The prompts of two users, or the first requests of two conversations, differ in a short span ahead of at
    least the model's minimum of equal text: a name, an id, a plan, a tool of one's own.
Why it breaks the prefix
    The cache compares from the start of the prompt, so nobody can read what another one wrote, although it
    is the same text. Inside one conversation nothing is lost: it is waste, and no miss.
How sure it can be
    Likely where the requests name different users in metadata.user_id, possible where only two first
    requests differ. What sharing would save assumes that they come within the lifetime of an entry and at
    one place.
Example
    "You help Ann (id 1000). ..." ahead of 2,000 tokens of rules that every user gets.
What to do
    Put what all share first and mark it; give what is each user's own behind it, in a block or message of
    its own.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote
from ctxdoc.diagnosis.sharing import has_other_user


def _match(case: Case) -> Match | None:
    change = case.divergence
    if not case.sharable or change is None:
        return None
    difference = change.difference
    before, after = (quote(each, difference.byte) for each in (difference.before, difference.after))
    return Match(
        explanation=f"{difference.pointer} differs between two conversations ({before}, {after}) ahead of "
        f"about {case.sharable:,} tokens that are the same: each pays for them "
        "as if nobody had sent them before.",
        confidence=Confidence.LIKELY if has_other_user(case) else Confidence.POSSIBLE,
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="per_user_prefix",
    title="what is one user's own stands ahead of what all share",
    group=Group.CONTENT,
    parts=frozenset({Part.WASTE}),
    fix="Put what all users share first, with a breakpoint behind it, and what is each one's own in a block "
    "behind that.",
    match=_match,
)
