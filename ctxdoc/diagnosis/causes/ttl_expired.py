"""The entry's lifetime had run out.

What it is
    The same prefix, sent after its entry ended: 5 minutes or an hour from the start of the last
    request that wrote or read it.
Why it breaks the prefix
    It does not; the entry was gone.
How sure it can be
    Certain where both requests have their times and counters, and nothing else explains it. Lifetimes are
    minimums: an entry may live longer, and one that was read keeps living. Where the counters show another
    lifetime than the body asks for, the counters are right.
Example
    A pause of seven minutes with the default lifetime.
What to do
    For pauses between five minutes and an hour use ttl 1h on the stable breakpoints, or send a
    cheap request before the entry ends.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.evidence import duration_text


def _match(case: Case) -> Match | None:
    if not case.parts[Part.EXPIRY]:
        return None
    gap = (
        f"{duration_text(case.gap)} passed from start to start"
        if case.gap is not None
        else "too long passed"
    )
    if case.before.hour_lost:
        return Match(
            explanation="The bodies ask for entries of an hour, but what was written was written for five "
            f"minutes: something between client and API cuts ttl out of the breakpoints. Then {gap}, and the "
            "entries had run out.",
            confidence=case.proof,
            fix="Let the gateway pass ttl on (LiteLLM's pass-through needs an opt-in), and check that writes "
            "show up as ephemeral_1h_input_tokens.",
        )
    if _is_assumed(case):
        return Match(
            explanation=f"Only {gap}, but the entry that both requests share was written longer ago than it "
            "lives, and what was read since was a longer one: that such a read does not renew it is an "
            "assumption.",
            confidence=capped(case.proof, Confidence.LIKELY),
        )
    same = "The prefix was the same, but" if case.divergence is None else "The prompt changed, and"
    return Match(
        explanation=f"{same} {gap}, and its entries had run out.",
        confidence=case.proof,
    )


def _is_assumed(case: Case) -> bool:
    """Whether less time passed since the request before than its entries live: then others had ended."""
    rules = case.before.prefix.rule.rules
    lives = [rules.seconds(mark.ttl) for mark in case.before.prefix.marks]
    return case.gap is not None and bool(lives) and case.gap < min(lives)


CAUSE = Cause(
    id="ttl_expired",
    title="the entry had expired",
    group=Group.TIME_AND_PLACE,
    parts=frozenset({Part.EXPIRY}),
    fix="For pauses between five minutes and an hour use ttl 1h on the stable "
    "breakpoints, or send a cheap keep-alive before the entry ends.",
    is_idle=True,
    match=_match,
)
