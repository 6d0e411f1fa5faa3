"""Chat completions in OpenAI's shape: bare bodies, or requests with their responses.

How to get one
    Write `{"timestamp": ..., "request": body, "response": answer}` as one line of JSON around each
    call of your OpenAI-compatible client or proxy, or just the bodies, one a line.

What a record holds
    The body as it was sent, with `messages` and `tools[].function`; the answer with `usage`, of
    which `prompt_tokens` holds the cached part; time, status, session and cost where they are
    written beside them, under the names of ctxdoc's own log.

What it cannot tell
    Causes inside a body: ctxdoc renders prompts of the Messages API only, so these bodies are not
    compared. The counters are used. A record of such a log that holds a Messages API body is read
    in full.

Privacy
    The bodies are your prompts. Headers that can hold a secret are dropped while reading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ctxdoc.reading.formats import litellm
from ctxdoc.reading.formats.base import (
    Format,
    Item,
    by_document,
    opens_json,
    read_cost,
    read_duration,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared.body_kind import OPENAI_BODY, is_openai_body
from ctxdoc.reading.formats.shared.wire import EXCHANGE, OPENAI_ANSWER, HttpExchange, request_of
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Request

ROLE = re.compile(rb'"role"\s*:\s*"(\w+)"')
"""The role of a message; inside of a text the quotes would be escaped."""
ANTHROPIC = ("system", "anthropic_version", "tools[].input_schema")


class _Record(Struct):
    request: Raw
    response: Any = None
    timestamp: Any = None
    headers: Any = None
    status: Any = None
    duration_ms: Any = None
    session_id: Any = None
    cost_usd: Any = None


def _matches(source: Source) -> bool:
    if not opens_json(source):
        return False
    return any(_is_pair(shape) for shape in source.shapes) or (
        any("messages" in shape and shape.isdisjoint(ANTHROPIC) for shape in source.shapes)
        and _is_body(source)
    )


def _is_pair(shape: frozenset[str]) -> bool:
    if "request" not in shape or not shape.isdisjoint(EXCHANGE):
        return False
    return "request.tools[].function" in shape or not shape.isdisjoint(OPENAI_ANSWER)


def _is_body(source: Source) -> bool:
    if source.has("messages", "tools[].function") or source.has("messages[].tool_calls"):
        return True
    if source.first:
        return is_openai_body(source.first)
    roles = ROLE.findall(source.head)
    return roles[:1] in ([b"system"], [b"developer"]) or b"tool" in roles


def _read(document: Document) -> Item:
    values = msgspec.json.decode(document.data, type=dict[str, Any])
    # A long first record is cut in the head, where its later members would tell it.
    if litellm.is_record(values):
        return litellm.read_record(document, values)
    if "request" in values:
        return _pair(document)
    if not isinstance(values.get("messages") or values.get("input"), list | str):
        return Skipped(document.source, document.line, "neither messages nor a request")
    return _named(request_of(_exchange(document, bytes(document.data))), values)


def _pair(document: Document) -> Item:
    record = msgspec.json.decode(document.data, type=_Record)
    answer = record.response
    exchange = replace(
        _exchange(document, bytes(record.request)),
        answer=answer if isinstance(answer, dict | list | str) else None,
        request_headers=record.headers,
        status=record.status,
        at=read_time(record.timestamp),
        duration=read_duration(record.duration_ms),
        session=text_of(record.session_id),
    )
    found = request_of(exchange)
    if isinstance(found, Request):
        found = replace(found, cost_reported=read_cost(record.cost_usd))
    return _named(found, answer)


def _exchange(document: Document, body: bytes) -> HttpExchange:
    return HttpExchange(source=document.source, line=document.line, request=body)


def _named(found: Item, stated: Any) -> Item:
    """A body that only its answer shows to be OpenAI's is none of the Messages API either."""
    if not isinstance(found, Request) or found.body is None:
        return found
    usage = stated.get("usage") if isinstance(stated, Mapping) else None
    if isinstance(usage, Mapping) and "prompt_tokens" in usage:
        return replace(found, body=None, notes=(*found.notes, OPENAI_BODY))
    return found


FORMAT = Format(
    id="openai_chat",
    title="OpenAI chat completions",
    example="openai.jsonl",
    traits=frozenset({Trait.EXACT_BYTES, Trait.TIME, Trait.USAGE}),
    matches=_matches,
    read=by_document(_read),
)
