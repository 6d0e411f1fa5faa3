"""The text of a tool definition changed.

What it is
    The same tools in the same order, but a description or a schema has other text.
Why it breaks the prefix
    Tools are rendered first; the prompt is lost from that definition on.
Example
    A temporary file's random name is printed into a description.
What to do
    Make the definition once a session; use fixed names, and tell what varies in a message.
How sure it can be
    Certain where both bodies show it, and counters and times agree.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.diagnosis.evidence import quote, tool_data, tool_names


def _match(case: Case) -> Match | None:
    change = case.tool_change
    if change is None or change.before is None or change.after is None:
        return None
    if sorted(tool_names(case.before)) != sorted(tool_names(case.after)):
        return None
    if sorted(tool_data(case.before)) == sorted(tool_data(case.after)):
        return None
    difference = change.difference
    moved = ", and tools moved" if tool_names(case.before) != tool_names(case.after) else ""
    return Match(
        explanation=f"{difference.pointer} changed from {quote(difference.before, difference.byte)} to "
        f"{quote(difference.after, difference.byte)}{moved}; tools are rendered first, so the whole prompt "
        "behind it is lost.",
        confidence=case.proof,
        pointer=difference.pointer,
    )


CAUSE = Cause(
    id="tool_definition_changed",
    title="the text of a tool definition changed",
    group=Group.CONTENT,
    parts=frozenset({Part.DIVERGENCE}),
    fix="Build the tool definitions once per session from fixed text; keep random "
    "names, paths and dates out of descriptions and schemas.",
    general=True,
    unstable=True,
    holds_for_builders=True,
    match=_match,
)
