"""Cached tokens are counted again inside the input tokens.

What it is
    The record's input_tokens already contain what was read from and written to the cache, as OpenAI,
    Gemini and some proxies count it; Anthropic's own input_tokens leave it out.
Why it breaks the prefix
    It does not; a sum of the three counters is nearly twice the truth.
How sure it can be
    Certain where input_tokens are more than can stand behind the last breakpoint, at a token a byte, with
    nothing there whose bytes do not bound its tokens (images and files by reference, results of server
    tools). Possible where they are only far more than one would expect: no number is changed by that. The
    reported counters stay as they are in either case; the corrected ones stand beside them.
Example
    input 2,094 and write 2,091 for a prompt of 2,094 tokens.
What to do
    Subtract reads and writes from input_tokens before summing, or log the API's own counters.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    for exchange in (case.after, case.before):
        usage, right = exchange.usage, exchange.corrected
        if usage is None or right is None:
            continue
        return Match(
            explanation=f"The recorded input_tokens ({usage.uncached:,}) contain the cached tokens: so many "
            "cannot stand behind the last breakpoint, where a token is at least a byte; without the cached "
            f"part they are {right.uncached:,}. The cache itself works.",
            confidence=Confidence.CERTAIN,
        )
    return None


CAUSE = Cause(
    id="usage_double_counted",
    title="cached tokens counted twice",
    group=Group.ACCOUNTING,
    parts=frozenset({Part.ACCOUNTING}),
    fix="Take the counters as the API defines them (input_tokens is the uncached rest), "
    "or subtract reads and writes before summing.",
    avoidable=False,
    match=_match,
)
