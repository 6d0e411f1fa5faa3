"""A tool was added, removed or swapped between the requests.

What it is
    The names of the tools differ.
Why it breaks the prefix
    Tools are rendered first; the prompt is lost from the first tool that came or went.
Example
    A tool server is away for a moment and its two tools are missing.
What to do
    Send the same tools all session long; answer calls to an absent server with an error result.
    Where tools must come later, use `defer_loading` with tool search.
How sure it can be
    Certain where both bodies show it, and counters and times agree. Likely where a transcript notes that
    tools came or went. Two conversations with other tools are two agents, and nothing is said.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import mcp_change, tool_names


def _match(case: Case) -> Match | None:
    change = case.tool_change or mcp_change(case)
    if change is None:
        return None
    before, after = tool_names(case.before), tool_names(case.after)
    gone = [name for name in before if name not in after]
    new = [name for name in after if name not in before]
    if len(before) == len(after) and not gone and not new and case.tool_change is not None:
        return None
    parts = [
        f"{word} {', '.join(names[:4])}"
        for word, names in (("removed", gone), ("added", new))
        if names
    ]
    return Match(
        explanation=f"The tools changed ({'; '.join(parts) or 'other servers'}); they are rendered "
        "first, so nothing behind the first one that changed can be read.",
        confidence=case.proof,
        pointer=change.place.pointer,
    )


CAUSE = Cause(
    id="tool_set_changed",
    title="the set of tools changed",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Keep the tool list of the session: connect tool servers before the first request, answer "
    "calls to an absent one with an error result instead of removing its tools, and load later tools "
    "with defer_loading.",
    unstable=True,
    match=_match,
)
