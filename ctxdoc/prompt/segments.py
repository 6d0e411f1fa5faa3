"""The blocks of a request as they are rendered: segments, made once from the bytes of a part."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.prompt import canonical
from ctxdoc.prompt.messages_form import THINKING_KINDS
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.digest import blake2b
from ctxdoc.request.request import MarkedMessage, Section


class Segment(Struct, frozen=True, kw_only=True):
    """The bytes of one block, or of one setting, inside the rendered prompt."""

    section: Section
    """Where it stands in the request."""
    level: Section
    """Where it is rendered: a change is lost from here on."""
    kind: str
    """Block type, `tool`, or `setting`."""
    pointer: str
    """JSON path of the block in the body."""
    rank: tuple[int, int, int]
    """Where it comes in render order: level and setting, item, block."""
    digest: bytes
    """Of the data and of the part of the prompt that it stands in: equal ones mean equal blocks."""
    size: int
    """Bytes of the data."""
    wide: int = 0
    """Characters of the data outside of ASCII."""
    narrow: int = 0
    """Characters inside of it."""
    pictured: bool = False
    """Whether it is or holds an image."""
    name: str = ""
    """Of a tool, or of the tool that is called."""
    held: bytes | None = None
    origin: tuple[bytes, int] = (b"", 0)
    """The message it is from and its index there, for data that is not held."""
    role: str = ""
    ttl: str | None = None
    """Lifetime of the breakpoint it carries, if any."""
    mark_fault: str = ""
    """Why its breakpoint would be refused."""
    lifted: bool = False
    """Whether the body has a bare string here instead of a block."""
    lowered: bool = False
    """Whether the body has a one-block list where the value has a tool result's string."""
    rendered: bool = True
    """Whether it is a part of the prompt."""

    @property
    def data(self) -> bytes:
        """Canonical JSON of the block; settings as an object of one member."""
        return _blocks_of(self.origin[0])[self.origin[1]] if self.held is None else self.held

    @property
    def value(self) -> Json:
        """The block as values, decoded when asked for: most blocks never are."""
        return codec.decode(self.data)

    @property
    def is_block(self) -> bool:
        """Whether it counts as a position for the lookback."""
        return self.kind != "setting"


SETTING_ORDER = (
    "mcp_servers",
    "tools",
    "speed",
    "container",
    "features",
    "citations",
    "system",
    "tool_choice",
    "thinking",
    "effort",
    "output_format",
    "task_budget",
    "images",
    "messages",
)
"""Everything that is rendered, in order; the names of the three parts stand for their blocks."""
AT = {name: index for index, name in enumerate(SETTING_ORDER)}


class Facts(Struct, frozen=True):
    """What of the messages is rendered ahead of them: pointers to the first of each, or nothing."""

    citations: str = ""
    image: str = ""


NOTHING = Facts()


class MessageParts(Struct, frozen=True):
    """One message of a body, rendered."""

    segments: tuple[Segment, ...]
    facts: Facts
    is_user_text: bool
    thinks: bool
    compaction: int = -1
    """Index of the last compaction block that stands for a history; -1 where there is none."""


def read_message(raw: bytes, index: int, lean: bool) -> MessageParts:
    """The segments of one message of a body."""
    entry = codec.decode(raw)
    message: dict[str, Json] = entry if isinstance(entry, dict) else {"content": entry}
    content = message.get("content")
    # A message without blocks still parts those before and behind it.
    blocks = canonical.lifted(content) or [{"type": "empty"}]
    segments = _message_segments(message, blocks, index, raw if lean else None)
    return MessageParts(
        segments=segments,
        facts=_facts(raw, content, f"$.messages[{index}].content"),
        is_user_text=_is_user_text(entry),
        thinks=any(s.kind in THINKING_KINDS for s in segments),
        compaction=_last_compaction(blocks) if b'"compaction"' in raw else -1,
    )


def _message_segments(
    message: dict[str, Json], blocks: list[Json], index: int, origin: bytes | None
) -> tuple[Segment, ...]:
    """The blocks of a message; with `origin` their data is made again from it when it is asked for."""
    # A string is short for one text block, which is where a difference is shown.
    lifted = isinstance(message.get("content"), str)
    role = message.get("role")
    name = intern(role) if isinstance(role, str) else ""
    pointer = f"$.messages[{index}].content"
    return tuple(
        block_at(
            block,
            section=Section.MESSAGES,
            pointer=pointer if lifted else f"{pointer}[{at}]",
            rank=(AT["messages"], index, at),
            role=name,
            lifted=lifted,
            origin=None if origin is None else (origin, at),
        )
        for at, block in enumerate(blocks)
    )


def _last_compaction(blocks: list[Json]) -> int:
    """Index of the last block that stands for a history; -1 where there is none."""
    return max((at for at, block in enumerate(blocks) if is_compaction(block)), default=-1)


def is_compaction(block: Json) -> bool:
    """Whether a block stands for the history ahead of it; one without content is a compaction that
    failed (compaction page, 2026-10-08)."""
    if not isinstance(block, dict) or block.get("type") != "compaction":
        return False
    return bool(block.get("content") or block.get("encrypted_content"))


def answer_blocks(content: bytes, index: int) -> tuple[Segment, ...]:
    """The blocks of an answer as the next request gives them back, in the message of that index."""
    raw = b'{"role":"assistant","content":%b}' % content
    return read_message(raw, index, lean=False).segments


CLEARED = "[cleared by the API]"
"""In place of what the API took out of a prompt; how it spells it is not said."""


def without_result(segment: Segment) -> Segment:
    """A tool result as the API leaves it once it cleared it."""
    value = segment.value if isinstance(segment.value, dict) else {}
    return _emptied(segment, {**value, "content": CLEARED})


def without_input(segment: Segment) -> Segment:
    """A tool call as the API leaves it once it cleared its input."""
    value = segment.value if isinstance(segment.value, dict) else {}
    return _emptied(segment, {**value, "input": {}})


def _emptied(segment: Segment, value: dict[str, Json]) -> Segment:
    data = codec.encode(value)
    return replace(
        segment,
        digest=digest_of(segment.rank, data),
        size=len(data),
        wide=0,
        narrow=len(data),
        pictured=False,
        held=data,
        origin=NOWHERE,
    )


def with_breakpoint(message: MarkedMessage, plain: MessageParts) -> MessageParts | None:
    """A marked message from its unmarked form, whose blocks are the same; None where the mark is in a
    place that is no breakpoint."""
    lives = _lifetimes(bytes(message))
    # On a block inside another one, or on what is no block, the mark counts for none of these.
    if len(lives) != len(plain.segments) or not any(lives):
        return None
    rows = zip(plain.segments, lives, strict=True)
    segments = tuple(replace(segment, ttl=life) if life else segment for segment, life in rows)
    return replace(plain, segments=segments)


def _lifetimes(raw: bytes) -> list[str | None]:
    """The lifetimes that the blocks of a message with one mark ask for, block by block; empty where it
    has no blocks, or names marks in its text as well."""
    entry = codec.decode(raw) if raw.count(b'"cache_control"') == 1 else None
    content = entry.get("content") if isinstance(entry, dict) else None
    blocks = content if isinstance(content, list) else []
    return [_ttl(block) if isinstance(block, dict) else None for block in blocks]


def _facts(raw: bytes, content: Json, pointer: str) -> Facts:
    """Where the first citations and the first image of a message's content stand."""
    # Most messages hold none: a look at the bytes spares a walk over the values.
    if b'"image"' not in raw and b'"citations"' not in raw:
        return NOTHING
    blocks = list(_iter_blocks(content, pointer))
    cited = next((where for where, block in blocks if _cites(block)), "")
    image = next((where for where, block in blocks if _is_image(block)), "")
    return Facts(cited, image) if cited or image else NOTHING


def _cites(block: Json) -> bool:
    match block:
        case {"citations": {"enabled": True}}:
            return True
        case _:
            return False


def _is_image(block: Json) -> bool:
    match block:
        case {"type": "image"}:
            return True
        case _:
            return False


def _iter_blocks(content: Json, pointer: str) -> Iterator[tuple[str, Json]]:
    """Every block of a message with its pointer, those inside tool results too."""
    for index, block in enumerate(content if isinstance(content, list) else ()):
        yield f"{pointer}[{index}]", block
        inner = block.get("content") if isinstance(block, dict) else None
        for depth, part in enumerate(inner if isinstance(inner, list) else ()):
            yield f"{pointer}[{index}].content[{depth}]", part


def _is_user_text(message: Json) -> bool:
    match message:
        case {"role": "user", "content": str()}:
            return True
        case {"role": "user", "content": list(blocks)}:
            return any(not isinstance(b, dict) or b.get("type") != "tool_result" for b in blocks)
        case _:
            return False


class Spot(NamedTuple):
    """Where a block stands, and what it is."""

    section: Section
    level: Section
    kind: str
    pointer: str
    rank: tuple[int, int, int]


def block_at(
    block: Json,
    *,
    section: Section,
    pointer: str,
    rank: tuple[int, int, int],
    role: str = "",
    lifted: bool = False,
    origin: tuple[bytes, int] | None = None,
) -> Segment:
    """The segment of a block of the system prompt or of a message."""
    value: dict[str, Json]
    value = block if isinstance(block, dict) else {"type": "text", "text": block}
    kind = intern(str(value.get("type", "")))
    fault = ""
    if kind in THINKING_KINDS:
        fault = f"a {kind} block"
    elif kind == "text" and value.get("text") == "":
        fault = "an empty text block"
    spot = Spot(section, section, kind, pointer, rank)
    return segment_at(value, spot, mark_fault=fault, role=role, lifted=lifted, origin=origin)


def segment_at(
    value: dict[str, Json],
    spot: Spot,
    *,
    mark_fault: str = "",
    role: str = "",
    lifted: bool = False,
    origin: tuple[bytes, int] | None = None,
) -> Segment:
    """The segment of a value that stands at a spot."""
    form = canonical.canonical(value)
    data = codec.encode(form)
    wide, narrow = (0, len(data)) if data.isascii() else _characters(data)
    return Segment(
        section=spot.section,
        level=spot.level,
        kind=spot.kind,
        pointer=spot.pointer,
        rank=spot.rank,
        digest=digest_of(spot.rank, data),
        size=len(data),
        wide=wide,
        narrow=narrow,
        pictured=b'"type":"image"' in data,
        name=_name(value) if spot.kind == "tool" or spot.kind.endswith("tool_use") else "",
        held=None if origin else data,
        origin=origin or NOWHERE,
        role=role,
        ttl=_ttl(value),
        mark_fault=mark_fault,
        lifted=lifted,
        lowered=spot.kind == "tool_result" and _is_lowered(form, value),
    )


def _characters(data: bytes) -> tuple[int, int]:
    """Characters outside of ASCII, and inside of it: they weigh differently in tokens."""
    narrow = len(data.translate(None, WIDE_BYTES))
    return len(data.decode()) - narrow, narrow


def _is_lowered(form: Json, value: dict[str, Json]) -> bool:
    """Whether a list of one text block became the string that it is the long form of."""
    content = form.get("content") if isinstance(form, dict) else None
    return isinstance(content, str) and isinstance(value.get("content"), list)


def _name(value: dict[str, Json]) -> str:
    """A server's toolset has its type for a name."""
    return intern(str(value.get("name") or value.get("mcp_server_name") or value.get("type") or ""))


NOWHERE = (b"", 0)
WIDE_BYTES = bytes(range(128, 256))


def segment_of(raw: bytes, index: int, at: int) -> Segment:
    """A block of a message that was rendered before, made again."""
    return read_message(raw, index, lean=False).segments[at]


@lru_cache(maxsize=2048)
def _blocks_of(raw: bytes) -> tuple[bytes, ...]:
    """The data of each block of a message."""
    return tuple(s.data for s in read_message(raw, 0, lean=False).segments)


def digest_of(rank: tuple[int, int, int], data: bytes) -> bytes:
    """The hash of a block's data and of the part of the prompt in which it is rendered."""
    return blake2b(data, digest_size=16, person=_PERSONS[part_of(rank)]).digest()


_PERSONS = (b"tools", b"system", b"messages")
"""Blocks of different parts of the prompt differ even where their text is the same."""


def _ttl(value: dict[str, Json]) -> str | None:
    """The lifetime a block's breakpoint asks for; 5 minutes where it names none (SDK 2.14.0)."""
    match value.get("cache_control"):
        case {"ttl": "1h"}:
            return "1h"
        case dict():
            return "5m"
    match value:
        case {"type": "tool_result", "content": [*_, {"cache_control": dict(inner)}]}:
            return "1h" if inner.get("ttl") == "1h" else "5m"
        case _:
            return None


def part_of(rank: tuple[int, int, int]) -> int:
    """0 for what is rendered with the tools, 1 for the system prompt, 2 for the messages."""
    at = rank[0]
    if at <= AT["tools"]:
        return 0
    return 1 if at <= AT["system"] else 2
