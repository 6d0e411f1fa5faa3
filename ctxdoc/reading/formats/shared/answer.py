"""Answers of the providers, whole or streamed, as Response values."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from sys import intern
from typing import Any

import msgspec
from msgspec import Raw

from ctxdoc.reading.formats.base import text_of
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.reading.formats.shared.blocks import Blocks, content_of
from ctxdoc.reading.formats.shared.members import odd
from ctxdoc.reading.source import MAX_DOCUMENT
from ctxdoc.request.response import Response, ServerEdit
from ctxdoc.request.usage import Pass

DATA = re.compile(r"^data:[ \t]?(.*)$", re.MULTILINE)


def unpacked(data: bytes) -> bytes:
    """Bytes as they were before compression, told by their first bytes: the content-encoding header
    is kept in some recordings and dropped in others.

    Raises ValueError for damaged data, or for more than MAX_DOCUMENT.
    """
    if data[:2] == b"\x1f\x8b":
        return _bounded(data, 31)
    if data[:1] == b"\x78" and len(data) > 1 and int.from_bytes(data[:2], "big") % 31 == 0:
        try:
            return _bounded(data, 15)
        except ValueError:
            return data
    if data[:4] == b"\x28\xb5\x2f\xfd":
        import zstandard

        try:
            with zstandard.ZstdDecompressor().stream_reader(data) as stream:
                plain = stream.read(MAX_DOCUMENT + 1)
        except zstandard.ZstdError as error:
            raise ValueError(f"damaged compressed data: {error}") from error
        if len(plain) > MAX_DOCUMENT:
            raise ValueError("unpacks to more than a request can be")
        return bytes(plain)
    return data


def _bounded(data: bytes, kind: int) -> bytes:
    machine = zlib.decompressobj(kind)
    try:
        plain = machine.decompress(data, MAX_DOCUMENT)
    except zlib.error as error:
        raise ValueError(f"damaged compressed data: {error}") from error
    if machine.unconsumed_tail:
        raise ValueError("unpacks to more than a request can be")
    return plain


def read_answer(body: bytes | str | Mapping[str, Any] | list[Any] | None) -> Response | None:
    """The answer in a body of any of the shapes that recorders keep; None when there is none.

    Raises ValueError for what is neither JSON nor a stream of events.
    """
    if body is None or body in (b"", ""):
        return None
    if isinstance(body, Mapping):
        return response_of(body)
    if isinstance(body, list):
        return merged(event for event in body if isinstance(event, Mapping))
    if not isinstance(body, bytes | str):
        raise odd("str", body, "$.response.body")
    data = unpacked(body) if isinstance(body, bytes) else body.encode("utf-8", "replace")
    start = data.lstrip()[:6]
    if start[:1] == b"{":
        return response_of(msgspec.json.decode(data))
    if start[:1] == b"[":
        return read_answer(msgspec.json.decode(data))
    text = data.decode("utf-8", "replace")
    if not DATA.search(text):
        raise ValueError("the answer is neither JSON nor a stream of events")
    return merged(_events(text))


def _events(text: str) -> Iterator[Mapping[str, Any]]:
    for found in DATA.finditer(text.replace("\r\n", "\n")):
        if found[1].startswith("{"):
            try:
                event = msgspec.json.decode(found[1])
            except msgspec.DecodeError:
                continue
            if isinstance(event, dict):
                yield event


def merged_answer(data: bytes) -> dict[str, Any] | None:
    """An answer, whole or streamed, as one object; None for a stream without any event.

    Raises ValueError for what is neither JSON nor a stream of events.
    """
    if data.lstrip()[:1] == b"{":
        found = msgspec.json.decode(data)
        return found if isinstance(found, dict) else None
    text = data.decode("utf-8", "replace")
    if not DATA.search(text):
        raise ValueError("the answer is neither JSON nor a stream of events")
    return _joined(_events(text))


def merged(events: Iterator[Mapping[str, Any]]) -> Response | None:
    """The events of a streamed answer as one."""
    whole = _joined(events)
    return None if whole is None else response_of(whole)


STATED = (
    "id",
    "model",
    "error",
    "diagnostics",
    "context_management",
    "input_transformations",
    "type",
)
"""Members of a streamed answer that stand in its first or in its last event."""


def _joined(events: Iterator[Mapping[str, Any]]) -> dict[str, Any] | None:
    """A streamed answer: the last value that is not null wins, the split by lifetime is that of the
    start (facts: message_delta repeats totals and has no split)."""
    whole: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    blocks = Blocks()
    for event in events:
        blocks.add(event)
        part = next(
            (event[name] for name in ("message", "response") if isinstance(event.get(name), dict)),
            event,
        )
        for name in STATED:
            if part.get(name) is not None and not (name == "type" and part is event):
                whole[name] = part[name]
        if event.get("type") == "error":
            whole["type"] = "error"
        for holder in (part, event):
            for name in ("usage", "usageMetadata"):
                stated = holder.get(name) or (_of_choice(holder) if name == "usage" else None)
                if isinstance(stated, Mapping):
                    numbers.update({k: v for k, v in stated.items() if v is not None})
        bedrock = event.get("amazon-bedrock-invocationMetrics")
        if isinstance(bedrock, Mapping) and not numbers:
            whole["metrics"] = bedrock
    if not whole and not numbers:
        return None
    return {**whole, "usage": numbers, "content": blocks.content()}


def response_of(answer: Mapping[str, Any]) -> Response:
    """A whole answer of any provider.

    Raises msgspec.ValidationError for counters that are no whole numbers from 0 up.
    """
    usage = _usage(answer)
    error = answer.get("error")
    said = error.get("message") if isinstance(error, dict) else error
    failed = answer.get("type") == "error"
    calls = _tool_uses(answer)
    notes: list[str] = []
    return Response(
        id=text_of(answer.get("id") or answer.get("responseId")),
        model=text_of(answer.get("model") or answer.get("modelVersion")),
        error=text_of(said) or ("error" if failed or error else ""),
        usage=counters.any_of(usage) if usage else None,
        passes=_passes(usage, notes),
        edits=tuple(_edits(answer, notes)),
        compacted=_begins_with_compaction(answer),
        speed=text_of(usage.get("speed")),
        batch=usage.get("service_tier") == "batch",
        us_only=usage.get("inference_geo") == "us",
        miss_reason=_miss_reason(answer),
        several_passes=counters.has_server_tools(usage)
        or any(call.get("type") in SERVER_CALLS for call in calls),
        searches=counters.searches(usage),
        called=_called(calls),
        content=content_of(answer.get("content")),
        notes=tuple(dict.fromkeys(notes)),
    )


def _usage(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The counters of an answer; a stream of Kimi's has them in its choice."""
    usage = answer.get("usage") or answer.get("usageMetadata") or _of_choice(answer)
    return usage if isinstance(usage, dict) else {}


def _of_choice(answer: Mapping[str, Any]) -> Any:
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("usage") if isinstance(first, Mapping) else None


SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
"""Blocks of an answer that show that the API ran a tool itself and went over the prompt again."""
PASSES = ("message", "compaction", "advisor_message", "fallback_message")
MOST_PASSES = 1000
"""Passes of one answer that are held."""


def _passes(usage: Mapping[str, Any], notes: list[str]) -> tuple[Pass, ...]:
    """The passes that an answer lists; none where there was only the one that the usage counts.

    An entry that is none, or whose counters are no counters, is left out with a note.
    """
    entries = usage.get("iterations")
    if not isinstance(entries, list):
        return ()
    found = []
    if len(entries) > MOST_PASSES:
        notes.append(
            f"{len(entries):,} passes are listed; those after {MOST_PASSES:,} are left out"
        )
    for entry in entries[:MOST_PASSES]:
        kind = entry.get("type") if isinstance(entry, dict) else None
        if kind not in PASSES:
            notes.append("a pass of an unknown kind in usage.iterations is left out")
            continue
        try:
            parts = counters.anthropic(entry)
        except msgspec.ValidationError as error:
            notes.append(f"a pass in usage.iterations is left out: {error}")
            continue
        if parts is not None:
            found.append(Pass(kind=kind, usage=parts, model=intern(text_of(entry.get("model")))))
    plain = len(found) < 2 and all(each.kind == "message" for each in found)
    return () if plain else tuple(found)


def _edits(answer: Mapping[str, Any], notes: list[str]) -> Iterator[ServerEdit]:
    """What the API says that it took out of the prompt; an entry of another shape says nothing."""
    management = answer.get("context_management")
    applied = management.get("applied_edits") if isinstance(management, dict) else None
    for edit in applied if isinstance(applied, list) else ():
        kind = text_of(edit.get("type")) if isinstance(edit, dict) else ""
        for name, counter in CLEARED.items():
            if kind.startswith(name):
                count, tokens = _whole(edit.get(counter)), _whole(edit.get("cleared_input_tokens"))
                if edit.get(counter) not in (None, 0) and not count:
                    notes.append(f"an applied edit is left out: its '{counter}' is no count")
                if count:
                    yield ServerEdit(kind=name, count=count, tokens=tokens)
    changes = answer.get("input_transformations")
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, dict) and change.get("type") == "thinking_dropped":
            yield ServerEdit(kind="thinking_dropped", count=1, path=text_of(change.get("path")))


CLEARED = {"clear_tool_uses": "cleared_tool_uses", "clear_thinking": "cleared_thinking_turns"}
"""Beginnings of the types of edits, and where each says how many it cleared."""


def _whole(value: Any) -> int:
    """A count; 0 for what is none."""
    return value if type(value) is int and 0 < value <= counters.MOST else 0


def _begins_with_compaction(answer: Mapping[str, Any]) -> bool:
    """Whether a summary that was made for this answer stands at its start; one without content is a
    compaction that failed (compaction page, 2026-10-08)."""
    content = answer.get("content")
    if isinstance(content, Raw):
        content = msgspec.json.decode(content) if b'"compaction"' in bytes(content) else []
    first = content[0] if isinstance(content, list) and content else None
    return (
        isinstance(first, Mapping)
        and first.get("type") == "compaction"
        and bool(first.get("content") or first.get("encrypted_content"))
    )


def _tool_uses(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls among the blocks of an answer, the API's own ones too."""
    content = answer.get("content")
    if isinstance(content, Raw):
        content = msgspec.json.decode(content) if b"tool_use" in bytes(content) else []
    blocks = content if isinstance(content, list) else []
    return [
        block
        for block in blocks
        if isinstance(block, Mapping) and text_of(block.get("type")).endswith("tool_use")
    ]


def _called(calls: list[Mapping[str, Any]]) -> tuple[str, ...]:
    """Names of the tools, each once."""
    names = (text_of(call.get("name")) for call in calls)
    return tuple({intern(name): None for name in names if name})


def _miss_reason(answer: Mapping[str, Any]) -> str:
    """The API's own word on a miss (cache-diagnostics page, 2026-09-26)."""
    diagnostics = answer.get("diagnostics")
    reason = diagnostics.get("cache_miss_reason") if isinstance(diagnostics, dict) else None
    return text_of(reason.get("type")) if isinstance(reason, dict) else ""
