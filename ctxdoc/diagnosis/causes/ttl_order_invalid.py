"""A one-hour breakpoint comes after a five-minute one: the request is refused.

What it is
    In render order (tools, system, messages) a breakpoint with ttl 1h stands behind one with 5m.
Why it breaks the prefix
    The API answers 400: longer lifetimes must come first.
Example
    A plain breakpoint on the tools and ttl 1h on the system prompt.
What to do
    Give the earlier breakpoint ttl 1h too, or leave it out.
How sure it can be
    Certain where the log holds the API's refusal, likely where it holds no answer: the rule is the vendor's
    (facts 1.4). An answer with counters says that it was accepted, and nothing is said.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import refused_for


def _match(case: Case) -> Match | None:
    return refused_for(case, "ttl_order_invalid", "it asks for 1h behind a 5m breakpoint")


CAUSE = Cause(
    id="ttl_order_invalid",
    title="a one-hour breakpoint after a five-minute one",
    group=Group.MARKERS,
    parts=frozenset({Part.REFUSAL}),
    fix="Give the earlier breakpoint ttl 1h as well, or leave it out.",
    match=_match,
)
