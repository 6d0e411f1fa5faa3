"""Whether the API takes a conversation for its shape, as far as the body shows it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import msgspec
from msgspec import Struct

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.request import codec
from ctxdoc.request.request import Body, Section


class _Ids(Struct):
    id: Any = None
    tool_use_id: Any = None


_ids_of = msgspec.json.Decoder(_Ids).decode
CALLED = "tool_use"
ANSWERED = "tool_result"
"""Of the user's tools: results of the API's own stand in the assistant's message itself."""


def shape_fault(prefix: Prefix, start: int = 0) -> tuple[str, str] | None:
    """The place and the rule by which the API refuses a conversation for its shape, or None.

    A tool_result has to answer a tool_use of the message right before it, and each tool_use needs its
    tool_result there; that a conversation begins with an answer is no fault (recorded calls show it).
    Messages ahead of `start` are taken as right. A body that is only the end of a message thread has
    to be joined with its beginning first. Breakpoints are `find_refusal`'s and `lifetime_conflict`'s.
    """
    return _fault_of_turns(_turns(prefix, start))


def lifetime_conflict(body: Body, prefix: Prefix) -> tuple[str, str] | None:
    """Automatic caching that asks for another lifetime than the breakpoint which its block has, or None."""
    control = codec.decode(body.cache_control)
    if not isinstance(control, dict):
        return None
    last = _last_able(prefix)
    asked = "1h" if control.get("ttl") == "1h" else "5m"
    if last is not None and last.ttl not in (None, asked):
        return "$.cache_control", f"automatic caching for {asked} on a block marked for {last.ttl}"
    return None


def _last_able(prefix: Prefix) -> Segment | None:
    """The last block that can carry a breakpoint: on any other one the lifetimes stand apart, and their
    order is what counts. The same lifetime twice has no effect (facts 1.2)."""
    able = (s for s in reversed(prefix.segments) if s.is_block and not s.mark_fault)
    return next(able, None)


class _Turn(Struct):
    """Messages of one role in a row: the API takes them as one."""

    role: str
    blocks: list[Segment]


def _turns(prefix: Prefix, start: int) -> list[_Turn]:
    """The turns of a conversation from the last answer before `start` on, behind the last compaction:
    what stands before it is out of the prompt. Instructions in between are no turn."""
    blocks = [s for s in prefix.segments if _takes_turns(s)]
    compacted = [i for i, s in enumerate(blocks) if s.kind == "compaction"]
    first = max(_turn_before(blocks, start), *compacted[-1:], 0)
    # Messages of one role in a row are one turn to the API, however a client parts them.
    return [_Turn(role, list(run)) for role, run in groupby(blocks[first:], lambda s: s.role)]


def _takes_turns(segment: Segment) -> bool:
    return segment.section is Section.MESSAGES and segment.is_block and segment.role != "system"


def _turn_before(blocks: list[Segment], start: int) -> int:
    """Index of the first block of the last answer before a message, whose calls it may answer."""
    first = next((i for i, s in enumerate(blocks) if s.rank[1] >= start), len(blocks))
    # Back over what the user said, then over the answer before it.
    for answer in (False, True):
        while first and (blocks[first - 1].role == "assistant") is answer:
            first -= 1
    return first


def _fault_of_turns(turns: list[_Turn]) -> tuple[str, str] | None:
    calls: dict[str, str] = {}
    for turn in turns:
        if turn.role == "assistant":
            calls = _ids_in(turn, CALLED)
            continue
        results = _ids_in(turn, ANSWERED)
        if not _renamed(calls, results):
            for pointer in _unmatched(results, calls):
                return pointer, "a tool_result without its tool_use in the message before it"
            for pointer in _unmatched(calls, results):
                return pointer, "a tool_use without a tool_result in the message behind it"
        calls = {}
    return None


def _unmatched(one: dict[str, str], two: dict[str, str]) -> Iterator[str]:
    return (pointer for name, pointer in one.items() if name not in two)


def _renamed(calls: dict[str, str], results: dict[str, str]) -> bool:
    """Whether all ids are others and their number is the same: a recorder made them anew."""
    return len(calls) == len(results) and calls.keys().isdisjoint(results)


def _ids_in(turn: _Turn, kind: str) -> dict[str, str]:
    """The ids of the calls, or of the answered calls, in a turn, and where they stand."""
    found: dict[str, str] = {}
    for segment in turn.blocks:
        if segment.kind == kind:
            ids = _ids_of(segment.data)
            found[str(ids.id if kind == CALLED else ids.tool_use_id)] = segment.pointer
    return found
