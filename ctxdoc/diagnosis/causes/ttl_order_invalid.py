"""The lifetimes of two breakpoints contradict each other: the request is refused.

What it is
    In render order (tools, system, messages) a breakpoint with ttl 1h stands behind one with 5m. Or
    automatic caching (cache_control at the top of the body) asks for another ttl than the breakpoint that
    the last block has already.
Why it breaks the prefix
    The API answers 400: longer lifetimes must come first, and one block has one lifetime.
Example
    A plain breakpoint on the tools and ttl 1h on the system prompt.
What to do
    Give the earlier breakpoint ttl 1h too, or leave it out. Give automatic caching the ttl of its block.
How sure it can be
    Certain where the log holds the API's refusal, likely where it holds no answer: the rule is the vendor's
    (facts 1.2
    and 1.4). An answer with counters says that it was accepted, and nothing is said.
"""

from __future__ import annotations

from msgspec.structs import replace

from ctxdoc.cache.breakpoint_rules import RefusalCode
from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import refused_for

AUTOMATIC = "$.cache_control"
"""Where automatic caching is asked for."""


def _match(case: Case) -> Match | None:
    found = refused_for(case, RefusalCode.LIFETIMES, "it asks for 1h behind a 5m breakpoint")
    if found is None or found.pointer != AUTOMATIC or case.refusal is None:
        return found
    # On one block there is no order: the top of the body asks for one lifetime, the block for another.
    return replace(
        found,
        explanation=f"{AUTOMATIC} makes the API refuse the request: {case.refusal.text}.",
        fix="Give the top-level cache_control the ttl of the breakpoint on the last block, or leave one of "
        "the two out.",
    )


CAUSE = Cause(
    id="ttl_order_invalid",
    title="a one-hour breakpoint after a five-minute one",
    group=Group.MARKERS,
    parts=frozenset({Part.REFUSAL}),
    fix="Give the earlier breakpoint ttl 1h as well, or leave it out.",
    match=_match,
)
