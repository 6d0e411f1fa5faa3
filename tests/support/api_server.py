"""A Messages API on loopback that bills by the rules of the stand-in: streams, errors, slow and cut answers."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from tests.support.stand_in import StandIn

Body = dict[str, Any]


class ApiServer:
    """What it was sent, what it billed, and how it is to behave."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        """Of the calls of the Messages API, in order."""
        self.headers: list[dict[str, str]] = []
        self.usages: list[Body] = []
        self.plan: list[Body] = []
        """How the next calls are answered: status, cut, slow, headers; an empty one as usual."""
        self.cache = StandIn(ready=0.0)
        self.clock = time.time
        self.url = ""
        self.calls = 0
        self.pieces = 3
        """Of a streamed text."""

    @contextmanager
    def running(self) -> Iterator[ApiServer]:
        """Serves in a thread of its own, and ends with the block."""
        loop = asyncio.new_event_loop()
        ready = threading.Event()
        stop = asyncio.Event()

        async def serve() -> None:
            app = web.Application(client_max_size=64_000_000)
            app.router.add_post("/v1/messages", self._message)
            app.router.add_post("/v1/messages/count_tokens", self._count)
            app.router.add_route("*", "/{path:.*}", self._other)
            silent = logging.getLogger("tests.support.api_server")
            silent.propagate = False
            silent.addHandler(logging.NullHandler())
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, logger=silent)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            ready.set()
            await stop.wait()
            await runner.cleanup()
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, return_exceptions=True)

        thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(10)
            loop.close()

    async def _other(self, request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"path": request.path, "method": request.method}, status=404)

    async def _count(self, request: web.Request) -> web.Response:
        body = await request.json()
        plan = self.plan.pop(0) if self.plan else {}
        if plan.get("status"):
            return web.json_response({}, status=plan["status"], headers=plan.get("headers"))
        self.calls += 1
        count = sum(self.cache.count(text) for _, text, _ in _rows(body))
        return web.json_response({"input_tokens": count})

    async def _message(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        self.bodies.append(raw)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        plan = self.plan.pop(0) if self.plan else {}
        if plan.get("slow"):
            await asyncio.sleep(plan["slow"])
        if plan.get("status"):
            kind = plan.get("type", "api_error")
            error = {"type": "error", "error": {"type": kind, "message": f"{kind} for the test"}}
            return web.json_response(error, status=plan["status"], headers=plan.get("headers"))
        try:
            body = json.loads(raw)
        except ValueError:
            return web.json_response({"type": "error", "error": {"message": "no JSON"}}, status=400)
        usage = {**self.cache.answer(body, self.clock()), **plan.get("usage", {})}
        self.usages.append(usage)
        self.calls += 1
        if body.get("stream"):
            return await self._stream(request, body, usage, plan)
        answer = {**self._answer(body, usage), **plan.get("members", {})}
        text = json.dumps(answer).encode()
        if plan.get("gzip"):
            return web.Response(
                body=gzip.compress(text),
                headers={"content-encoding": "gzip", "content-type": "application/json"},
            )
        headers = {"request-id": f"req_{self.calls}"}
        if plan.get("cookie"):
            headers["set-cookie"] = plan["cookie"]
        return web.Response(body=text, content_type="application/json", headers=headers)

    def _answer(self, body: Body, usage: Body) -> Body:
        return {
            "id": f"msg_{self.calls:05d}", "type": "message", "role": "assistant",
            "model": body["model"], "content": self._content(body), "stop_reason": self._reason(body),
            "stop_sequence": None, "usage": usage,
        }  # fmt: skip

    def _calls_tool(self, body: Body) -> bool:
        """Two calls of the first tool, then an answer."""
        messages = json.dumps(body["messages"])
        return bool(body.get("tools")) and messages.count('"tool_result"') < 2

    def _reason(self, body: Body) -> str:
        return "tool_use" if self._calls_tool(body) else "end_turn"

    def _content(self, body: Body) -> list[Body]:
        if not self._calls_tool(body):
            return [{"type": "text", "text": f"Answer number {self.calls}, as it was asked for."}]
        number = json.dumps(body["messages"]).count('"tool_result"')
        tool = next(tool["name"] for tool in body["tools"])
        call = {
            "type": "tool_use",
            "id": f"toolu_{number:04d}",
            "name": tool,
            "input": {"city": f"c{number}"},
        }
        return [call]

    async def _stream(
        self, request: web.Request, body: Body, usage: Body, plan: Body
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        answer = self._answer(body, {**usage, "output_tokens": 1})
        content, answer["content"] = answer["content"], []
        reason, answer["stop_reason"] = answer["stop_reason"], None
        events: list[Body] = [{"type": "message_start", "message": answer}]
        for index, block in enumerate(content):
            events += self._block(index, block)
        events += [
            {
                "type": "message_delta",
                "delta": {"stop_reason": reason, "stop_sequence": None},
                "usage": {"output_tokens": usage["output_tokens"]},
            },
            {"type": "message_stop"},
        ]
        for number, event in enumerate(events):
            if plan.get("cut") == number:
                assert request.transport is not None
                request.transport.abort()
                return response
            await response.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            if plan.get("pause"):
                await asyncio.sleep(plan["pause"])
        await response.write_eof()
        return response

    def _block(self, index: int, block: Body) -> Iterator[Body]:
        text = block.get("text", "")
        start = {**block, "text": ""} if text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        if text:
            size = max(1, -(-len(text) // self.pieces))
            for at in range(0, len(text), size):
                delta = {"type": "text_delta", "text": text[at : at + size]}
                yield {"type": "content_block_delta", "index": index, "delta": delta}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}


def _rows(body: Body) -> Iterator[tuple[str, str, Body | None]]:
    from tests.support.stand_in import blocks_of

    return blocks_of(body)
