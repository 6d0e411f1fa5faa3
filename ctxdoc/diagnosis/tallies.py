"""Numbers that count: turns, tokens left, money spent, told by a label or by growing alone."""

from __future__ import annotations

import re

from ctxdoc.diagnosis.case import Confidence
from ctxdoc.diagnosis.headings import enclosing_kind
from ctxdoc.diagnosis.text_values import (
    LABEL_WINDOW,
    SECTION_WINDOW,
    WINDOW,
    Kind,
    Span,
    Told,
    both,
    changed_span,
    compiled,
    is_no_value,
)

NUMBER = r"(?<![\w.,$€£+])[$€£]?\d+(?:[.,_ ]\d{3})*(?:[.,]\d+)?(?:\s?%|\s?[km]\b)?(?!\w|[.,:]\d)"
"""A count, an amount of money, a share."""
_COUNTED = (
    r"(?:turn|step|request|message|iteration|attempt|round|call|token|credit|budget|context|quota|balance|cost|"
    r"exchange|interaction|quer(?:y|ie)|prompt|cycle|loop)s?"
)
_USED = r"(?:remaining|used|left|spent|consumed|so far|elapsed|done|completed|taken|made|sent)"
_IS = r"(?:\s?[:=#№>(]|\s(?:is|are|no\.?|number)\b)\s*[\"'#(]?\s?"
COUNTER_LABELS = (
    # tokens left: 5, messages so far: 5, remaining budget $5, used tokens = 5
    rf"\b{_COUNTED}(?: \w+)? {_USED}[\"']?(?:{_IS}|\s)$",
    rf"\b{_USED} {_COUNTED}[\"']?(?:{_IS}|\s)$",
    rf"\b(?:so far|remaining|used){_IS}$",
    # turn: 5, turn number: 5, message count = 5, number of turns is 5, <turn>5, request #5
    rf"\b(?:{_COUNTED}|count(?:er)?|seq(?:uence)?)"
    rf"(?: (?:no\.?|number|index|usage|count(?:er)?))?[\"')\]]*{_IS}$",
    rf"\bnumber of {_COUNTED}{_IS}$",
    r"\b(?:you|we|user|agent|it)(?:'ve| have| has)? (?:already |now )?"
    r"(?:used|sent|made|taken|spent|exchanged) $",
)
"""Right before a number, words parted by spaces: that it counts."""
BARE_COUNTER = (
    r"\b(?:turn|step|request|message|iteration|attempt|round|call|exchange|cycle|loop) #?$"
)
"""The same where the number has to end what is said, as in 'turn 5.'."""
NO_COUNTER = (
    r"\b(?:(?:max(?:imum)?|min(?:imum)?|limit|limited to|allow\w*|up to|at (?:most|least)|default|retry|"
    r"retries|reserve\w*)\b\W*(?:\w+\W+){0,3}|(?:each|every|per|no more than|fewer than|more than|"
    r"less than|within|under|over|after|before|until)\s(?:\w+\W+)?|"
    r"(?:turn|margin|padding|border|align)[ -](?:left|right)\W*)$"
)
"""Words ahead of a number: that it is a rule or a place and no count."""
POINTS_AT = (
    r"\b(?:see|in|from|to|repeat|skip|follow|by|at|than|of|do|perform|run|execute|complete|finish|start|with|and|"
    r"or|for|through)\s(?:the\s)?\w+ #?$"
)
"""Ahead of 'step 5': that a step of the text is meant."""
IS_NOW = r"\b(?:you are|you're|we are|this is|it is|now|current(?:ly)?|is)\b"
COUNTER_TAIL = r"\s?(?:/|of\b|out of\b|$|[\]\).,<\n\"'])"
COUNTER_LEFT = (
    rf"\s?(?:(?:of|/)\s?[\d.,_]+\s?[km]?\s)?(?:\w+ ){{0,3}}?(?:{_COUNTED}|budget|window|\w+)? ?"
    r"(?:(?:were |was |have been |has been |is |are )?"
    r"(?:left|remaining|remain|used|so far|spent|consumed|to go))\b|(?<=%) full\b"
)
"""Right behind a number: that it counts down or up."""


def as_counter(before: str, after: str, at: int) -> Told | None:
    """A number that its label, or what stands behind it, says to count."""
    spans = both((NUMBER,), before, after, at)
    # In recalled text a number is a part of the note.
    if not spans or is_no_value(after, spans[0][0]) or enclosing_kind(after, at) is Kind.MEMORY:
        return None
    longest = max(spans, key=lambda span: span[1] - span[0])
    return Told(Kind.COUNTER, Confidence.LIKELY, labelled=True) if counts(after, longest) else None


def counts(text: str, span: Span) -> bool:
    """Whether a number counts, by what stands right ahead of it or right behind it."""
    start, end = span
    line = text[max(0, start - LABEL_WINDOW) : start].rsplit("\n", 1)[-1]
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", line)
    # A limit is worded as a count is: at most 5 turns.
    if compiled(NO_COUNTER).search(spaced):
        return False
    if any(compiled(label).search(spaced) for label in COUNTER_LABELS):
        return True
    if compiled(BARE_COUNTER).search(spaced) and compiled(COUNTER_TAIL).match(text, end):
        return not compiled(POINTS_AT).search(spaced) or bool(compiled(IS_NOW).search(spaced))
    return bool(compiled(COUNTER_LEFT).match(text, end, end + WINDOW))


def as_grown(before: str, after: str, at: int) -> Told | None:
    """Numbers that grew where nothing else is another: two or more, or one with a line of its own."""
    one, two = _widened(before, after)
    plain = compiled(NUMBER).sub("0", one)
    if plain != compiled(NUMBER).sub("0", two) or is_no_value(after, at):
        return None
    changed = _changed_numbers(one, two)
    # One number inside of words may be any edit.
    alone = len(changed) == 1 and not compiled(r"[^\W\d]").search(plain)
    if not alone and len(changed) < 2:
        return None
    grew = all(old < new for old, new in changed)
    return Told(Kind.COUNTER, Confidence.POSSIBLE) if grew else None


def _changed_numbers(before: str, after: str) -> list[tuple[float, float]]:
    """The numbers that are others in two texts which have the same words around them."""
    pairs = zip(*(compiled(NUMBER).findall(text) for text in (before, after)), strict=True)
    return [(_amount(old), _amount(new)) for old, new in pairs if old != new]


def is_grown(before: str, after: str) -> bool:
    """Whether two words are numbers, and the later one is the larger."""
    numbers = [compiled(NUMBER).fullmatch(word.rstrip(".,;:)")) for word in (before, after)]
    return all(numbers) and _amount(before) < _amount(after)


def _widened(before: str, after: str) -> tuple[str, str]:
    """Both sides of the difference with the lines that it lies in."""
    start, end_before, end_after = changed_span(before, after)
    low = max(after.rfind("\n", 0, start) + 1, start - WINDOW)
    rest = after[end_after : end_after + WINDOW].split("\n", 1)[0]
    if max(end_before, end_after) - start > SECTION_WINDOW:
        return "", "0"
    return before[low:end_before] + rest, after[low:end_after] + rest


def _amount(number: str) -> float:
    digits = re.sub(r"[^\d.]", "", number)
    return float(digits) if digits.count(".") <= 1 and digits.strip(".") else 0.0
