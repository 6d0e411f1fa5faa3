"""What the differing bytes of two texts are: a time, an id, live state, recalled text.

Each detector asks the same question of both sides: does a value of its kind stand at the first
differing character, and at the same place in both texts?
"""

from __future__ import annotations

import re
from enum import StrEnum

WINDOW = 80
"""Characters on both sides of the difference in which a value may lie."""
CHUNK = 4096
CONTEXT = 320
"""Characters before the difference in which a heading or label is looked for."""


class Kind(StrEnum):
    """What a volatile value is."""

    TIME = "time"
    ID = "id"
    COUNTER = "counter"
    ENVIRONMENT = "environment"
    MEMORY = "memory"


_MONTH = r"(?:jan|feb|m[aä]r|apr|ma[iy]|jun|jul|aug|sep|oct|okt|nov|de[cz])[a-zéû]*\.?"
_WEEKDAY = r"(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\.?)?"
_ZONE = r"(?:\s?(?:z|utc|gmt|[+-]\d\d:?\d\d))?"

TIME_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # ISO 8601 date with or without a time
        rf"(?<![\d.v])(?:19|20)\d\d([-/])(?:0?[1-9]|1[0-2])\1{_DAY}(?!\d)"
        rf"(?:[t _,]+(?:at\s)?[0-2]\d(?:[:.\-h]?[0-5]\d)?(?:[:.\-]?[0-6]\d)?(?:[.,]\d+)?)?{_ZONE}",
        # compact ISO
        r"(?<!\w)(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[t_-]?[0-2]\d[0-5]\d(?:[0-6]\d)?z?)?(?!\w)",
        r"(?<!\w)(?:19|20)\d\d-?w[0-5]\d(?:-?[1-7])?(?!\w)",
        # day and month by name, RFC 2822 and the like, in either order
        rf"(?<!\w)(?:{_WEEKDAY},?\s+)?{_DAY}(?:st|nd|rd|th|\.)?[\s-]+(?:de\s+|of\s+)?{_MONTH}(?:,?[\s-]+(?:de\s+)?(?:\d{{4}}|\d\d(?!:)))?(?:,?\s+(?:at\s+)?{_CLOCK}{_ZONE})?(?!\w)",
        rf"(?<!\w)(?:{_WEEKDAY},?\s+)?{_MONTH}\s+{_DAY}(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?(?:,?\s+(?:at\s+)?{_CLOCK}{_ZONE})?(?:\s+\d{{4}})?(?!\w)",
        rf"(?<!\w){_MONTH}\s+(?:19|20)\d\d(?!\w)",
        rf"(?<!\w){_WEEKDAY}(?:,?\s+{_CLOCK})?(?!\w)",
        # numeric dates with the year last
        rf"(?<![\w.$€£]){_DAY}([./-]){_DAY}\1(?:19|20)?\d\d(?![\w.]\d)(?!\w)",
        r"(?:19|20)?\d\d\s?年\s?\d{1,2}\s?月(?:\s?\d{1,2}\s?日)?",
        r"\d{1,2}\s?[時时点]\s?\d{1,2}\s?分?",
        # time of day
        rf"(?<![\w:.$€£-]){_CLOCK}{_ZONE}(?![\w:])",
        r"(?<![\w:.$€£])(?:0?[1-9]|1[0-2])\s?[ap]\.?m(?:\.|(?!\w))",
        r"(?<![\w:.])(?:[01]?\d|2[0-3])h(?:[0-5]\d)?(?!\w)",
        r"(?<!\w)(?:early |late )?(?:morning|noon|midday|afternoon|evening|night|midnight)(?!\w)",
        # elapsed time
        r"(?<!\w)(?:\d+|an?)\s?(?:ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?|months?)"
        r"(?:\s\d+\s?(?:s|m|h)[a-z]*)*\s(?:ago|earlier|since|old|left|remaining|elapsed|uptime)(?!\w)",
        # seconds, milliseconds, nanoseconds since 1970, from 2001 to 2096
        r"(?<![\w.$€£,-])(?:[1-3]\d{9}(?:\.\d+)?|[1-3]\d{12}|[1-3]\d{15}|[1-3]\d{18})(?![\w,])",
    )
)
"""Dates, times of day, elapsed times and epochs. A version, a price and a ratio are none."""
VERSION_BEFORE = re.compile(
    r"(?:\bv|version|release|build|rev|port|\$|€|£|usd|eur)[\s.:=]*$", re.IGNORECASE
)
"""What before a number says that it is no time."""

_BOUND = r"(?<![A-Za-z0-9])(?:{})(?![A-Za-z0-9])"
ID_PATTERNS = tuple(
    re.compile(_BOUND.format(pattern))
    for pattern in (
        r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){2,3}[0-9a-fA-F]{4,12}",
        r"(?=[0-9a-f]*\d)[0-9a-f]{7,64}|(?=[0-9A-F]*\d)[0-9A-F]{8,64}",
        r"[0-9A-HJKMNP-TV-Z]{26}",
        r"(?=[A-Z2-7]*[2-7])[A-Z2-7]{16,}",
        r"(?=[A-Za-z0-9_-]*\d)(?=[A-Za-z0-9_-]*[a-z])(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{12,}",
        r"[a-z][a-z0-9]{1,15}[_-](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{6,}",
        r"(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{12,}",
    )
)
"""UUIDs, hex, ULIDs, base32, base62 and prefixed ids."""
ID_LABEL = re.compile(
    r"(?:\b|_)(?:id|ids|uuid|guid|ulid|nonce|cch|trace|span|session|request|correlation|seed|salt|"
    r"hash|digest|checksum|etag|token|run|job|message[_ ]?id|call|thread|conversation)"
    r"[\"'\])]*\s*(?:[:=#]|is|->)\s*[\"'\[(<#]*\S{0,40}$",
    re.IGNORECASE,
)
"""A label right before the value that says it is an id."""
COUNTER_LABEL = re.compile(
    r"(?:\b(?:turn|step|request|message|iteration|attempt|round|call|count(?:er)?|number|no|page|"
    r"remaining|left|used|budget|tokens?|total|index|seq(?:uence)?)\b\W{0,4}|#\s?|№\s?)\d*$",
    re.IGNORECASE,
)
GIT = re.compile(
    r"\b(?:git|branch|commits?|head|status|staged|unstaged|untracked|uncommitted|working tree|"
    r"diff|sha|ahead|behind|modified|stash)\b",
    re.IGNORECASE,
)
ENVIRONMENT_LABEL = re.compile(
    GIT.pattern
    + r"|\b(?:cwd|pwd|working (?:dir\w*|folder)|current (?:dir\w*|folder|file|branch|page|screen|tab|url)|"
    r"workspace|open (?:files?|tabs?|editors?|documents?|windows?)|active (?:file|editor|tab|window)|"
    r"selection|selected|cursor|editor|viewport|mode|host(?:name)?|platform|environment|env|os|shell|"
    r"processes|disk|cpu|ram|battery|network|ip address|port|device|location|weather|"
    r"project structure|file ?tree|directory (?:listing|structure)|listing|files?|folders?)\b",
    re.IGNORECASE,
)
MEMORY_LABEL = re.compile(
    r"memor(?:y|ies)|recall|remember|\bnotes?\b|\bskills?\b|instructions?\b|guidelines?\b|"
    r"(?:claude|agents?|gemini|memory)\.md|cursorrules|preferences?\b|\bfacts?\b|knowledge\b|"
    r"\bprofile\b|\bpersona\b|retrieved|relevant (?:context|documents?|snippets?)|known about|"
    r"\brules? file|what (?:you|we|i) know|learned|context from",
    re.IGNORECASE,
)
PATH = re.compile(
    r"(?:[A-Za-z]:\\|~/|\.{0,2}/)?[\w.@~+-]+(?:[/\\][\w.@~+-]+)+/?|[A-Za-z]:\\\S*|~/\S*|/\S+"
)
NUMBER = re.compile(r"(?<![\w.,$€£])\d+(?![\w.,]*\d)")
WORD = re.compile(r"[^\s\"'`<>(){}\[\],;|]+")


def character_of(text: str, byte: int) -> int:
    """The character in which a UTF-8 byte offset lies."""
    return len(text.encode()[:byte].decode("utf-8", "ignore"))


def changed_span(before: str, after: str) -> tuple[int, int, int]:
    """Common length at the start, and the ends of what differs in both texts."""
    start = _common_start(before, after)
    rest = min(len(before), len(after)) - start
    tail = _common_start(before[::-1][:rest], after[::-1][:rest])
    return start, len(before) - tail, len(after) - tail


def _common_start(one: str, two: str) -> int:
    size = min(len(one), len(two))
    for low in range(0, size, CHUNK):
        high = min(low + CHUNK, size)
        if one[low:high] != two[low:high]:
            return next(i for i in range(low, size) if one[i] != two[i])
    return size


def find_kind(before: str, after: str) -> Kind | None:
    """What the first differing value of two texts is, or None when no detector knows."""
    start, _, _ = changed_span(before, after)
    for kind, test in _TESTS:
        if test(before, after, start):
            return kind
    return None


def find_kinds(before: str, after: str) -> tuple[Kind, ...]:
    """The kind of every differing value, in the order in which they stand."""
    kinds: dict[Kind, None] = {}
    offset_before = offset_after = 0
    for _ in range(8):
        one, two = before[offset_before:], after[offset_after:]
        if one == two:
            break
        kind = find_kind(one, two)
        if kind is not None:
            kinds[kind] = None
        start, _, _ = changed_span(one, two)
        step = _resync(one, two, start)
        if step is None:
            break
        offset_before += step[0]
        offset_after += step[1]
    return tuple(kinds)


def only_values_differ(before: str, after: str) -> bool:
    """Whether both texts are the same but for one short stretch: a template with another value."""
    start, end_before, end_after = changed_span(before, after)
    changed = max(end_before, end_after) - start
    return changed <= max(64, 0.25 * min(len(before), len(after)))


def similarity(before: str, after: str) -> float:
    """Share of the longer text that both have at their start or end."""
    start, end_before, _ = changed_span(before, after)
    common = start + len(before) - end_before
    return common / max(len(before), len(after), 1)


def _resync(one: str, two: str, start: int) -> tuple[int, int] | None:
    """Where both texts go on alike behind the differing word."""
    word_one, word_two = _word_end(one, start), _word_end(two, start)
    if one[word_one : word_one + 8] == two[word_two : word_two + 8] and one[word_one:]:
        return word_one, word_two
    return None


def _word_end(text: str, start: int) -> int:
    found = re.compile(r"[\s\"',;|)\]}]").search(text, start)
    return found.start() if found else len(text)


def _values_at(pattern: re.Pattern[str], text: str, at: int) -> list[re.Match[str]]:
    low = max(0, at - WINDOW)
    window = text[low : at + WINDOW]
    at -= low
    return [m for m in pattern.finditer(window) if m.start() <= at <= m.end()]


def _both(patterns: tuple[re.Pattern[str], ...], before: str, after: str, at: int) -> bool:
    """Whether a value of the kind covers the difference on both sides, from the same start."""
    starts = {m.start() for p in patterns for m in _values_at(p, before, at)}
    return any(m.start() in starts for p in patterns for m in _values_at(p, after, at))


def _is_time(before: str, after: str, at: int) -> bool:
    starts = [m for p in TIME_PATTERNS for m in _values_at(p, after, at)]
    low = max(0, at - WINDOW)
    if not _both(TIME_PATTERNS, before, after, at):
        return False
    first = min(m.start() for m in starts)
    return not VERSION_BEFORE.search(after[max(0, low + first - 12) : low + first])


def _is_id(before: str, after: str, at: int) -> bool:
    left = after[max(0, at - CONTEXT) : at]
    if GIT.search(left[-60:]) or _is_path(before, after, at):
        return False
    if _both(ID_PATTERNS, before, after, at):
        return True
    return bool(ID_LABEL.search(left[-80:])) and _word_at(before, at) != _word_at(after, at)


def _is_counter(before: str, after: str, at: int) -> bool:
    one, two = (_values_at(NUMBER, text, at) for text in (before, after))
    if not (one and two and one[0].start() == two[0].start()):
        return False
    low = max(0, at - WINDOW)
    label = after[max(0, low + two[0].start() - 40) : low + two[0].start()]
    if VERSION_BEFORE.search(label):
        return False
    return bool(COUNTER_LABEL.search(label)) or 0 < int(two[0][0]) - int(one[0][0]) <= 2


def _is_path(before: str, after: str, at: int) -> bool:
    """Both sides name a file or folder, and not merely a date or a ratio with a slash."""
    one, two = _word_at(before, at), _word_at(after, at)
    return all(PATH.fullmatch(word) and re.search(r"[A-Za-z]", word) for word in (one, two))


def _is_environment(before: str, after: str, at: int) -> bool:
    if _is_path(before, after, at):
        return True
    return _nearest_label(after, at) is Kind.ENVIRONMENT


def _is_memory(before: str, after: str, at: int) -> bool:
    del before
    return _nearest_label(after, at) is Kind.MEMORY


def _nearest_label(text: str, at: int) -> Kind | None:
    """The kind of the heading or label that stands nearest before a place."""
    for line in reversed(text[max(0, at - CONTEXT) : at].splitlines()):
        if not _is_label(line):
            continue
        if MEMORY_LABEL.search(line):
            return Kind.MEMORY
        if ENVIRONMENT_LABEL.search(line):
            return Kind.ENVIRONMENT
    return None


def _is_label(line: str) -> bool:
    """A heading, a tag, a `name:` or a short line; not prose."""
    text = line.strip()
    return bool(
        text
        and (len(text) <= 48 or text.startswith(("#", "<", "=", "-", "*", "[")) or ":" in text[:48])
    )


def _word_at(text: str, at: int) -> str:
    found = _values_at(WORD, text, at)
    return found[-1][0] if found else ""


_TESTS = (
    (Kind.TIME, _is_time),
    (Kind.ID, _is_id),
    (Kind.COUNTER, _is_counter),
    (Kind.ENVIRONMENT, _is_environment),
    (Kind.MEMORY, _is_memory),
)
"""Most certain first."""
