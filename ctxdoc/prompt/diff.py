"""Two prompts compared: the first differing byte, where it stands, and what else changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import AnyStr

import msgspec
from msgspec import Raw, Struct

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.credentials import without_credentials
from ctxdoc.request.request import Section

CHUNK = 4096
MAX_DEEPDIFF = 262_144
"""Bytes of a block up to which deepdiff looks into it: its work grows faster than the block."""
MAX_LINES = 12


class Difference(Struct, frozen=True, kw_only=True):
    """Where two requests differ, and both values there."""

    section: Section
    pointer: str
    """JSON path into the later request, or the earlier one where the later has nothing there."""
    byte: int | None
    """Offset in the UTF-8 text at the path; None where the value is no text on both sides."""
    before: Json
    after: Json


class Change(Struct, frozen=True, kw_only=True):
    """One difference between two prompts."""

    difference: Difference
    level: Section
    """The first part of the prompt that is lost by it."""
    before: Segment | None
    after: Segment | None
    index: int
    """Number of leading segments that both prompts share up to here."""


def first_difference(before: bytes, after: bytes) -> int | None:
    """Index of the first differing byte; the shorter length if one begins the other, None if equal."""
    size = common_length(before, after)
    return None if size == len(before) == len(after) else size


def common_length(one: AnyStr, two: AnyStr) -> int:
    """How many characters or bytes two texts share at their start; halved, so that memory is compared
    and not one character after the other."""
    low, size = 0, min(len(one), len(two))
    while low < size and one[low : low + CHUNK] == two[low : low + CHUNK]:
        low += CHUNK
    high = min(low + CHUNK, size)
    low = min(low, size)
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def body_difference(before: Raw, after: Raw) -> int | None:
    """First differing byte of two whole bodies with sorted keys: the textbook comparison.

    The credentials in them are left out.
    """
    one, two = (Raw(without_credentials(bytes(body))) for body in (before, after))
    return first_difference(
        codec.encode_sorted(codec.decode(one)),
        codec.encode_sorted(codec.decode(two)),
    )


def prompt_difference(before: Prefix, after: Prefix, *, in_order: bool) -> int | None:
    """First byte at which a prompt leaves the earlier one.

    None where the later prompt only appends. `in_order` compares free JSON as it was sent,
    otherwise with sorted members.
    """
    if before.root != after.root:
        return 0
    one, two = (p.data if in_order else p.sorted_data for p in (before, after))
    found = first_difference(one, two)
    return None if found is None or found == len(one) else found


def common_segments(before: Prefix, after: Prefix) -> int:
    """How many leading segments are equal; the keys are chained, so that halving finds it."""
    one, two = before.keys, after.keys
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high) // 2
        if one[middle] == two[middle]:
            low = middle + 1
        else:
            high = middle
    return low


def find_divergence(before: Prefix, after: Prefix) -> Change | None:
    """The first difference that the cache sees, or None where the later prompt only appends."""
    if before.root != after.root:
        difference = Difference(
            section=Section.MODEL,
            pointer="$.model",
            byte=first_difference(before.model.encode(), after.model.encode()),
            before=before.model,
            after=after.model,
        )
        return Change(difference=difference, level=Section.TOOLS, before=None, after=None, index=0)
    index = common_segments(before, after)
    if index == len(before.segments):
        return None
    one = before.segments[index]
    two = after.segments[index] if index < len(after.segments) else None
    return _change(one, two, index, before, after)


def iter_changes(before: Prefix, after: Prefix) -> Iterator[Change]:
    """The first difference of each setting, of the tools, of each system block, of the messages,
    and of what is not rendered; in render order."""
    if before.root != after.root:
        change = find_divergence(before, after)
        if change is not None:
            yield change
    ends = {s.rank: s for s in before.segments}
    done: set[Section] = set()
    for rank in sorted({*ends, *(s.rank for s in after.segments)}):
        one, two = ends.get(rank), after.by_rank.get(rank)
        section = _section_of(one, two)
        if section in done or _are_equal(one, two):
            continue
        # What is only behind the earlier messages was appended, and that changes nothing.
        if section is Section.MESSAGES and one is None:
            continue
        # One tool that came or went moves all behind it: the first says it.
        if section in (Section.MESSAGES, Section.TOOLS):
            done.add(section)
        yield _change(one, two, 0, before, after)


def _section_of(one: Segment | None, two: Segment | None) -> Section:
    """The section of two segments of one rank, of which one may be missing."""
    segment = one or two
    assert segment is not None
    return segment.section


def _are_equal(one: Segment | None, two: Segment | None) -> bool:
    """Whether two blocks are the same to the cache."""
    if one is None or two is None:
        return False
    return one.digest == two.digest and one.role == two.role


def find_unrendered(before: Prefix, after: Prefix) -> Difference | None:
    """The first difference among the blocks that are no part of either prompt."""
    for one, two in zip(before.unrendered, after.unrendered, strict=False):
        if one.rank == two.rank and one.digest != two.digest and one.section is Section.TOOLS:
            return _place(one, two)
    return None


def _change(
    one: Segment | None, two: Segment | None, index: int, before: Prefix, after: Prefix
) -> Change:
    """The change at two segments that stand at the same count but may not be the same place."""
    one, two = _at_one_rank(one, two)
    segment = two or one
    assert segment is not None
    if segment.kind == "setting":
        # A default that is written out is not rendered, but it is what the value changed from or to.
        one = one or _spelled_default(before, segment)
        two = two or _spelled_default(after, segment)
    difference = _image_place(before, after) if _is_image_switch(segment) else None
    return Change(
        difference=difference or _missing_part(one, two, before, after) or _place(one, two),
        level=segment.level,
        before=one,
        after=two,
        index=index,
    )


def _at_one_rank(one: Segment | None, two: Segment | None) -> tuple[Segment | None, Segment | None]:
    """Two segments of one rank; of two that stand apart the one that comes first, which the other
    prompt lacks."""
    if one is None or two is None or one.rank == two.rank:
        return one, two
    return (one, None) if one.rank < two.rank else (None, two)


def _spelled_default(prefix: Prefix, setting: Segment) -> Segment | None:
    return next((s for s in prefix.unrendered if s.rank == setting.rank), None)


def _image_place(before: Prefix, after: Prefix) -> Difference | None:
    """Images came or went: the place of the first message that differs, if one does."""
    for one in before.segments:
        if one.section is Section.MESSAGES:
            two = after.by_rank.get(one.rank)
            if two is None or one.digest != two.digest:
                return _place(one, two)
    return None


def _missing_part(
    one: Segment | None, two: Segment | None, before: Prefix, after: Prefix
) -> Difference | None:
    """All tools, or the whole system prompt, on one side only."""
    if one is not None and two is not None:
        return None
    section = _section_of(one, two)
    other = after if two is None else before
    if section not in (Section.TOOLS, Section.SYSTEM) or _has(other, section):
        return None
    return _one_sided(section, f"$.{section}", one, two)


def _has(prefix: Prefix, section: Section) -> bool:
    return any(segment.section is section for segment in prefix.segments)


def _one_sided(
    section: Section, pointer: str, one: Segment | None, two: Segment | None
) -> Difference:
    """A block, or a whole part, that one side lacks."""
    before = one.value if one is not None else None
    after = two.value if two is not None else None
    return _at(section, pointer, before, after)


def _place(one: Segment | None, two: Segment | None) -> Difference:
    """Where two blocks differ."""
    segment = two or one
    assert segment is not None
    if one is None or two is None:
        return _one_sided(_shown_section(segment), segment.pointer, one, two)
    # The role is rendered ahead of the blocks of its message.
    if one.role != two.role:
        path = segment.pointer.split(".content")[0] + ".role"
        return _leaf(segment.section, path, one.role, two.role)
    if segment.kind == "setting":
        (before,), (after,) = _members(one), _members(two)
        return _walk(segment.section, segment.pointer, before, after)
    found = _walk(segment.section, segment.pointer, one.value, two.value)
    return msgspec.structs.replace(found, pointer=_as_sent(found.pointer, segment))


def _shown_section(segment: Segment) -> Section:
    """Where a reader looks for a block: that there are images is told by the messages."""
    return Section.MESSAGES if _is_image_switch(segment) else segment.section


def _members(segment: Segment) -> list[Json]:
    return list(segment.value.values()) if isinstance(segment.value, dict) else [segment.value]


def _as_sent(pointer: str, segment: Segment) -> str:
    """The path in the body's own spelling: a bare string has no block, a lowered one has."""
    if segment.lifted:
        return segment.pointer
    if segment.lowered and pointer == f"{segment.pointer}.content":
        return f"{pointer}[0].text"
    return pointer


def _walk(section: Section, pointer: str, before: Json, after: Json) -> Difference:
    """The first leaf, in rendered order, at which two values differ."""
    match before, after:
        case dict(), dict():
            return _walk_object(section, pointer, before, after)
        case list(), list():
            for index, (one, two) in enumerate(zip(before, after, strict=False)):
                if codec.encode(one) != codec.encode(two):
                    return _walk(section, f"{pointer}[{index}]", one, two)
            longer = max(before, after, key=len)
            shorter = min(len(before), len(after))
            value = longer[shorter] if shorter < len(longer) else None
            one, two = (value, None) if longer is before else (None, value)
            return _at(section, f"{pointer}[{shorter}]", one, two)
        case _:
            return _leaf(section, pointer, before, after)


def _walk_object(
    section: Section, pointer: str, before: dict[str, Json], after: dict[str, Json]
) -> Difference:
    for one, two in zip(before, after, strict=False):
        if one != two:
            break
        if codec.encode(before[one]) != codec.encode(after[one]):
            return _walk(section, _member(pointer, one), before[one], after[one])
    if before.keys() == after.keys():
        return _at(section, pointer, before, after)
    for name, value in after.items():
        if name not in before:
            return _at(section, _member(pointer, name), None, value)
    name = next(name for name in before if name not in after)
    return _at(section, _member(pointer, name), before[name], None)


def _member(pointer: str, name: str) -> str:
    if name.isidentifier():
        return f"{pointer}.{name}"
    return f"{pointer}[{codec.encode(name).decode()}]"


def _leaf(section: Section, pointer: str, before: Json, after: Json) -> Difference:
    byte = None
    if isinstance(before, str) and isinstance(after, str):
        byte = first_difference(before.encode(), after.encode())
    return Difference(section=section, pointer=pointer, byte=byte, before=before, after=after)


def _at(section: Section, pointer: str, before: Json, after: Json) -> Difference:
    return Difference(section=section, pointer=pointer, byte=None, before=before, after=after)


def structural_changes(before: Json, after: Json) -> list[str]:
    """What changed inside two values, one line each, by deepdiff; for structured blocks only."""
    if max(len(codec.encode(value)) for value in (before, after)) > MAX_DEEPDIFF:
        return []
    try:
        found = _import_deepdiff()(before, after, view="tree")
    except RecursionError:
        return []
    lines = [
        f"{level.path(output_format='list', force='fake')}: {kind.replace('_', ' ')}"
        for kind, levels in found.items()
        for level in levels
    ]
    more = len(lines) - MAX_LINES
    return lines[:MAX_LINES] + ([f"… and {more:,} more"] if more > 0 else [])


def _import_deepdiff() -> type:
    """deepdiff without numpy and pydantic, which it would load only to know their types: that is
    more than half of its import time."""
    import sys

    heavy = [name for name in ("numpy", "pydantic", "pydantic.main") if name not in sys.modules]
    for name in heavy:
        sys.modules[name] = None  # type: ignore[assignment]
    try:
        from deepdiff import DeepDiff
    finally:
        for name in heavy:
            sys.modules.pop(name, None)
    return DeepDiff


def _is_image_switch(segment: Segment) -> bool:
    return isinstance(segment.value, dict) and "images" in segment.value
