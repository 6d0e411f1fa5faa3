"""What the differing bytes of two texts are: a time, an id, live state, recalled text.

Each detector asks the same question of both sides: does a value of its kind stand at the first
differing character, and at the same place in both texts? Text that stands on one side only is
judged by what it says of itself.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache, lru_cache

from ctxdoc.diff import common_length
from ctxdoc.providers import RULES

WINDOW = 80
"""Characters on both sides of the difference in which a value may lie."""
LABEL_WINDOW = 48
"""Characters before a value in which its own label may stand."""
SECTION_WINDOW = 20_000
"""Characters before the difference in which an enclosing heading is looked for."""
MAX_VALUES = 8
"""Differing values of one text that are looked at."""


class Kind(StrEnum):
    """What a volatile value is."""

    TIME = "time"
    ID = "id"
    COUNTER = "counter"
    ENVIRONMENT = "environment"
    MEMORY = "memory"


_MONTHS = (
    "jan(?:uary|uar|vier)?|january|januar|enero|gennaio|janeiro|januari|"
    "feb(?:ruary|ruar|brero|braio)?|february|februar|février|febrero|febbraio|fevereiro|"
    "mar(?:ch|s|zo)?|m[aä]rz?|março|maart|apr(?:il|ile)?|avril|abril|aprile|"
    "may|mai|mayo|maggio|maio|mei|june?|juni|juin|junio|giugno|junho|"
    "july?|juli|juillet|julio|luglio|julho|aug(?:ust|ustus)?|août|agosto|"
    "sept?(?:ember|embre|iembre)?|settembre|setembro|okt(?:ober)?|oct(?:ober|obre|ubre)?|ottobre|"
    "outubro|nov(?:ember|embre|iembre|embro)?|de[cz](?:ember|embre|embro)?|décembre|diciembre|"
    "dicembre|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря"
)
_WEEKDAYS = (
    "mon(?:day)?|tue(?:s|sday)?|wed(?:nesday)?|thu(?:r|rs|rsday)?|fri(?:day)?|sat(?:urday)?|"
    "sun(?:day)?|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonnabend|sonntag|"
    "lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|"
    "sábado|domingo|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|"
    "(?:segunda|terça|quarta|quinta|sexta)(?:-feira)?|maandag|dinsdag|woensdag|donderdag|vrijdag|"
    "zaterdag|zondag|понедельник|вторник|среда|четверг|пятница|суббота|воскресенье"
)
DAYS = re.compile(
    rf"(?:19|20)\d\d([-/.])\d{{1,2}}\1\d{{1,2}}(?!\d)|(?<!\w)(?:19|20)\d{{6}}(?!\d)"
    rf"|(?<!\w)\d{{1,2}}([-/.])\d{{1,2}}\2(?:19|20)?\d\d(?!\d)"
    rf"|(?<!\w)(?:{_MONTHS})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+(?:19|20)\d\d)?(?!\w|:)"
    rf"|(?<!\w)\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:{_MONTHS})\.?(?:,?\s+(?:19|20)\d\d)?(?!\w|:)"
    rf"|(?<!\w)(?:{_WEEKDAYS})(?!\w)",
    re.IGNORECASE,
)
"""Days in a text, without a time of the day."""
_MONTH = rf"(?:{_MONTHS})\.?"
_WEEKDAY = rf"(?:{_WEEKDAYS})"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\.?(?!\w))?"
_ZONE = r"(?:\s?(?:z|utc|gmt|cet|cest|[ecmp][sd]t|[+-]\d\d:?\d\d)(?!\w))?"
_AT = rf"(?:(?:,|\s+at|\s+um|\s+à|\s+a las|:)?\s*{_CLOCK}{_ZONE})?"
_LEAD = rf"(?:{_WEEKDAY}\.?,?\s+(?:der\s+|den\s+|le\s+|el\s+|il\s+)?)?"

TIMES = (
    # ISO 8601 date with or without a time
    rf"(?<![\d.v])(?:19|20)\d\d([-/.])(?:0?[1-9]|1[0-2])\1{_DAY}(?!\d|\.\d)"
    rf"(?:[t _,]+(?:at\s)?[0-2]\d(?:[:.\-h]?[0-5]\d)?(?:[:.\-]?[0-6]\d)?(?:[.,]\d+)?)?{_ZONE}",
    # compact ISO, ISO week, day of the year
    r"(?<!\w)(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
    r"(?:[t_-]?[0-2]\d[0-5]\d(?:[0-6]\d\d{0,6})?z?)?(?!\w)",
    r"(?<!\w)(?:19|20)\d\d-?(?:w[0-5]\d(?:-?[1-7])?|[0-3]\d\d)(?!\w)",
    # day and month by name in either order, RFC 2822, access logs
    rf"(?<!\w){_LEAD}{_DAY}(?:st|nd|rd|th|\.|er)?[\s/-]*(?:de\s+|of\s+)?{_MONTH}"
    rf"(?:,?[\s/-]*(?:de\s+|del\s+)?(?:(?:19|20)\d\d|\d\d(?!:)))?{_AT}(?!\w)",
    rf"(?<!\w){_LEAD}{_MONTH}[\s-]+{_DAY}(?:st|nd|rd|th)?(?:,?[\s-]+(?:19|20)\d\d)?{_AT}(?:\s+\d{{4}})?(?!\w)",
    rf"(?<!\w){_MONTH}\s+(?:de\s+)?(?:19|20)\d\d(?!\w)",
    # numeric dates with the year last
    rf"(?<![\w.$€£]){_DAY}([./-]){_DAY}\1(?:19|20)?\d\d(?![\w.]\d)(?!\w){_AT}",
    r"(?:19|20)?\d\d\s?[年년]\s?\d{1,2}\s?[月월](?:\s?\d{1,2}\s?[日일])?",
    r"(?:[上下]午|午[前後]|오전|오후)?\s?\d{1,2}\s?(?:[時时点시]\s?(?:\d{1,2}\s?[分분]?)?|:[0-5]\d)",
    r"星期[一二三四五六日天]|周[一二三四五六日]|[月火水木金土日]曜日?|[월화수목금토일]요일",
    # time of day
    rf"(?<![\w:.$€£-]){_CLOCK}{_ZONE}(?![\w:])",
    r"(?<![\w:.$€£])(?:0?[1-9]|1[0-2])\s?[ap]\.?m(?:\.|(?!\w))",
    r"(?<![\w:.])(?:[01]?\d|2[0-3])[.:][0-5]\d\s?uhr(?!\w)",
    rf"(?<!\w){_WEEKDAY}\.?,?\s+(?:{_CLOCK}|(?:the\s+)?{_DAY}(?:st|nd|rd|th))(?!\w)",
    r"(?<![\w:.])(?:[01]?\d|2[0-3])h[0-5]\d(?!\w)|(?<!\w)[0-2]\d[0-5]\d\s(?:hours|hrs)(?!\w)",
    r"(?<!\w)q[1-4]\s+(?:19|20)\d\d(?!\w)|datetime(?:\.datetime)?\([\d, ]+\)?",
)
"""Dates and times that say so by their form."""
ELAPSED = (
    r"(?<!\w)(?:(?:vor|hace|il y a)\s)?(?:\d+|an?|just)\s?"
    r"(?:now|ms|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|weeks?|months?|minuten?|"
    r"sekunden?|stunden?|minutos?|segundos?|horas?|heures?|分|秒|時間)"
    r"(?:\s\d+\s?(?:s|m|h)[a-z]*)*\s?(?:ago|earlier|elapsed|uptime|remaining|left|前)?(?!\w)"
)
"""A span of time; one that went by if it says so or has a label."""
EPOCHS = r"(?<![\w.$€£,-])(?:1[4-9]|20)\d{8}(?:\.\d+|\d{3}|\d{6}|\d{9})?(?!\w|[.,]\d)"
"""Seconds, milliseconds, microseconds or nanoseconds since 1970, from 2014 to 2036."""
LABELLED = (
    rf"(?<!\w){_WEEKDAY}(?!\w)",
    r"(?<!\w)(?:early |late )?(?:morning|noon|midday|afternoon|evening|night|midnight|morgen|tag|abend|"
    r"nacht|mañana|tardes?|noches?|jour|soir|nuit)(?!\w)",
    r"(?<![\w.])\d+(?:[.:h/]\d+)*(?:\s?[a-z]{1,7})?(?![\w.]\w)",
)
"""What is a time only behind a label that says so."""
TIME_LABEL = (
    r"(?:\b(?:time|date|datetime|day|weekday|month|today|now|clock|timestamp|epoch|year|week|quarter|elapsed|uptime|"
    r"remaining|hour|minute|uhrzeit|datum|heute|uhr|zeit|heure|aujourd'hui|jour|hora|fecha|hoy|ora|oggi|"
    r"good|guten?|buen[ao]s?|bon|bonne)\b|\bt\s?\+|_at\b|时间|日期|今天|時刻|日付|시간)"
    r"[\"'\])>]*\s*(?:is|ist|est|es|[:=(>]|of year)?\s*[\"'\[(<]?\s*(?:\w+\s)?$"
)
"""Right before a value: that it is a time."""
NO_TIME = (
    r"(?:\bv|version|release|build|rev|port|ratio|scale|aspect|score|odds|chapter|verse|section|"
    r"psalms?|john|luke|mark|matthew|rfc|isbn|\$|€|£|usd|eur)[\s.:=#]*$"
)
"""Right before a value: that it is a version, a price, a ratio or a place in a text."""

_HEX = r"[0-9a-f]"
IDS = (
    rf"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{2,3}}{_HEX}{{4,12}}",
    rf"(?={_HEX}*\d)(?={_HEX}*[a-f]){_HEX}{{7,128}}",
    r"[0-9A-HJKMNP-TV-Z]{26}",
    r"(?=[A-Z2-7]*[2-7])[A-Z2-7]{16,}",
    r"(?=\S*\d)(?=\S*[a-z])(?=\S*[A-Z])[A-Za-z0-9+/_-]{10,}={0,2}",
    r"(?:id|uid|sess(?:ion)?|req(?:uest)?|msg|message|toolu|call|run|trace|span|job|conv(?:ersation)?|"
    r"thread|user|tmp|temp|nonce|chat|task|build|sandbox|container|pod)[_-](?=\w*\d)\w{4,}",
    r"[a-z][a-z0-9]{0,15}[_-](?=\w*\d)\w{6,}",
    r"(?=[a-z0-9]*\d)(?=[a-z0-9]*[a-z])[a-z0-9]{12,}",
)
"""UUIDs, hex, ULIDs, base32, base64, prefixed ids."""
SURE_IDS = 4
"""The first so many are ids by their form; the others have to look random."""
ID_LABEL = (
    r"(?:\b|_)(?:id|ids|uuid|guid|ulid|nonce|cch|trace|span|session|request|correlation|seed|salt|hash|"
    r"digest|checksum|etag|token|run|job|call|thread|conversation|message)[\"'\])]*\s*"
    r"(?:[:=]|is\b|->)\s*[\"'\[(<#]*\S{0,40}$"
)
"""Right before the value: that it is an id."""
COUNTER_LABEL = (
    r"(?:(?<!max )(?<!maximum )\b(?:turns?|steps?|requests?|messages?|iterations?|attempts?|rounds?|"
    r"calls?|count(?:er)?|remaining|used|left|seq(?:uence)?|tokens?(?: left| used)?)[\"'\])]*"
    r"\s*(?:[:=#№]|no\.?|number)\s*[\"']?|\b(?:turn|step|request|message|iteration|attempt|round|call)s?\s)\d*$"
)
COUNTER_TAIL = r"\d*\s?(?:/|of\b|out of\b|$|[\]\).,\n\"'])"
COUNTER_LEFT = r"\d*\s+\w+\s+(?:left|remaining|used|so far)\b"
VALUE_FREE = (
    r"(?:[A-Za-z]:\\|~/|\.{1,2}/|/)[^\s\"'`<>|]+|[\w@~+-]+(?:/[\w.@~+-]+)*/?[\w@~+-]+\.[a-z]{1,5}"
)
"""A path: from a root, or a file with an ending."""

GIT_WORDS = (
    r"git|branch|commits?|head|staged|unstaged|untracked|uncommitted|working tree|stash|status"
)
ENVIRONMENT_WORDS = (
    rf"(?:{GIT_WORDS}|cwd|pwd|working (?:dir\w*|folder)|current (?:dir\w*|folder|file|branch|page|screen|tab|"
    r"url|state|mode)|workspace|(?:open|recent) (?:files?|tabs?|editors?|documents?|windows?)|active (?:file|"
    r"editor|tab|window)|selection|selected|cursor|viewport|mode|host ?name|platform|environment|env|"
    r"processes|disk|cpu|ram|free memory|battery|network|ip address|device|location|weather|"
    r"(?:project|directory|folder|file|repo\w*) (?:structure|tree|listing|layout|map)|(?:files|tree) (?:in|of|"
    r"under)|screen|resolution|diagnostics|(?:linter|compiler|lint|build|type) errors|online|unread|"
    r"terminal|clipboard|os|shell)"
)
MEMORY_WORDS = (
    r"(?:memor(?:y|ies)|recall\w*|remember\w*|notes?|skills?|(?:project|user|custom|repo\w*|team) "
    r"(?:instructions?|rules|context|guidelines)|instructions? from|preferences?|facts?|"
    r"knowledge|profile|persona|retrieved|relevant|documents?|snippets?|search results|known about|"
    r"what (?:you|we|i) know|learned|context from|few shot|examples?)"
)
INSTRUCTION_FILE = r"(?:claude|agents?|gemini|memory|copilot-instructions|skill)\.md|\.cursorrules"


@cache
def _compiled(pattern: str, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """Compiled on first use: most diagnoses need none of them."""
    return re.compile(pattern, flags)


def changed_span(before: str, after: str) -> tuple[int, int, int]:
    """Common length at the start, and the ends of what differs in both texts."""
    start = common_length(before, after)
    rest = min(len(before), len(after)) - start
    tail = common_length(before[::-1][:rest], after[::-1][:rest])
    return start, len(before) - tail, len(after) - tail


def find_kind(before: str, after: str) -> Kind | None:
    """What the first differing value of two texts is, or None when no detector knows."""
    start, end_before, end_after = changed_span(before, after)
    if start in (end_before, end_after):
        inserted = find_inserted_kind(before, after)
        if inserted is not None:
            return inserted
    return next((kind for kind, test in _TESTS if test(before, after, start)), None)


@lru_cache(maxsize=64)
def find_kinds(before: str, after: str) -> tuple[Kind | None, ...]:
    """The kind of every differing value in the order in which they stand; None for one that no
    detector knows."""
    kinds: list[Kind | None] = []
    for _ in range(MAX_VALUES):
        if before == after:
            break
        kinds.append(find_kind(before, after))
        step = _resync(before, after)
        if step is None:
            break
        # What stays ahead keeps the labels that the next value may have.
        before = after[: step[1]] + before[step[0] :]
    return tuple(kinds)


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
    text, whole = (
        (after, after[start:end_after])
        if start == end_before
        else (before, before[start:end_before])
    )
    words = whole.strip()
    if not words:
        return None
    first = words.splitlines()[0]
    label = _label_of(first) or (first if _compiled(INSTRUCTION_FILE).search(first) else "")
    kind = _kind_of_label(label) if label else None
    if kind is None and any(_compiled(p).search(words) for p in TIMES) and len(words) < WINDOW:
        return Kind.TIME
    return kind or _enclosing_kind(text, start)


def _resync(one: str, two: str) -> tuple[int, int] | None:
    """Where both texts go on alike behind the first differing word."""
    start = common_length(one, two)
    ends = [_word_end(text, start) for text in (one, two)]
    if one[ends[0] : ends[0] + 8] == two[ends[1] : ends[1] + 8] and one[ends[0] :]:
        return ends[0], ends[1]
    return None


def _word_end(text: str, start: int) -> int:
    found = _compiled(r"[\s\"',;|)\]}]").search(text, start)
    return found.start() if found else len(text)


def _values_at(pattern: str, text: str, at: int) -> list[tuple[int, int]]:
    low = max(0, at - WINDOW)
    window = text[low : at + WINDOW]
    found = _compiled(pattern).finditer(window)
    return [
        (m.start() + low, m.end() + low) for m in found if m.start() + low <= at <= m.end() + low
    ]


def _both(patterns: tuple[str, ...], before: str, after: str, at: int) -> list[tuple[int, int]]:
    """Values of the later text that cover the difference and start where one does before."""
    spans = [span for p in patterns for span in _values_at(p, after, at)]
    if not spans:
        return []
    starts = {start for p in patterns for start, _ in _values_at(p, before, at)}
    return [span for span in spans if span[0] in starts]


def _says(label: str, text: str, start: int) -> bool:
    """Whether a label stands right before a place, on the same line."""
    left = text[max(0, start - LABEL_WINDOW) : start]
    return bool(_compiled(label).search(left.rsplit("\n", 1)[-1]))


def _vetoed(text: str, start: int) -> bool:
    return _says(NO_TIME, text, start)


def _is_time(before: str, after: str, at: int) -> bool:
    spans = _both(TIMES, before, after, at)
    spans += [s for s in _both((ELAPSED,), before, after, at) if _went_by(after, s)]
    spans += [s for s in _both((EPOCHS,), before, after, at) if not _says(ID_LABEL, after, s[0])]
    spans += [s for s in _both(LABELLED, before, after, at) if _says(TIME_LABEL, after, s[0])]
    spans = [s for s in spans if not _vetoed(after, s[0])]
    if not spans:
        return False
    # In a list of recalled notes the date of a note is a part of the note.
    _, _, end = changed_span(before, after)
    covered = max(stop for _, stop in spans) >= end
    return covered or _enclosing_kind(after, at) is not Kind.MEMORY


def _went_by(text: str, span: tuple[int, int]) -> bool:
    """Whether a span of time is one that goes on, and no rule such as '5 minutes'."""
    said = _compiled(r"^(?:vor|hace|il y a|just)\b|(?:ago|now|elapsed|uptime|remaining|left|前)$")
    return bool(said.search(text[span[0] : span[1]])) or _says(TIME_LABEL, text, span[0])


def _is_id(before: str, after: str, at: int) -> bool:
    spans = _both(IDS[:SURE_IDS], before, after, at)
    loose = _both(IDS[SURE_IDS:], before, after, at)
    spans += [
        s for s in loose if _looks_random(after[s[0] : s[1]]) and not _is_path(before, after, at)
    ]
    if after[after.rfind("\n", 0, at) + 1 : at].startswith(RULES.billing_line):
        return True
    if any(not _vetoed(after, s[0]) and not _is_color(after, s) for s in spans):
        return not _is_git(after, at)
    words = _word_at(before, at), _word_at(after, at)
    if not _says(ID_LABEL, after, at):
        return False
    quoted = _says(r"[\w\"'][=:]\s?[\"'][^\s\"']*$", after, at)
    return all(re.search(r"\d", word) or (quoted and len(word) >= 6) for word in words)


def _looks_random(value: str) -> bool:
    """Letters and digits in turns, as no name has them; or a number behind an id's prefix."""
    turns = len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d|(?<=[a-z])[A-Z]", value))
    return turns >= max(3, len(value) / 4) or bool(_compiled(IDS[SURE_IDS + 1]).fullmatch(value))


def _is_color(text: str, span: tuple[int, int]) -> bool:
    return text[span[0] - 1 : span[0]] == "#" and span[1] - span[0] <= 8


def _is_git(text: str, at: int) -> bool:
    """Whether a hash is a commit's: git is named on its line, or heads its section."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    if _compiled(rf"\b(?:{GIT_WORDS}|sha)\b[^.!?]*$").search(line):
        return not _says(ID_LABEL, text, at)
    return _enclosing_kind(text, at) is Kind.ENVIRONMENT


def _is_counter(before: str, after: str, at: int) -> bool:
    spans = _both((r"(?<![\w.,$€£])\d+(?![\w.,]*\d)",), before, after, at)
    if not spans or _vetoed(after, spans[0][0]):
        return False
    start = spans[0][0]
    if _enclosing_kind(after, at) is Kind.MEMORY:
        return False
    if _says(COUNTER_LABEL, after, start):
        left = after[max(0, start - LABEL_WINDOW) : start]
        labelled = bool(re.search(r"[:=#№]\s*[\"']?$", left))
        return labelled or bool(_compiled(COUNTER_TAIL).match(after, start))
    return bool(_compiled(COUNTER_LEFT).match(after, start))


def _is_path(before: str, after: str, at: int) -> bool:
    """Both sides name a file or folder."""
    return all(
        _compiled(VALUE_FREE).fullmatch(_word_at(text, at).rstrip(".,;:"))
        for text in (before, after)
    )


def _is_environment(before: str, after: str, at: int) -> bool:
    kind = _enclosing_kind(after, at)
    return kind is Kind.ENVIRONMENT or (kind is None and _is_path(before, after, at))


def _is_memory(before: str, after: str, at: int) -> bool:
    del before
    return _enclosing_kind(after, at) is Kind.MEMORY


def _enclosing_kind(text: str, at: int) -> Kind | None:
    """What the label of a place says: its own line's, its paragraph's, its section's or its tag's."""
    low = max(0, at - SECTION_WINDOW)
    lines = text[low:at].split("\n")
    whole = lines[-1] + text[at : at + WINDOW].split("\n", 1)[0]
    depth, same_paragraph, closed = 7, True, set[str]()
    for number, line in enumerate(reversed(lines)):
        words = line.strip()
        if not words or (number and _is_prose(line)):
            same_paragraph = same_paragraph and number == 0
        if not words:
            continue
        if number == 1 and _is_prose(whole):
            same_paragraph = False
        level = len(words) - len(words.lstrip("#"))
        closed |= set(_compiled(r"</([\w:-]+)>").findall(words))
        labels = [name for name in _opened_tags(words) if name not in closed]
        if level:
            labels, depth = ([words], level) if level < depth else ([], depth)
        elif _compiled(INSTRUCTION_FILE).search(words):
            return Kind.MEMORY
        elif same_paragraph and (number == 0 or words.endswith((":", ")")) or _is_title(words)):
            labels.append(_label_of(_compiled(r"^(?:<[^>]*>\s*)+").sub("", words)))
        for label in labels:
            kind = _kind_of_label(label)
            if kind is not None:
                return kind
    return None


def _opened_tags(line: str) -> list[str]:
    """Names of the tags that a line opens and does not close."""
    return [m[1] for m in _compiled(r"<([\w:-]+)[^>/]*>(?!.*</\1>)").finditer(line)]


def _is_prose(line: str) -> bool:
    """A sentence, which no label above it heads."""
    words = line.strip()
    return len(words) > LABEL_WINDOW and words[-1] in ".!?" and not re.match(r"[-*•]", words)


def _is_title(words: str) -> bool:
    """A short line that opens a list: no list item, no sentence."""
    return (
        len(words) <= LABEL_WINDOW and not re.match(r"[-*•\d]", words) and words[-1] not in ".!?,;"
    )


def _label_of(line: str) -> str:
    """The label of a line: `Name: value`, a tag, a heading, a title; empty for prose."""
    words = line.strip()
    if not words or words.startswith("#"):
        return words
    tag = re.match(r"<([\w:-]+)", words)
    if tag:
        return tag[1]
    named = re.match(r"(?:[-*•]\s+|[\"'{(\[]+)?([\w .'/()-]{1,40}?)[\"']?\s*[:=]", words)
    if named:
        return named[1]
    return words if _is_title(words) else ""


def _kind_of_label(label: str) -> Kind | None:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[_-]+", " ", label)
    for words, kind in ((ENVIRONMENT_WORDS, Kind.ENVIRONMENT), (MEMORY_WORDS, Kind.MEMORY)):
        if _compiled(rf"\b{words}\b").search(spaced):
            return kind
    return Kind.MEMORY if _compiled(INSTRUCTION_FILE).search(label) else None


def _word_at(text: str, at: int) -> str:
    spans = _values_at(r"[^\s\"'`<>(){}\[\],;|]+", text, at)
    return text[spans[-1][0] : spans[-1][1]] if spans else ""


_TESTS = (
    (Kind.TIME, _is_time),
    (Kind.ID, _is_id),
    (Kind.COUNTER, _is_counter),
    (Kind.ENVIRONMENT, _is_environment),
    (Kind.MEMORY, _is_memory),
)
"""Most certain first."""
