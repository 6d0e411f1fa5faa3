"""The history was replaced by a summary.

What it is
    Many messages gave way to a few, of which the first is new.
Why it breaks the prefix
    The messages are another prompt by design; tools and system stay readable where a breakpoint
    stands behind them.
How sure it can be
    Certain where the API's own compaction block stands in the answer or in the body, and where a transcript
    notes the compaction. Where the client
    wrote the summary: certain if its text says that it is one, else likely.
Example
    "Summary of the work so far: ..." in place of thirteen messages.
What to do
    Nothing for one such rewrite. Compact rarely, and keep tools and system equal to the byte.
"""

from __future__ import annotations

from ctxdoc.diagnosis.by_server import is_compacted, told_proof
from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match, capped
from ctxdoc.diagnosis.history_edits import looks_like_summary, message_count, replaced_by_few


def _match(case: Case) -> Match | None:
    change = case.message_change
    if change is None:
        return None
    if case.by_server and is_compacted(case):
        return Match(
            explanation="The API put a compaction block in place of the history ahead of it: an expected "
            "rewrite, of which no byte of the earlier body tells; the summary's own pass is billed in "
            "usage.iterations.",
            confidence=told_proof(case),
            pointer=case.where,
            avoidable=False,
        )
    if case.by_server or not replaced_by_few(case):
        return None
    # A client's summary that does not say so may be any shorter history.
    said, ceiling = "", Confidence.LIKELY
    if looks_like_summary(case):
        said, ceiling = ", the first new one a summary", Confidence.CERTAIN
    before, after = message_count(case.before), message_count(case.after)
    return Match(
        explanation=f"{before} messages became {after}{said}: an expected rewrite of the history.",
        confidence=capped(case.proof, ceiling),
        pointer=change.difference.pointer,
    )


CAUSE = Cause(
    id="history_compacted",
    title="the history was replaced by a summary",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Nothing to repair for one such rewrite; compact rarely, and check that tools "
    "and system stay byte-identical across it.",
    avoidable=False,
    replaces_history=True,
    match=_match,
)
