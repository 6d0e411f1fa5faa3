"""A proxy on loopback that passes everything through byte for byte and records what went through.

aiohttp is both its server and its client: one well-kept library that hands out the bytes of a body as they
arrive, compressed ones too, and keeps headers as they are.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from tempfile import SpooledTemporaryFile

from aiohttp import (
    ClientConnectionError,
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
    web,
)
from multidict import CIMultiDict
from yarl import URL

from ctxdoc.record.lines import MOST_ANSWER, Seen
from ctxdoc.record.writer import Recorder

HOST = "127.0.0.1"
HOP_BY_HOP = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
        "te", "trailer", "transfer-encoding", "upgrade", "expect",
    }
)  # fmt: skip
"""Headers that belong to one connection (RFC 9110, 7.6.1), and `Expect`: the body is there already."""
AUTOMATIC = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that a client would add by itself."""
MOST_BODY = 256_000_000
"""Bytes of a request: eight times what the API takes."""
CONNECT_SECONDS = 30
MOST_HEADER = 262_144
HELD_ANSWER = 262_144
"""Bytes of an answer that are held; what is longer waits on disk until it is written to the log."""
SILENT = logging.getLogger("ctxdoc.record.proxy")
"""What the server would say of a fault: a traceback may hold a key."""
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


class Proxy:
    """Passes requests to an upstream and records them."""

    def __init__(self, upstream: str, recorder: Recorder) -> None:
        self.upstream = upstream.rstrip("/")
        self.recorder = recorder
        self._pool = ThreadPoolExecutor(max_workers=1)
        """Lines are made and written beside the traffic, in order."""
        self._session: ClientSession | None = None

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator[int]:
        """The proxy while it listens; its port. Everything that went through is written at the end."""
        app = web.Application(client_max_size=MOST_BODY)
        app.router.add_route("*", "/{path:.*}", self._pass)
        runner = web.AppRunner(
            app,
            access_log=None,
            auto_decompress=False,
            shutdown_timeout=2,
            logger=SILENT,
            handler_cancellation=True,
            max_line_size=MOST_HEADER,
            max_field_size=MOST_HEADER,
        )
        timeout = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
        async with ClientSession(
            auto_decompress=False,
            timeout=timeout,
            connector=TCPConnector(limit=0),
            cookie_jar=DummyCookieJar(),
            max_line_size=MOST_HEADER,
            max_field_size=MOST_HEADER,
        ) as self._session:
            await runner.setup()
            try:
                site = web.TCPSite(runner, HOST, port)
                await site.start()
                yield int(runner.addresses[0][1])
            finally:
                await runner.cleanup()
                await asyncio.to_thread(self._pool.shutdown)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        """One exchange."""
        started = time.perf_counter()
        seen = Seen(
            method=request.method,
            path=request.raw_path,
            headers=_to_upstream(_texts(request.raw_headers), self.upstream),
            body=await request.read(),
            at=datetime.now(UTC),
            cut=True,
        )
        # Whoever writes the line closes it.
        spool = SpooledTemporaryFile(max_size=HELD_ANSWER)  # noqa: SIM115
        try:
            return await self._forward(request, seen, spool)
        finally:
            # The client has its answer, or has left; the line is written before anything is let go.
            seen.seconds = time.perf_counter() - started
            with suppress(RuntimeError):
                await asyncio.shield(
                    asyncio.wrap_future(self._pool.submit(self._record, seen, spool))
                )

    def _record(self, seen: Seen, spool: SpooledTemporaryFile[bytes]) -> None:
        """Writes one exchange; one at a time, so that one answer at a time is held as a whole."""
        with spool:
            spool.seek(0)
            seen.answer = spool.read()
            self.recorder.add(seen)

    async def _forward(
        self, request: web.Request, seen: Seen, spool: SpooledTemporaryFile[bytes]
    ) -> web.StreamResponse:
        assert self._session is not None
        try:
            answer = await self._session.request(
                request.method,
                URL(f"{self.upstream}{request.raw_path}", encoded=True),
                headers=CIMultiDict(_passed(seen.headers, ("host",))),
                data=seen.body if seen.body or request.can_read_body else None,
                allow_redirects=False,
                skip_auto_headers=AUTOMATIC,
            )
        except (ClientError, TimeoutError, OSError, ValueError) as error:
            seen.error, seen.cut = f"the upstream was not reached: {type(error).__name__}", False
            return _unreachable(seen)
        async with answer:
            return await self._answer(request, answer, seen, spool)

    async def _answer(
        self,
        request: web.Request,
        answer: ClientResponse,
        seen: Seen,
        spool: SpooledTemporaryFile[bytes],
    ) -> web.StreamResponse:
        seen.status = answer.status
        seen.answer_headers = _texts(answer.raw_headers)
        size = 0
        response = web.StreamResponse(
            status=answer.status,
            reason=answer.reason,
            headers=CIMultiDict(_passed(seen.answer_headers)),
        )
        try:
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                size += len(chunk)
                await response.write(chunk)
                if size <= MOST_ANSWER:
                    spool.write(chunk)
            await response.write_eof()
            seen.cut = False
        except (ClientPayloadError, ClientConnectionError, ConnectionError):
            # Cut on one side: the other side is to see it as well.
            if request.transport is not None:
                request.transport.abort()
        if size > MOST_ANSWER:
            spool.truncate(0)
        return response


def _texts(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[str, str]]:
    return [
        (k.decode("utf-8", "surrogateescape"), v.decode("utf-8", "surrogateescape"))
        for k, v in headers
    ]


def _to_upstream(headers: list[tuple[str, str]], upstream: str) -> list[tuple[str, str]]:
    """The headers of a request with the host that it goes to."""
    rest = [(name, value) for name, value in headers if name.lower() != "host"]
    url = URL(upstream)
    port = "" if url.is_default_port() else f":{url.port}"
    return [("host", f"{url.host}{port}"), *rest]


def _passed(headers: Iterable[tuple[str, str]], own: Iterable[str] = ()) -> list[tuple[str, str]]:
    """The headers that go on to the other side."""
    dropped = {*HOP_BY_HOP, *own}
    for name, value in headers:
        if name.lower() == "connection":
            dropped |= {each.strip().lower() for each in value.split(",")}
    return [(name, value) for name, value in headers if name.lower() not in dropped]


def _unreachable(seen: Seen) -> web.Response:
    """What the client hears when nothing came back, in the API's own form."""
    error = {"type": "api_error", "message": f"ctxdoc record: {seen.error}"}
    return web.Response(
        status=502,
        text=json.dumps({"type": "error", "error": error}),
        content_type="application/json",
    )
