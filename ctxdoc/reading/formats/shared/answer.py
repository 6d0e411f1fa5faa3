"""Answers of the providers, whole or streamed, as Response values."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any

import msgspec
from msgspec import Raw

from ctxdoc.reading.formats.base import text_of
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.reading.formats.shared.applied_edits import edits_of
from ctxdoc.reading.formats.shared.blocks import content_of
from ctxdoc.reading.formats.shared.compression import unpacked
from ctxdoc.reading.formats.shared.members import odd
from ctxdoc.reading.formats.shared.passes import passes_of
from ctxdoc.reading.formats.shared.stream import events_of, merged, usage_of_choice
from ctxdoc.request.response import Response

Values = Mapping[str, Any]
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
"""Blocks of an answer that show that the API ran a tool itself and went over the prompt again."""


def read_answer(body: bytes | str | Values | list[Any] | None) -> Response | None:
    """The answer in a body of any of the shapes that recorders keep; None when there is none.

    Raises ValueError for what is neither JSON nor a stream of events.
    """
    match body:
        case None | b"" | "":
            return None
        case bytes():
            return _in_bytes(unpacked(body))
        case str():
            return _in_bytes(body.encode("utf-8", "replace"))
        case Mapping():
            return response_of(body)
        case list():
            return _of_stream(merged(event for event in body if isinstance(event, Mapping)))
    raise odd("str", body, "$.response.body")


def _in_bytes(data: bytes) -> Response | None:
    if data.lstrip()[:1] in (b"{", b"["):
        # A list holds the events of a stream as some recorders keep them.
        return read_answer(msgspec.json.decode(data))
    return _of_stream(merged(events_of(data.decode("utf-8", "replace"))))


def _of_stream(whole: dict[str, Any] | None) -> Response | None:
    return None if whole is None else response_of(whole)


def response_of(answer: Values) -> Response:
    """A whole answer of any provider.

    Raises msgspec.ValidationError for counters that are no whole numbers from 0 up.
    """
    usage = _usage(answer)
    blocks = _blocks(answer.get("content"))
    calls = [each for each in blocks if text_of(each.get("type")).endswith("tool_use")]
    notes: list[str] = []
    return Response(
        id=text_of(answer.get("id") or answer.get("responseId")),
        model=text_of(answer.get("model") or answer.get("modelVersion")),
        error=_error(answer),
        usage=counters.any_of(usage) if usage else None,
        passes=passes_of(usage, notes),
        edits=edits_of(answer, notes),
        compacted=_is_summary(blocks[0]) if blocks else False,
        speed=text_of(usage.get("speed")),
        batch=usage.get("service_tier") == "batch",
        us_only=usage.get("inference_geo") == "us",
        miss_reason=_miss_reason(answer),
        several_passes=counters.has_server_tools(usage) or _has_server_call(calls),
        searches=counters.searches(usage),
        called=_called(calls),
        content=content_of(answer.get("content")),
        notes=tuple(dict.fromkeys(notes)),
    )


def _usage(answer: Values) -> dict[str, Any]:
    """The counters of an answer; a stream of Kimi's has them in its choice."""
    usage = answer.get("usage") or answer.get("usageMetadata") or usage_of_choice(answer)
    return usage if isinstance(usage, dict) else {}


def _error(answer: Values) -> str:
    """The message of a refusal, or a word where it has none; empty for an answer."""
    error = answer.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    failed = bool(error) or answer.get("type") == "error"
    return text_of(said) or ("error" if failed else "")


def _blocks(content: Any) -> list[Values]:
    """The blocks of an answer; an empty one stands for what is no object.

    Those of a stream are bytes, which are decoded only where a block may matter.
    """
    if isinstance(content, Raw):
        data = bytes(content)
        content = (
            msgspec.json.decode(data) if b"tool_use" in data or b'"compaction"' in data else []
        )
    blocks = content if isinstance(content, list) else []
    return [block if isinstance(block, Mapping) else {} for block in blocks]


def _is_summary(block: Values) -> bool:
    """Whether a block is a summary that was made for this answer; one without content is a compaction
    that failed (compaction page, 2026-10-08)."""
    said = block.get("content") or block.get("encrypted_content")
    return block.get("type") == "compaction" and bool(said)


def _has_server_call(calls: list[Values]) -> bool:
    return any(call.get("type") in SERVER_CALLS for call in calls)


def _called(calls: list[Values]) -> tuple[str, ...]:
    """Names of the tools, each once."""
    # One object for each name: the answers of a log call the same tools again and again.
    names = (text_of(call.get("name")) for call in calls)
    return tuple({intern(name): None for name in names if name})


def _miss_reason(answer: Values) -> str:
    """The API's own word on a miss (cache-diagnostics page, 2026-09-26)."""
    diagnostics = answer.get("diagnostics")
    reason = diagnostics.get("cache_miss_reason") if isinstance(diagnostics, dict) else None
    return text_of(reason.get("type")) if isinstance(reason, dict) else ""
