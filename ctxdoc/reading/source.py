"""One log file, or one member of an archive, as formats read it: bounded, and looked at first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Raw, Struct

from ctxdoc.errors import InputError
from ctxdoc.reading.deduplicate import Folder
from ctxdoc.reading.shape import HEAD, shape_of
from ctxdoc.request.log import Skipped

PIECE = 1 << 20
MAX_DOCUMENT = 96 << 20
"""A document longer than this is skipped: the API refuses bodies over 32 MB."""
MAX_LINE = 2048 << 20
"""A line longer than this ends the reading: a device, or no log at all."""
FIRST_DOCUMENTS = 8
"""Documents whose shape is looked at."""


class Document(Struct, frozen=True):
    """One JSON document of a file."""

    source: str
    line: int
    """1-based line where it starts; the number of the item for the items of one array."""
    data: bytes | Raw


class Walk:
    """A folder of which every file is read: what a file needs to know of the others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # Every body file of a folder asks the same two questions.
        self._found: dict[tuple[bytes, tuple[str, ...]], bool] = {}

    def mentions(self, word: bytes, except_for: tuple[str, ...]) -> bool:
        """Whether the first bytes of a file have the word; files with such ends are left out."""
        key = (word, except_for)
        if key not in self._found:
            others = (p for p in self.folder.iterdir() if not p.name.endswith(except_for))
            self._found[key] = any(word in _start(path) for path in others)
        return self._found[key]


def _start(path: Path) -> bytes:
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as stream:
            return stream.read(HEAD)
    except OSError:
        return b""


class Source:
    """A readable log: its name, its first bytes, and the rest of it once."""

    def __init__(
        self,
        name: str,
        stream: IO[bytes],
        folder: Path | None = None,
        walk: Walk | None = None,
        file: IO[bytes] | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        """Where files that a log refers to stand; None for a member or standard input."""
        self.walk = walk
        """The folder that is being read, if the file was found in one."""
        self._stream = stream
        self._file = file
        self.folding: Folder | None = None
        """Set by a reader that needs each part of the bodies once."""
        self.head = stream.read(HEAD).removeprefix(b"\xef\xbb\xbf")
        """The first bytes, without a byte order mark."""
        self._left = self.head
        self._at = 0

    def position(self) -> int:
        """Bytes of the file on disk that were read so far, compressed ones as they are; 0 where it
        cannot be told."""
        try:
            return self._file.tell() if self._file else 0
        except (OSError, ValueError):
            return 0

    @cached_property
    def shapes(self) -> tuple[frozenset[str], ...]:
        """Dotted paths of the members of the first JSON documents, to a depth of three.

        `[]` stands for the items of a list. A document that is cut by the end of the head shows the
        members up to there. Empty for what does not begin as JSON.
        """
        if not self._begins_as_json():
            return ()
        found: list[frozenset[str]] = []
        for line in self._first_lines():
            whole = _is_whole(line)
            # A first line that is no document by itself may begin one over several lines.
            found.append(shape_of(line if whole or found else self.head))
            if not whole or len(found) == FIRST_DOCUMENTS:
                break
        return tuple(found)

    def _first_lines(self) -> Iterator[bytes]:
        """The lines of the head that begin as JSON, without the end of one that was cut off."""
        lines = self.head.split(b"\n")
        if len(lines) > 1 and lines[0][:1] == b"{" and not _is_whole(lines[0]):
            # A log that was cut at its start, and not a document over several lines.
            lines = lines[1:] if lines[1][:2] == b'{"' and _is_whole(lines[1]) else lines
        return (line for line in lines if _begins_as_json(line))

    def _begins_as_json(self) -> bool:
        """Whether the first line is JSON, or was cut and the second one is."""
        first, _, second = self.head.lstrip().partition(b"\n")
        return _begins_as_json(first) or second.startswith(b'{"')

    def has(self, *paths: str) -> bool:
        """Whether one of the first documents has all of these paths."""
        return any(shape.issuperset(paths) for shape in self.shapes)

    @cached_property
    def first(self) -> dict[str, Any]:
        """The first document that is a whole object in the head; empty if none is."""
        # A document a line, or else one over all of them.
        for line in (*self.head.split(b"\n"), self.head):
            try:
                value = msgspec.json.decode(line)
            except (msgspec.DecodeError, RecursionError):
                continue
            if isinstance(value, dict):
                return value
        return {}

    def lines(self) -> Iterator[tuple[int, bytes | Skipped]]:
        """Number and bytes of each line; one over MAX_DOCUMENT is skipped without being held.

        Raises InputError for a line that does not end.
        """
        number = 0
        # The head is held already; behind it the stream finds the ends of lines by itself.
        while self._left and (line := self._readline()):
            number += 1
            yield number, self._checked(number, line)
        readline = self._stream.readline
        while line := readline(PIECE):
            number += 1
            # Nearly every line is shorter than a piece, and needs no look at its length.
            if len(line) < PIECE or line.endswith(b"\n"):
                yield number, line
            else:
                self._left, self._at = line, 0
                yield number, self._checked(number, self._readline())

    def _checked(self, number: int, line: bytes) -> bytes | Skipped:
        if len(line) <= MAX_DOCUMENT:
            return line
        return Skipped(self.name, number, f"line over {MAX_DOCUMENT >> 20} MB")

    def data(self) -> bytes:
        """The rest of the file; raises InputError when that is over MAX_DOCUMENT."""
        left = self._left[self._at :]
        # One byte more than is allowed tells a file at the limit from a longer one.
        rest = left + self._stream.read(MAX_DOCUMENT + 1 - len(left))
        self._left, self._at = b"", 0
        if len(rest) > MAX_DOCUMENT:
            raise InputError(f"{self.name} is over {MAX_DOCUMENT >> 20} MB", "split the file")
        return rest

    def documents(self) -> Iterator[Document | Skipped]:
        """The JSON documents: one a line, one whole file, or the items of an array."""
        lines = self.lines()
        opened = next((row for row in lines if _is_something(row[1])), None)
        if opened is None:
            return
        number, first = opened
        # A first line that is no document begins one over several lines.
        if isinstance(first, bytes) and not _is_whole(first):
            yield from self._whole_file(number, first)
            return
        for at, line in chain([opened], lines):
            yield from self._in_line(at, line)

    def _in_line(self, number: int, line: bytes | Skipped) -> Iterator[Document | Skipped]:
        """The documents of a line: one, the items of an array, or none in a blank one."""
        if isinstance(line, Skipped):
            yield line
        elif line.lstrip()[:1] == b"[" and _is_whole(line):
            yield from _items(Document(self.name, number, line))
        elif line.strip():
            yield Document(self.name, number, line)

    def _readline(self) -> bytes:
        """The next line of what is held; of one over the limit, enough to be seen as such."""
        end = self._left.find(b"\n", self._at) + 1
        if end:
            line = self._left[self._at : end]
            self._at = end
            return line
        left = self._left[self._at :]
        pieces, size = [left], len(left)
        self._left, self._at = b"", 0
        while piece := self._stream.readline(PIECE):
            # Counted on, but not held: the line is over the limit, its end has to be found.
            size += len(piece)
            if size - len(piece) <= MAX_DOCUMENT:
                pieces.append(piece)
            if piece.endswith(b"\n"):
                break
            if size > MAX_LINE:
                message = f"{self.name}: a line does not end within {MAX_LINE >> 20} MB"
                raise InputError(message, "is this a log?")
        return b"".join(pieces)

    def _whole_file(self, number: int, first: bytes) -> Iterator[Document | Skipped]:
        try:
            data = first + self.data()
        except InputError as error:
            yield Skipped(self.name, number, error.message)
            return
        try:
            msgspec.json.decode(data, type=Raw)
        except (msgspec.DecodeError, RecursionError) as error:
            yield from self._around_a_fault(number, data.splitlines(), reason_of(error))
            return
        document = Document(self.name, number, data)
        yield from _items(document) if data.lstrip()[:1] == b"[" else [document]

    def _around_a_fault(
        self, number: int, lines: list[bytes], reason: str
    ) -> Iterator[Document | Skipped]:
        """A text that is no document: its lines, if one of them is one, or else a single Skipped."""
        if not any(line.startswith(b"{") and _is_whole(line) for line in lines[1:]):
            yield Skipped(self.name, number, reason)
            return
        for offset, line in enumerate(lines):
            if line.strip():
                yield Document(self.name, number + offset, line)


def _is_something(line: bytes | Skipped) -> bool:
    return isinstance(line, Skipped) or bool(line.strip())


def _begins_as_json(line: bytes) -> bool:
    return line.lstrip()[:1] in (b"{", b"[")


def _items(document: Document) -> Iterator[Document]:
    for number, item in enumerate(msgspec.json.decode(document.data, type=list[Raw]), start=1):
        yield Document(document.source, number, item)


def _is_whole(line: bytes) -> bool:
    """Whether a line is a JSON document by itself, or at least no part of a larger one."""
    try:
        msgspec.json.decode(line, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        # Plain text between the lines of a log is no part of a document.
        return not line.lstrip().startswith((b"{", b"["))
    return True


def reason_of(error: Exception) -> str:
    """Why a document could not be decoded, in the reader's words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    text = str(error)
    if text == "Input data was truncated":
        return "not JSON: the text ends too early (or a \\u escape has no other half)"
    if "Invalid UTF-8" in text:
        return "not JSON: invalid UTF-8"
    if text.startswith("JSON is malformed"):
        reason = text.removeprefix("JSON is malformed: ")
        several = "; several documents? Put one on a line: jq -c ." if "trailing" in reason else ""
        return f"not JSON: {reason}{several}"
    return text.replace("Object missing required field", "no field").replace("`", "'")
