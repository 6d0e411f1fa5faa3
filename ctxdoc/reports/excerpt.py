"""Short pieces of text around a difference, with invisible characters made visible."""

from __future__ import annotations

import unicodedata

from ctxdoc import canonical
from ctxdoc.canonical import Json
from ctxdoc.diff import Place, first_difference
from ctxdoc.reports.base import Snippet

BEFORE = 28
"""Characters shown before the first difference."""
AFTER = 44
SHOWN = {"\n": "⏎", "\t": "⇥", "\r": "␍"}
NAMED = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Mn", "Cs", "Co"})
"""Unicode categories that cannot be seen or that hide in the character before."""


def snippet_of(place: Place) -> Snippet:
    """Both sides around the first differing character."""
    before, after = _text(place.before), _text(place.after)
    byte = place.byte
    if byte is None:
        byte = first_difference(before.encode(), after.encode()) or 0
    at = len(before.encode()[:byte].decode("utf-8", "ignore"))
    start = max(0, at - BEFORE)
    lead = ("…" if start else "") + visible(before[start:at])
    return Snippet(
        label=place.pointer,
        before=lead + _tail(before, at) if place.before is not None else "(not there)",
        after=lead + _tail(after, at) if place.after is not None else "(not there)",
        mark=len(lead),
    )


def excerpt(value: Json, byte: int | None) -> str | None:
    """One side as plain text around a byte, or None where there is nothing."""
    if value is None:
        return None
    text = _text(value)
    at = len(text.encode()[: byte or 0].decode("utf-8", "ignore"))
    return text[max(0, at - BEFORE) : at + AFTER]


def visible(text: str) -> str:
    """Text in which every character can be seen; others by their code point."""
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in SHOWN:
        return SHOWN[character]
    if character != " " and unicodedata.category(character) in NAMED:
        return f"<U+{ord(character):04X}>"
    return character


def _tail(text: str, at: int) -> str:
    rest = text[at : at + AFTER]
    shown = visible(rest)
    if rest[:1] == " ":
        shown = "␠" + shown[1:]
    if not rest:
        return "(ends here)"
    return shown + ("…" if at + AFTER < len(text) else "")


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical.encode(value).decode()
