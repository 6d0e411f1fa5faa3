"""The values of two texts around their first difference, and what a value can be.

A value is a stretch that a pattern knows. It counts where it covers the difference and begins at the same
place in both texts: what stands ahead of it is equal, and so is its label.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache
from typing import NamedTuple, TypeAlias

from ctxdoc.diagnosis.case import Confidence
from ctxdoc.prompt.diff import common_length

Span: TypeAlias = tuple[int, int]
"""Where a value begins in a text, and where it ends."""
WINDOW = 80
"""Characters on both sides of the difference in which a value may lie."""
LABEL_WINDOW = 48
"""Characters before a value in which its own label may stand."""
SECTION_WINDOW = 20_000
"""Characters before the difference in which an enclosing heading is looked for."""


class Kind(StrEnum):
    """What a volatile value is."""

    TIME = "time"
    ID = "id"
    COUNTER = "counter"
    ENVIRONMENT = "environment"
    MEMORY = "memory"


class Told(NamedTuple):
    """A kind, and how sure it can be from the text alone."""

    kind: Kind
    ceiling: Confidence
    labelled: bool = False
    """Whether a label right before the value says so."""


@cache
def compiled(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Compiled on first use: most diagnoses need none of them."""
    return re.compile(pattern, flags)


def changed_span(before: str, after: str) -> tuple[int, int, int]:
    """Common length at the start, and the ends of what differs in both texts."""
    start = common_length(before, after)
    rest = min(len(before), len(after)) - start
    tail = common_length(before[::-1][:rest], after[::-1][:rest])
    return start, len(before) - tail, len(after) - tail


def values_at(pattern: str, text: str, at: int) -> list[Span]:
    """The values of one pattern that hold or touch a place."""
    # Only what lies around the place: patterns over a whole prompt cost more than all else.
    low = max(0, at - WINDOW)
    window = text[low : at + WINDOW]
    found = compiled(pattern).finditer(window)
    return [
        (m.start() + low, m.end() + low) for m in found if m.start() + low <= at <= m.end() + low
    ]


def both(patterns: tuple[str, ...], before: str, after: str, at: int) -> list[Span]:
    """Values of the later text that cover the difference and start where one does before."""
    spans = [span for p in patterns for span in values_at(p, after, at)]
    if not spans:
        return []
    starts = {start for p in patterns for start, _ in values_at(p, before, at)}
    return [span for span in spans if span[0] in starts]


def says(label: str, text: str, start: int) -> bool:
    """Whether a label stands right before a place, on the same line."""
    left = text[max(0, start - LABEL_WINDOW) : start]
    return bool(compiled(label).search(left.rsplit("\n", 1)[-1]))


def word_at(text: str, at: int) -> str:
    """The word that holds or touches a place; empty where none does."""
    spans = values_at(r"[^\s\"'`<>(){}\[\],;|]+", text, at)
    return text[spans[-1][0] : spans[-1][1]] if spans else ""


NO_TIME = (
    r"(?:\bv|version|release|build|rev|port|ratio|scale|aspect|score|odds|chapter|verse|section|"
    r"psalms?|john|luke|mark|matthew|rfc|isbn|\$|€|£|usd|eur)[\s.:=#]*$"
)
"""Right before a value: that it is a version, a price, a ratio or a place in a text."""
VALUE_FREE = (
    r"(?:[A-Za-z]:\\|~/|\.{1,2}/|/)[^\s\"'`<>|]+|[\w@~+-]+(?:/[\w.@~+-]+)*/?[\w@~+-]+\.[a-z]{1,5}"
)
"""A path: from a root, or a file with an ending."""


def is_no_value(text: str, start: int) -> bool:
    """Whether what stands ahead says that a value is a version, a price, a ratio or a place in a text."""
    return says(NO_TIME, text, start)


def is_in_data(text: str, at: int) -> bool:
    """Whether a place lies in a block of code, in a row of a table, or in an address."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    fences = text.count("```", max(0, at - SECTION_WINDOW), at)
    return fences % 2 == 1 or line.lstrip().startswith("|") or "://" in line.rsplit(" ", 1)[-1]


def names_file(text: str, span: Span) -> bool:
    """Whether a value is a part of a file's name or of a path."""
    left = compiled(r"[^\s\"'`<>(){}\[\],;|=]*$").search(text[max(0, span[0] - WINDOW) : span[0]])
    right = compiled(r"[^\s\"'`<>(){}\[\],;|]*").match(text, span[1], span[1] + WINDOW)
    head, tail = left[0] if left else "", right[0].rstrip(".,:") if right else ""
    if "://" in head:
        return False
    ending = compiled(r"[\w.-]*\.[a-z][a-z0-9]{0,4}$").fullmatch(tail)
    folder = compiled(r"(?:^|[a-z_~.-])[/\\][\w.~-]*$").search(head)
    return bool(ending or folder or compiled(r"[\w.-]*[/\\][a-z_~.]").match(tail))


def is_path(before: str, after: str, at: int) -> bool:
    """Both sides name a file or folder."""
    return all(
        compiled(VALUE_FREE).fullmatch(word_at(text, at).rstrip(".,;:")) for text in (before, after)
    )
