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
from ctxdoc.simulation.history.messages import Call, Message
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
    edits = _edits_asked(asked)
    for body, sending, usage in _iter_sent(simulation, specs, outside, placement):
        record = {
            **_record_of(sending),
            "request": {**body_of(body, placement), **edits},
            "response": None,
            "simulated": _simulated(sending, usage, _applied(outside, body, sending)),
        }
        yield msgspec.json.encode(record) + b"\n"


def _iter_sent(
    simulation: Simulation,
    specs: tuple[Spec, ...],
    outside: Sequence[Spec],
    placement: Placement,
) -> Iterator[tuple[Sending, Sending, Usage]]:
    """What each body holds, what the API leaves of it by the edits that it makes itself, and the bill."""
    billed = simulation.iter_billed(specs, placement)
    if not outside:
        yield from ((sending, sending, usage) for sending, usage in billed)
        return
    inside = tuple(spec for spec in specs if spec not in outside) or parse_specs("keep")
    whole = (each for each in simulation.iter_sent(inside, placement) if not each.order)
    for sending, usage in billed:
        yield (sending if sending.order else next(whole)), sending, usage


def _edits_asked(specs: Sequence[Spec]) -> dict[str, object]:
    """The member that asks the API for its own edits; none where nothing is asked for."""
    edits = [edit(spec.strategy) for spec in specs if (edit := spec.definition.server_edit)]
    return {"context_management": {"edits": edits}} if edits else {}


def _record_of(sending: Sending) -> dict[str, object]:
    """What a record says beside its request: times, session, headers."""
    record: dict[str, object] = {}
    if sending.at is not None:
        record["timestamp"] = sending.at.isoformat()
    recorded = sending.prompt.call.request
    if recorded is not None and recorded.session:
        record["session_id"] = recorded.session
    duration = _duration_of(sending)
    if duration is not None:
        record["duration_ms"] = duration * 1000
    if recorded is not None and recorded.headers:
        record["headers"] = dict(recorded.headers)
    return record


def _duration_of(sending: Sending) -> float | None:
    """Seconds until an answer was there: from then on others can read what its request writes."""
    recorded = sending.prompt.call.request
    if recorded is not None and recorded.duration is not None and not sending.order:
        return recorded.duration
    if sending.at is None or sending.began is None:
        return None
    seconds = (sending.began - sending.at).total_seconds()
    # Only where it is sooner than a reader of the record would assume.
    return seconds if seconds < FIRST_RESPONSE_SECONDS else None


def _simulated(sending: Sending, usage: Usage, applied: list[object]) -> dict[str, object]:
    """The counters that the row was made of, in the place where an answer has its own."""
    call = sending.prompt.call
    found: dict[str, object] = {
        "model": _model_of(call),
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
    recorded = prompt.call.request.body if prompt.call.request else None
    body: dict[str, object] = {
        "model": _model_of(prompt.call),
        "max_tokens": _answer_room(recorded),
    }
    if placement.top_level and marks:
        # The API finds the block itself: none carries a mark of its own.
        body["cache_control"] = {"type": "ephemeral"}
        marks = {}
    body |= _head_of(prompt, recorded, marks)
    body["messages"] = [_message(prompt, index, marks) for index in range(len(prompt.messages))]
    if recorded is not None and sending.cached:
        body |= _settings_of(recorded)
    return body


def _head_of(
    prompt: Prompt, recorded: Body | None, marks: Mapping[int, Breakpoint]
) -> dict[str, list[Raw]]:
    """Tools and system prompt of a body; what is empty is left out."""
    parts = {
        "tools": _tools(prompt, recorded, marks),
        "system": _system(prompt, recorded, marks),
    }
    return {name: blocks for name, blocks in parts.items() if blocks}


def _model_of(call: Call) -> str:
    return call.request.model if call.request else call.root


def _answer_room(recorded: Body | None) -> int:
    # 0 is a number like any other: it warms the cache (prompt-caching page, 2026-10-08).
    known = None if recorded is None else recorded.max_tokens
    return ANSWER_ROOM if known is None else known


def _settings_of(recorded: Body) -> dict[str, Raw]:
    """The settings that a recorded body has beside the prompt."""
    found = {name: bytes(getattr(recorded, name)) for name in SETTINGS}
    return {name: Raw(value) for name, value in found.items() if value != NULL}


def _tools(prompt: Prompt, recorded: Body | None, marks: Mapping[int, Breakpoint]) -> list[Raw]:
    """Tool definitions, those that are no part of the prompt included."""
    own = [_unmarked(Raw(bytes(raw))) for raw in (recorded.tools or () if recorded else ())]
    for index in _deferred(prompt, len(own)):
        own[index] = _with_member(own[index], "defer_loading", True)
    return _with_blocks(prompt, own, ("tools", "features"), marks)


def _deferred(prompt: Prompt, count: int) -> Iterator[int]:
    """The tool definitions that were a part of the recorded prompt, and are none of this one: a body that
    leaves them out could not have them searched for."""
    if prompt.head is prompt.call.head or not prompt.head.segments:
        return
    left = {id(segment) for segment in prompt.head.segments}
    for segment in prompt.call.head.segments:
        index = _index(segment)
        is_tool = segment.kind == "tool" and segment.rank[0] == AT["tools"]
        if is_tool and id(segment) not in left and index is not None and index < count:
            yield index


def _with_member(block: Raw, name: str, value: object) -> Raw:
    members: dict[str, object] = dict(msgspec.json.decode(block, type=dict[str, Raw]))
    return Raw(msgspec.json.encode({**members, name: value}))


def _system(prompt: Prompt, recorded: Body | None, marks: Mapping[int, Breakpoint]) -> list[Raw]:
    """The system prompt as blocks."""
    own = [_unmarked(raw) for raw in _system_blocks(recorded)] if recorded else []
    return _with_blocks(prompt, own, ("system",), marks)


def _system_blocks(recorded: Body) -> list[Raw]:
    """The system prompt of a body; a string is short for one text block."""
    value = bytes(recorded.system)
    if value.startswith(b'"'):
        return [Raw(codec.encode({"type": "text", "text": codec.decode(value)}))]
    return msgspec.json.decode(value, type=list[Raw]) if value.startswith(b"[") else []


def _with_blocks(
    prompt: Prompt, own: list[Raw], parts: Sequence[str], marks: Mapping[int, Breakpoint]
) -> list[Raw]:
    """The blocks of a body with their breakpoints, and behind them those that a strategy has put there."""
    if not prompt.head.segments:
        # A call of its own, without tools and system prompt.
        return []
    for place, segment in _of_part(prompt, *parts):
        index = _index(segment)
        if index is not None and index < len(own) and _is_own(prompt, segment):
            own[index] = _marked(own[index], marks.get(place))
        else:
            own.append(_marked(_plain(segment), marks.get(place)))
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
    places = enumerate(message.segments, start=start)
    own = {segment.rank[2]: marks[place] for place, segment in places if place in marks}
    members = msgspec.json.decode(message.raw, type=dict[str, Raw])
    content = bytes(members.get("content", b"[]"))
    if content.startswith(b'"'):
        if not own:
            return Raw(message.raw)
        # A string cannot carry a breakpoint: it is short for one text block.
        content = b'[{"type":"text","text":%b}]' % content
    blocks = _spelled_out(prompt, message, msgspec.json.decode(content, type=list[Raw]))
    marked = [_marked(_unmarked(block), own.get(place)) for place, block in enumerate(blocks)]
    return Raw(msgspec.json.encode({**members, "content": marked}))


def _spelled_out(prompt: Prompt, message: Message, blocks: list[Raw]) -> list[Raw]:
    """The blocks of a message, those that stand for an unwritten text as long as it is taken to be."""
    rule = prompt.call.rule
    for segment, tokens in zip(message.segments, message.tokens, strict=True):
        index = segment.rank[2]
        if index < len(blocks) and _is_made_up(prompt, segment):
            blocks[index] = _filled(blocks[index], tokens - weight_of(segment, rule), rule)
    return blocks


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
