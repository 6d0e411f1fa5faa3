"""Ids in a text: values that somebody made at random, by their form or by a label."""

from __future__ import annotations

import re

from ctxdoc.diagnosis.case import Confidence
from ctxdoc.diagnosis.headings import GIT_WORDS, enclosing_kind
from ctxdoc.diagnosis.text_values import (
    Kind,
    Span,
    Told,
    both,
    compiled,
    is_in_data,
    is_no_value,
    is_path,
    names_file,
    says,
    word_at,
)
from ctxdoc.prompt.messages_form import BILLING_LINE

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


def as_id(before: str, after: str, at: int) -> Told | None:
    """An id: by its form, where it looks random, or by its label."""
    if after[after.rfind("\n", 0, at) + 1 : at].startswith(BILLING_LINE):
        # A client's own line, with a hash of the request in it.
        return Told(Kind.ID, Confidence.CERTAIN, labelled=True)
    labelled = says(ID_LABEL, after, at)
    span = _first_id(before, after, at)
    if span is None:
        return _as_named_id(before, after, at) if labelled else None
    # No commit is named by a UUID.
    if not both(IDS[:1], before, after, at) and _is_git(after, at):
        return None
    # In data and in a file's name an id may be the content itself, which changed.
    sure = labelled or not (is_in_data(after, at) or names_file(after, span))
    return Told(Kind.ID, Confidence.CERTAIN if sure else Confidence.LIKELY, labelled=labelled)


def _as_named_id(before: str, after: str, at: int) -> Told | None:
    """A value that only its label makes an id."""
    known = _is_named_id(before, after, at)
    return Told(Kind.ID, Confidence.CERTAIN, labelled=True) if known else None


def _first_id(before: str, after: str, at: int) -> Span | None:
    """The first value that is an id by its form; the loose forms fit names and paths as well."""
    sure = both(IDS[:SURE_IDS], before, after, at)
    loose = [s for s in both(IDS[SURE_IDS:], before, after, at) if _looks_random(after[slice(*s)])]
    if loose and is_path(before, after, at):
        loose = []
    spans = (s for s in (*sure, *loose) if not is_no_value(after, s[0]) and not _is_color(after, s))
    return next(spans, None)


def _is_named_id(before: str, after: str, at: int) -> bool:
    """Whether both values behind the label of an id can be one: they hold a digit, or are quoted and long."""
    quoted = says(r"[\w\"'][=:]\s?[\"'][^\s\"']*$", after, at)
    words = word_at(before, at), word_at(after, at)
    return all(re.search(r"\d", word) or (quoted and len(word) >= 6) for word in words)


def _looks_random(value: str) -> bool:
    """Letters and digits in turns, as no name has them; or a number behind an id's prefix."""
    turns = len(re.findall(r"(?<=\d)[A-Za-z]|(?<=[A-Za-z])\d|(?<=[a-z])[A-Z]", value))
    return turns >= max(3, len(value) / 4) or bool(compiled(IDS[SURE_IDS + 1]).fullmatch(value))


def _is_color(text: str, span: Span) -> bool:
    return text[span[0] - 1 : span[0]] == "#" and span[1] - span[0] <= 8


def _is_git(text: str, at: int) -> bool:
    """Whether a hash is a commit's: git is named on its line, or heads its section."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    if compiled(rf"\b(?:{GIT_WORDS}|sha)\b[^.!?]*$").search(line):
        return not says(ID_LABEL, text, at)
    return enclosing_kind(text, at) is Kind.ENVIRONMENT
