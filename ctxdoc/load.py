"""Reads log files into a Log: finds the format by content, counts what it skips."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, cast

import msgspec
from msgspec import Raw

from ctxdoc.errors import InputError, NoRequestError
from ctxdoc.formats import FORMATS, Format
from ctxdoc.formats.base import Document, iter_documents, reason_of
from ctxdoc.model import Log, Request, Skipped, Trait


def read_log(paths: list[str], *, strict: bool = False) -> Log:
    """All requests of the files, in order; `-` is standard input.

    Raises InputError for a file that cannot be read, and with `strict` for the first record that
    would be skipped; NoRequestError when nothing usable is left.
    """
    requests: list[Request] = []
    skipped: list[Skipped] = []
    formats: dict[str, Format] = {}
    for path in paths:
        for item, form in _iter_file(path):
            if isinstance(item, Request):
                requests.append(item)
                if form is not None:
                    formats[form.id] = form
            else:
                if strict:
                    raise InputError(_named(item), "leave out --strict to skip such records")
                skipped.append(item)
    if not requests:
        raise NoRequestError(
            _nothing(paths, skipped), "see 'ctxdoc explain native' and 'ctxdoc explain body'"
        )
    traits = frozenset[Trait].intersection(*(form.traits for form in formats.values()))
    return Log(
        requests=tuple(requests),
        skipped=tuple(skipped),
        traits=traits,
        formats=tuple(formats),
    )


def read_request(path: str, *, strict: bool = False) -> tuple[Request, Log]:
    """The one request of a file, or its last one, with the log it came from."""
    log = read_log([path], strict=strict)
    return log.requests[-1], log


def _named(item: Skipped) -> str:
    return f"{item.source}, line {item.line}: {item.reason}"


def _nothing(paths: list[str], skipped: list[Skipped]) -> str:
    if not skipped:
        return f"no request in {', '.join(map(shown, paths))}: the input is empty"
    more = f" ({len(skipped)} records skipped in all)" if len(skipped) > 1 else ""
    return f"no usable request: {_named(skipped[0])}{more}"


def _iter_file(path: str) -> Iterator[tuple[Request | Skipped, Format | None]]:
    if not path:
        raise InputError("the name of a file is empty", "is a shell variable unset?")
    try:
        with _open(path) as stream:
            for document in iter_documents(stream, shown(path)):
                if isinstance(document, Skipped):
                    yield document, None
                else:
                    yield _read_document(document)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {shown(path)}: {reason}", _hint(path, error)) from error
    except InputError as error:
        where = "" if error.message.startswith(shown(path)) else f"{shown(path)}: "
        raise InputError(where + error.message, error.hint) from error


def _hint(path: str, error: Exception) -> str:
    if isinstance(error, (EOFError, zlib.error, gzip.BadGzipFile)):
        return "the gzip file is cut or damaged: gzip -t tests it"
    if os.path.isdir(path):  # noqa: PTH112
        return "give a file of that folder"
    return "" if os.path.exists(path) else "check the path; '-' reads standard input"  # noqa: PTH110


@contextmanager
def _open(path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked where it is gzip; standard input stays open."""
    with ExitStack() as stack:
        if path != "-":
            stream = stack.enter_context(Path(path).open("rb"))
        elif sys.stdin is None:
            raise InputError("standard input is closed", "name a file")
        else:
            stream = sys.stdin.buffer  # type: ignore[assignment]
        head = stream.peek(4)[:4] if isinstance(stream, io.BufferedReader) else b""
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            hint = "save it as UTF-8: iconv -f utf-16 -t utf-8"
            raise InputError(f"{shown(path)} is UTF-16", hint)
        if head == b"\x28\xb5\x2f\xfd":
            raise InputError(f"{shown(path)} is zstd", "unpack it: zstd -dc FILE | ctxdoc ... -")
        if head.startswith(b"\x1f\x8b"):
            yield cast("IO[bytes]", stack.enter_context(gzip.GzipFile(fileobj=stream)))
        else:
            yield stream


def shown(path: str) -> str:
    """A path as it can be written anywhere: bytes that are no UTF-8 are escaped."""
    return path.encode("utf-8", "backslashreplace").decode() or "''"


def _read_document(document: Document) -> tuple[Request | Skipped, Format | None]:
    form = next((form for form in FORMATS if form.matches(document)), None)
    try:
        if not _is_utf8(document.data):
            return Skipped(document.source, document.line, "not JSON: invalid UTF-8"), form
        if form is None:
            msgspec.json.decode(document.data)
            reason = "neither a Messages API body nor a record of one: no 'messages', no 'request'"
            return Skipped(document.source, document.line, reason), None
        return form.read(document), form
    except (msgspec.DecodeError, RecursionError) as error:
        return Skipped(document.source, document.line, reason_of(error)), form


def _is_utf8(data: bytes | Raw) -> bool:
    """Checked here: the parts of a body are decoded later, one by one."""
    text = bytes(data)
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
