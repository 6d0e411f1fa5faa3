"""What the differing bytes of two texts are: a time, an id, live state, recalled text.

Each detector asks the same question of both sides: does a value of its kind stand at the first
differing character, and at the same place in both texts? Text that stands on one side only is
judged by what it says of itself.

How sure a kind can be: a form that only values of that kind have is certain; a label alone, or a form
inside of quoted data or a file's name, is likely; numbers that only grew, without a label, are possible.
"""

from __future__ import annotations

from functools import lru_cache

from ctxdoc.diagnosis.case import Confidence
from ctxdoc.diagnosis.clocks import TIMES, as_clock, as_time
from ctxdoc.diagnosis.headings import INSTRUCTION_FILE, enclosing_kind, kind_of_label, label_of
from ctxdoc.diagnosis.identifiers import as_id
from ctxdoc.diagnosis.tallies import as_counter, as_grown
from ctxdoc.diagnosis.text_values import WINDOW, Kind, Told, changed_span, compiled, is_path
from ctxdoc.prompt.diff import common_length

MAX_VALUES = 8
"""Differing values of one text that are looked at."""


def judge_value(before: str, after: str) -> Told | None:
    """What the first differing value of two texts is, or None when no detector knows."""
    start, end_before, end_after = changed_span(before, after)
    if start in (end_before, end_after):
        inserted = find_inserted_kind(before, after)
        if inserted is not None:
            return Told(inserted, Confidence.CERTAIN)
    for test in _TESTS:
        told = test(before, after, start)
        if told is not None:
            return told
    return None


def find_kind(before: str, after: str) -> Kind | None:
    """The kind of the first differing value, or None when no detector knows."""
    told = judge_value(before, after)
    return told.kind if told else None


@lru_cache(maxsize=64)
def judge_values(before: str, after: str) -> tuple[Told | None, ...]:
    """What every differing value is, in the order in which they stand; None for one that no detector
    knows."""
    found: list[Told | None] = []
    for _ in range(MAX_VALUES):
        if before == after:
            break
        found.append(judge_value(before, after))
        step = _resync(before, after)
        if step is None:
            break
        # What stays ahead keeps the labels that the next value may have.
        before = after[: step[1]] + before[step[0] :]
    return tuple(found)


def find_kinds(before: str, after: str) -> tuple[Kind | None, ...]:
    """The kind of every differing value in the order in which they stand."""
    return tuple(told.kind if told else None for told in judge_values(before, after))


def only_values_differ(before: str, after: str) -> bool:
    """Whether both texts are the same but for one short stretch: a template with another value."""
    start, end_before, end_after = changed_span(before, after)
    changed = max(end_before, end_after) - start
    return changed <= max(64, 0.25 * min(len(before), len(after)))


@lru_cache(maxsize=64)
def similarity(before: str, after: str) -> float:
    """Share of the longer text that both have at their start or end."""
    start, end_before, _ = changed_span(before, after)
    common = start + len(before) - end_before
    return common / max(len(before), len(after), 1)


def find_inserted_kind(before: str, after: str) -> Kind | None:
    """What a text is that stands on one side only, by what it says of itself or where it stands."""
    start, end_before, end_after = changed_span(before, after)
    came = start == end_before
    text = after if came else before
    words = text[start : end_after if came else end_before].strip()
    if not words:
        return None
    return _own_kind(words) or enclosing_kind(text, start)


def _own_kind(words: str) -> Kind | None:
    """What a text is by its first line, or by a time in it."""
    kind = _kind_of_first_line(words.splitlines()[0])
    # A date in a long text is a part of what it tells.
    if kind is None and len(words) < WINDOW and any(compiled(p).search(words) for p in TIMES):
        return Kind.TIME
    return kind


def _kind_of_first_line(line: str) -> Kind | None:
    """What a text says of itself by its own label, or by the file that it names."""
    label = label_of(line) or (line if compiled(INSTRUCTION_FILE).search(line) else "")
    return kind_of_label(label) if label else None


def _resync(one: str, two: str) -> tuple[int, int] | None:
    """Where both texts go on alike behind the first differing word."""
    start = common_length(one, two)
    ends = [_word_end(text, start) for text in (one, two)]
    if one[ends[0] : ends[0] + 8] == two[ends[1] : ends[1] + 8] and one[ends[0] :]:
        return ends[0], ends[1]
    return None


def _word_end(text: str, start: int) -> int:
    found = compiled(r"[\s\"',;|)\]}]").search(text, start)
    return found.start() if found else len(text)


def _as_environment(before: str, after: str, at: int) -> Told | None:
    kind = enclosing_kind(after, at)
    known = kind is Kind.ENVIRONMENT or (kind is None and is_path(before, after, at))
    return Told(Kind.ENVIRONMENT, Confidence.LIKELY) if known else None


def _as_memory(before: str, after: str, at: int) -> Told | None:
    del before
    known = enclosing_kind(after, at) is Kind.MEMORY
    return Told(Kind.MEMORY, Confidence.LIKELY) if known else None


_TESTS = (
    as_time,
    as_id,
    as_counter,
    as_clock,
    _as_environment,
    _as_memory,
    as_grown,
)
"""Most certain first."""
