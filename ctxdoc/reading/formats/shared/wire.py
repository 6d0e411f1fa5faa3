"""Recorded HTTP exchanges as requests: what proxies, cassettes and HAR files have in common."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.reading.formats.base import UNREADABLE, Item, read_body, text_of
from ctxdoc.reading.formats.shared import converse
from ctxdoc.reading.formats.shared.answer import read_answer
from ctxdoc.reading.formats.shared.body_kind import OPENAI_BODY, is_messages_body, is_openai_body
from ctxdoc.reading.formats.shared.compression import unpacked
from ctxdoc.reading.formats.shared.headers import kept_headers, session_of
from ctxdoc.reading.formats.shared.members import objects_in, odd
from ctxdoc.reading.source import reason_of
from ctxdoc.request.log import Skipped
from ctxdoc.request.request import Body, Request
from ctxdoc.request.response import Response

CALLS = re.compile(
    r"/v1/messages/?$|/chat/completions/?$|/responses/?$|/completions/?$|:(?:stream)?generateContent$|"
    r":(?:stream)?rawPredict$|/model/[^/]+/(?:invoke|converse)(?:-stream|-with-response-stream)?$|"
    r"/api/(?:chat|generate)/?$",
    re.IGNORECASE,
)
"""Paths that call a model."""
CONVERSE = re.compile(r"/converse(?:-stream)?$")
OTHER = re.compile(
    r"count[_-]tokens|/batches|/files|/models/?$|/embeddings|/event_logging", re.IGNORECASE
)
"""Paths that do not."""
MODEL_IN_PATH = re.compile(r"/models?/([^/]+?)(?::[A-Za-z]+)?(?:/|$)")
"""Bedrock's versions and ARNs hold colons, Google's methods stand behind one."""

EXCHANGE = ("request.method", "request.url", "request.body", "request.headers")
"""Members of a record that keeps the whole HTTP exchange; see `Source.shapes`."""
OPENAI_ANSWER = (
    "response.choices",
    "response.usage.prompt_tokens",
    "response.usage.input_tokens_details",
)
"""Members of a record whose answer is OpenAI's."""


class HttpExchange(Struct, frozen=True, kw_only=True):
    """One request and its answer as a recorder kept them."""

    source: str
    line: int
    url: str = ""
    request_headers: Any = None
    response_headers: Any = None
    request: bytes | str | dict[str, Any] | list[Any] | None = None
    """Body: as bytes or text, or as values where the recorder parsed it."""
    answer: bytes | str | dict[str, Any] | list[Any] | None = None
    status: Any = None
    at: datetime | None = None
    duration: float | None = None
    session: str = ""


def request_of(exchange: HttpExchange) -> Item:
    """The request of an exchange; Skipped for what calls no model or cannot be read.

    Raises ValueError for an address that is none.
    """
    path = urlsplit(exchange.url).path
    called = not path or CALLS.search(path) is not None
    # Other calls are most of a browser log: their bodies are not read at all.
    if OTHER.search(path) or not (called or _may_call(exchange.request)):
        return _no_call(exchange, path)
    notes: list[str] = []
    raw, values = _request_body(exchange, notes)
    response = _answer(exchange, notes)
    counted = response is not None and response.usage is not None
    # At an address of its own, a gateway's for one, a prompt and its counters make a call.
    if not called and not (counted and _has_prompt(values)):
        return _no_call(exchange, path)
    if not isinstance(values, Mapping) and not counted:
        reason = "; ".join(["neither a body nor counters of a model call", *notes])
        return Skipped(exchange.source, exchange.line, reason)
    model = _model(values, path, response)
    found = _request(exchange, response, session_of(exchange.request_headers, values))
    body = _body(raw, values, model, path, notes)
    return replace(found, model=model, body=body, raw=raw, notes=tuple(notes))


def _request(exchange: HttpExchange, response: Response | None, session: str) -> Request:
    """The request of an exchange without its body: who, when, and what came back."""
    return Request(
        source=exchange.source,
        line=exchange.line,
        model="",
        body=None,
        at=exchange.at,
        duration=exchange.duration,
        session=exchange.session or session,
        headers={
            **kept_headers(exchange.request_headers),
            **kept_headers(exchange.response_headers),
        },
        response=response,
    )


def _no_call(exchange: HttpExchange, path: str) -> Skipped:
    return Skipped(exchange.source, exchange.line, f"calls no model: {path[:80]}", other=True)


def _may_call(body: Any) -> bool:
    """Whether a body that went to an unknown path may be a call all the same, told without reading
    it."""
    if isinstance(body, bytes):
        return any(name.encode() in body for name in PROMPTS) or body.lstrip()[:1] != b"{"
    return isinstance(body, str | Mapping) and any(name in body for name in PROMPTS)


def _has_prompt(values: Any) -> bool:
    """Whether a body is a prompt of messages: with counters behind it a call, wherever it went."""
    members = values if isinstance(values, Mapping) else {}
    messages = next((members[name] for name in PROMPTS if name in members), None)
    found = objects_in(messages)
    return bool(found) and found == messages and all("role" in each for each in found)


PROMPTS = ("messages", "contents")
"""Members of a body that hold its prompt, as a list of messages with roles."""


def answered(exchange: HttpExchange, response: Response | None, note: str = "") -> Request:
    """The request of a log that says what came back in its own way; `note` is for one without body."""
    found = request_of(exchange) if exchange.request is not None else None
    if isinstance(found, Request):
        return replace(found, response=response)
    return replace(_request(exchange, response, ""), notes=(note,) if note else ())


def _request_body(exchange: HttpExchange, notes: list[str]) -> tuple[Raw | None, Any]:
    """The body as it was sent, where the recorder kept that, and as values."""
    body = exchange.request
    if isinstance(body, dict | list) or body is None:
        return None, body
    try:
        if not isinstance(body, bytes | str):
            raise odd("str", body, "$.request.body")
        data = unpacked(body) if isinstance(body, bytes) else body.encode()
        return Raw(data), msgspec.json.decode(data)
    except UNREADABLE as error:
        notes.append(f"request not used: {reason_of(error)}")
        return None, None


def _answer(exchange: HttpExchange, notes: list[str]) -> Response | None:
    status = exchange.status
    failed = isinstance(status, int) and not isinstance(status, bool) and status >= 400
    try:
        response = read_answer(exchange.answer)
    except UNREADABLE as error:
        notes.append(f"response not used: {reason_of(error)}")
        response = None
    # Without a message of the API the status alone says that it failed.
    if failed and (response is None or not response.error):
        return replace(response or Response(), error=f"status {status}")
    return response


def _model(values: Any, path: str, response: Response | None) -> str:
    """The model as the body, the address, or else the answer spells it."""
    named = text_of(values.get("model")) if isinstance(values, Mapping) else ""
    if named:
        return named
    # Bedrock and Google name the model in the address only.
    found = MODEL_IN_PATH.search(path)
    if found is not None:
        return unquote(found[1])
    return response.model if response else ""


def _body(raw: Raw | None, values: Any, model: str, path: str, notes: list[str]) -> Body | None:
    """The body, as one of the Messages API; Bedrock's Converse has one of its own."""
    try:
        if CONVERSE.search(path) and isinstance(values, Mapping):
            return replace(converse.read_body(_bytes_of(raw, values), model), model=model)
        if is_openai_body(values):
            notes.append(OPENAI_BODY)
        if not is_messages_body(values):
            return None
        body = read_body(_bytes_of(raw, values))
    except UNREADABLE as error:
        notes.append(f"body not used: {error}")
        return None
    return replace(body, model=body.model or model)


def _bytes_of(raw: Raw | None, values: Any) -> Raw:
    """The body as it was sent, or as its values are written."""
    return raw if raw is not None else Raw(msgspec.json.encode(values))
