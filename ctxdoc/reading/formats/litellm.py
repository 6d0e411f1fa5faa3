"""LiteLLM's completion logs: one file per call, or one call a line.

How to get one
    OpenHands writes a file per call with `log_completions = true` (`LLM(log_completions=True)` in
    its SDK). Elsewhere write `kwargs["standard_logging_object"]` of a LiteLLM callback as one line
    of JSON, or let the proxy do it with its `s3_v2`, `gcs_bucket` or `generic_api` callback.

What a record holds
    The messages and tools as the application gave them to LiteLLM, the counters, the cost that
    LiteLLM worked out, start and end, and the session or trace id.

What it cannot tell
    What was sent: LiteLLM turns its OpenAI-shaped messages into the provider's body below the log
    and may add cache_control there, so bodies are not compared. Its `prompt_tokens` holds the cached
    part; versions that left it out contradict themselves and are flagged. Calls that LiteLLM
    answered from its own cache reached no provider and are skipped.

Privacy
    The messages are your prompts; `metadata` may name users and keys and is not kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxdoc.reading.formats.base import (
    Format,
    Item,
    between,
    by_document,
    read_cost,
    read_duration,
    read_time,
    text_of,
)
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.reading.formats.shared.answer import response_of
from ctxdoc.reading.formats.shared.body_kind import OPENAI_BODY
from ctxdoc.reading.source import Document, Source
from ctxdoc.request.log import Skipped, Trait
from ctxdoc.request.request import Request
from ctxdoc.request.response import Response
from ctxdoc.request.usage import Usage

Values = Mapping[str, Any]
PAYLOAD = "standard_logging_object"
OTHER_CALLS = ("embedding", "image", "speech", "transcription", "moderation", "rerank", "search")
"""Parts of LiteLLM's call types that call no language model."""


def _matches(source: Source) -> bool:
    return any(is_record(shape) for shape in source.shapes)


def is_record(shape: Values | frozenset[str]) -> bool:
    """Whether the members are those of a completion log or of a callback's payload."""
    if PAYLOAD in shape:
        return True
    if "kwargs" in shape and "response" in shape:
        return "messages" in shape or "input" in shape
    return "call_type" in shape and ("startTime" in shape or "prompt_tokens" in shape)


def _read(document: Document) -> Item:
    return read_record(document, msgspec.json.decode(document.data, type=dict[str, Any]))


def read_record(document: Document, values: Values) -> Item:
    """The request of one record, from its decoded values."""
    record = _part(values, PAYLOAD) or values
    reason = _no_call(record)
    if reason:
        return Skipped(document.source, document.line, reason, other=True)
    response = _response(record)
    prompted = isinstance(record.get("messages") or record.get("input"), list)
    if response is None and not prompted:
        return Skipped(document.source, document.line, "neither messages nor counters of a call")
    at, duration = _times(record)
    return Request(
        source=document.source,
        line=document.line,
        model=text_of(record.get("model")) or (response.model if response else ""),
        body=None,
        at=at,
        duration=duration,
        session=_session(record),
        response=response,
        cost_reported=read_cost(_first(record, "response_cost", "cost", "spend")),
        notes=(OPENAI_BODY,) if prompted else (),
    )


def _no_call(record: Values) -> str:
    """Why a record is no call of a language model; empty if it is one."""
    kind = text_of(record.get("call_type"))
    # Spelled with a prefix for asynchronous calls, such as `aembedding`.
    if any(part in kind for part in OTHER_CALLS):
        return f"calls no language model: {kind[:40]}"
    if record.get("cache_hit") in (True, "True", "true"):
        return "answered from LiteLLM's own cache: nothing was sent"
    return ""


def _response(record: Values) -> Response | None:
    """The answer with the best counters of the record; None if it holds neither."""
    stated = record.get("response")
    answer = stated if isinstance(stated, Mapping) else {}
    # The counters are looked for in three places, of which the answer is the first.
    found = response_of({**answer, "usage": None})
    usage = _usage(record, answer)
    error = found.error or _error(record)
    if usage is None and not error:
        return None
    return replace(found, id=found.id or text_of(record.get("id")), usage=usage, error=error)


def _usage(record: Values, answer: Values) -> Usage | None:
    """Counters of the answer, else those beside it, else the totals, which know of no cache."""
    beside = _part(_part(record, "metadata"), "usage_object")
    # The last ones are sums without the cached part.
    for stated in (_part(answer, "usage"), beside, record):
        found = counters.any_of(stated)
        if found is not None:
            return found
    return None


def _error(record: Values) -> str:
    said = _first(_part(record, "error_information"), "error_message", "error_class")
    stated = text_of(said) or text_of(_first(record, "error_str", "error"))
    return stated or ("failure" if record.get("status") == "failure" else "")


def _times(record: Values) -> tuple[datetime | None, float | None]:
    """Start and duration; a completion log notes the end of the call and how long it took."""
    at, end = read_time(record.get("startTime")), read_time(record.get("endTime"))
    # A callback has the start; a completion log only the end and how long it took.
    if at is not None:
        return at, between(at, end)
    took = record.get("latency_sec")
    duration = read_duration(took * 1000) if isinstance(took, (int, float)) else None
    end = read_time(record.get("timestamp"))
    return (end - timedelta(seconds=duration or 0) if end else None), duration


def _session(record: Values) -> str:
    metadata = _part(record, "metadata")
    return text_of(_first(record, "session_id", "trace_id") or metadata.get("session_id"))


def _part(values: Values, name: str) -> Values:
    return counters.part(values, name)


def _first(values: Values, *names: str) -> Any:
    """The first of the members that is there and not null."""
    return next((values[name] for name in names if values.get(name) is not None), None)


FORMAT = Format(
    id="litellm",
    title="LiteLLM completion logs",
    example="llm-logs/litellm_proxy__claude-sonnet-4-5-1757015025.972.json",
    traits=frozenset({Trait.TIME, Trait.USAGE, Trait.SESSION}),
    matches=_matches,
    read=by_document(_read),
)
