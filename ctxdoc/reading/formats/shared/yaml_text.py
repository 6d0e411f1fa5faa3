"""YAML as recorders write it, read as plain values: bounded, and without running a tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ctxdoc.errors import InputError
from ctxdoc.reading.formats.shared.yaml_values import Entry, YamlError, decoded
from ctxdoc.reading.source import MAX_DOCUMENT, Source, reason_of
from ctxdoc.request.log import Skipped

PREFACE = r"\A(?:[ \t]*(?:#[^\n]*|%[^\n]*|---[ \t]*(?:#[^\n]*)?)?\r?\n)*(?:---[ \t]+)?"
"""What may stand before the first key: comments, directives, the mark of a document."""


def entries(source: Source, *names: str) -> Iterator[Entry | Skipped]:
    """The items of the lists of these names at the top of the first document, one at a time.

    What follows a fault in the text is one Skipped.
    """
    from ctxdoc.reading.formats.shared.yaml_reader import Reader

    try:
        data = source.data()
        # Recorders can write JSON, which has a parser of its own that is far quicker.
        if data.lstrip()[:1] == b"{":
            yield from _json_items(data, names)
        else:
            yield from Reader(data).items(frozenset(names))
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
    from ctxdoc.reading.formats.shared.yaml_reader import Reader

    for line, data in _parted(source):
        if isinstance(data, Skipped):
            yield data
            continue
        try:
            value = Reader(data).document()
        except YamlError as error:
            # The parser counts from the start of the document.
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
        # A text block is indented, so that this is no part of one.
        elif line.startswith(b"---") and not line[3:4].strip():
            yield start, b"".join(held)
            start, held, size = number, [line], len(line)
        elif (size := size + len(line)) <= MAX_DOCUMENT:
            held.append(line)
        # Told once; the rest of a document over the limit is passed over.
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
            return decoded(text)
        case {"state": [bytes(data), *_]}:
            return data
        case {"string": None} | {"encoding": _}:
            return None
    return body
