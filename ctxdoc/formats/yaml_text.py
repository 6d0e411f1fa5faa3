"""YAML as recorders write it, read as plain values: bounded, and without running a tag."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
import yaml
from msgspec import Struct
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from ctxdoc.errors import InputError
from ctxdoc.formats.source import MAX_DOCUMENT, Source, reason_of
from ctxdoc.model import Skipped

MAX_DEPTH = 200
"""Levels of lists and mappings in one another."""
MAX_NODES = 4_000_000
"""Values of one entry."""
MAX_REPEATED = 8 << 20
"""Values and characters that aliases may repeat in one file."""
MAX_NUMBER = 400
"""Characters of a number: the time to read one grows with their square."""
PREFACE = r"\A(?:[ \t]*(?:#[^\n]*|%[^\n]*|---[ \t]*(?:#[^\n]*)?)?\r?\n)*(?:---[ \t]+)?"
"""What may stand before the first key: comments, directives, the mark of a document."""
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


def entries(source: Source, *names: str) -> Iterator[Entry | Skipped]:
    """The items of the lists of these names at the top of the first document, one at a time.

    What follows a fault in the text is one Skipped.
    """
    try:
        data = source.data()
        if data.lstrip()[:1] == b"{":
            yield from _json_items(data, names)
        else:
            yield from _Reader(data).items(frozenset(names))
    except YamlError as error:
        yield Skipped(source.name, error.line, str(error))
    except InputError as error:
        yield Skipped(source.name, 1, str(error))


def _json_items(data: bytes, names: tuple[str, ...]) -> Iterator[Entry]:
    """The same of a cassette that was written as JSON; items are counted from 1."""
    try:
        top = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise YamlError(reason_of(error), 1) from error
    for name in names:
        items = top.get(name)
        for number, value in enumerate(items if isinstance(items, list) else (), start=1):
            yield Entry(name, number, value)


def documents(source: Source) -> Iterator[Entry | Skipped]:
    """The documents of a file that holds several; a fault in one ends only that one."""
    for line, data in _parted(source):
        if isinstance(data, Skipped):
            yield data
            continue
        try:
            value = _Reader(data).document()
        except YamlError as error:
            yield Skipped(source.name, line, f"{error} (line {line + error.line - 1})")
            continue
        if value is not None:
            yield Entry("", line, value)


def _parted(source: Source) -> Iterator[tuple[int, bytes | Skipped]]:
    """The text between the marks: no value may hold `---` at the start of a line."""
    start, held, size = 1, list[bytes](), 0
    for number, line in source.lines():
        if isinstance(line, Skipped):
            yield number, line
        elif line.startswith(b"---") and not line[3:4].strip():
            yield start, b"".join(held)
            start, held, size = number, [line], len(line)
        elif (size := size + len(line)) <= MAX_DOCUMENT:
            held.append(line)
        elif held:
            yield start, Skipped(source.name, start, f"document over {MAX_DOCUMENT >> 20} MB")
            held = []
    yield start, b"".join(held)


def text_headers(headers: Any) -> dict[str, str]:
    """Headers as name and text; bytes are read as text, of a list the first value counts."""
    found: dict[str, str] = {}
    for name, value in headers.items() if isinstance(headers, Mapping) else ():
        first = value[0] if isinstance(value, list) and value else value
        text = first.decode("utf-8", "replace") if isinstance(first, bytes) else first
        if isinstance(text, str):
            found[name] = text
    return found


def recorded_body(holder: Any) -> Any:
    """The body below `body`, or what it was parsed to: text, bytes, or values."""
    match holder:
        case {"parsed_body": parsed} if parsed is not None:
            return parsed
        case {"body": body}:
            return _unwrapped(body)
    return None


def _unwrapped(body: Any) -> Any:
    """Cassettes wrap a body, and vcrpy writes a stream object as the state of that object."""
    match body:
        case {"string": text} if text is not None:
            return _unwrapped(text)
        case {"base64_string": str(text)}:
            return _decoded(text)
        case {"state": [bytes(data), *_]}:
            return data
        case {"string": None} | {"encoding": _}:
            return None
    return body


class _Reader:
    """One YAML text, read event by event."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._parser = yaml.CSafeLoader(data)
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._repeated = 0
        self._size = 0
        self._nodes = 0

    def document(self) -> Any:
        """The first document; None for an empty text."""
        opened = self._opened()
        return None if opened is None else self._value(opened, 0)

    def items(self, names: frozenset[str]) -> Iterator[Entry]:
        """The items of the lists of these names in the mapping at the top."""
        opened = self._opened()
        if opened is None:
            return
        if not isinstance(opened, MappingStartEvent):
            raise YamlError("no mapping at the top of the file", _line(opened))
        while not isinstance(event := self._next(), MappingEndEvent):
            name = self._key(event, 1)
            below = self._next()
            if name in names and isinstance(below, SequenceStartEvent):
                yield from self._items(name)
            else:
                self._value(below, 1)
            self._nodes = 0

    def _items(self, name: str) -> Iterator[Entry]:
        while not isinstance(event := self._next(), SequenceEndEvent):
            self._nodes = 0
            yield Entry(name, _line(event), self._value(event, 2))

    def _opened(self) -> Event | None:
        """The first event of the first document; None for an empty text."""
        while isinstance(event := self._next(), StreamStartEvent | DocumentStartEvent):
            pass
        return None if isinstance(event, StreamEndEvent | DocumentEndEvent) else event

    def _next(self) -> Event:
        try:
            return cast("Event", self._parser.get_event())
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise YamlError(f"not YAML: {error.problem}", mark.line + 1 if mark else 1) from error
        except (yaml.YAMLError, ValueError) as error:
            reason = getattr(error, "reason", None) or "unreadable"
            line = self._data.count(b"\n", 0, getattr(error, "position", 0)) + 1
            raise YamlError(f"not YAML: {reason}", line) from error

    def _value(self, event: Event, depth: int) -> Any:
        """The value that an event starts."""
        self._nodes += 1
        if depth > MAX_DEPTH:
            raise YamlError(f"nested deeper than {MAX_DEPTH} levels", _line(event))
        if self._nodes > MAX_NODES:
            raise YamlError(f"an entry of more than {MAX_NODES:,} values", _line(event))
        kind = type(event)
        if kind is AliasEvent:
            return self._alias(event)
        anchor = event.anchor
        before = self._size
        if kind is ScalarEvent:
            value = _scalar(event)
            self._size += 1 + len(event.value)
        elif kind is SequenceStartEvent:
            value = self._sequence(depth)
        else:
            value = self._mapping(depth)
        if anchor is not None:
            self._anchors[anchor] = value, self._size - before
        return value

    def _sequence(self, depth: int) -> list[Any]:
        found = []
        while type(event := self._next()) is not SequenceEndEvent:
            found.append(self._value(event, depth + 1))
        self._size += 1
        return found

    def _mapping(self, depth: int) -> dict[str, Any]:
        found = {}
        while type(event := self._next()) is not MappingEndEvent:
            key = self._key(event, depth + 1)
            found[key] = self._value(self._next(), depth + 1)
        self._size += 1
        return found

    def _key(self, event: Event, depth: int) -> str:
        """A key as text: as spelled, or the one argument of a Python object that was a key."""
        if type(event) is ScalarEvent and event.tag is None and event.anchor is None:
            self._size += 1 + len(event.value)
            return cast("str", event.value)
        value = self._value(event, depth)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, dict | list):
            raise YamlError("a key that is no text", _line(event))
        return value if isinstance(value, str) else str(value)

    def _alias(self, event: AliasEvent) -> Any:
        """What an alias stands for; the parts of a value that is not complete have no name yet."""
        if event.anchor not in self._anchors:
            raise YamlError("an alias of nothing, or of what it is part of", _line(event))
        value, size = self._anchors[event.anchor]
        self._size += size
        self._repeated += size
        if self._repeated > MAX_REPEATED:
            raise YamlError("aliases repeat too much", _line(event))
        return value


def _scalar(event: ScalarEvent) -> Any:
    """Text, or what a plain word means; an unknown tag changes nothing."""
    text = event.value
    tag = event.tag
    if tag in BINARY:
        return _decoded(text)
    if (tag is None and event.implicit[0]) or tag in TYPED:
        return _meaning(text)
    return text


def _decoded(text: str) -> bytes | str:
    """Base64 as bytes; a damaged text stays as it is, to be named when it is used."""
    try:
        return b64decode(text)
    except ValueError:
        return text


def _meaning(text: str) -> Any:
    """Null, truth and numbers as JSON has them; times and YAML's other words stay text."""
    if text in WORDS:
        return WORDS[text]
    found = NUMBER.fullmatch(text) if len(text) <= MAX_NUMBER else None
    if found is None:
        return text
    return float(text) if found[1] or found[2] else int(text)


def _line(event: Event) -> int:
    return int(event.start_mark.line) + 1
