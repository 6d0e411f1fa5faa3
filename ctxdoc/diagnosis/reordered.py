"""Whether two texts hold the same things in another order around their first difference: the members
of an object written into text, or the lines and names of a list."""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from ctxdoc.diagnosis.text_values import changed_span, compiled
from ctxdoc.prompt.diff import common_length

MAX_TEXT = 20_000
"""Characters ahead of the difference, and of an object, that are looked at."""
MAX_OBJECTS = 8
"""Enclosing objects that are compared."""
MAX_DEPTH = 64
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
    spans = ((before, end_before), (after, end_after))
    if _same_items(*(_lines(text, start, end) for text, end in spans)):
        return Order.LINES
    for bare in (False, True):
        names = [_names(text, start, end, words=bare) for text, end in spans]
        if _same_items(*names) and all(re.search(r"[^\W\d_]", name) for name in names[0]):
            return Order.NAMES
    words = [_words(text, start, end) for text, end in spans]
    return Order.NAMES if len(words[0]) >= MIN_WORDS and _same_items(*words) else None


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
    edges = f"{_EDGES} " if words else _EDGES
    low = start
    while low > max(0, start - MAX_TEXT) and text[low - 1] not in edges:
        low -= 1
    found = compiled(_WORD_ENDS if words else _ENDS).search(text, end)
    whole = text[low : found.start() if found else len(text)]
    return [name.strip() for name in compiled(_SEPARATORS, 0).split(whole) if name.strip()]


def _words(text: str, start: int, end: int) -> list[str]:
    """The words that a stretch of a text touches, where they are no sentences."""
    low = start
    while low > max(0, start - MAX_TEXT) and not text[low - 1].isspace():
        low -= 1
    found = re.compile(r"\s|$").search(text, end)
    whole = text[low : found.start() if found else len(text)]
    return [] if re.search(r"[.!?:]\s", whole) else whole.split()


def _same_members(before: str, after: str) -> bool:
    """Whether an object around the first difference has the same members on both sides."""
    start = common_length(before, after)
    for at in _enclosing(before, start):
        one, two = (_object_at(text, at) for text in (before, after))
        if one is not None and two is not None and one[0] > start and two[0] > start:
            # The object differs as written, so that equal members have another order or other blanks.
            return one[1] == two[1] and one[2] != two[2]
    return False


def _enclosing(text: str, start: int) -> list[int]:
    """Where the objects begin that are open at a place, the innermost first."""
    low = max(0, start - MAX_TEXT)
    opened: list[int] = []
    for token in compiled(_TOKENS, re.DOTALL).finditer(text, low, start):
        if token[0] == "{":
            opened.append(token.start())
        elif token[0] == "}" and opened:
            opened.pop()
    return opened[: -MAX_OBJECTS - 1 : -1]


def _object_at(text: str, start: int) -> tuple[int, str, str] | None:
    """The end of the object at a place, its text with sorted members, and the same in its own order."""
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
