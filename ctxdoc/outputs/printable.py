"""Characters that cannot be seen, or that would steer a terminal, by their code point."""

from __future__ import annotations

import unicodedata

SHOWN = {"\n": "⏎", "\t": "⇥", "\r": "␍"}
STEERING = frozenset({"Cc", "Cf", "Zl", "Zp", "Cs", "Co"})
"""Unicode categories that a terminal may act on: controls, formats, bidirectional marks."""
UNSEEN = STEERING | {"Zs", "Mn"}
"""Those, other spaces, and what hides in the character before."""


def harmless(text: str) -> str:
    """A text that no terminal acts on; line feeds stay."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(c if c == "\n" or not _is(c, STEERING) else _named(c) for c in text)


def visible(text: str) -> str:
    """A text in which every character can be seen."""
    return "".join(SHOWN.get(c) or (_named(c) if c != " " and _is(c, UNSEEN) else c) for c in text)


def one_line(text: str) -> str:
    """A text from a log that begins no line of its own."""
    return text.replace("\r", "␍").replace("\n", "⏎")


def _is(character: str, categories: frozenset[str]) -> bool:
    return unicodedata.category(character) in categories


def _named(character: str) -> str:
    return f"<U+{ord(character):04X}>"
