"""Tokens are right but priced at the wrong rate.

What it is
    The cost that a tracker wrote beside the request is not what its counters cost. Known mistakes:
    one-hour writes at the five-minute factor, reads at the input price, writes as plain input, the
    cache or the output left out, cached tokens twice; the price of a batch, of fast mode, of US-only
    inference or a regional profile, or of a long prompt, taken where it does not hold or left out
    where it does. Certain only where one known mistake, and no other, gives the recorded cost within
    1 %; likely where several do, or where none does and the cost is more than 5 % off. What a
    rounding to the last written place explains is no finding.
Why it breaks the prefix
    It does not; the bill will differ from the tracker.
Example
    One-hour writes cost 2 times the input price, and the tracker took 1.25.
What to do
    Price the parts apart: ephemeral_1h and ephemeral_5m writes, reads, and the uncached rest.
How sure it can be
    Certain where the recorded cost fits one known mistake within 1 %. Likely where several fit, or none and
    it is far off. A cost of 0 is at most possible: it may mean that nobody wrote it down.
"""

from __future__ import annotations

from ctxdoc.diagnosis.accounting import find_wrong_rate
from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match


def _match(case: Case) -> Match | None:
    return find_wrong_rate(case)


CAUSE = Cause(
    id="usage_wrong_rate",
    title="tokens priced at the wrong rate",
    group=Group.ACCOUNTING,
    parts=frozenset({Part.ACCOUNTING}),
    fix="Price the parts of cache_creation apart: ephemeral_1h_input_tokens at 2 times "
    "the input price, ephemeral_5m_input_tokens at 1.25; reads at the model's read "
    "price.",
    avoidable=False,
    match=_match,
)
