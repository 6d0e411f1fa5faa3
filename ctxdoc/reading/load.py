"""Reads logs: finds each file's format by its content, merges what belongs together, counts what it
skips."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from io import BytesIO
from itertools import islice

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from ctxdoc.errors import InputError, NoRequestError
from ctxdoc.reading.deduplicate import Folder
from ctxdoc.reading.files import iter_sources, shown, unreadable
from ctxdoc.reading.formats import FORMATS, Format
from ctxdoc.reading.formats.base import UNREADABLE, Item, by_document
from ctxdoc.reading.formats.shared.others import KEPT_BESIDE, refusal
from ctxdoc.reading.message_threads import has_thread, stitched, without_content
from ctxdoc.reading.source import Document, Source, reason_of
from ctxdoc.request.log import Log, Skipped, Trait
from ctxdoc.request.request import Request
from ctxdoc.request.response import NULL

LOOSE = frozenset({"body", "flat", "openai_chat"})
"""Formats that are told by a member or two, which the sessions of other programs may have as well."""
TELL_EVERY = 64
"""Records after which progress is told."""


def read_log(
    paths: list[str],
    *,
    strict: bool = False,
    condense: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Log:
    """All requests of the paths, in order; `-` is standard input.

    Records of one response are one request. Raises InputError for a path that cannot be read, and
    with `strict` for the first record that would be skipped; NoRequestError when nothing usable is
    left. With `condense` the parts of all bodies are held once, and no body as a whole. `progress` is
    told from time to time how many bytes were read since it was last told.
    """
    reader = _Reader(strict, Folder() if condense else None, progress)
    for path in paths:
        reader.read(path)
    if not reader.requests:
        hint = "'ctxdoc formats' lists what can be read"
        raise NoRequestError(_nothing(paths, reader.skipped), hint)
    traits = [form.traits for form in reader.formats.values()]
    return Log(
        requests=tuple(stitched(reader.requests)),
        skipped=tuple(reader.skipped),
        traits=frozenset[Trait].intersection(*traits) if traits else frozenset(),
        formats=tuple(reader.formats),
        files=reader.files,
        records=reader.records,
    )


def read_request(path: str, *, strict: bool = False) -> tuple[Request, Log]:
    """The last request of a file, with the log it came from."""
    log = read_log([path], strict=strict)
    return log.requests[-1], log


def read_bodies(data: bytes, name: str) -> tuple[Request, ...]:
    """The requests in what a program has printed: one body, or one a line.

    Raises NoRequestError when there is none.
    """
    reader = _Reader(strict=False, folder=None, progress=None)
    reader.read_source(Source(name, BytesIO(data)))
    found = [request for request in reader.requests if request.body is not None]
    if not found:
        other = "it is no body of the Messages API" if reader.requests else ""
        raise NoRequestError(other or _nothing([name], reader.skipped))
    return tuple(found)


class _Reader:
    """What has been read so far."""

    def __init__(
        self, strict: bool, folder: Folder | None, progress: Callable[[int], None] | None
    ) -> None:
        self.strict = strict
        self.folder = folder
        self.progress = progress
        self.requests: list[Request] = []
        self.skipped: list[Skipped] = []
        self.formats: dict[str, Format] = {}
        self.files = 0
        self.records = 0
        self._by_response: dict[tuple[str, str], int] = {}
        """Indexes by the ids of response and request, and by the first alone where it has no other."""

    def read(self, path: str) -> None:
        try:
            for source in iter_sources(path):
                self.files += 1
                self.read_source(source)
        except unreadable() as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(f"cannot read {shown(path)}: {reason}", _hint(path, error)) from error

    def read_source(self, source: Source) -> None:
        """Reads one source in the first format that knows it."""
        # The order of the registry is the precedence: the narrow formats come first.
        form = next((form for form in FORMATS if form.matches(source)), None)
        reason = refusal(source) if form is None or form.id in LOOSE else ""
        if reason:
            self._skip(Skipped(source.name, 1, reason, other=reason == KEPT_BESIDE))
            return
        source.folding = self.folder
        for item in self._items(source, form.read if form else _read_unknown):
            if isinstance(item, Skipped):
                self._skip(item)
                continue
            if form is not None:
                self.formats[form.id] = form
            self._add(item)

    def _items(self, source: Source, read: Callable[[Source], Iterator[Item]]) -> Iterator[Item]:
        """What a format reads; a fault that is not of one record ends the file."""
        items = read(source)
        try:
            yield from items if self.progress is None else self._told(items, source)
        except UNREADABLE as error:
            yield Skipped(source.name, 1, reason_of(error))

    def _told(self, items: Iterator[Item], source: Source) -> Iterator[Item]:
        """The items; progress is told every few of them."""
        assert self.progress is not None
        told = 0
        for count, item in enumerate(items):
            yield item
            # To ask a file for its position is a call into the system.
            if count % TELL_EVERY == 0:
                position = source.position()
                self.progress(position - told)
                told = position
        self.progress(source.position() - told)

    def _skip(self, item: Skipped) -> None:
        if self.strict and not item.other:
            raise InputError(_named(item), "leave out --strict to skip such records")
        self.records += 1
        self.skipped.append(item)

    def _add(self, item: Request) -> None:
        self.records += item.records
        item = self._reduced(_with_notes(item))
        earlier = self._earlier(item)
        if earlier is not None:
            self.requests[earlier] = _later(self.requests[earlier], item)
            return
        if item.id:
            # A later record may name the response alone, where a gateway keeps no request id.
            for key in {(item.id, item.headers.get("request-id", "")), (item.id, "")}:
                self._by_response[key] = len(self.requests)
        self.requests.append(item)

    def _reduced(self, item: Request) -> Request:
        """A request that holds no more than is asked for later."""
        if self.folder is not None:
            item = self.folder.condensed(item)
        # A thread goes on from what was answered; `stitched` lets go of it then.
        return item if item.body is None or has_thread(item) else without_content(item)

    def _earlier(self, item: Request) -> int | None:
        """The index of an earlier record of the same response; one that names no request may be of
        any that has the response's id."""
        if not item.id:
            return None
        name = item.headers.get("request-id", "")
        earlier = self._by_response.get((item.id, name))
        if earlier is None:
            earlier = self._unnamed(item.id)
        if earlier is None or not _is_same(self.requests[earlier], item):
            return None
        return earlier

    def _unnamed(self, response: str) -> int | None:
        """The index of an earlier record of a response that names no request."""
        earlier = self._by_response.get((response, ""))
        named = earlier is not None and self.requests[earlier].headers.get("request-id")
        return None if named else earlier


def _with_notes(item: Request) -> Request:
    """A request that names what could not be read of its answer."""
    if item.response is None or not item.response.notes:
        return item
    return replace(item, notes=(*item.notes, *item.response.notes))


def _is_same(one: Request, two: Request) -> bool:
    """Whether a second record of a response says nothing new of the request: it has no body, or it
    is another log's record of the call.

    Recorders that blot ids out give many responses one id.
    """
    if not one.is_same_response(two):
        return False
    # A transcript tells of a call once more without its body.
    if two.body is None:
        return True
    return one.source != two.source and one.body == two.body


def _later(one: Request, two: Request) -> Request:
    """Two records of one response: the one with the larger output count, at the first one's place."""
    usage = (one.usage.output if one.usage else -1, two.usage.output if two.usage else -1)
    one = replace(one, records=one.records + two.records)
    if usage[1] <= usage[0]:
        return one
    # Only one of two records may hold the blocks of the answer.
    response = two.response
    if response and one.response and response.content is NULL:
        response = replace(response, content=one.response.content)
    return replace(one, response=response)


def _read_unknown(source: Source) -> Iterator[Item]:
    """A file of no known format: every document with the reason."""

    def skip(document: Document) -> Item:
        msgspec.json.decode(document.data, type=Raw)
        reason = "of no known log format: no 'messages', no 'request'"
        return Skipped(document.source, document.line, reason)

    found = by_document(skip)(source)
    # What is no JSON at all, such as a README in a folder, is named once.
    yield from found if source.shapes else islice(found, 1)


def _named(item: Skipped) -> str:
    return f"{item.source}, line {item.line}: {item.reason}"


def _nothing(paths: list[str], skipped: list[Skipped]) -> str:
    if not skipped:
        return f"no request in {', '.join(map(shown, paths))}: the input is empty"
    more = f" ({len(skipped)} records skipped in all)" if len(skipped) > 1 else ""
    return f"no usable request: {_named(skipped[0])}{more}"


def _hint(path: str, error: Exception) -> str:
    from gzip import BadGzipFile  # a slow import, for few logs

    if isinstance(error, (EOFError, zlib.error, BadGzipFile)):
        return "the gzip file is cut or damaged: gzip -t tests it"
    if isinstance(error, OSError) and "zstd data" in str(error):
        return "the zstd file is cut or damaged: zstd -t tests it"
    return "" if os.path.exists(path) else "check the path; '-' reads standard input"  # noqa: PTH110
