"""Same prefix, same place, in time, breakpoint in reach, and still a miss.

What it is
    All rules say that the entry could be read, and the counters say that it was not.
Why it breaks the prefix
    The request does not explain it: an early eviction, a busy host, or something that the log does not show.
How sure it can be
    Likely at most, and only after everything that may part two caches was compared and found equal: the
    prompt, the settings, the account, the beta features and every unknown member. Possible where the log
    does not show one of these.
Example
    Forty seconds later only tools and system are read; the next request is fine again.
What to do
    Nothing in the request. Note both request ids, and report it if it repeats.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.surroundings import beta_change, unseen
from ctxdoc.diagnosis.undocumented import undocumented_changes

LOOK = (
    "Record what the log does not show, and compare again; if it repeats with everything equal, report both "
    "request ids."
)


def _match(case: Case) -> Match | None:
    if not case.parts[Part.PROVIDER]:
        return None
    if undocumented_changes(case) or beta_change(case) is not None:
        return None
    hidden = unseen(case)
    why, fix = "Nothing in the two requests explains it.", ""
    if hidden:
        why, fix = f"The log does not show {hidden}.", LOOK
    return Match(
        explanation=f"By the rules {case.outcome.usage.cache_read:,} tokens could be read, and "
        f"{case.counters.cache_read:,} were. {why}",
        confidence=Confidence.POSSIBLE if hidden or case.before.passes else Confidence.LIKELY,
        fix=fix,
    )


CAUSE = Cause(
    id="provider_side_miss",
    title="a miss that the request does not explain",
    group=Group.TIME_AND_PLACE,
    parts=frozenset({Part.PROVIDER}),
    fix="Nothing to change in the request; note both request ids and report it if it repeats.",
    avoidable=False,
    rests_on_one_pass=True,
    match=_match,
)
