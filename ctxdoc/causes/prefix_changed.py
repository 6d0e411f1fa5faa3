"""The prefix changed; the log has no bodies to say where.

What it is
    A transcript shows that tokens which had been read or written were written again, by the same model
    and within their lifetime.
Why it breaks the prefix
    Something ahead of them is not what it was. Counters cannot tell what: an edited message, a tool
    that came or went, or a miss of the provider's.
Example
    A session reads 18,000 tokens of 30,000 and writes the rest anew, twenty seconds after the last
    request.
What to do
    Record the requests themselves and diagnose them.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Group, Match, Part


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
