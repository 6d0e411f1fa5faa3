"""The shape of a JSON text: the paths of its members, told without decoding it, even where it is cut."""

from __future__ import annotations

import re

SHAPE_DEPTH = 3
HEAD = 256 << 10
"""Bytes by which a file's format is told."""
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
"""A string that the end of the head cuts is one token: looking for its end anew at each quote in it
takes minutes."""


def shape_of(data: bytes) -> frozenset[str]:
    """Dotted member paths of a JSON text, to a depth of three; `[]` stands for the items of a list."""
    shape = _Shape()
    last = b""
    for found in _TOKEN.finditer(data[:HEAD]):
        token = found[0]
        match token:
            case b"{" | b"[":
                shape.open(token)
            case b"}" | b"]":
                shape.close()
                if not shape.stack:
                    # Behind the document only the next one may stand.
                    break
            case b":" if last[:1] == b'"':
                shape.name(last)
            case b",":
                shape.key = ""
        last = token
    return frozenset(shape.paths)


class _Shape:
    """The paths up to a token, and the objects and lists that are open there."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.stack: list[str] = []
        self.key = ""
        """The member that a value follows."""

    def open(self, bracket: bytes) -> None:
        # The items of an array at the top count as documents.
        items = f"{self.key}[]" if self.key else ""
        self.stack.append(self.key if bracket == b"{" else items)
        self.key = ""

    def close(self) -> None:
        if self.stack:
            self.stack.pop()

    def name(self, spelled: bytes) -> None:
        # Each level has two entries at most: deeper ones can hold no path that is short enough.
        if len(self.stack) > 2 * SHAPE_DEPTH:
            return
        self.key = spelled[1:-1].decode("utf-8", "replace")
        path = [name for name in (*self.stack, self.key) if name]
        if len(path) <= SHAPE_DEPTH:
            self.paths.add(".".join(path))
