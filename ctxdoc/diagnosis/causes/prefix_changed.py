"""The prefix changed, or the provider lost it; the log has no bodies to say where.

What it is
    The counters show that tokens which the earlier request had read or written were paid again, by
    the same model and, as far as lifetimes are known, in time.
Why it breaks the prefix
    Something ahead of them is not what it was. Counters cannot tell what: an edited message, a tool
    that came or went, or a miss of the provider's. It is likely where the API names what changed,
    else possible: a read that falls proves that something was lost, not why. Of models that are not
    Claude's no lifetime is known here, and their reads may waver, so that only a fall by more than
    128 tokens and by more than 5 % counts.
Example
    A session reads 18,000 tokens of 30,000 and writes the rest anew, twenty seconds after the last
    request.
What to do
    Record the requests themselves and diagnose them.
How sure it can be
    Possible where the counters alone speak: they show that tokens were paid again, and not why. Likely where
    the API itself gives a reason, or where the log notes something that fits.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    # Where there are bodies, other causes know more.
    del case
    return None


CAUSE = Cause(
    id="prefix_changed",
    title="the prefix changed, or the provider lost it",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Record the requests with their bodies, which show the place: 'ctxdoc formats' lists how.",
    unstable=True,
    match=_match,
    by_counters=True,
)
