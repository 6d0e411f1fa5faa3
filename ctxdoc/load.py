"""Reads log files into a Log: finds the format by content, counts what it skips."""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

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
        return f"no request in {', '.join(paths)}: the input is empty"
    more = f" ({len(skipped)} records skipped in all)" if len(skipped) > 1 else ""
    return f"no usable request: {_named(skipped[0])}{more}"


def _iter_file(path: str) -> Iterator[tuple[Request | Skipped, Format | None]]:
    try:
        with _open(path) as stream:
            for document in iter_documents(stream, path):
                if isinstance(document, Skipped):
                    yield document, None
                else:
                    yield _read_document(document)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot read {path}: {reason}", _hint(path)) from error


def _hint(path: str) -> str:
    if Path(path).is_dir():
        return "give a file of that folder"
    return "" if Path(path).exists() else "check the path; '-' reads standard input"


def _open(path: str) -> IO[bytes]:
    """The bytes of a file, unpacked where it is gzip."""
    stream = sys.stdin.buffer if path == "-" else Path(path).open("rb")  # noqa: SIM115
    head = stream.peek(2)[:2] if hasattr(stream, "peek") else b""
    return gzip.GzipFile(fileobj=stream) if head == b"\x1f\x8b" else stream  # type: ignore[return-value]


def _read_document(document: Document) -> tuple[Request | Skipped, Format | None]:
    form = next((form for form in FORMATS if form.matches(document)), None)
    try:
        if form is None:
            msgspec.json.decode(document.data)
            reason = "neither a Messages API body nor a record of one: no 'messages', no 'request'"
            return Skipped(document.source, document.line, reason), None
        return form.read(document), form
    except (msgspec.DecodeError, RecursionError) as error:
        return Skipped(document.source, document.line, reason_of(error)), form
