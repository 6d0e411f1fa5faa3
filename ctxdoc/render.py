"""Turns a request into the prompt that the cache sees: segments that tile its bytes.

The prompt is written as unfinished JSON, `[[tools],[system],[messages…`, so that a longer request
that only appends has the shorter one as a prefix. Settings stand where they invalidate
(prompt-caching page, "what invalidates the cache", 2026-10-08): the model at the root; MCP servers
before the tools; speed, skills, web search and citations before the system prompt; tool choice,
thinking, effort, output format and the presence of images before the messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from hashlib import blake2b
from sys import intern
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ctxdoc import canonical
from ctxdoc.canonical import Json
from ctxdoc.errors import NoRequestError
from ctxdoc.model import Body, Request, Section
from ctxdoc.providers import PROVIDERS, ModelRule

RULES = PROVIDERS["anthropic"]


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
        return canonical.decode(self.data)

    @property
    def is_block(self) -> bool:
        """Whether it counts as a position for the lookback."""
        return self.kind != "setting"


class Prefix(Struct, frozen=True, kw_only=True, dict=True):
    """The rendered prompt of one request."""

    root: str
    """The model: entries belong to one model."""
    model: str
    """The model as the request spells it."""
    segments: tuple[Segment, ...]
    keys: tuple[bytes, ...]
    """Chained hashes: equal keys mean equal prompts up to and including that segment."""
    row: tuple[bytes, ...]
    """A hash of each message block together with the one before it."""
    unrendered: tuple[Segment, ...]
    """Blocks of the body that are no part of the prompt: deferred tools, stripped thinking, and
    settings that spell out the default."""
    rule: ModelRule

    @cached_property
    def heads(self) -> tuple[bytes, ...]:
        """What parts each segment from the one before, so that all are one JSON text."""
        return tuple(_iter_heads(self.segments))

    @cached_property
    def data(self) -> bytes:
        """The prompt's bytes."""
        rows = zip(self.heads, self.segments, strict=True)
        return b"".join(part for head, segment in rows for part in (head, segment.data))

    @cached_property
    def sorted_data(self) -> bytes:
        """The prompt's bytes with the members of every object sorted."""
        parts: list[bytes] = []
        role = ""
        for head, segment in zip(self.heads, self.segments, strict=True):
            parts += [_sorted_head(head, segment, role), canonical.encode_sorted(segment.value)]
            role = segment.role
        return b"".join(parts)

    @cached_property
    def breakpoints(self) -> tuple[int, ...]:
        """Indices of the segments that carry one."""
        return tuple([i for i, segment in enumerate(self.segments) if segment.ttl])

    @cached_property
    def positions(self) -> tuple[int, ...]:
        """The lookback position of each segment; a setting has that of the block before it."""
        out: list[int] = []
        position, last = 0, ""
        for segment in self.segments:
            if segment.is_block:
                if not (segment.kind == last and segment.kind in RULES.run_kinds):
                    position += 1
                last = segment.kind
            out.append(position)
        return tuple(out)

    @cached_property
    def by_rank(self) -> dict[tuple[int, int, int], Segment]:
        """The segments by their place in render order."""
        return {segment.rank: segment for segment in self.segments}

    @property
    def data_length(self) -> int:
        """Bytes of the whole prompt."""
        return sum(map(len, self.heads)) + sum(segment.size for segment in self.segments)


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
    "images",
    "messages",
)
"""Everything that is rendered, in order; the names of the three parts stand for their blocks."""
_AT = {name: place for place, name in enumerate(SETTING_ORDER)}


def render(request: Request) -> Prefix:
    """The prompt of a request.

    Raises NoRequestError, naming file and line, for a body that cannot be rendered.
    """
    return Renderer().render(request)


HELD_MESSAGES = 2048
"""Rendered messages that are looked up by their text."""
HELD_TOPS = 64
"""Rendered system prompts and sets of tools that are looked up."""


class Renderer:
    """Renders the requests of a log: what several of them send is rendered once."""

    def __init__(self, *, lean: bool = False) -> None:
        """With `lean` the blocks of messages are made again from these when they are looked at."""
        self.lean = lean
        self._tops: dict[tuple[object, ...], _Top] = {}
        self._tools: dict[tuple[bytes, ...], tuple[Segment, ...]] = {}
        self._messages: dict[tuple[bytes, int], _Message] = {}
        self._lanes: dict[bytes, _Lane] = {}
        """First message → the last request that began with it."""

    def render(self, request: Request) -> Prefix:
        """The prompt of a request.

        Raises NoRequestError, naming file and line, for a body that cannot be rendered.
        """
        try:
            return self._render(request)
        except (msgspec.DecodeError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise NoRequestError(f"{request.source}, line {request.line}: {reason}") from error

    def _render(self, request: Request) -> Prefix:
        body = request.body
        if body is None:
            why = "; ".join(request.notes) or "the log holds no body"
            raise NoRequestError(f"{request.source}, line {request.line}: {why}")
        rule = RULES.find_model(request.model)
        messages = tuple(map(bytes, body.messages))
        old = self._lanes.get(messages[0]) if messages else None
        lane = self._lane(messages, old)
        top = self._top(request, body, rule, lane.facts)
        segments = lane.segments
        stripped: tuple[Segment, ...] = ()
        if lane.thinks and not rule.keeps_thinking:
            segments, stripped = _without_stripped(lane)
        whole = top.rendered + segments
        shared = 0
        if old is not None and old.prefix is not None and old.root is top and not stripped:
            shared = len(top.rendered) + lane.shared
        keys = _chained(
            rule.id, whole, old.prefix.keys if shared and old and old.prefix else (), shared
        )
        prefix = Prefix(
            root=rule.id,
            model=request.model,
            segments=_with_automatic_breakpoint(body, whole),
            keys=keys,
            row=_paired(segments, old.prefix.row if shared and old and old.prefix else (), lane),
            unrendered=top.unrendered + stripped,
            rule=rule,
        )
        if messages:
            lane.root, lane.prefix = top, None if stripped else prefix
            self._lanes[messages[0]] = lane
        return prefix

    def _top(self, request: Request, body: Body, rule: ModelRule, facts: _Facts) -> _Top:
        """Everything ahead of the messages."""
        kept = _billing_line_kept(request)
        parts = (body.system, body.tool_choice, body.thinking, body.output_config)
        more = (body.output_format, body.speed, body.mcp_servers, body.container)
        tools = tuple(map(bytes, body.tools or ()))
        key = (rule.id, kept, facts, tools, *map(bytes, parts), *map(bytes, more))
        found = self._tops.get(key)
        if found is None:
            if len(self._tops) >= HELD_TOPS:
                self._tops.clear()
                self._tools.clear()
            made = [*self._toolset(tools), *_Parts(body, rule, kept, facts).blocks()]
            made.sort(key=lambda segment: segment.rank)
            found = self._tops[key] = _Top(
                rendered=tuple(s for s in made if s.rendered),
                unrendered=tuple(s for s in made if not s.rendered),
            )
        return found

    def _toolset(self, tools: tuple[bytes, ...]) -> tuple[Segment, ...]:
        found = self._tools.get(tools)
        if found is None:
            found = self._tools[tools] = tuple(_iter_tools(tools))
        return found

    def _lane(self, messages: tuple[bytes, ...], old: _Lane | None) -> _Lane:
        """The messages; of those that an earlier request has too, nothing is done again."""
        same = 0
        if old is not None:
            for one, two in zip(old.messages, messages, strict=False):
                if one is not two and one != two:
                    break
                same += 1
        ends = old.ends[:same] if old else []
        last = ends[-1] if ends else START
        made = list(old.segments[: last.count]) if old else []
        for index in range(same, len(messages)):
            message = self._message(messages[index], index)
            made += message.segments
            last = last.followed_by(message, index, len(made))
            ends.append(last)
        return _Lane(
            messages=messages,
            segments=tuple(made),
            ends=ends,
            shared=ends[same - 1].count if same else 0,
        )

    def message_digest(self, raw: bytes, index: int) -> bytes:
        """A hash of a message as it is rendered; of the bytes where it cannot be."""
        try:
            segments = self._message(raw, index).segments
        except (msgspec.DecodeError, RecursionError):
            return blake2b(raw, digest_size=16).digest()
        if len(segments) == 1:
            return segments[0].digest + segments[0].role.encode()
        whole = b"".join(segment.digest for segment in segments) + segments[0].role.encode()
        return blake2b(whole, digest_size=16).digest()

    def _message(self, raw: bytes, index: int) -> _Message:
        found = self._messages.get((raw, index))
        if found is None:
            if len(self._messages) >= HELD_MESSAGES:
                # Those of conversations that go on are held in their lanes.
                self._messages.clear()
            found = self._messages[raw, index] = _read_message(raw, index, self.lean)
        return found


class _Facts(Struct, frozen=True):
    """What of the messages is rendered ahead of them: pointers to the first of each, or nothing."""

    citations: str = ""
    image: str = ""


class _Top(Struct, frozen=True):
    """Tools, system prompt and settings."""

    rendered: tuple[Segment, ...]
    unrendered: tuple[Segment, ...]


class _Message(Struct, frozen=True):
    segments: tuple[Segment, ...]
    facts: _Facts
    is_user_text: bool
    thinks: bool


class _End(Struct, frozen=True):
    """What is known after a message."""

    count: int
    """Segments up to here."""
    facts: _Facts
    last_user_text: int
    thinks: bool

    def followed_by(self, message: _Message, index: int, count: int) -> _End:
        facts = self.facts
        if message.facts is not NOTHING:
            facts = _Facts(
                citations=facts.citations or message.facts.citations,
                image=facts.image or message.facts.image,
            )
        return _End(
            count=count,
            facts=facts,
            last_user_text=index if message.is_user_text else self.last_user_text,
            thinks=self.thinks or message.thinks,
        )


NOTHING = _Facts()
START = _End(count=0, facts=NOTHING, last_user_text=0, thinks=False)


class _Lane(Struct):
    """The messages of a conversation as they were last sent."""

    messages: tuple[bytes, ...]
    segments: tuple[Segment, ...]
    ends: list[_End]
    shared: int
    """Segments that the request before it has too."""
    root: _Top | None = None
    prefix: Prefix | None = None
    """What was rendered, where all of the segments are in it."""

    @property
    def facts(self) -> _Facts:
        return self.ends[-1].facts if self.ends else NOTHING

    @property
    def thinks(self) -> bool:
        return bool(self.ends) and self.ends[-1].thinks


def _without_stripped(lane: _Lane) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """The segments without the thinking that the API takes out, and that thinking.

    Models before Opus 4.5, Sonnet 4.6 and Haiku 5.5 strip the thinking before the last user text that
    is no tool result (prompt-caching page, 2026-10-08).
    """
    start = lane.ends[-1].last_user_text
    gone = [s.kind in RULES.unmarkable and s.rank[1] < start for s in lane.segments]
    kept = tuple(s for s, out in zip(lane.segments, gone, strict=True) if not out)
    stripped = (
        replace(s, rendered=False) for s, out in zip(lane.segments, gone, strict=True) if out
    )
    return kept, tuple(stripped)


def _paired(
    segments: tuple[Segment, ...], known: tuple[bytes, ...], lane: _Lane
) -> tuple[bytes, ...]:
    """Each message block with the one before it; those of the shared messages are taken over."""
    start = lane.shared if known else 0
    last = segments[start - 1].digest if start else b""
    row = list(known[:start])
    for segment in segments[start:]:
        row.append(last + segment.digest)
        last = segment.digest
    return tuple(row)


def _chained(
    root: str, segments: tuple[Segment, ...], known: tuple[bytes, ...], shared: int
) -> tuple[bytes, ...]:
    """A hash for every beginning of the prompt, those of the shared segments taken over."""
    keys = list(known[:shared])
    key = keys[-1] if keys else blake2b(root.encode(), digest_size=16).digest()
    message = segments[shared - 1].rank[:2] if shared else None
    for segment in segments[shared:]:
        opening = b""
        if segment.section is Section.MESSAGES and segment.rank[:2] != message:
            opening = segment.role.encode() + b"\0"
            message = segment.rank[:2]
        key = blake2b(key + opening + segment.digest, digest_size=16).digest()
        keys.append(key)
    return tuple(keys)


def _billing_line_kept(request: Request) -> bool:
    if not request.headers:
        return False
    places = dict(request.place)
    host = places.get("x-upstream") or places.get("host") or RULES.host
    return host != RULES.host


class _Parts:
    """The segments of one body ahead of its messages, before they are put in order."""

    def __init__(self, body: Body, rule: ModelRule, keep_billing_line: bool, facts: _Facts) -> None:
        self.body = body
        self.rule = rule
        self.keep_billing_line = keep_billing_line
        self.facts = facts

    def blocks(self) -> Iterator[Segment]:
        yield from self.system()
        yield from self.settings()

    def system(self) -> Iterator[Segment]:
        content = canonical.decode(self.body.system)
        lifted = isinstance(content, str)
        for index, block in enumerate(canonical.lifted(content)):
            if index == 0 and _is_billing_line(block) and not self.keep_billing_line:
                continue
            yield _block(
                block,
                section=Section.SYSTEM,
                pointer="$.system" if lifted else f"$.system[{index}]",
                rank=(_AT["system"], index, 0),
                lifted=lifted,
            )

    def settings(self) -> Iterator[Segment]:
        body = self.body
        yield from _setting(
            "mcp_servers", "$.mcp_servers", canonical.decode(body.mcp_servers), Section.TOOLS
        )
        speed = canonical.decode(body.speed)
        yield from _setting("speed", "$.speed", speed, Section.SYSTEM, default="standard")
        container = canonical.decode(body.container)
        skills = container.get("skills") if isinstance(container, dict) else None
        yield from _setting("container", "$.container.skills", skills, Section.SYSTEM)
        if self.facts.citations:
            where = f"{self.facts.citations}.citations"
            yield from _setting("citations", where, True, Section.SYSTEM)
        choice = canonical.canonical(canonical.decode(body.tool_choice))
        default: Json = {"type": "auto"}
        yield from _setting("tool_choice", "$.tool_choice", choice, default=default)
        thinking = canonical.canonical(canonical.decode(body.thinking))
        yield from _setting("thinking", "$.thinking", thinking, default={"type": "disabled"})
        yield from self.output()
        if self.facts.image:
            yield from _setting("images", self.facts.image, True)

    def output(self) -> Iterator[Segment]:
        config = canonical.decode(self.body.output_config)
        config = config if isinstance(config, dict) else {}
        effort = config.get("effort")
        default = self.rule.default_effort
        yield from _setting("effort", "$.output_config.effort", effort, default=default)
        if "format" in config:
            yield from _setting("output_format", "$.output_config.format", config["format"])
        else:
            yield from _setting(
                "output_format", "$.output_format", canonical.decode(self.body.output_format)
            )


def _iter_tools(tools: tuple[bytes, ...]) -> Iterator[Segment]:
    ordinary = 0
    for index, raw in enumerate(tools):
        value = canonical.decode(raw)
        tool: dict[str, Json] = value if isinstance(value, dict) else {"": value}
        kind = str(tool.get("type", ""))
        feature = kind.startswith(RULES.feature_tools)
        deferred = tool.get("defer_loading") is True
        place = index if feature or deferred else ordinary
        ordinary += not (feature or deferred)
        spot = _Spot(
            section=Section.TOOLS,
            level=Section.SYSTEM if feature else Section.TOOLS,
            kind="tool",
            pointer=f"$.tools[{index}]",
            rank=(_AT["features" if feature else "tools"], place, 0),
        )
        segment = _segment(tool, spot, mark_fault="a deferred tool" if deferred else "")
        yield replace(segment, rendered=False) if deferred else segment


def _read_message(raw: bytes, index: int, lean: bool) -> _Message:
    """The segments of one message of a body."""
    entry = canonical.decode(raw)
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
            rank=(_AT["messages"], index, place),
            role=intern(role) if isinstance(role, str) else "",
            lifted=lifted,
            origin=(raw, place) if lean else None,
        )
        for place, block in enumerate(blocks)
    )
    return _Message(
        segments=segments,
        facts=_facts(content, pointer) if b'"image"' in raw or b'"citations"' in raw else NOTHING,
        is_user_text=_is_user_text(entry),
        thinks=any(s.kind in RULES.unmarkable for s in segments),
    )


def _facts(content: Json, pointer: str) -> _Facts:
    """Where the first citations and the first image of a message's content stand."""
    citations = image = ""
    for where, block in _iter_blocks(content, pointer):
        match block:
            case {"citations": {"enabled": True}}:
                citations = citations or where
        match block:
            case {"type": "image"}:
                image = image or where
    return _Facts(citations, image) if citations or image else NOTHING


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
            return text.startswith(RULES.billing_line)
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
    data = canonical.encode({name: value})
    rank = (_AT[name], 0, 0)
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
    if kind in RULES.unmarkable:
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
    data = canonical.encode(form)
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
    return _read_message(raw, index, lean=False).segments[place]


@lru_cache(maxsize=2048)
def _blocks_of(raw: bytes) -> tuple[bytes, ...]:
    """The data of each block of a message."""
    return tuple(s.data for s in _read_message(raw, 0, lean=False).segments)


def _digest(rank: tuple[int, int, int], data: bytes) -> bytes:
    return blake2b(data, digest_size=16, person=_PERSONS[_part_of(rank)]).digest()


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


def _with_automatic_breakpoint(body: Body, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Puts the breakpoint of a top-level `cache_control` on the last block that can carry one.

    Automatic caching, prompt-caching page, 2026-10-08.
    """
    control = canonical.decode(body.cache_control)
    if not isinstance(control, dict):
        return segments
    ttl = "1h" if control.get("ttl") == "1h" else "5m"
    for index in range(len(segments) - 1, -1, -1):
        segment = segments[index]
        if segment.is_block and not segment.mark_fault:
            if segment.ttl is None:
                marked = replace(segment, ttl=ttl)
                return (*segments[:index], marked, *segments[index + 1 :])
            break
    return segments


def _iter_heads(segments: tuple[Segment, ...]) -> Iterator[bytes]:
    part, message, opened = -1, -1, False
    for segment in segments:
        head = b""
        while part < _part_of(segment.rank):
            head += b"[[" if part < 0 else b"],["
            part, opened = part + 1, False
        comma = b"," if opened else b""
        if segment.section is not Section.MESSAGES:
            head += comma
        elif segment.rank[1] == message:
            head += b","
        else:
            head += (b"]}," if message >= 0 else comma) + _opening(segment)
            message = segment.rank[1]
        opened = True
        yield head


def _part_of(rank: tuple[int, int, int]) -> int:
    """0 for what is rendered with the tools, 1 for the system prompt, 2 for the messages."""
    at = rank[0]
    if at <= _AT["tools"]:
        return 0
    return 1 if at <= _AT["system"] else 2


def _opening(segment: Segment) -> bytes:
    return b'{"role":' + canonical.encode(segment.role) + b',"content":['


def _sorted_head(head: bytes, segment: Segment, role: str) -> bytes:
    """A head in which a message's role comes behind its content, as sorting puts it."""
    head = head.replace(_opening(segment), b'{"content":[')
    return head.replace(b"]},", b'],"role":' + canonical.encode(role) + b"},")
