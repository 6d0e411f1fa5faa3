"""What a log format is, and what most of them share."""

from __future__ import annotations

import operator
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.reading.deduplicate import FoldedLine, Folder
from ctxdoc.reading.source import Document, Source, reason_of
from ctxdoc.request.credentials import BODY_SECRETS, without_servers_secrets, without_tool_secrets
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import NEUTRAL, Body, Request
from ctxdoc.request.response import NULL

Item = Request | Skipped
MAX_COST = 1_000_000
"""USD; a request that is said to cost more is not believed."""
UNREADABLE = (msgspec.MsgspecError, RecursionError, ValueError)
"""What reading a hostile or broken record may raise; each becomes a Skipped with its place.

Text, numbers and times that are none raise ValueError, as does a value of an odd type (OddValueError).
What only a fault in a reader raises, such as AttributeError or KeyError, is not among them.
"""


class Format(Struct, frozen=True, kw_only=True):
    """How a log is written down."""

    id: str
    title: str
    example: str
    """Where such a log usually stands."""
    traits: frozenset[Trait]
    matches: Callable[[Source], bool]
    """Whether a file is of this format, by its content."""
    read: Callable[[Source], Iterator[Item]]
    """The requests of a file, and what was passed over."""


def by_document(
    read: Callable[[Document], Iterator[Item] | Item],
) -> Callable[[Source], Iterator[Item]]:
    """The reading of a format whose JSON documents stand for themselves."""

    def read_source(source: Source) -> Iterator[Item]:
        for document in source.documents():
            if isinstance(document, Skipped):
                yield document
                continue
            try:
                if not _is_utf8(document.data):
                    yield Skipped(document.source, document.line, "not JSON: invalid UTF-8")
                    continue
                found = read(document)
                if isinstance(found, Request | Skipped):
                    yield found
                else:
                    yield from found
            except UNREADABLE as error:
                yield Skipped(document.source, document.line, reason_of(error))

    return read_source


def by_record(read: Callable[[Document], Item]) -> Callable[[Source], Iterator[Item]]:
    """The same for a format that takes each body through `read_body` and looks no further into it:
    where the reader wants it, what earlier documents hold too is not decoded again."""
    plain = by_document(read)

    def read_source(source: Source) -> Iterator[Item]:
        folder = source.folding
        if folder is None:
            yield from plain(source)
            return
        for document in source.documents():
            if isinstance(document, Skipped):
                yield document
                continue
            try:
                yield _read_folded(read, document, folder)
            except UNREADABLE as error:
                yield Skipped(document.source, document.line, reason_of(error))

    return read_source


def _read_folded(read: Callable[[Document], Item], document: Document, folder: Folder) -> Item:
    line = bytes(document.data)
    folded = folder.fold(line)
    # Read without what was cut out; a record that fails so is read again as it stands.
    if folded.data is not line:
        item: Item | None = None
        with suppress(*UNREADABLE):
            item = _read_utf8(read, Document(document.source, document.line, folded.data))
        if isinstance(item, Request):
            # None says that a mark stands where no part belongs: the cut was wrong.
            item = folder.unfold(item, folded, line)
            if item is not None:
                return item
    item = _read_utf8(read, document)
    if isinstance(item, Skipped) or item.body is None:
        return item
    return folder.unfold(item, FoldedLine(line), line) or item


def _read_utf8(read: Callable[[Document], Item], document: Document) -> Item:
    if not _is_utf8(document.data):
        return Skipped(document.source, document.line, "not JSON: invalid UTF-8")
    return read(document)


def by_entry(
    source: str, entries: Iterable[Raw | bytes], read: Callable[[int, Raw | bytes], Item]
) -> Iterator[Item]:
    """Each entry of one document by itself, counted from 1; one that cannot be read is skipped."""
    for number, entry in enumerate(entries, start=1):
        try:
            yield read(number, entry)
        except UNREADABLE as error:
            yield Skipped(source, number, reason_of(error))


def _is_utf8(data: bytes | Raw) -> bool:
    """Checked here: the parts of a body are decoded later, one by one."""
    text = bytes(data)
    # No text has to be made for this, and nearly every line is so.
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


EXPECTED = NEUTRAL.union(Body.__struct_fields__) - {"others"}
"""Members of a body that are either read or neutral."""


def opens_json(source: Source) -> bool:
    """Whether the first line of a file, or the one after a cut one, is JSON: lines inside of a YAML
    text can look so too."""
    lines = source.head.lstrip().split(b"\n", 2)[:2]
    return any(line.lstrip()[:1] in (b"{", b"[") for line in lines)


def read_body(raw: Raw | bytes) -> Body:
    """A Messages API body without the credentials in it; raises msgspec.DecodeError for anything else."""
    body = msgspec.json.decode(raw, type=Body)
    body = _without_credentials(body)
    # A second pass over the text: the first one passes over members that have no field.
    members = msgspec.json.decode(raw, type=dict[str, Raw])
    if members.keys() <= EXPECTED:
        return replace(body, others=()) if body.others else body
    unread = members.keys() - EXPECTED - BODY_SECRETS
    return replace(body, others=tuple((name, bytes(members[name])) for name in sorted(unread)))


def _without_credentials(body: Body) -> Body:
    servers = body.mcp_servers
    if servers is not NULL:
        servers = without_servers_secrets(servers)
    tools = tuple([without_tool_secrets(tool) for tool in body.tools or ()])
    # The same objects come back where nothing was taken out: mostly the body stays as it is.
    kept = all(map(operator.is_, tools, body.tools or ()))
    if servers is body.mcp_servers and kept:
        return body
    return replace(body, mcp_servers=servers, tools=body.tools if kept else tools)


def read_time(value: Any) -> datetime | None:
    """A UTC time from ISO 8601 or RFC 2822 text, or from seconds or milliseconds since 1970.

    None for anything else, and for a time before 2000 or after 2099.
    """
    try:
        at = _time(value)
    except (ValueError, OverflowError, OSError):
        return None
    if at is None:
        return None
    return at if 2000 <= at.year < 2100 else None


def _time(value: Any) -> datetime | None:
    match value:
        case datetime():
            at = value
        case str():
            at = _spelled(value)
        case bool():
            return None
        case int() | float():
            # Seconds reach this number in the year 5138.
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
        case _:
            return None
    if at.tzinfo is UTC:
        return at
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)


def _spelled(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        from email.utils import parsedate_to_datetime  # a slow import, for few logs

        return parsedate_to_datetime(text)


def read_duration(milliseconds: Any) -> float | None:
    """Seconds, from 0 to a day; None for anything else."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, (int, float)):
        return None
    return milliseconds / 1000 if 0 <= milliseconds <= 86_400_000 else None


def between(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds from one time to another, from 0 to a day; None where one is not known."""
    return read_duration((end - start).total_seconds() * 1000) if start and end else None


def read_cost(value: Any) -> Decimal | None:
    """USD as it was spelled, in quotes or not; None for what is no amount."""
    if value is None:
        return None
    text = bytes(value).decode("ascii", "replace").strip('"') if isinstance(value, Raw) else value
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        return None
    try:
        cost = Decimal(str(text))
        return cost if 0 <= cost < MAX_COST else None
    except InvalidOperation:
        return None


def text_of(value: Any) -> str:
    """A string; empty for anything else."""
    return value if isinstance(value, str) else ""


def read_base64(text: Any) -> bytes:
    """Bytes written in base64, in lines or not; raises ValueError for what is none."""
    return b64decode("".join(text_of(text).split()), validate=True)
