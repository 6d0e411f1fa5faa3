"""Whether two texts hold the same things in another order around their first difference: the members
of an object written into text, or the lines and names of a list."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from ctxdoc.diagnosis.text_values import changed_span, compiled
from ctxdoc.prompt.diff import common_length

MAX_TEXT = 20_000
"""Characters ahead of the difference, and of an object, that are looked at."""
MAX_OBJECTS = 8
"""Enclosing objects that are compared."""
MAX_DEPTH = 64
LETTERS = "etisl"
"""Frequent letters that stand in no separator of a list."""
DIGITS = "0123456789"
MIN_WORDS = 3
"""Words from which on the same ones without anything between them are a list, and no other wording."""

_TOKENS = (
    r'"(?:[^"\\\n]|\\.)*"|(?<!\w)\'(?:[^\'\\\n]|\\.)*\'(?!\w)|[{}\[\](),]|\s+|[^\s{}\[\](),"\']+|.'
)
"""Strings, brackets, commas, white space, and anything else. A string of JSON and of Python's holds no
line end, and an apostrophe inside of a word opens none."""
_ITEM = r"^\s*(?:[-*•+]|\d+[.)])\s+"
_SEPARATORS = r"\s*(?:,\s*(?:and|or)\b|[,;|]|\b(?:and|or)\b)\s*"
_EDGES = ",;|:([{\n"
_ENDS = r"[,;|)\]}\n]|\.(?:\s|$)|$"
_BLANK = r"\s|$"
_WORD_ENDS = r"[\s,;|)\]}]|\.(?:\s|$)|$"


class Order(StrEnum):
    """What stands in another order."""

    MEMBERS = "members"
    """Of an object: JSON, or another writing of it."""
    LINES = "lines"
    NAMES = "names"


@lru_cache(maxsize=64)
def find_order(before: str, after: str) -> Order | None:
    """What of the first difference of two texts is the same in another order; None where it is not."""
    if before == after:
        return None
    if _same_members(before, after):
        return Order.MEMBERS
    start, end_before, end_after = changed_span(before, after)
    if max(end_before, end_after) - start > MAX_TEXT:
        return None
    one, two = _Stretch(before, start, end_before), _Stretch(after, start, end_after)
    # Lists are cut out of the texts only where the same letters differ: nearly never.
    if not _have_as_many(LETTERS, one, two):
        return None
    if _same_items(_lines(*one), _lines(*two)):
        return Order.LINES
    # The numbers of lines may be counted anew; those of names stay with them.
    return _order_of_names(one, two) if _have_as_many(DIGITS, one, two) else None


class _Stretch(NamedTuple):
    """A stretch of a text."""

    text: str
    start: int
    end: int


def _have_as_many(letters: str, one: _Stretch, two: _Stretch) -> bool:
    """Whether two stretches can hold the same items: each letter that no separator has stands as often
    in both. What surrounds them is equal, so that it need not be asked."""
    return all(
        one.text.count(letter, one.start, one.end) == two.text.count(letter, two.start, two.end)
        for letter in letters
    )


def _order_of_names(one: _Stretch, two: _Stretch) -> Order | None:
    """Whether the names or words around two stretches are the same in another order."""
    lists = ([_names(*each, words=bare) for each in (one, two)] for bare in (False, True))
    if any(_are_names(*each) for each in lists):
        return Order.NAMES
    # Two words may change places as another wording; three or more are a list.
    words = _words(*one)
    same = len(words) >= MIN_WORDS and _same_items(words, _words(*two))
    return Order.NAMES if same else None


def _are_names(before: list[str], after: list[str]) -> bool:
    """Whether two lists have the same names: numbers alone are no names, they may have been counted."""
    return _same_items(before, after) and all(re.search(r"[^\W\d_]", name) for name in before)


def _same_items(before: list[str], after: list[str]) -> bool:
    return before != after and len(before) > 1 and sorted(before) == sorted(after)


def _lines(text: str, start: int, end: int) -> list[str]:
    """The lines in which a stretch of a text lies, without the marks of a list."""
    low = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    lines = text[low : stop if stop >= 0 else len(text)][: 2 * MAX_TEXT].splitlines()
    item = compiled(_ITEM)
    return [item.sub("", line).strip().rstrip(",") for line in lines if line.strip()]


def _names(text: str, start: int, end: int, *, words: bool) -> list[str]:
    """The names of a list in which a stretch of a text lies; with `words` the list begins and ends with
    the words of its ends, and what stands around them is prose."""
    least = max(0, start - MAX_TEXT)
    edges = f"{_EDGES} " if words else _EDGES
    low = max(least, *(text.rfind(edge, least, start) + 1 for edge in edges))
    whole = text[low : _end_from(_WORD_ENDS if words else _ENDS, text, end)]
    names = compiled(_SEPARATORS, 0).split(whole)
    return [name for each in names if (name := each.strip())]


def _end_from(ends: str, text: str, end: int) -> int:
    """Where a list that goes on behind a place ends."""
    found = compiled(ends).search(text, end)
    return found.start() if found else len(text)


def _words(text: str, start: int, end: int) -> list[str]:
    """The words that a stretch of a text touches, where they are no sentences."""
    low = start
    while low > max(0, start - MAX_TEXT) and not text[low - 1].isspace():
        low -= 1
    whole = text[low : _end_from(_BLANK, text, end)]
    return [] if re.search(r"[.!?:]\s", whole) else whole.split()


def _same_members(before: str, after: str) -> bool:
    """Whether an object around the first difference has the same members on both sides."""
    start = common_length(before, after)
    for at in _enclosing(before, start):
        one, two = _object_around(before, at, start), _object_around(after, at, start)
        if one is not None and two is not None:
            # The object differs as written, so that equal members have another order or other blanks.
            return one[0] == two[0] and one[1] != two[1]
    return False


def _object_around(text: str, at: int, start: int) -> tuple[str, str] | None:
    """The object at a place, as `_object_at` has it, where it holds another place."""
    found = _object_at(text, at)
    return found[1:] if found is not None and found[0] > start else None


def _enclosing(text: str, start: int) -> list[int]:
    """Where the objects begin that are open at a place, the innermost first."""
    low = max(0, start - MAX_TEXT)
    if text.find("{", low, start) < 0:
        # Prose: to take it apart into tokens costs more than all else that is asked of it.
        return []
    opened: list[int] = []
    for token in compiled(_TOKENS, re.DOTALL).finditer(text, low, start):
        if token[0] == "{":
            opened.append(token.start())
        elif token[0] == "}" and opened:
            opened.pop()
    return opened[: -MAX_OBJECTS - 1 : -1]


def _object_at(text: str, start: int) -> tuple[int, str, str] | None:
    """The end of the object at a place, its text with sorted members, and the same in its own order."""
    # Each bracket is written twice, with sorted members and as it stands: equal the one way and different
    # the other is another order, and one pass over the tokens tells both.
    stack: list[tuple[str, list[tuple[str, str]], list[str], list[str]]] = []
    one: list[str] = []
    two: list[str] = []
    members: list[tuple[str, str]] = []
    closing = ""
    for token in compiled(_TOKENS, re.DOTALL).finditer(text, start, start + MAX_TEXT):
        word = token[0]
        if word in "{[(":
            if len(stack) >= MAX_DEPTH:
                return None
            stack.append((closing, members, one, two))
            closing, members, one, two = {"{": "}", "[": "]", "(": ")"}[word], [], [], []
        elif word in "}])":
            if word != closing:
                return None
            whole = _closed(word, [*members, ("".join(one), "".join(two))])
            closing, members, one, two = stack.pop()
            if not stack:
                return token.end(), *whole
            one.append(whole[0])
            two.append(whole[1])
        elif word == ",":
            members.append(("".join(one), "".join(two)))
            one, two = [], []
        elif not word.isspace():
            one.append(word)
            two.append(word)
    return None


def _closed(bracket: str, members: list[tuple[str, str]]) -> tuple[str, str]:
    """A whole object or list: with the members of objects sorted, and as it was written."""
    sorted_ones = [one for one, _ in members]
    if bracket == "}":
        sorted_ones.sort()
    return f"<{bracket}{','.join(sorted_ones)}{bracket}>", ",".join(two for _, two in members)
