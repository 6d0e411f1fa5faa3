"""HTTP headers as recorders keep them: an object, pairs, or HAR's rows of name and value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ctxdoc.reading.formats.base import text_of
from ctxdoc.request.request import KEPT_HEADERS

SESSION_IN_JSON = re.compile(r'"session_id"\s*:\s*"([^"]*)"')


def kept_headers(headers: Any) -> dict[str, str]:
    """The headers that can hold no secret, by their lower-case names."""
    return {
        name.lower(): value
        for name, value in _pairs(headers)
        if name.lower() in KEPT_HEADERS and isinstance(value, str)
    }


def header(headers: Any, wanted: str) -> str:
    """One header by its lower-case name, for a reader that needs it at once, such as `date`."""
    return next((text_of(value) for name, value in _pairs(headers) if name.lower() == wanted), "")


def _pairs(headers: Any) -> Iterator[tuple[str, Any]]:
    """Name and first value of each header; what has no name is passed over."""
    for name, value in _rows(headers):
        if isinstance(name, str):
            yield name, value[0] if isinstance(value, list) and value else value


def _rows(headers: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(headers, Mapping):
        yield from headers.items()
    for row in headers if isinstance(headers, list) else ():
        match row:
            case Mapping():
                yield row.get("name"), row.get("value")
            case [name, value]:
                yield name, value


def session_of(headers: Any, values: Any) -> str:
    """The session that Claude Code names: in a header, or inside of the user id, which is either
    text that ends in it or JSON."""
    named = header(headers, "x-claude-code-session-id")
    metadata = values.get("metadata") if isinstance(values, Mapping) else None
    user = text_of(metadata.get("user_id")) if isinstance(metadata, Mapping) else ""
    # The header is newer and exact; the user id also names the account.
    if named or not user:
        return named
    if user.startswith("{"):
        found = SESSION_IN_JSON.search(user)
        return found[1] if found else ""
    return user.partition("_session_")[2]
