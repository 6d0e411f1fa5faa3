"""Recording inside of a program: the middleware of the Anthropic SDK, and transports for httpx clients.

Nothing that goes wrong here reaches a request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ctxdoc.record.lines import MOST_ANSWER, Seen
from ctxdoc.record.writer import Recorder

log = logging.getLogger("ctxdoc.record")


def recorder(path: str | Path, *, redact: str = "none") -> Any:
    """A middleware for `anthropic.Anthropic(middleware=[...])` and the async client, that writes the native
    log.

    `redact="text"` writes hashes instead of text. Raises InputError for a path that cannot be written.
    """
    from anthropic import Middleware

    writer = Recorder(path, redact=redact, tell=log.warning)

    class RecorderMiddleware(Middleware):
        """Writes each attempt of a request with its answer."""

        def handle(self, request: Any, call_next: Callable[[Any], Any]) -> Any:
            """One attempt of a synchronous client."""
            watch = _Watch(writer)
            with watch.failing():
                response = call_next(request)
            watch.follow(response.http_response, sync=True)
            return response

        async def handle_async(
            self, request: Any, call_next: Callable[[Any], Awaitable[Any]]
        ) -> Any:
            """One attempt of an asynchronous client."""
            watch = _Watch(writer)
            with watch.failing():
                response = await call_next(request)
            watch.follow(response.http_response, sync=False)
            return response

    return RecorderMiddleware()


def transport(path: str | Path, inner: Any, *, redact: str = "none") -> Any:
    """A transport for `httpx.Client(transport=...)` around another one, for clients without middleware.

    Raises InputError for a path that cannot be written.
    """
    writer = Recorder(path, redact=redact, tell=log.warning)

    class RecordingTransport(_base_of(inner, "BaseTransport")):  # type: ignore[misc]
        """Writes each request with its answer."""

        def handle_request(self, request: Any) -> Any:
            """Sends a request."""
            watch = _Watch(writer)
            request.read()
            with watch.failing(request):
                response = inner.handle_request(request)
            watch.follow(response, request, sync=True)
            return response

        def __enter__(self) -> Any:
            inner.__enter__()
            return self

        def __exit__(self, *how: Any) -> None:
            inner.__exit__(*how)

        def close(self) -> None:
            """Closes the transport that does the work."""
            inner.close()

    return RecordingTransport()


def async_transport(path: str | Path, inner: Any, *, redact: str = "none") -> Any:
    """The same for `httpx.AsyncClient(transport=...)`."""
    writer = Recorder(path, redact=redact, tell=log.warning)

    class AsyncRecordingTransport(_base_of(inner, "AsyncBaseTransport")):  # type: ignore[misc]
        """Writes each request with its answer."""

        async def handle_async_request(self, request: Any) -> Any:
            """Sends a request."""
            watch = _Watch(writer)
            await request.aread()
            with watch.failing(request):
                response = await inner.handle_async_request(request)
            watch.follow(response, request, sync=False)
            return response

        async def __aenter__(self) -> Any:
            await inner.__aenter__()
            return self

        async def __aexit__(self, *how: Any) -> None:
            await inner.__aexit__(*how)

        async def aclose(self) -> None:
            """Closes the transport that does the work."""
            await inner.aclose()

    return AsyncRecordingTransport()


def _base_of(inner: Any, name: str) -> Any:
    """A class of the HTTP library that a transport is of: httpx, or the one that the SDK uses."""
    return next(base for base in type(inner).__mro__ if base.__name__ == name)


class _Watch:
    """One exchange while it goes on."""

    def __init__(self, writer: Recorder) -> None:
        self.writer = writer
        self.at = datetime.now(UTC)
        self.started = time.perf_counter()
        self.seen: Seen | None = None
        self.chunks: list[bytes] = []
        self.size = 0

    def failing(self, request: Any = None) -> _Failing:
        """Writes down that nothing came back, where an error passes."""
        return _Failing(self, request)

    def follow(self, response: Any, request: Any = None, *, sync: bool) -> None:
        """Reads along while the answer is read."""
        with suppress(Exception):
            self.seen = self._begun(request or response.request)
            self.seen.status = response.status_code
            self.seen.answer_headers = _pairs(response.headers)
            if response.is_stream_consumed or response.is_closed:
                self.seen.answer_headers = [
                    pair for pair in self.seen.answer_headers if pair[0] != "content-encoding"
                ]
                self.chunks.append(response.content)
                self.finish(cut=False)
                return
            make = _tee if sync else _async_tee
            response.stream = make(response.stream, self)

    def _begun(self, request: Any) -> Seen:
        return Seen(
            method=str(request.method),
            path=request.url.raw_path.decode("ascii", "replace"),
            headers=_pairs(request.headers),
            body=request.content,
            at=self.at,
        )

    def fail(self, request: Any, error: BaseException) -> None:
        """Writes an exchange without an answer."""
        with suppress(Exception):
            found = request or getattr(error, "request", None)
            if found is not None:
                self.seen = self._begun(found)
                self.seen.error = f"nothing came back: {type(error).__name__}"
                self.finish(cut=False)

    def keep(self, chunk: bytes) -> None:
        """Takes a piece of the answer along."""
        self.size += len(chunk)
        if self.size <= MOST_ANSWER:
            self.chunks.append(chunk)

    def finish(self, *, cut: bool) -> None:
        """Writes the exchange, once."""
        seen, self.seen = self.seen, None
        if seen is None:
            return
        with suppress(Exception):
            seen.cut = cut
            seen.answer = b"".join(self.chunks) if self.size <= MOST_ANSWER else b""
            seen.seconds = time.perf_counter() - self.started
            self.writer.add(seen)


class _Failing:
    """Notes an error on its way out."""

    def __init__(self, watch: _Watch, request: Any) -> None:
        self.watch, self.request = watch, request

    def __enter__(self) -> None:
        """Nothing."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.watch.fail(self.request, error)


def _pairs(headers: Any) -> list[tuple[str, str]]:
    return [(str(name).lower(), str(value)) for name, value in headers.multi_items()]


def _tee(inner: Any, watch: _Watch) -> Any:
    """A stream that a client reads, read along."""
    base = next(b for b in type(inner).__mro__ if b.__name__ == "SyncByteStream")

    class Tee(base):  # type: ignore[misc, valid-type]
        def __iter__(self) -> Iterator[bytes]:
            for chunk in inner:
                watch.keep(chunk)
                yield chunk
            watch.finish(cut=False)

        def close(self) -> None:
            inner.close()
            watch.finish(cut=True)

    return Tee()


def _async_tee(inner: Any, watch: _Watch) -> Any:
    base = next(b for b in type(inner).__mro__ if b.__name__ == "AsyncByteStream")

    class Tee(base):  # type: ignore[misc, valid-type]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in inner:
                watch.keep(chunk)
                yield chunk
            watch.finish(cut=False)

        async def aclose(self) -> None:
            await inner.aclose()
            watch.finish(cut=True)

    return Tee()
