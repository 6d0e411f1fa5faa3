"""What a log format is, and the reading that JSON formats share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import chain
from typing import IO, Any

import msgspec
from msgspec import Raw, Struct

from ctxdoc.errors import InputError
from ctxdoc.model import Body, Request, Response, Skipped, Trait, Usage

PIECE = 1 << 20
MAX_DOCUMENT = 96 << 20
"""A JSON document longer than this is skipped: the API refuses bodies over 32 MB."""
MAX_LINE = 2048 << 20
"""A line longer than this ends the reading: a device, or no log at all."""


class Document(Struct, frozen=True):
    """One JSON document of a file."""

    source: str
    line: int
    data: bytes | Raw


class Format(Struct, frozen=True, kw_only=True):
    """How a log is written down."""

    id: str
    title: str
    traits: frozenset[Trait]
    matches: Callable[[Document], bool]
    """Whether a document is of this format, judged by its first one."""
    read: Callable[[Document], Request | Skipped]
    """The request of a document; raises msgspec.DecodeError for one that it cannot read."""


def iter_documents(stream: IO[bytes], source: str) -> Iterator[Document | Skipped]:
    """The JSON documents of a file: one a line, or one whole file, or the items of one array.

    A line over MAX_DOCUMENT is skipped without being held.
    """
    lines = _iter_lines(stream, source)
    opened = next(
        ((n, line) for n, line in lines if isinstance(line, Skipped) or line.strip()), None
    )
    if opened is None:
        return
    number, first = opened
    if isinstance(first, bytes) and not _is_whole(first):
        yield from _whole_file(stream, source, number, first)
        return
    for at, line in chain([opened], lines):
        if isinstance(line, Skipped):
            yield line
        elif line.lstrip()[:1] == b"[" and _is_whole(line):
            yield from _items(Document(source, at, line))
        elif line.strip():
            yield Document(source, at, line)


def _iter_lines(stream: IO[bytes], source: str) -> Iterator[tuple[int, bytes | Skipped]]:
    number = 0
    while line := stream.readline(PIECE):
        number += 1
        if len(line) == PIECE and not line.endswith(b"\n"):
            line = _rest_of_line(stream, line)
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if len(line) > MAX_DOCUMENT:
            yield number, Skipped(source, number, f"line over {MAX_DOCUMENT >> 20} MB")
        else:
            yield number, line


def _rest_of_line(stream: IO[bytes], first: bytes) -> bytes:
    """A long line, cut behind the limit; raises InputError for one that does not end."""
    pieces, size = [first], len(first)
    while piece := stream.readline(PIECE):
        size += len(piece)
        if size - len(piece) <= MAX_DOCUMENT:
            pieces.append(piece)
        if piece.endswith(b"\n"):
            break
        if size > MAX_LINE:
            raise InputError(f"a line does not end within {MAX_LINE >> 20} MB", "is this a log?")
    return b"".join(pieces)


def _is_whole(line: bytes) -> bool:
    """Whether a line is a JSON document by itself, or at least no part of a larger one."""
    try:
        msgspec.json.decode(line, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        return not line.lstrip().startswith((b"{", b"["))
    return True


def _whole_file(
    stream: IO[bytes], source: str, number: int, first: bytes
) -> Iterator[Document | Skipped]:
    data = first + stream.read(MAX_DOCUMENT)
    if len(data) >= MAX_DOCUMENT:
        yield Skipped(source, number, f"document over {MAX_DOCUMENT >> 20} MB")
        return
    try:
        msgspec.json.decode(data, type=Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        lines = data.splitlines()
        if len(lines) == 1 or not any(_is_object(line) for line in lines[1:]):
            yield Skipped(source, number, reason_of(error))
            return
        for offset, line in enumerate(lines):
            if line.strip():
                yield Document(source, number + offset, line)
        return
    document = Document(source, number, data)
    yield from _items(document) if data.lstrip()[:1] == b"[" else [document]


def _is_object(line: bytes) -> bool:
    return line.startswith(b"{") and _is_whole(line)


def _items(document: Document) -> Iterator[Document]:
    """The items of an array; their number stands for the line."""
    for number, item in enumerate(msgspec.json.decode(document.data, type=list[Raw]), start=1):
        yield Document(document.source, number, item)


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


def read_body(raw: Raw) -> Body:
    """A Messages API body; raises msgspec.DecodeError for anything else."""
    return msgspec.json.decode(raw, type=Body)


def read_time(value: Any) -> datetime | None:
    """A UTC time from ISO 8601 text or from seconds or milliseconds since 1970.

    None for anything else, and for a time before 2000 or after 2099.
    """
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            at = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return at if 2000 <= at.year < 2100 else None


def read_duration(milliseconds: Any) -> float | None:
    """Seconds, from 0 to a day; None for anything else."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return None
    return milliseconds / 1000 if 0 <= milliseconds <= 86_400_000 else None


def anthropic_usage(usage: dict[str, Any] | None) -> Usage | None:
    """Anthropic's counters, where input_tokens leaves out the cached part (SDK 2.14.0).

    Raises msgspec.ValidationError for counters that are not whole numbers from 0 up.
    """
    if not usage:
        return None
    count = _Counters(usage)
    split = usage.get("cache_creation")
    parts = _Counters(split if isinstance(split, dict) else {})
    written = count["cache_creation_input_tokens"]
    hour = min(parts["ephemeral_1h_input_tokens"], written)
    return Usage(
        uncached=count["input_tokens"],
        cache_read=count["cache_read_input_tokens"],
        cache_write_5m=written - hour,
        cache_write_1h=hour,
        output=count["output_tokens"],
        split_known=not written or isinstance(split, dict),
    )


class _Counters:
    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __getitem__(self, name: str) -> int:
        value = self.values.get(name)
        if value is None:
            return 0
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise msgspec.ValidationError(f"counter '{name}' is no whole number from 0 up")
        return value


def anthropic_response(value: dict[str, Any]) -> Response:
    """A Messages API response or error; raises msgspec.ValidationError for bad counters."""
    usage = value.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    error = value.get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return Response(
        id=_text(value.get("id")),
        model=_text(value.get("model")),
        error=_text(message) or ("error" if value.get("type") == "error" else ""),
        usage=anthropic_usage(usage),
        speed=_text(usage.get("speed")),
        batch=usage.get("service_tier") == "batch",
        us_only=usage.get("inference_geo") == "us",
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
