"""One exchange as a line of the native log, without anything secret."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import msgspec
from msgspec import Raw, Struct

from ctxdoc.reading.formats.shared.compression import unpacked
from ctxdoc.reading.formats.shared.headers import kept_headers
from ctxdoc.reading.formats.shared.stream import merged_answer
from ctxdoc.record.redaction import Redactor
from ctxdoc.request.credentials import without_credentials

MESSAGES = "/messages"
"""End of the path of a Messages API call."""
MOST_ANSWER = 64_000_000
"""Bytes of an answer that are kept."""


class Seen(Struct, kw_only=True):
    """What went through: a request and what came back."""

    method: str
    path: str
    """With its query."""
    headers: list[tuple[str, str]]
    body: bytes
    at: datetime
    status: int | None = None
    """None where nothing came back."""
    answer_headers: list[tuple[str, str]] = []
    answer: bytes = b""
    seconds: float = 0.0
    cut: bool = False
    """Whether the answer ended before its end."""
    error: str = ""
    """Why nothing came back."""

    @property
    def is_message(self) -> bool:
        """Whether it is a call of the Messages API."""
        path = self.path.partition("?")[0].rstrip("/")
        return self.method == "POST" and path.endswith(MESSAGES)


def line_of(seen: Seen, redactor: Redactor | None = None) -> bytes:
    """The line of an exchange, its end of line included."""
    record: dict[str, object] = {
        "timestamp": seen.at.astimezone(UTC).isoformat(),
        "headers": _headers(seen),
    }
    notes: list[str] = []
    if seen.is_message:
        record["request"] = _request(seen.body, redactor, notes)
        record["response"] = _response(seen, redactor, notes)
    else:
        # A call to another path: what it was, and nothing of what it said.
        record |= {"request": None, "response": None, "method": seen.method}
        record["path"] = _short_path(seen.path)
    record["status"] = seen.status
    record["duration_ms"] = round(1000 * seen.seconds)
    if seen.cut:
        record["cut"] = True
    if seen.error:
        notes.append(seen.error)
    if notes:
        record["notes"] = notes
    return msgspec.json.encode(record) + b"\n"


def bare_line_of(seen: Seen, why: str) -> bytes:
    """The line of an exchange that could not be written down: that there was one, and why."""
    record = {
        "timestamp": seen.at.astimezone(UTC).isoformat(),
        "request": None,
        "response": None,
        "method": seen.method[:16].encode("ascii", "replace").decode(),
        "path": _short_path(seen.path),
        "status": seen.status,
        "duration_ms": round(1000 * seen.seconds),
        "notes": [f"this exchange could not be written down: {why}"],
    }
    return msgspec.json.encode(record) + b"\n"


def _short_path(path: str) -> str:
    """The beginning of a path: behind it stand names and ids."""
    parts = path.partition("?")[0].split("/")[: SEGMENTS + 1]
    return "/".join(parts).encode("ascii", "replace").decode()


SEGMENTS = 2
"""Of a path that are kept, as in /v1/files."""


def _headers(seen: Seen) -> dict[str, str]:
    return kept_headers([*seen.headers, *seen.answer_headers])


def _request(body: bytes, redactor: Redactor | None, notes: list[str]) -> Raw | None:
    """The body as it was sent, on one line, without the credentials in it."""
    body = without_credentials(body)
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        notes.append(f"a body of {len(body):,} bytes that is no JSON")
        return None
    if redactor is not None:
        return Raw(msgspec.json.encode(redactor.body(value)))
    # In JSON a line can end between the parts only, never inside of a text.
    return Raw(body.replace(b"\r", b" ").replace(b"\n", b" "))


def _response(seen: Seen, redactor: Redactor | None, notes: list[str]) -> object:
    if not seen.answer:
        return None
    try:
        value = merged_answer(_decoded(seen.answer, seen.answer_headers))
    except (ValueError, RecursionError) as error:
        notes.append(f"an answer of {len(seen.answer):,} bytes that is not used: {error}")
        return None
    if value is None:
        return None
    return redactor.answer(value) if redactor is not None else value


def _decoded(data: bytes, headers: Iterable[tuple[str, str]]) -> bytes:
    """The answer as it was before compression."""
    encoding = next((v.lower() for k, v in headers if k.lower() == "content-encoding"), "")
    if encoding.strip() == "br":
        import brotli

        machine = brotli.Decompressor()
        try:
            plain = bytes(machine.process(data, output_buffer_limit=MOST_ANSWER))
        except brotli.error as error:
            raise ValueError("damaged compressed data") from error
        if machine.can_accept_more_data():
            return plain
        raise ValueError("unpacks to more than an answer can be")
    return unpacked(data)
