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
from ctxdoc.reading.formats.shared.compression import unpacked
from ctxdoc.reading.formats.shared.members import odd
from ctxdoc.reading.source import reason_of
from ctxdoc.request.log import Skipped
from ctxdoc.request.request import KEPT_HEADERS, Body, Request
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

SESSION_IN_JSON = re.compile(r'"session_id"\s*:\s*"([^"]*)"')
OPENAI_BODY = "body not compared: it is OpenAI-shaped, not one of the Messages API"
EXCHANGE = ("request.method", "request.url", "request.body", "request.headers")
"""Members of a record that keeps the whole HTTP exchange; see `Source.shapes`."""
OPENAI_ANSWER = (
    "response.choices",
    "response.usage.prompt_tokens",
    "response.usage.input_tokens_details",
)
"""Members of a record whose answer is OpenAI's."""
OPENAI_MODEL = re.compile(r"(?:openai/|azure/)?(?:gpt-|chatgpt-|o\d)", re.IGNORECASE)


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
    """The request of an exchange; Skipped for what calls no model or cannot be read."""
    path = urlsplit(exchange.url).path if exchange.url else ""
    called = not path or bool(CALLS.search(path))
    if path and (OTHER.search(path) or not (called or _may_call(exchange.request))):
        return _no_call(exchange, path)
    notes: list[str] = []
    raw, values = _request_body(exchange, notes)
    response = _answer(exchange, notes)
    if not called and not _is_answered(values, response):
        return _no_call(exchange, path)
    model = _model(values, path) or (response.model if response else "")
    if not isinstance(values, Mapping) and (response is None or response.usage is None):
        reason = "; ".join(["neither a body nor counters of a model call", *notes])
        return Skipped(exchange.source, exchange.line, reason)
    return Request(
        source=exchange.source,
        line=exchange.line,
        model=model,
        body=_body(raw, values, model, path, notes),
        raw=raw,
        at=exchange.at,
        duration=exchange.duration,
        session=exchange.session or session_of(exchange.request_headers, values),
        headers={
            **kept_headers(exchange.request_headers),
            **kept_headers(exchange.response_headers),
        },
        response=response,
        notes=tuple(notes),
    )


def _no_call(exchange: HttpExchange, path: str) -> Skipped:
    return Skipped(exchange.source, exchange.line, f"calls no model: {path[:80]}", other=True)


def _may_call(body: Any) -> bool:
    """Whether a body that went to an unknown path may be a call all the same, told without reading
    it."""
    if isinstance(body, bytes):
        return any(name.encode() in body for name in PROMPTS) or body.lstrip()[:1] != b"{"
    return isinstance(body, str | Mapping) and any(name in body for name in PROMPTS)


def _is_answered(values: Any, response: Response | None) -> bool:
    """Whether a prompt of messages was answered with counters: a call, wherever it went."""
    if response is None or response.usage is None or not isinstance(values, Mapping):
        return False
    messages = next((values[name] for name in PROMPTS if name in values), None)
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(isinstance(each, Mapping) and "role" in each for each in messages)
    )


PROMPTS = ("messages", "contents")
"""Members of a body that hold its prompt, as a list of messages with roles."""


def answered(exchange: HttpExchange, response: Response | None, note: str = "") -> Request:
    """The request of a log that says what came back in its own way; `note` is for one without body."""
    found = request_of(exchange) if exchange.request is not None else None
    if isinstance(found, Request):
        return replace(found, response=response)
    return Request(
        source=exchange.source,
        line=exchange.line,
        model="",
        body=None,
        at=exchange.at,
        duration=exchange.duration,
        session=exchange.session,
        response=response,
        notes=(note,) if note else (),
    )


def kept_headers(headers: Any) -> dict[str, str]:
    """The headers that can hold no secret, from an object, from pairs, or from HAR's name and value."""
    found: dict[str, str] = {}
    rows: list[tuple[Any, Any]] = []
    if isinstance(headers, Mapping):
        rows = list(headers.items())
    elif isinstance(headers, list):
        for row in headers:
            if isinstance(row, Mapping):
                rows.append((row.get("name"), row.get("value")))
            elif isinstance(row, list | tuple) and len(row) == 2:
                rows.append((row[0], row[1]))
    for name, value in rows:
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(name, str) and name.lower() in KEPT_HEADERS and isinstance(first, str):
            found[name.lower()] = first
    return found


def header(headers: Any, wanted: str) -> str:
    """One header by its lower-case name, for a reader that needs it at once, such as `date`."""
    if isinstance(headers, Mapping):
        for name, value in headers.items():
            if isinstance(name, str) and name.lower() == wanted:
                return text_of(value[0] if isinstance(value, list) and value else value)
    if isinstance(headers, list):
        for row in headers:
            if isinstance(row, Mapping) and text_of(row.get("name")).lower() == wanted:
                return text_of(row.get("value"))
    return ""


def session_of(headers: Any, values: Any) -> str:
    """The session that Claude Code names: in a header, or inside of the user id, which is either
    text that ends in it or JSON."""
    named = header(headers, "x-claude-code-session-id")
    metadata = values.get("metadata") if isinstance(values, Mapping) else None
    user = text_of(metadata.get("user_id")) if isinstance(metadata, Mapping) else ""
    if named or not user:
        return named
    if user.startswith("{"):
        found = SESSION_IN_JSON.search(user)
        return found[1] if found else ""
    return user.partition("_session_")[2]


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
    if failed and (response is None or not response.error):
        return replace(response or Response(), error=f"status {status}")
    return response


def _model(values: Any, path: str) -> str:
    named = text_of(values.get("model")) if isinstance(values, Mapping) else ""
    if named:
        return named
    found = MODEL_IN_PATH.search(path)
    return unquote(found[1]) if found else ""


def _body(raw: Raw | None, values: Any, model: str, path: str, notes: list[str]) -> Body | None:
    """The body, as one of the Messages API; Bedrock's Converse has one of its own."""
    if not CONVERSE.search(path) or not isinstance(values, Mapping):
        return _messages_body(raw, values, model, notes)
    try:
        body = converse.read_body(
            raw if raw is not None else Raw(msgspec.json.encode(values)), model
        )
    except UNREADABLE as error:
        notes.append(f"body not used: {error}")
        return None
    return replace(body, model=model)


def _messages_body(raw: Raw | None, values: Any, model: str, notes: list[str]) -> Body | None:
    """The body, if it is one of the Messages API."""
    if is_openai_body(values):
        notes.append(OPENAI_BODY)
    if not is_messages_body(values):
        return None
    try:
        body = read_body(raw if raw is not None else msgspec.json.encode(values))
    except UNREADABLE as error:
        notes.append(f"body not used: {error}")
        return None
    return replace(body, model=body.model or model)


def is_messages_body(values: Any) -> bool:
    """Whether a body is the Messages API's and not a chat completion's: its system prompt and its
    tool schemas stand apart from the messages."""
    if not isinstance(values, Mapping) or not isinstance(values.get("messages"), list):
        return False
    if is_openai_body(values):
        return False
    roles = [m.get("role") if isinstance(m, Mapping) else None for m in values["messages"]]
    if not all(isinstance(role, str) for role in roles):
        return False
    if "anthropic_version" in values or "system" in values:
        return True
    known = {"user", "assistant", "system"}.issuperset(roles)
    return known and ("max_tokens" in values or "user" in roles)


def is_openai_body(values: Any) -> bool:
    """Whether a body is a chat completion's: its system prompt stands in the first message, its tools
    are functions."""
    messages = values.get("messages") if isinstance(values, Mapping) else None
    if not isinstance(messages, list) or "anthropic_version" in values or "system" in values:
        return False
    tools = values.get("tools")
    if isinstance(tools, list) and any(isinstance(t, Mapping) and "function" in t for t in tools):
        return True
    if OPENAI_MODEL.match(text_of(values.get("model"))):
        return True
    rows = [message for message in messages if isinstance(message, Mapping)]
    first = messages[0].get("role") if messages and isinstance(messages[0], Mapping) else None
    return first in ("system", "developer") or any(
        row.get("role") == "tool" or "tool_calls" in row for row in rows
    )
