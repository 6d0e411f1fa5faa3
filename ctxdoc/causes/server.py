"""What the API itself did to a prompt, as its answers and the bodies tell."""

from __future__ import annotations

from ctxdoc.causes.base import Case
from ctxdoc.model import ServerEdit


def edits_of(case: Case) -> tuple[ServerEdit, ...]:
    """What the API says that it took out of the later prompt, or else of the earlier one."""
    answers = case.after.request.response, case.before.request.response
    return next((answer.edits for answer in answers if answer is not None and answer.edits), ())


def is_compacted(case: Case) -> bool:
    """Whether the later prompt begins behind a summary of the API's own that the earlier one has not."""
    one, two = case.before.prefix, case.after.prefix
    has = [
        any(segment.kind == "compaction" for segment in prefix.segments) for prefix in (one, two)
    ]
    return has[1] and (not has[0] or one.sent is None or two.sent is not None)
