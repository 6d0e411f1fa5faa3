"""What the differing bytes of two texts are: a time, an id, live state, recalled text.

Each detector asks the same question of both sides: does a value of its kind stand at the first
differing character, and at the same place in both texts? Text that stands on one side only is
judged by what it says of itself.

How sure a kind can be: a form that only values of that kind have is certain; a label alone, or a form
inside of quoted data or a file's name, is likely; numbers that only grew, without a label, are possible.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import cache, lru_cache
from typing import NamedTuple

from ctxdoc.diagnosis.case import Confidence
from ctxdoc.prompt.diff import common_length
from ctxdoc.prompt.messages_form import BILLING_LINE

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


class Told(NamedTuple):
    """A kind, and how sure it can be from the text alone."""

    kind: Kind
    ceiling: Confidence
    labelled: bool = False
    """Whether a label right before the value says so."""


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
    r"(?:time|hours|minutes|seconds) (?:remaining|left)|hour|minute|"
    r"uhrzeit|datum|heute|uhr|zeit|heure|aujourd'hui|jour|hora|fecha|hoy|ora|oggi|"
    r"good|guten?|buen[ao]s?|bon|bonne)\b|\bt\s?\+|_at\b|时间|日期|今天|時刻|日付|시간)"
    r"[\"'\])>]*\s*(?:is|ist|est|es|[:=(>]|of year)?\s*[\"'\[(<]?\s*(?:\w+\s)?$"
)
"""Right before a value: that it is a time."""
_CURRENT = r"(?:current|local|present|actual|aktuelle[rs]?|jetzige|heure actuelle|текущее|当前|現在の?|현재)"
CLOCK_LABEL = (
    rf"(?:{_CURRENT}\s?(?:(?:local|system|server|utc)\s)?(?:date|time|day|clock|zeit|uhrzeit|datum|время|дата|"
    r"时间|日期|時刻|日時|시간|시각|날짜)|"
    r"(?:hora|fecha|ora|data|heure|date) (?:actual|attuale|atual|actuelle|du jour)|"
    r"(?:system|server|wall|local) (?:time|clock|date)|(?:the )?time(?: and date)?(?: right)? now|"
    r"date and time|timestamp|uhrzeit|время|时间|時刻|시각)"
    r"[\"'\])]*\s*(?:is\b|ist\b|est\b|es\b|[:=：>]|は|은|는)\s*[\"'(\[]?\s*"
)
"""A label after which any value is the current time."""
_HOURS = r"\b(?:half|quarter|past|noon|midnight|o'?clock|morning|evening|afternoon|night)\b"
_ORDINALS = (
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|first|second|third|[a-z]+teenth|"
    r"twent\w+|thirt\w+)\b"
)
_SENTENCE = r"(?:^|[.!?>;|]\s*|[-*•]\s+)(?:the )?"
CLOCKS = (
    (CLOCK_LABEL, ""),
    (
        rf"{_SENTENCE}(?:time|clock|date|now|today)(?: is|\s?[:=])(?: now)?\s*",
        rf"\d|{_HOURS}|{_ORDINALS}",
    ),
    (rf"{_SENTENCE}it is(?: now)?\s*", _HOURS),
)
"""Labels of a time in a form that no rule knows, and what the value has to have in it then."""
MAX_CLOCK = 64
"""Characters of a time in a form that no rule knows."""
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


def _as_time(before: str, after: str, at: int) -> Told | None:
    clocks = _both(TIMES, before, after, at)
    spans = [s for s in _both((ELAPSED,), before, after, at) if _went_by(after, s)]
    spans += [s for s in _both((EPOCHS,), before, after, at) if not _says(ID_LABEL, after, s[0])]
    labelled = [
        s
        for s in _both(LABELLED, before, after, at)
        if _says(TIME_LABEL, after, s[0]) and not _counts(after, s)
    ]
    formed = [s for s in (*clocks, *spans) if _may_be_time(after, s)]
    spans = formed + [s for s in labelled if _may_be_time(after, s)]
    if not spans:
        return None
    # In a list of recalled notes the date of a note is a part of the note.
    _, _, end = changed_span(before, after)
    covered = max(stop for _, stop in spans) >= end
    if not covered and _enclosing_kind(after, at) is Kind.MEMORY:
        return None
    said = any(_says(TIME_LABEL, after, start) for start, _ in spans)
    by_label = not formed and all(after[start].isdigit() for start, _ in spans)
    sure = not by_label and (said or not (_in_data(after, at) or _is_day(after, spans)))
    return Told(Kind.TIME, Confidence.CERTAIN if sure else Confidence.LIKELY, labelled=said)


def _may_be_time(text: str, span: tuple[int, int]) -> bool:
    return not _vetoed(text, span[0]) and not _names_file(text, span)


def _is_day(text: str, spans: list[tuple[int, int]]) -> bool:
    """Whether a value is no more than a day: those stand in texts that no clock writes."""
    start, end = max(spans, key=lambda span: span[1] - span[0])
    return bool(DAYS.fullmatch(text[start:end].strip()))


def _in_data(text: str, at: int) -> bool:
    """Whether a place lies in a block of code, in a row of a table, or in an address."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    fences = text.count("```", max(0, at - SECTION_WINDOW), at)
    return fences % 2 == 1 or line.lstrip().startswith("|") or "://" in line.rsplit(" ", 1)[-1]


def _names_file(text: str, span: tuple[int, int]) -> bool:
    """Whether a value is a part of a file's name or of a path."""
    left = _compiled(r"[^\s\"'`<>(){}\[\],;|=]*$").search(text[max(0, span[0] - WINDOW) : span[0]])
    right = _compiled(r"[^\s\"'`<>(){}\[\],;|]*").match(text, span[1], span[1] + WINDOW)
    head, tail = left[0] if left else "", right[0].rstrip(".,:") if right else ""
    if "://" in head:
        return False
    ending = _compiled(r"[\w.-]*\.[a-z][a-z0-9]{0,4}$").fullmatch(tail)
    folder = _compiled(r"(?:^|[a-z_~.-])[/\\][\w.~-]*$").search(head)
    return bool(ending or folder or _compiled(r"[\w.-]*[/\\][a-z_~.]").match(tail))


def _as_clock(before: str, after: str, at: int) -> Told | None:
    """A time in a form that no rule knows, by its label."""
    low = after.rfind("\n", 0, at) + 1
    head = after[max(low, at - 2 * WINDOW) : at].replace("_", " ")
    for label, words in CLOCKS:
        found = list(_compiled(label).finditer(head))
        if not found:
            continue
        said = len(head) - found[-1].end()
        values = [_value_from(text, at - said) for text in (before, after)]
        if said > MAX_CLOCK or not all(values) or values[0] == values[1]:
            continue
        if all(_compiled(words).search(value) for value in values):
            return Told(Kind.TIME, Confidence.LIKELY, labelled=True)
    return None


def _value_from(text: str, start: int) -> str:
    """What stands from a place to the end of what is said there; empty where that is long."""
    line = text[start : start + 2 * MAX_CLOCK].split("\n", 1)[0]
    line = re.split(r"[.!?;|<\"](?:\s|$)|[<\"|]", line, maxsplit=1)[0]
    return line.strip() if len(line) <= MAX_CLOCK else ""


def _went_by(text: str, span: tuple[int, int]) -> bool:
    """Whether a span of time is one that goes on, and no rule such as '5 minutes'."""
    said = _compiled(r"^(?:vor|hace|il y a|just)\b|(?:ago|now|elapsed|uptime|remaining|left|前)$")
    return bool(said.search(text[span[0] : span[1]])) or _says(TIME_LABEL, text, span[0])


def _as_id(before: str, after: str, at: int) -> Told | None:
    sure = _both(IDS[:SURE_IDS], before, after, at)
    loose = [
        s
        for s in _both(IDS[SURE_IDS:], before, after, at)
        if _looks_random(after[s[0] : s[1]]) and not _is_path(before, after, at)
    ]
    if after[after.rfind("\n", 0, at) + 1 : at].startswith(BILLING_LINE):
        return Told(Kind.ID, Confidence.CERTAIN, labelled=True)
    spans = [s for s in (*sure, *loose) if not _vetoed(after, s[0]) and not _is_color(after, s)]
    labelled = _says(ID_LABEL, after, at)
    if spans:
        # No commit is named by a UUID.
        if not _both(IDS[:1], before, after, at) and _is_git(after, at):
            return None
        named = not labelled and (_in_data(after, at) or _names_file(after, spans[0]))
        return Told(Kind.ID, Confidence.LIKELY if named else Confidence.CERTAIN, labelled=labelled)
    words = _word_at(before, at), _word_at(after, at)
    if not labelled:
        return None
    quoted = _says(r"[\w\"'][=:]\s?[\"'][^\s\"']*$", after, at)
    if all(re.search(r"\d", word) or (quoted and len(word) >= 6) for word in words):
        return Told(Kind.ID, Confidence.CERTAIN, labelled=True)
    return None


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


def _as_counter(before: str, after: str, at: int) -> Told | None:
    """A number that its label, or what stands behind it, says to count."""
    spans = _both((NUMBER,), before, after, at)
    if not spans or _vetoed(after, spans[0][0]) or _enclosing_kind(after, at) is Kind.MEMORY:
        return None
    counts = _counts(after, max(spans, key=lambda span: span[1] - span[0]))
    return Told(Kind.COUNTER, Confidence.LIKELY, labelled=True) if counts else None


def _counts(text: str, span: tuple[int, int]) -> bool:
    start, end = span
    line = text[max(0, start - LABEL_WINDOW) : start].rsplit("\n", 1)[-1]
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", line)
    if _compiled(NO_COUNTER).search(spaced):
        return False
    if any(_compiled(label).search(spaced) for label in COUNTER_LABELS):
        return True
    if _compiled(BARE_COUNTER).search(spaced) and _compiled(COUNTER_TAIL).match(text, end):
        return not _compiled(POINTS_AT).search(spaced) or bool(_compiled(IS_NOW).search(spaced))
    return bool(_compiled(COUNTER_LEFT).match(text, end, end + WINDOW))


def _as_grown(before: str, after: str, at: int) -> Told | None:
    """Numbers that grew where nothing else is another: two or more, or one with a line of its own."""
    numbers = [_compiled(NUMBER).findall(text) for text in _widened(before, after)]
    plain = [_compiled(NUMBER).sub("0", text) for text in _widened(before, after)]
    if plain[0] != plain[1] or _vetoed(after, at):
        return None
    grown = [(_amount(one), _amount(two)) for one, two in zip(*numbers, strict=True) if one != two]
    alone = len(grown) == 1 and not _compiled(r"[^\W\d]").search(plain[0])
    if all(one < two for one, two in grown) and (len(grown) > 1 or alone):
        return Told(Kind.COUNTER, Confidence.POSSIBLE)
    return None


def is_grown(before: str, after: str) -> bool:
    """Whether two words are numbers, and the later one is the larger."""
    numbers = [_compiled(NUMBER).fullmatch(word.rstrip(".,;:)")) for word in (before, after)]
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


def _is_path(before: str, after: str, at: int) -> bool:
    """Both sides name a file or folder."""
    return all(
        _compiled(VALUE_FREE).fullmatch(_word_at(text, at).rstrip(".,;:"))
        for text in (before, after)
    )


def _as_environment(before: str, after: str, at: int) -> Told | None:
    kind = _enclosing_kind(after, at)
    known = kind is Kind.ENVIRONMENT or (kind is None and _is_path(before, after, at))
    return Told(Kind.ENVIRONMENT, Confidence.LIKELY) if known else None


def _as_memory(before: str, after: str, at: int) -> Told | None:
    del before
    known = _enclosing_kind(after, at) is Kind.MEMORY
    return Told(Kind.MEMORY, Confidence.LIKELY) if known else None


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
    _as_time,
    _as_id,
    _as_counter,
    _as_clock,
    _as_environment,
    _as_memory,
    _as_grown,
)
"""Most certain first."""
