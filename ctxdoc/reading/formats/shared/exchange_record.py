"""Records of one HTTP exchange in JSON: the request, and beside it the response or nothing.

Several recorders write that form under the same names; each adds members of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ctxdoc.reading.formats.base import read_time
from ctxdoc.reading.formats.shared.headers import header
from ctxdoc.reading.formats.shared.wire import HttpExchange


class RecordedRequest(Struct):
    """The request of a record."""

    url: str
    headers: Any = None
    body: Any = None


class RecordedResponse(Struct):
    """The response of a record."""

    status: Any = None
    headers: Any = None
    body: Any = None

    @property
    def code(self) -> Any:
        """The HTTP status: a number, or an object that holds one."""
        return self.status.get("code") if isinstance(self.status, Mapping) else self.status


class ExchangeRecord(Struct):
    """One request and its response."""

    request: RecordedRequest
    response: RecordedResponse | None = None


def exchange_of(
    source: str, line: int, sent: RecordedRequest, got: RecordedResponse | None
) -> HttpExchange:
    """The exchange of a record; its time is the `date` of the response, where that was kept."""
    got = got or RecordedResponse()
    return HttpExchange(
        source=source,
        line=line,
        url=sent.url,
        request_headers=sent.headers,
        response_headers=got.headers,
        request=sent.body,
        answer=got.body,
        status=got.code,
        # To the second, and that of the end; better than no time at all.
        at=read_time(header(got.headers, "date")),
    )
