"""Scalars of YAML as values, and the bounds of what is read."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

from msgspec import Struct

MAX_DEPTH = 200
"""Levels of lists and mappings in one another."""


MAX_NODES = 4_000_000
"""Values of one entry."""


MAX_REPEATED = 8 << 20
"""Values and characters that aliases may repeat in one file."""


MAX_NUMBER = 400
"""Characters of a number: the time to read one grows with their square."""


BINARY = frozenset({"tag:yaml.org,2002:binary", "!binary"})
"""Ruby writes the tag with one exclamation mark."""


TYPED = frozenset(
    {
        "tag:yaml.org,2002:null",
        "tag:yaml.org,2002:bool",
        "tag:yaml.org,2002:int",
        "tag:yaml.org,2002:float",
    }
)


WORDS = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


NUMBER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)(\.[0-9]*)?([eE][-+]?[0-9]+)?")


class YamlError(ValueError):
    """A YAML text that cannot be read, or is refused."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.line = line


class Entry(Struct, frozen=True):
    """One value of a file: an item of a list, or a document."""

    name: str
    """The list's name; empty for a document."""
    line: int
    value: Any


def decoded(text: str) -> bytes | str:
    """Base64 as bytes; a damaged text stays as it is, to be named when it is used."""
    try:
        return b64decode(text)
    except ValueError:
        return text
