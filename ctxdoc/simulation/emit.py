"""Simulated requests as the bodies that would have been sent, a line each of the native log."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

import msgspec
from msgspec import Raw

from ctxdoc.cache.simulator import FIRST_RESPONSE_SECONDS
from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.prompt.segments import AT, Segment
from ctxdoc.providers import ModelRule
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Body
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.bill import Sending
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.history.edit import SUMMARY_TOLD
from ctxdoc.simulation.placements import Placement
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies import Spec
from ctxdoc.simulation.strategies.compact import ASKED
from ctxdoc.simulation.strategies.spec import by_server, parse_specs
from ctxdoc.tokens.estimate import CHARACTERS_PER_TOKEN, weight_of

INDEX = re.compile(r"\[(\d+)\]$")
ANSWER_ROOM = 4096
"""`max_tokens` where the log does not have it."""
SETTINGS = (
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "inference_geo",
    "service_tier",
    "fallbacks",
    "speed",
    "mcp_servers",
    "container",
)
NULL = b"null"
MADE_UP = tuple(
    b'{"type":"%b"' % kind + b',"%b":' % member + codec.encode(told)[:-1]
    for kind, member in ((b"text", b"text"), (b"compaction", b"content"))
    for told in (SUMMARY_TOLD, ASKED)
)
"""How a block begins that stands for a text nobody has written yet."""
FILLER = " so that it is as long as it is taken to be"


def iter_lines(
    simulation: Simulation, specs: tuple[Spec, ...], placement: Placement
) -> Iterator[bytes]:
    """The requests of one strategy as lines of the native log, in the order in which they are sent."""
    asked = [spec for spec in specs if by_server(spec) and spec.definition.server_edit]
    # What the API only takes out is in the body all the same.
    outside = [spec for spec in asked if spec.definition.applied_edit]
    inside = tuple(spec for spec in specs if spec not in outside) or parse_specs("keep")
    edits = [e(spec.strategy) for spec in asked if (e := spec.definition.server_edit)]
    whole = (each for each in simulation.iter_sent(inside, placement) if not each.order)
    for sending, usage in simulation.iter_billed(specs, placement):
        body = next(whole) if outside and not sending.order else sending
        members = body_of(body, placement)
        if edits:
            members["context_management"] = {"edits": edits}
        record = _record_of(sending)
        record["request"] = members
        record["response"] = None
        record["simulated"] = _simulated(sending, usage, _applied(outside, body, sending))
        yield msgspec.json.encode(record) + b"\n"


def _record_of(sending: Sending) -> dict[str, object]:
    """What a record says beside its request: times, session, headers."""
    record: dict[str, object] = {}
    if sending.at is not None:
        record["timestamp"] = sending.at.isoformat()
    recorded = sending.prompt.call.request
    if recorded is not None and recorded.session:
        record["session_id"] = recorded.session
    if recorded is not None and recorded.duration is not None and not sending.order:
        # It says from when on others can read what the request writes.
        record["duration_ms"] = recorded.duration * 1000
    if recorded is not None and recorded.headers:
        record["headers"] = dict(recorded.headers)
    if "duration_ms" not in record and sending.at is not None and sending.began is not None:
        seconds = (sending.began - sending.at).total_seconds()
        if seconds < FIRST_RESPONSE_SECONDS:
            # Sooner than a reader of the record would assume.
            record["duration_ms"] = seconds * 1000
    return record


def _simulated(sending: Sending, usage: Usage, applied: list[object]) -> dict[str, object]:
    """The counters that the row was made of, in the place where an answer has its own."""
    call = sending.prompt.call
    found: dict[str, object] = {
        "model": call.request.model if call.request else call.root,
        "usage": {
            "input_tokens": usage.uncached,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write_5m,
                "ephemeral_1h_input_tokens": usage.cache_write_1h,
            },
            "output_tokens": usage.output,
        },
    }
    if applied:
        found["context_management"] = {"applied_edits": applied}
    return found


def _applied(outside: Sequence[Spec], body: Sending, sending: Sending) -> list[object]:
    """What the API took out of a body, by each of its edits."""
    if body is sending:
        return []
    pairs = body.prompt.messages, sending.prompt.messages
    found = (e(s.strategy, *pairs) for s in outside if (e := s.definition.applied_edit))
    return [edit for edit in found if edit is not None]


def body_of(sending: Sending, placement: Placement) -> dict[str, object]:
    """The body of one simulated request, with the breakpoints of a placement."""
    prompt = sending.prompt
    marks = {mark.index: mark for mark in placement.place(prompt)} if sending.cached else {}
    body: dict[str, object] = {
        "model": prompt.call.request.model if prompt.call.request else prompt.call.root,
        "max_tokens": ANSWER_ROOM,
    }
    recorded = prompt.call.request.body if prompt.call.request else None
    if recorded is not None and recorded.max_tokens is not None:
        body["max_tokens"] = recorded.max_tokens
    if placement.top_level and marks:
        body["cache_control"] = {"type": "ephemeral"}
        marks = {}
    tools = _tools(prompt, recorded, marks)
    system = _system(prompt, recorded, marks)
    if tools:
        body["tools"] = tools
    if system:
        body["system"] = system
    body["messages"] = [_message(prompt, index, marks) for index in range(len(prompt.messages))]
    for name in SETTINGS if recorded is not None and sending.cached else ():
        value = getattr(recorded, name)
        if bytes(value) != NULL:
            body[name] = Raw(bytes(value))
    return body


def _tools(prompt: Prompt, recorded: Body | None, marks: Mapping[int, Breakpoint]) -> list[Raw]:
    """Tool definitions, those that are no part of the prompt included."""
    own = [_unmarked(Raw(bytes(raw))) for raw in (recorded.tools or () if recorded else ())]
    if not prompt.head.segments:
        return []
    for place, segment in _of_part(prompt, "tools", "features"):
        index = _index(segment)
        raw = (
            own[index]
            if index is not None and index < len(own) and _is_own(prompt, segment)
            else None
        )
        block = _marked(raw or _plain(segment), marks.get(place))
        if raw is None or index is None:
            own.append(block)
        else:
            own[index] = block
    return own


def _system(prompt: Prompt, recorded: Body | None, marks: Mapping[int, Breakpoint]) -> list[Raw]:
    """The system prompt as blocks."""
    if not prompt.head.segments:
        return []
    value = codec.decode(recorded.system) if recorded else None
    if isinstance(value, str):
        own = [Raw(codec.encode({"type": "text", "text": value}))]
    else:
        raws = bytes(recorded.system) if recorded and isinstance(value, list) else b"[]"
        own = [_unmarked(raw) for raw in msgspec.json.decode(raws, type=list[Raw])]
    for place, segment in _of_part(prompt, "system"):
        index = _index(segment) or 0
        raw = own[index] if index < len(own) and _is_own(prompt, segment) else None
        block = _marked(raw or _plain(segment), marks.get(place))
        if raw is None:
            own.append(block)
        else:
            own[index] = block
    return own


def _of_part(prompt: Prompt, *names: str) -> Iterator[tuple[int, Segment]]:
    ranks = {AT[name] for name in names}
    for place, segment in enumerate(prompt.head.segments):
        if segment.rank[0] in ranks and segment.is_block:
            yield place, segment


def _is_own(prompt: Prompt, segment: Segment) -> bool:
    """Whether the body has a block, and no strategy has put it there."""
    return any(segment is other for other in prompt.call.head.segments)


def _index(segment: Segment) -> int | None:
    found = INDEX.search(segment.pointer)
    return int(found[1]) if found else None


def _plain(segment: Segment) -> Raw:
    return Raw(segment.data)


def _message(prompt: Prompt, index: int, marks: Mapping[int, Breakpoint]) -> Raw:
    message = prompt.messages[index]
    start = prompt.ends[index - 1] if index else len(prompt.head.segments)
    own = {
        segment.rank[2]: marks[start + place]
        for place, segment in enumerate(message.segments)
        if start + place in marks
    }
    members = msgspec.json.decode(message.raw, type=dict[str, Raw])
    content = bytes(members.get("content", b"[]"))
    if content.startswith(b'"'):
        if not own:
            return Raw(message.raw)
        content = b'[{"type":"text","text":%b}]' % content
    blocks = msgspec.json.decode(content, type=list[Raw])
    for segment, tokens in zip(message.segments, message.tokens, strict=True):
        if segment.rank[2] < len(blocks) and _is_made_up(prompt, segment):
            missing = tokens - weight_of(segment, prompt.call.rule)
            blocks[segment.rank[2]] = _filled(blocks[segment.rank[2]], missing, prompt.call.rule)
    marked = [_marked(_unmarked(block), own.get(place)) for place, block in enumerate(blocks)]
    return Raw(msgspec.json.encode({**members, "content": marked}))


def _is_made_up(prompt: Prompt, segment: Segment) -> bool:
    """Whether a block stands for a text nobody has written yet: what was recorded stays to the byte."""
    if not segment.data.startswith(MADE_UP):
        return False
    return all(segment.data != own.data for m in prompt.call.messages for own in m.segments)


def _filled(block: Raw, tokens: float, rule: ModelRule) -> Raw:
    """A block that stands for a text nobody has written yet, as long as that text is taken to be."""
    count = max(0, round(tokens * CHARACTERS_PER_TOKEN[rule.tokenizer]))
    filler = FILLER * ceil(count / len(FILLER))
    members: dict[str, Json] = msgspec.json.decode(block)
    for name in ("text", "content"):
        told = members.get(name)
        if isinstance(told, str):
            members[name] = told + filler[:count]
    return Raw(msgspec.json.encode(members))


def _unmarked(block: Raw) -> Raw:
    """A block without its breakpoint, everything else to the byte."""
    if b'"cache_control"' not in bytes(block):
        return block
    members = msgspec.json.decode(block, type=dict[str, Raw])
    members.pop("cache_control", None)
    inner = bytes(members.get("content", NULL))
    if inner.startswith(b"[") and b'"cache_control"' in inner:
        parts = [_unmarked(part) for part in msgspec.json.decode(inner, type=list[Raw])]
        members["content"] = Raw(msgspec.json.encode(parts))
    return Raw(msgspec.json.encode(members))


def _marked(block: Raw, mark: Breakpoint | None) -> Raw:
    if mark is None:
        return block
    members: dict[str, object] = dict(msgspec.json.decode(block, type=dict[str, Raw]))
    control = {"type": "ephemeral"} if mark.ttl == "5m" else {"type": "ephemeral", "ttl": mark.ttl}
    return Raw(msgspec.json.encode({**members, "cache_control": control}))
