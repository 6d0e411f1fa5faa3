"""What the API does to a prompt before the model sees it, beside what the body says.

Context editing clears old tool results and old thinking, a compaction block stands for everything ahead
of it, and thinking that a model may not read is dropped (context-editing and compaction pages,
2026-10-08; `input_transformations`, SDK 2.14.0). The body does not shrink by any of it: the answer says
what was cleared or dropped, and the body holds the compaction block.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ctxdoc.prompt.messages_form import THINKING_KINDS
from ctxdoc.prompt.segments import Segment, is_compaction, without_input, without_result
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Body, Section
from ctxdoc.request.response import ServerEdit

PATH = re.compile(r"messages\.(\d{1,9})\.content\.(\d{1,9})")
"""Where a dropped block stood (SDK 2.14.0)."""

Parted = tuple[tuple[Segment, ...], tuple[Segment, ...]]
"""The segments of the messages as the model saw them, and those of the body that it did not see."""


def parted_by_compaction(segments: tuple[Segment, ...]) -> Parted:
    """The segments from the last compaction block on; the API ignores all before it."""
    for index in range(len(segments) - 1, -1, -1):
        if segments[index].kind == "compaction" and is_compaction(segments[index].value):
            return segments[index:], segments[:index]
    return segments, ()


def parted_by_edits(
    segments: tuple[Segment, ...], edits: Sequence[ServerEdit], body: Body
) -> Parted:
    """The segments once the edits are made. One that names more than there is takes what there is."""
    kept: dict[int, Segment | None] = {}
    for edit in edits:
        if edit.kind == "clear_tool_uses":
            kept |= _cleared_results(segments, edit.count, body)
        elif edit.kind == "clear_thinking":
            kept |= dict.fromkeys(_oldest_thinking(segments, edit.count))
        else:
            kept |= dict.fromkeys(_named(segments, edit.path))
    if not kept:
        return segments, ()
    whole = [kept.get(index, segment) for index, segment in enumerate(segments)]
    return tuple(s for s in whole if s is not None), tuple(segments[i] for i in sorted(kept))


def _cleared_results(
    segments: tuple[Segment, ...], count: int, body: Body
) -> dict[int, Segment | None]:
    """The oldest results without their content, and their calls without input where that is asked
    for; tools that the request excludes keep theirs."""
    excluded, inputs = _asked(body)
    cleared: set[str] = set()
    found: dict[int, Segment | None] = {}
    for index, segment in enumerate(segments):
        if segment.kind == "tool_use" and segment.name not in excluded and len(cleared) < count:
            cleared.add(_id_of(segment, "id"))
            if inputs is True or (isinstance(inputs, list) and segment.name in inputs):
                found[index] = without_input(segment)
        elif segment.kind == "tool_result" and _id_of(segment, "tool_use_id") in cleared:
            found[index] = without_result(segment)
    return found


def _asked(body: Body) -> tuple[frozenset[str], Json]:
    """The tools that clearing leaves alone, and whether it takes the inputs of calls too."""
    edit = _edit_asked(body, "clear_tool_uses")
    names = edit.get("exclude_tools")
    excluded = names if isinstance(names, list) else []
    return frozenset(map(str, excluded)), edit.get("clear_tool_inputs")


def keeps_all_thinking(body: Body) -> bool:
    """Whether a request asks to keep the thinking of all turns, on models that would not (context-editing
    page, 2026-10-08)."""
    return _edit_asked(body, "clear_thinking").get("keep") == "all"


def _edit_asked(body: Body, kind: str) -> dict[str, Json]:
    """The first edit of a kind that a request asks for; empty where it asks for none."""
    if bytes(body.context_management) == b"null":
        return {}
    try:
        management = codec.decode(body.context_management)
    except (msgspec.DecodeError, RecursionError):
        return {}
    edits = management.get("edits") if isinstance(management, dict) else None
    for edit in edits if isinstance(edits, list) else ():
        if isinstance(edit, dict) and str(edit.get("type", "")).startswith(kind):
            return edit
    return {}


def _id_of(segment: Segment, name: str) -> str:
    value = segment.value
    return str(value.get(name)) if isinstance(value, dict) else ""


def _oldest_thinking(segments: tuple[Segment, ...], count: int) -> list[int]:
    """The thinking of the first messages that have any."""
    indices = [i for i, segment in enumerate(segments) if segment.kind in THINKING_KINDS]
    turns = dict.fromkeys(segments[index].rank[1] for index in indices)
    cleared = set(list(turns)[:count])
    return [index for index in indices if segments[index].rank[1] in cleared]


def _named(segments: tuple[Segment, ...], path: str) -> list[int]:
    found = PATH.fullmatch(path)
    if found is None:
        return []
    message_and_block = int(found[1]), int(found[2])
    return [
        index
        for index, segment in enumerate(segments)
        if segment.section is Section.MESSAGES and segment.rank[1:] == message_and_block
    ]
