"""YAML from its events: plain values, bounded in depth, in number and in what aliases repeat."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import yaml
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

from ctxdoc.reading.formats.shared.yaml_values import (
    BINARY,
    MAX_DEPTH,
    MAX_NODES,
    MAX_NUMBER,
    MAX_REPEATED,
    NUMBER,
    TYPED,
    WORDS,
    Entry,
    YamlError,
    decoded,
)


class Reader:
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
            # The bound is one of an entry: a file may have any number of them.
            self._nodes = 0

    def _items(self, name: str) -> Iterator[Entry]:
        while not isinstance(event := self._next(), SequenceEndEvent):
            self._nodes = 0
            yield Entry(name, _line(event), self._value(event, 2))

    def _opened(self) -> Event | None:
        """The first event of the first document; None for an empty text."""
        # A stream and a document open before the first value.
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
        # By its exact class: this runs for each value of a file, and isinstance costs more.
        kind = type(event)
        if kind is AliasEvent:
            return self._alias(event)
        anchor = event.anchor
        # An alias counts what its anchor spans, which is known when the value is complete.
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
        # Nearly every key: no value, no anchor, nothing to interpret.
        if type(event) is ScalarEvent and event.tag is None and event.anchor is None:
            self._size += 1 + len(event.value)
            return cast("str", event.value)
        value = self._value(event, depth)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        match value:
            case str():
                return value
            case bytes():
                return value.decode("utf-8", "replace")
            case dict() | list():
                raise YamlError("a key that is no text", _line(event))
        return str(value)

    def _alias(self, event: AliasEvent) -> Any:
        """What an alias stands for; the parts of a value that is not complete have no name yet."""
        if event.anchor not in self._anchors:
            raise YamlError("an alias of nothing, or of what it is part of", _line(event))
        value, size = self._anchors[event.anchor]
        self._size += size
        # Every alias counts in full: nine levels of nine aliases are a billion values.
        self._repeated += size
        if self._repeated > MAX_REPEATED:
            raise YamlError("aliases repeat too much", _line(event))
        return value


def _scalar(event: ScalarEvent) -> Any:
    """Text, or what a plain word means; an unknown tag changes nothing."""
    text = event.value
    tag = event.tag
    if tag in BINARY:
        return decoded(text)
    # Only a plain scalar has a meaning; what stands in quotes is text.
    if (tag is None and event.implicit[0]) or tag in TYPED:
        return _meaning(text)
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
