"""Dates and times in a text: by their form, by a label, or by both."""

from __future__ import annotations

import re
from typing import TypeAlias

from ctxdoc.diagnosis.case import Confidence
from ctxdoc.diagnosis.headings import enclosing_kind
from ctxdoc.diagnosis.identifiers import ID_LABEL
from ctxdoc.diagnosis.tallies import counts
from ctxdoc.diagnosis.text_values import (
    WINDOW,
    Kind,
    Span,
    Told,
    both,
    changed_span,
    compiled,
    is_in_data,
    is_no_value,
    names_file,
    says,
)

Forms: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Patterns, each with its signs: words of which one stands in all that it matches in ASCII; none where
that is no help."""
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
DAYS = (
    rf"(?:19|20)\d\d([-/.])\d{{1,2}}\1\d{{1,2}}(?!\d)|(?<!\w)(?:19|20)\d{{6}}(?!\d)"
    rf"|(?<!\w)\d{{1,2}}([-/.])\d{{1,2}}\2(?:19|20)?\d\d(?!\d)"
    rf"|(?<!\w)(?:{_MONTHS})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s+(?:19|20)\d\d)?(?!\w|:)"
    rf"|(?<!\w)\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:{_MONTHS})\.?(?:,?\s+(?:19|20)\d\d)?(?!\w|:)"
    rf"|(?<!\w)(?:{_WEEKDAYS})(?!\w)"
)
"""Days in a text, without a time of the day."""
_MONTH = rf"(?:{_MONTHS})\.?"
_WEEKDAY = rf"(?:{_WEEKDAYS})"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_CLOCK = r"(?:[01]?\d|2[0-3]):[0-5]\d(?::[0-6]\d(?:[.,]\d+)?)?(?:\s?[ap]\.?m\.?(?!\w))?"
_ZONE = r"(?:\s?(?:z|utc|gmt|cet|cest|[ecmp][sd]t|[+-]\d\d:?\d\d)(?!\w))?"
_AT = rf"(?:(?:,|\s+at|\s+um|\s+à|\s+a las|:)?\s*{_CLOCK}{_ZONE})?"
_LEAD = rf"(?:{_WEEKDAY}\.?,?\s+(?:der\s+|den\s+|le\s+|el\s+|il\s+)?)?"
NOT_ASCII = ("\u5e74",)
"""Of a form that no text in ASCII has."""
# fmt: off
_MONTH_STEMS = (
    "jan", "ener", "gen", "feb", "fev", "mar", "maa", "apr", "avr", "abr", "may", "mai", "mag", "mei", "jun",
    "giu", "jui", "jul", "lug", "aug", "ago", "sep", "set", "okt", "oct", "ott", "out", "nov", "de", "dic",
)
_WEEKDAY_STEMS = (
    "mon", "tue", "wed", "thu", "fri", "sat", "sun", "die", "mit", "don", "fre", "sam", "son", "lun", "mar",
    "mer", "jeu", "ven", "dim", "jue", "vie", "dom", "sab", "seg", "qua", "qui", "sex", "maa", "din", "woe",
    "vri", "zat", "zon",
)
# fmt: on
"""One of them stands in every name of a month, or of a weekday, that is written in ASCII."""
FORMS: Forms = (
    # ISO 8601 date with or without a time
    (
        rf"(?<![\d.v])(?:19|20)\d\d([-/.])(?:0?[1-9]|1[0-2])\1{_DAY}(?!\d|\.\d)"
        rf"(?:[t _,]+(?:at\s)?[0-2]\d(?:[:.\-h]?[0-5]\d)?(?:[:.\-]?[0-6]\d)?(?:[.,]\d+)?)?{_ZONE}",
        (),
    ),
    # compact ISO, ISO week, day of the year
    (
        r"(?<!\w)(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
        r"(?:[t_-]?[0-2]\d[0-5]\d(?:[0-6]\d\d{0,6})?z?)?(?!\w)",
        (),
    ),
    (r"(?<!\w)(?:19|20)\d\d-?(?:w[0-5]\d(?:-?[1-7])?|[0-3]\d\d)(?!\w)", ()),
    # day and month by name in either order, RFC 2822, access logs
    (
        rf"(?<!\w){_LEAD}{_DAY}(?:st|nd|rd|th|\.|er)?[\s/-]*(?:de\s+|of\s+)?{_MONTH}"
        rf"(?:,?[\s/-]*(?:de\s+|del\s+)?(?:(?:19|20)\d\d|\d\d(?!:)))?{_AT}(?!\w)",
        _MONTH_STEMS,
    ),
    (
        rf"(?<!\w){_LEAD}{_MONTH}[\s-]+{_DAY}(?:st|nd|rd|th)?(?:,?[\s-]+(?:19|20)\d\d)?{_AT}(?:\s+\d{{4}})?(?!\w)",
        _MONTH_STEMS,
    ),
    (rf"(?<!\w){_MONTH}\s+(?:de\s+)?(?:19|20)\d\d(?!\w)", _MONTH_STEMS),
    # numeric dates with the year last
    (rf"(?<![\w.$€£]){_DAY}([./-]){_DAY}\1(?:19|20)?\d\d(?![\w.]\d)(?!\w){_AT}", ()),
    (r"(?:19|20)?\d\d\s?[年년]\s?\d{1,2}\s?[月월](?:\s?\d{1,2}\s?[日일])?", NOT_ASCII),
    (
        r"(?:[上下]午|午[前後]|오전|오후)?\s?\d{1,2}\s?(?:[時时点시]\s?(?:\d{1,2}\s?[分분]?)?|:[0-5]\d)",
        (":",),
    ),
    (
        r"星期[一二三四五六日天]|周[一二三四五六日]|[月火水木金土日]曜日?|[월화수목금토일]요일",
        NOT_ASCII,
    ),
    # time of day
    (rf"(?<![\w:.$€£-]){_CLOCK}{_ZONE}(?![\w:])", (":",)),
    (r"(?<![\w:.$€£])(?:0?[1-9]|1[0-2])\s?[ap]\.?m(?:\.|(?!\w))", ("am", "a.m", "pm", "p.m")),
    (r"(?<![\w:.])(?:[01]?\d|2[0-3])[.:][0-5]\d\s?uhr(?!\w)", ("uhr",)),
    (
        rf"(?<!\w){_WEEKDAY}\.?,?\s+(?:{_CLOCK}|(?:the\s+)?{_DAY}(?:st|nd|rd|th))(?!\w)",
        _WEEKDAY_STEMS,
    ),
    (
        r"(?<![\w:.])(?:[01]?\d|2[0-3])h[0-5]\d(?!\w)|(?<!\w)[0-2]\d[0-5]\d\s(?:hours|hrs)(?!\w)",
        ("h",),
    ),
    (r"(?<!\w)q[1-4]\s+(?:19|20)\d\d(?!\w)|datetime(?:\.datetime)?\([\d, ]+\)?", ("q", "datetime")),
)
TIMES = tuple(pattern for pattern, _ in FORMS)
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
LABELLED: Forms = (
    (rf"(?<!\w){_WEEKDAY}(?!\w)", _WEEKDAY_STEMS),
    (
        r"(?<!\w)(?:early |late )?(?:morning|noon|midday|afternoon|evening|night|midnight|morgen|tag|abend|"
        r"nacht|mañana|tardes?|noches?|jour|soir|nuit)(?!\w)",
        (),
    ),
    (r"(?<![\w.])\d+(?:[.:h/]\d+)*(?:\s?[a-z]{1,7})?(?![\w.]\w)", ()),
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


def as_time(before: str, after: str, at: int) -> Told | None:
    """A date, a time of the day, or a span of time that went by."""
    formed = _possible(after, _formed(before, after, at))
    spans = formed + _possible(after, _labelled(before, after, at))
    if not spans or _is_part_of_note(before, after, at, spans):
        return None
    said = any(says(TIME_LABEL, after, start) for start, _ in spans)
    sure = (
        _is_surely_written(after, at, spans, said=said) if formed else not _are_digits(after, spans)
    )
    return Told(Kind.TIME, Confidence.CERTAIN if sure else Confidence.LIKELY, labelled=said)


def _possible(text: str, spans: list[Span]) -> list[Span]:
    """The values that are no version, price or ratio, and no part of a file's name."""
    return [s for s in spans if not is_no_value(text, s[0]) and not names_file(text, s)]


def _is_surely_written(text: str, at: int, spans: list[Span], *, said: bool) -> bool:
    """Whether a clock put a time there: a day stands in data and in documents too."""
    return said or not (is_in_data(text, at) or _is_day(text, spans))


def _are_digits(text: str, spans: list[Span]) -> bool:
    """Whether values are digits behind a label and nothing else: a count may have the same label."""
    return all(text[start].isdigit() for start, _ in spans)


def _formed(before: str, after: str, at: int) -> list[Span]:
    """The times that say so by their form."""
    elapsed = [s for s in both((ELAPSED,), before, after, at) if _went_by(after, s)]
    # Ten digits behind the label of an id are an id.
    epochs = [s for s in both((EPOCHS,), before, after, at) if not says(ID_LABEL, after, s[0])]
    return [*both(possible(FORMS, before, after, at), before, after, at), *elapsed, *epochs]


def possible(forms: Forms, before: str, after: str, at: int) -> tuple[str, ...]:
    """The patterns that can match around a place: to compile those of all names of months and days takes
    longer than to read both requests."""
    low = max(0, at - WINDOW)
    around = f"{before[low : at + WINDOW]}\n{after[low : at + WINDOW]}"
    # Case is folded by other rules outside of ASCII.
    if not around.isascii():
        return tuple(pattern for pattern, _ in forms)
    words = around.lower()
    return tuple(pattern for pattern, signs in forms if not signs or find_signs(signs, words))


def find_signs(signs: tuple[str, ...], words: str) -> bool:
    """Whether one of the signs of a form stands in a text of small letters."""
    return any(sign in words for sign in signs)


def _labelled(before: str, after: str, at: int) -> list[Span]:
    """The times that only their label makes one."""
    spans = both(possible(LABELLED, before, after, at), before, after, at)
    return [s for s in spans if says(TIME_LABEL, after, s[0]) and not counts(after, s)]


def _is_part_of_note(before: str, after: str, at: int, spans: list[Span]) -> bool:
    """Whether more than the time changed in a list of recalled notes: there the date is a part of the note."""
    _, _, end = changed_span(before, after)
    covered = max(stop for _, stop in spans) >= end
    return not covered and enclosing_kind(after, at) is Kind.MEMORY


def _is_day(text: str, spans: list[Span]) -> bool:
    """Whether a value is no more than a day: those stand in texts that no clock writes."""
    start, end = max(spans, key=lambda span: span[1] - span[0])
    return bool(compiled(DAYS).fullmatch(text[start:end].strip()))


def as_clock(before: str, after: str, at: int) -> Told | None:
    """A time in a form that no rule knows, by its label."""
    low = after.rfind("\n", 0, at) + 1
    # Names of fields are written with underscores, labels of prose with blanks.
    head = after[max(low, at - 2 * WINDOW) : at].replace("_", " ")
    for label, words in CLOCKS:
        found = list(compiled(label).finditer(head))
        # The last label is the nearest one; what lies between is equal on both sides.
        said = len(head) - found[-1].end() if found else None
        if said is not None and _are_clocks(before, after, at - said, said, words):
            return Told(Kind.TIME, Confidence.LIKELY, labelled=True)
    return None


def _are_clocks(before: str, after: str, start: int, said: int, words: str) -> bool:
    """Whether two other values stand behind a label, and both have in it what a time has."""
    values = [_value_from(text, start) for text in (before, after)]
    if said > MAX_CLOCK or not all(values) or values[0] == values[1]:
        return False
    return all(compiled(words).search(value) for value in values)


def _value_from(text: str, start: int) -> str:
    """What stands from a place to the end of what is said there; empty where that is long."""
    line = text[start : start + 2 * MAX_CLOCK].split("\n", 1)[0]
    line = re.split(r"[.!?;|<\"](?:\s|$)|[<\"|]", line, maxsplit=1)[0]
    return line.strip() if len(line) <= MAX_CLOCK else ""


def _went_by(text: str, span: Span) -> bool:
    """Whether a span of time is one that goes on, and no rule such as '5 minutes'."""
    said = compiled(r"^(?:vor|hace|il y a|just)\b|(?:ago|now|elapsed|uptime|remaining|left|前)$")
    return bool(said.search(text[span[0] : span[1]])) or says(TIME_LABEL, text, span[0])
