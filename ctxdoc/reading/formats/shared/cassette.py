"""HTTP test cassettes as requests: what the recorders of the languages have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ctxdoc.reading.formats.base import UNREADABLE, Item, read_time, text_of
from ctxdoc.reading.formats.shared.headers import header
from ctxdoc.reading.formats.shared.wire import HttpExchange, request_of
from ctxdoc.reading.formats.shared.yaml_text import PREFACE, recorded_body, text_headers
from ctxdoc.reading.formats.shared.yaml_values import Entry
from ctxdoc.reading.source import Source, reason_of
from ctxdoc.request.log import Skipped

INTERACTIONS = re.compile(
    PREFACE.encode() + rb"(version: [0-9]+[ \t]*\r?\n)?interactions:[ \t]*(?:\[\][ \t]*)?\r?\n"
)
"""The start of the cassettes of vcrpy, which sorts its keys, and of go-vcr, which does not."""
URI = re.compile(rb"^ {2,8}uri:", re.MULTILINE)
"""vcrpy's name of the URL; go-vcr has `url`."""
Reader = Callable[[Source, Entry], HttpExchange]


def is_go(source: Source) -> bool:
    """Whether a cassette that starts with INTERACTIONS is go-vcr's: the version stands first, and
    the URL has another name (it may lie behind the head)."""
    start = INTERACTIONS.match(source.head)
    return start is not None and start[1] is not None and URI.search(source.head) is None


def requests_of(
    source: Source, found: Iterator[Entry | Skipped], exchange: Reader
) -> Iterator[Item]:
    """The requests of the entries; one that is no interaction is skipped with its place."""
    for entry in found:
        if isinstance(entry, Skipped):
            yield entry
            continue
        # A list may hold anything; the entries beside it are read all the same.
        if not isinstance(entry.value, Mapping):
            yield Skipped(source.name, entry.line, "no interaction: no mapping")
            continue
        try:
            yield request_of(exchange(source, entry))
        except UNREADABLE as error:
            yield Skipped(source.name, entry.line, f"no interaction: {reason_of(error)}")


def interaction(
    source: Source, line: int, request: Any, response: Any, *, recorded: Any = None
) -> HttpExchange:
    """A request and its response, each with `body` and `headers`; the URL is `uri` or `url`.

    Its time is the recorder's, or else the response's `date` header. Raises ValueError for a
    request that is no mapping.
    """
    if not isinstance(request, Mapping):
        raise ValueError("the request is no mapping")
    url = text_of(request.get("uri") or request.get("url"))
    answer = response if isinstance(response, Mapping) else {}
    headers = text_headers(answer.get("headers"))
    return HttpExchange(
        source=source.name,
        line=line,
        # A filter may have put any text in its place.
        url=url if url.startswith(("http:", "https:", "/")) else "",
        request_headers=text_headers(request.get("headers")),
        response_headers=headers,
        request=recorded_body(request),
        answer=recorded_body(answer),
        status=_status(answer),
        at=read_time(recorded) or read_time(header(headers, "date")),
    )


def _status(response: Mapping[str, Any]) -> Any:
    """The HTTP status: a number, or a mapping that holds one."""
    match response:
        case {"status": {"code": code}} | {"status": {"status_code": code}} | {"code": code}:
            return code
        case {"status": code}:
            return code
    return None
