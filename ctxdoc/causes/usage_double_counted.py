"""Cached tokens are counted again inside the input tokens.

What it is
    The record's input_tokens already contain what was read from and written to the cache, as OpenAI,
    Gemini and some proxies count it; Anthropic's own input_tokens leave it out.
Why it breaks the prefix
    It does not; a sum of the three counters is nearly twice the truth.
Example
    input 2,094 and write 2,091 for a prompt of 2,094 tokens.
What to do
    Subtract reads and writes from input_tokens before summing, or log the API's own counters.
"""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Confidence, Group, Match, Part


def _match(case: Case) -> Match | None:
    if not (case.before.double_counted or case.after.double_counted):
        return None
    return Match(
        explanation="The recorded input_tokens contain the cached tokens: next to nothing stands behind "
        "the last breakpoint, and yet they are as large as the whole prompt. The cache itself works.",
        confidence=Confidence.LIKELY,
    )


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
