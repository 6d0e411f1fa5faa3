"""The blocks and settings of a request as they are rendered: segments, made once from the bytes of a part.

Settings stand where they invalidate (prompt-caching page, "what invalidates the cache", 2026-10-08):
the model at the root; MCP servers before the tools; speed, skills, web search and citations before the
system prompt; tool choice, thinking, effort, output format and the presence of images before the
messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from sys import intern
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.prompt import canonical
from ctxdoc.prompt.messages_form import BILLING_LINE, FEATURE_TOOLS, THINKING_KINDS
from ctxdoc.providers import ModelRule
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.digest import blake2b
from ctxdoc.request.request import Body, Marked, Section


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
    """Place in render order: level and setting, item, block."""
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
    """The message it is from and its place there, for data that is not held."""
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
AT = {name: place for place, name in enumerate(SETTING_ORDER)}


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
    """Place of the last compaction block that stands for a history; -1 where there is none."""


class Ahead:
    """The segments of one body ahead of its messages, before they are put in order."""

    def __init__(self, body: Body, rule: ModelRule, keep_billing_line: bool, facts: Facts) -> None:
        self.body = body
        self.rule = rule
        self.keep_billing_line = keep_billing_line
        self.facts = facts

    def blocks(self) -> Iterator[Segment]:
        """All of them but the tools, which are made once for many bodies."""
        yield from self.system()
        yield from self.settings()

    def system(self) -> Iterator[Segment]:
        """The blocks of the system prompt."""
        content = codec.decode(self.body.system)
        lifted = isinstance(content, str)
        for index, block in enumerate(canonical.lifted(content)):
            if index == 0 and _is_billing_line(block) and not self.keep_billing_line:
                continue
            yield _block(
                block,
                section=Section.SYSTEM,
                pointer="$.system" if lifted else f"$.system[{index}]",
                rank=(AT["system"], index, 0),
                lifted=lifted,
            )

    def settings(self) -> Iterator[Segment]:
        """The settings that reach the prompt."""
        body = self.body
        yield from _setting(
            "mcp_servers", "$.mcp_servers", codec.decode(body.mcp_servers), Section.TOOLS
        )
        speed = codec.decode(body.speed)
        yield from _setting("speed", "$.speed", speed, Section.SYSTEM, default="standard")
        container = codec.decode(body.container)
        skills = container.get("skills") if isinstance(container, dict) else None
        yield from _setting("container", "$.container.skills", skills, Section.SYSTEM)
        if self.facts.citations:
            where = f"{self.facts.citations}.citations"
            yield from _setting("citations", where, True, Section.SYSTEM)
        choice = canonical.canonical(codec.decode(body.tool_choice))
        default: Json = {"type": "auto"}
        yield from _setting("tool_choice", "$.tool_choice", choice, default=default)
        thinking = canonical.canonical(codec.decode(body.thinking))
        yield from _setting("thinking", "$.thinking", thinking, default={"type": "disabled"})
        yield from self.output()
        if self.facts.image:
            yield from _setting("images", self.facts.image, True)

    def output(self) -> Iterator[Segment]:
        """Effort, output format and task budget."""
        config = codec.decode(self.body.output_config)
        config = config if isinstance(config, dict) else {}
        effort = config.get("effort")
        default = self.rule.default_effort
        yield from _setting("effort", "$.output_config.effort", effort, default=default)
        if "format" in config:
            yield from _setting("output_format", "$.output_config.format", config["format"])
        else:
            yield from _setting(
                "output_format", "$.output_format", codec.decode(self.body.output_format)
            )
        # At which place it is rendered is not said (task-budgets page, 2026-08-22).
        yield from _setting("task_budget", "$.output_config.task_budget", config.get("task_budget"))


def system_block(block: dict[str, Json], index: int) -> Segment:
    """A block of the system prompt that no body has."""
    return _block(
        block,
        section=Section.SYSTEM,
        pointer=f"$.system[{index}]",
        rank=(AT["system"], index, 0),
    )


def forced_tool(body: Body) -> str:
    """The tool that a request makes the model call; empty where it is free to choose."""
    match codec.decode(body.tool_choice):
        case {"type": "tool", "name": str(name)}:
            return name
        case _:
            return ""


def iter_tools(tools: tuple[bytes, ...]) -> Iterator[Segment]:
    """The tool definitions of a body, deferred ones and the platform's in their places."""
    ordinary = 0
    for index, raw in enumerate(tools):
        value = codec.decode(raw)
        tool: dict[str, Json] = value if isinstance(value, dict) else {"": value}
        kind = str(tool.get("type", ""))
        feature = kind.startswith(FEATURE_TOOLS)
        deferred = tool.get("defer_loading") is True
        place = index if feature or deferred else ordinary
        ordinary += not (feature or deferred)
        spot = _Spot(
            section=Section.TOOLS,
            level=Section.SYSTEM if feature else Section.TOOLS,
            kind="tool",
            pointer=f"$.tools[{index}]",
            rank=(AT["features" if feature else "tools"], place, 0),
        )
        segment = _segment(tool, spot, mark_fault="a deferred tool" if deferred else "")
        yield replace(segment, rendered=False) if deferred else segment


def read_message(raw: bytes, index: int, lean: bool) -> MessageParts:
    """The segments of one message of a body."""
    entry = codec.decode(raw)
    message = entry if isinstance(entry, dict) else {"content": entry}
    content = message.get("content")
    lifted = isinstance(content, str)
    role = message.get("role")
    pointer = f"$.messages[{index}].content"
    blocks = canonical.lifted(content) or [{"type": "empty"}]
    segments = tuple(
        _block(
            block,
            section=Section.MESSAGES,
            pointer=pointer if lifted else f"{pointer}[{place}]",
            rank=(AT["messages"], index, place),
            role=intern(role) if isinstance(role, str) else "",
            lifted=lifted,
            origin=(raw, place) if lean else None,
        )
        for place, block in enumerate(blocks)
    )
    return MessageParts(
        segments=segments,
        facts=_facts(content, pointer) if b'"image"' in raw or b'"citations"' in raw else NOTHING,
        is_user_text=_is_user_text(entry),
        thinks=any(s.kind in THINKING_KINDS for s in segments),
        compaction=max(
            (place for place, block in enumerate(blocks) if is_compaction(block)), default=-1
        )
        if b'"compaction"' in raw
        else -1,
    )


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
        digest=_digest(segment.rank, data),
        size=len(data),
        wide=0,
        narrow=len(data),
        pictured=False,
        held=data,
        origin=NOWHERE,
    )


def with_breakpoint(message: Marked, plain: MessageParts) -> MessageParts | None:
    """A marked message from its unmarked form, whose blocks are the same; None where the mark is in a
    place that is no breakpoint."""
    raw = bytes(message)
    entry = codec.decode(raw) if raw.count(b'"cache_control"') == 1 else None
    content = entry.get("content") if isinstance(entry, dict) else None
    blocks = content if isinstance(content, list) else []
    lives = [_ttl(block) if isinstance(block, dict) else None for block in blocks]
    if len(lives) != len(plain.segments) or not any(lives):
        return None
    rows = zip(plain.segments, lives, strict=True)
    segments = tuple(replace(segment, ttl=life) if life else segment for segment, life in rows)
    return replace(plain, segments=segments)


def _facts(content: Json, pointer: str) -> Facts:
    """Where the first citations and the first image of a message's content stand."""
    citations = image = ""
    for where, block in _iter_blocks(content, pointer):
        match block:
            case {"citations": {"enabled": True}}:
                citations = citations or where
        match block:
            case {"type": "image"}:
                image = image or where
    return Facts(citations, image) if citations or image else NOTHING


def _iter_blocks(content: Json, pointer: str) -> Iterator[tuple[str, Json]]:
    """Every block of a message with its pointer, those inside tool results too."""
    for place, block in enumerate(content if isinstance(content, list) else ()):
        yield f"{pointer}[{place}]", block
        inner = block.get("content") if isinstance(block, dict) else None
        for depth, part in enumerate(inner if isinstance(inner, list) else ()):
            yield f"{pointer}[{place}].content[{depth}]", part


def _is_billing_line(block: Json) -> bool:
    match block:
        case {"type": "text", "text": str(text)}:
            return text.startswith(BILLING_LINE)
        case _:
            return False


def _is_user_text(message: Json) -> bool:
    match message:
        case {"role": "user", "content": str()}:
            return True
        case {"role": "user", "content": list(blocks)}:
            return any(not isinstance(b, dict) or b.get("type") != "tool_result" for b in blocks)
        case _:
            return False


def _setting(
    name: str,
    pointer: str,
    value: Json,
    level: Section = Section.MESSAGES,
    default: Json = None,
) -> Iterator[Segment]:
    """One segment, or none where the value is left out; the spelled-out default is not rendered."""
    if value is None or value == []:
        return
    data = codec.encode({name: value})
    rank = (AT[name], 0, 0)
    yield Segment(
        section=Section.SETTINGS,
        level=level,
        kind="setting",
        rendered=value != default,
        pointer=pointer,
        rank=rank,
        digest=_digest(rank, data),
        size=len(data),
        narrow=len(data),
        held=data,
    )


class _Spot(NamedTuple):
    """Where a block stands, and what it is."""

    section: Section
    level: Section
    kind: str
    pointer: str
    rank: tuple[int, int, int]


def _block(
    block: Json,
    *,
    section: Section,
    pointer: str,
    rank: tuple[int, int, int],
    role: str = "",
    lifted: bool = False,
    origin: tuple[bytes, int] | None = None,
) -> Segment:
    value: dict[str, Json]
    value = block if isinstance(block, dict) else {"type": "text", "text": block}
    kind = intern(str(value.get("type", "")))
    fault = ""
    if kind in THINKING_KINDS:
        fault = f"a {kind} block"
    elif kind == "text" and value.get("text") == "":
        fault = "an empty text block"
    spot = _Spot(section, section, kind, pointer, rank)
    return _segment(value, spot, mark_fault=fault, role=role, lifted=lifted, origin=origin)


def _segment(
    value: dict[str, Json],
    spot: _Spot,
    *,
    mark_fault: str = "",
    role: str = "",
    lifted: bool = False,
    origin: tuple[bytes, int] | None = None,
) -> Segment:
    form = canonical.canonical(value)
    data = codec.encode(form)
    size = narrow = len(data)
    wide = 0
    if not data.isascii():
        narrow = len(data.translate(None, WIDE_BYTES))
        wide = len(data.decode()) - narrow
    return Segment(
        section=spot.section,
        level=spot.level,
        kind=spot.kind,
        pointer=spot.pointer,
        rank=spot.rank,
        digest=_digest(spot.rank, data),
        size=size,
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
        lowered=isinstance(form, dict)
        and form.get("type") == "tool_result"
        and isinstance(form.get("content"), str)
        and isinstance(value.get("content"), list),
    )


def _name(value: dict[str, Json]) -> str:
    """A server's toolset has its type for a name."""
    return intern(str(value.get("name") or value.get("mcp_server_name") or value.get("type") or ""))


NOWHERE = (b"", 0)
WIDE_BYTES = bytes(range(128, 256))


def segment_of(raw: bytes, index: int, place: int) -> Segment:
    """A block of a message that was rendered before, made again."""
    return read_message(raw, index, lean=False).segments[place]


@lru_cache(maxsize=2048)
def _blocks_of(raw: bytes) -> tuple[bytes, ...]:
    """The data of each block of a message."""
    return tuple(s.data for s in read_message(raw, 0, lean=False).segments)


def _digest(rank: tuple[int, int, int], data: bytes) -> bytes:
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
