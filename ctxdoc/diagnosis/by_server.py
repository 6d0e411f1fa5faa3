"""What the API itself did to a prompt, as its answers and the bodies tell."""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.render import answer_of
from ctxdoc.prompt.segments import Segment, is_compaction
from ctxdoc.request.request import Section
from ctxdoc.request.response import ServerEdit


def edits_of(case: Case) -> tuple[ServerEdit, ...]:
    """What the API says that it took out of the later prompt, or else of the earlier one."""
    # Where the earlier one was edited and the later one is whole again, that answer is the one that tells.
    return case.after.request.server_edits or case.before.request.server_edits or ()


def told_proof(case: Case) -> Confidence:
    """How sure what the API says of its own edits is: it wrote that itself, and its counters go with it."""
    return Confidence.CERTAIN if case.measured else Confidence.LIKELY


def is_compacted(case: Case) -> bool:
    """Whether the later prompt begins behind a summary of the API's own that the earlier one has not."""
    one, two = case.before.prefix, case.after.prefix
    has = [
        any(segment.kind == "compaction" for segment in prefix.segments) for prefix in (one, two)
    ]
    return has[1] and (not has[0] or one.sent is None or two.sent is not None)


def lost_compaction(case: Case) -> str | None:
    """Where the later body should give back the compaction block of the earlier answer and does not;
    None where it does, or where there was none or the conversation does not go on."""
    request = case.before.request
    body, blocks = request.body, answer_of(request)
    if body is None or case.alone or not blocks or not is_compaction(blocks[0].value):
        return None
    index = len(body.messages)
    back = _sent_messages(case.after.prefix)
    # Without an answer at its place the later request is another branch, and owes nothing back.
    if not _is_answered_at(index, back) or any(s.digest == blocks[0].digest for s in back):
        return None
    return f"$.messages[{index}].content"


def _is_answered_at(index: int, blocks: list[Segment]) -> bool:
    return any(s.rank[1] == index and s.role == "assistant" for s in blocks)


def _sent_messages(prefix: Prefix) -> list[Segment]:
    """The blocks of all messages of a body, with those that the API does not render."""
    return [s for s in (*prefix.segments, *prefix.unrendered) if s.section is Section.MESSAGES]
