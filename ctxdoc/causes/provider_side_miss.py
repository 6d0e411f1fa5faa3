"""Same prefix, same place, in time, breakpoint in reach, and still a miss.

What it is
    All rules say that the entry could be read, and the counters say that it was not.
Why it breaks the prefix
    The request does not explain it: an early eviction, a busy host, or something that the log does not show.
Example
    Forty seconds later only tools and system are read; the next request is fine again.
What to do
    Nothing in the request. Note both request ids, and report it if it repeats.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Confidence, Group, Match, Part
from ctxdoc.causes.content import unseen


def _match(case: Case) -> Match | None:
    if not case.parts[Part.PROVIDER]:
        return None
    hidden = unseen(case)
    return Match(
        explanation=f"By the rules {case.outcome.usage.cache_read:,} tokens could be read, and "
        f"{case.counters.cache_read:,} were."
        + (
            f" The log does not show {hidden}."
            if hidden
            else " Nothing in the two requests explains it."
        ),
        confidence=Confidence.POSSIBLE if hidden else Confidence.LIKELY,
    )


CAUSE = Cause(
    id="provider_side_miss",
    title="a miss that the request does not explain",
    group=Group.TIME_AND_PLACE,
    parts=frozenset({Part.PROVIDER}),
    fix="Nothing to change in the request; note both request ids and report it if it repeats.",
    avoidable=False,
    match=_match,
)
