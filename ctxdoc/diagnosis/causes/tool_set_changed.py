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

NAMED = 4
"""Tools that are named on each side."""


def _match(case: Case) -> Match | None:
    change = case.tool_change or mcp_change(case)
    if change is None:
        return None
    before, after = tool_names(case.before), tool_names(case.after)
    # The same names are the same tools, described anew or in another order: other causes say so.
    if case.tool_change is not None and _have_same_names(before, after):
        return None
    return Match(
        explanation=f"The tools changed ({_what_changed(before, after)}); they are rendered "
        "first, so nothing behind the first one that changed can be read.",
        confidence=case.proof,
        pointer=change.difference.pointer,
    )


def _have_same_names(before: list[str], after: list[str]) -> bool:
    return len(before) == len(after) and set(before) == set(after)


def _what_changed(before: list[str], after: list[str]) -> str:
    """The first tools that went and that came; where none did, another server has the same ones."""
    sides = (("removed", before, after), ("added", after, before))
    parts = [
        f"{word} {', '.join(only)}" for word, one, two in sides if (only := _only_in(one, two))
    ]
    return "; ".join(parts) or "other servers"


def _only_in(one: list[str], two: list[str]) -> list[str]:
    """The first names that only one of two lists has."""
    return [name for name in one if name not in two][:NAMED]


CAUSE = Cause(
    id="tool_set_changed",
    title="the set of tools changed",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Keep the tool list of the session: connect tool servers before the first request, answer "
    "calls to an absent one with an error result instead of removing its tools, and load later tools "
    "with defer_loading.",
    unstable=True,
    holds_for_builders=True,
    match=_match,
)
