"""What an answer says that the API took out of the prompt by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ctxdoc.reading.formats.base import text_of
from ctxdoc.reading.formats.shared.members import Members, objects_in
from ctxdoc.reading.formats.shared.usage import MOST
from ctxdoc.request.response import ServerEdit

CLEARED = {"clear_tool_uses": "cleared_tool_uses", "clear_thinking": "cleared_thinking_turns"}
"""Beginnings of the types of edits, and where each says how many it cleared."""


def edits_of(answer: Members, notes: list[str]) -> tuple[ServerEdit, ...]:
    """The edits of an answer; an entry of another shape says nothing, one without a count is noted."""
    management = answer.get("context_management")
    applied = management.get("applied_edits") if isinstance(management, dict) else None
    return (
        *(edit for entry in objects_in(applied) for edit in _cleared(entry, notes)),
        *_dropped(answer.get("input_transformations")),
    )


def _cleared(edit: Members, notes: list[str]) -> Iterator[ServerEdit]:
    kind = text_of(edit.get("type"))
    for name, counter in CLEARED.items():
        if not kind.startswith(name):
            continue
        count, tokens = _whole(edit.get(counter)), _whole(edit.get("cleared_input_tokens"))
        if count:
            yield ServerEdit(kind=name, count=count, tokens=tokens)
        elif edit.get(counter) not in (None, 0):
            notes.append(f"an applied edit is left out: its '{counter}' is no count")


def _dropped(changes: Any) -> Iterator[ServerEdit]:
    for change in objects_in(changes):
        if change.get("type") == "thinking_dropped":
            yield ServerEdit(kind="thinking_dropped", count=1, path=text_of(change.get("path")))


def _whole(value: Any) -> int:
    """A count; 0 for what is none."""
    return value if type(value) is int and 0 < value <= MOST else 0
