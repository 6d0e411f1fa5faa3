"""Turns a request into the prompt that the cache sees: segments that tile its bytes.

The prompt is written as unfinished JSON, `[[tools],[system],[messages…`, so that a longer request
that only appends has the shorter one as a prefix. Settings stand where they invalidate
(prompt-caching page, "what invalidates the cache", 2026-10-08): the model at the root; MCP servers
before the tools; speed, skills, web search and citations before the system prompt; tool choice,
thinking, effort, output format and the presence of images before the messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b

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
    data: bytes
    """Canonical JSON of the block; settings as an object of one member."""
    value: Json
    head: bytes
    """What parts it from the segment before."""
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
    unrendered: tuple[Segment, ...]
    """Blocks of the body that are no part of the prompt: deferred tools, stripped thinking, and
    settings that spell out the default."""
    rule: ModelRule

    @cached_property
    def keys(self) -> tuple[bytes, ...]:
        """Chained hashes: equal keys mean equal prompts up to and including that segment."""
        key = blake2b(self.root.encode(), digest_size=16).digest()
        keys = []
        for segment in self.segments:
            key = blake2b(key + segment.head + segment.data, digest_size=16).digest()
            keys.append(key)
        return tuple(keys)

    @cached_property
    def data(self) -> bytes:
        """The prompt's bytes."""
        return b"".join(part for s in self.segments for part in (s.head, s.data))

    @cached_property
    def sorted_data(self) -> bytes:
        """The prompt's bytes with the members of every object sorted."""
        parts: list[bytes] = []
        role = ""
        for segment in self.segments:
            parts += [_sorted_head(segment, role), canonical.encode_sorted(segment.value)]
            role = segment.role
        return b"".join(parts)

    @cached_property
    def breakpoints(self) -> tuple[int, ...]:
        """Indices of the segments that carry one."""
        return tuple(i for i, segment in enumerate(self.segments) if segment.ttl)

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
        return sum(len(s.head) + len(s.data) for s in self.segments)


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
    try:
        return _render(request)
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise NoRequestError(f"{request.source}, line {request.line}: {reason}") from error


def _render(request: Request) -> Prefix:
    body = request.body
    if body is None:
        why = "; ".join(request.notes) or "the log holds no body"
        raise NoRequestError(f"{request.source}, line {request.line}: {why}")
    rule = RULES.find_model(request.model)
    parts = _Parts(body, rule, _billing_line_kept(request))
    blocks = sorted(parts.blocks(), key=lambda segment: segment.rank)
    rendered = [s for s in blocks if s.rendered]
    rendered = _with_automatic_breakpoint(body, rendered)
    return Prefix(
        root=rule.id,
        model=request.model,
        segments=tuple(_with_heads(rendered)),
        unrendered=tuple(s for s in blocks if not s.rendered),
        rule=rule,
    )


def _billing_line_kept(request: Request) -> bool:
    places = dict(request.place)
    host = places.get("x-upstream") or places.get("host") or RULES.host
    return host != RULES.host


class _Parts:
    """The segments of one body, before order and separators."""

    def __init__(self, body: Body, rule: ModelRule, keep_billing_line: bool) -> None:
        self.body = body
        self.rule = rule
        self.keep_billing_line = keep_billing_line
        self.messages = [canonical.decode(raw) for raw in body.messages]

    def blocks(self) -> Iterator[Segment]:
        yield from self.tools()
        yield from self.system()
        yield from self.history()
        yield from self.settings()

    def tools(self) -> Iterator[Segment]:
        ordinary = 0
        for index, raw in enumerate(self.body.tools or ()):
            value = canonical.decode(raw)
            tool: dict[str, Json] = value if isinstance(value, dict) else {"": value}
            kind = str(tool.get("type", ""))
            feature = kind.startswith(RULES.feature_tools)
            deferred = tool.get("defer_loading") is True
            place = index if feature or deferred else ordinary
            ordinary += not (feature or deferred)
            segment = _segment(
                tool,
                section=Section.TOOLS,
                level=Section.SYSTEM if feature else Section.TOOLS,
                kind="tool",
                pointer=f"$.tools[{index}]",
                rank=(_AT["features" if feature else "tools"], place, 0),
                mark_fault="a deferred tool" if deferred else "",
            )
            yield replace(segment, rendered=False) if deferred else segment

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

    def history(self) -> Iterator[Segment]:
        stripped_before = self.thinking_kept_from()
        for index, entry in enumerate(self.messages):
            message = entry if isinstance(entry, dict) else {"content": entry}
            content = message.get("content")
            lifted = isinstance(content, str)
            role = message.get("role")
            pointer = f"$.messages[{index}].content"
            blocks = canonical.lifted(content) or [{"type": "empty"}]
            for place, block in enumerate(blocks):
                kind = str(block.get("type")) if isinstance(block, dict) else ""
                yield _block(
                    block,
                    section=Section.MESSAGES,
                    pointer=pointer if lifted else f"{pointer}[{place}]",
                    rank=(_AT["messages"], index, place),
                    role=role if isinstance(role, str) else "",
                    lifted=lifted,
                    rendered=kind not in RULES.unmarkable or index >= stripped_before,
                )

    def thinking_kept_from(self) -> int:
        """Index of the message from which thinking is in the prompt.

        Models before Opus 4.5, Sonnet 4.6 and Haiku 5.5 strip the thinking before the last user
        text that is no tool result (prompt-caching page, 2026-10-08).
        """
        if self.rule.keeps_thinking:
            return 0
        for index in range(len(self.messages) - 1, -1, -1):
            if _is_user_text(self.messages[index]):
                return index
        return 0

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
        yield from self.citations()
        choice = canonical.canonical(canonical.decode(body.tool_choice))
        default: Json = {"type": "auto"}
        yield from _setting("tool_choice", "$.tool_choice", choice, default=default)
        thinking = canonical.canonical(canonical.decode(body.thinking))
        yield from _setting("thinking", "$.thinking", thinking, default={"type": "disabled"})
        yield from self.output()
        yield from self.images()

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

    def citations(self) -> Iterator[Segment]:
        for pointer, block in self.iter_blocks():
            match block:
                case {"citations": {"enabled": True}}:
                    where = f"{pointer}.citations"
                    yield from _setting("citations", where, True, Section.SYSTEM)
                    return

    def images(self) -> Iterator[Segment]:
        for pointer, block in self.iter_blocks():
            match block:
                case {"type": "image"}:
                    yield from _setting("images", pointer, True)
                    return

    def iter_blocks(self) -> Iterator[tuple[str, Json]]:
        """Every content block of the history with its pointer, those inside tool results too."""
        for index, message in enumerate(self.messages):
            content = message.get("content") if isinstance(message, dict) else None
            if not isinstance(content, list):
                continue
            for place, block in enumerate(content):
                pointer = f"$.messages[{index}].content[{place}]"
                yield pointer, block
                inner = block.get("content") if isinstance(block, dict) else None
                if isinstance(inner, list):
                    for depth, part in enumerate(inner):
                        yield f"{pointer}.content[{depth}]", part


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
    yield Segment(
        section=Section.SETTINGS,
        level=level,
        kind="setting",
        rendered=value != default,
        pointer=pointer,
        rank=(_AT[name], 0, 0),
        data=canonical.encode({name: value}),
        value={name: value},
        head=b"",
    )


def _block(
    block: Json,
    *,
    section: Section,
    pointer: str,
    rank: tuple[int, int, int],
    role: str = "",
    lifted: bool = False,
    rendered: bool = True,
) -> Segment:
    value: dict[str, Json]
    value = block if isinstance(block, dict) else {"type": "text", "text": block}
    kind = str(value.get("type", ""))
    fault = ""
    if kind in RULES.unmarkable:
        fault = f"a {kind} block"
    elif kind == "text" and value.get("text") == "":
        fault = "an empty text block"
    segment = _segment(
        value,
        section=section,
        level=section,
        kind=kind,
        pointer=pointer,
        rank=rank,
        mark_fault=fault,
    )
    return replace(segment, role=role, lifted=lifted, rendered=rendered)


def _segment(
    value: dict[str, Json],
    *,
    section: Section,
    level: Section,
    kind: str,
    pointer: str,
    rank: tuple[int, int, int],
    mark_fault: str = "",
) -> Segment:
    form = canonical.canonical(value)
    return Segment(
        section=section,
        level=level,
        kind=kind,
        pointer=pointer,
        rank=rank,
        data=canonical.encode(form),
        value=form,
        head=b"",
        ttl=_ttl(value),
        mark_fault=mark_fault,
        lowered=isinstance(form, dict)
        and form.get("type") == "tool_result"
        and isinstance(form.get("content"), str)
        and isinstance(value.get("content"), list),
    )


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


def _with_automatic_breakpoint(body: Body, segments: list[Segment]) -> list[Segment]:
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
                segments[index] = replace(segment, ttl=ttl)
            break
    return segments


def _with_heads(segments: list[Segment]) -> Iterator[Segment]:
    """Adds what parts a segment from the one before, so that the bytes are one JSON text."""
    part, message, opened = -1, -1, False
    for segment in segments:
        head = b""
        while part < _part_of(segment):
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
        yield replace(segment, head=head)


def _part_of(segment: Segment) -> int:
    at = segment.rank[0]
    if at <= _AT["tools"]:
        return 0
    return 1 if at <= _AT["system"] else 2


def _opening(segment: Segment) -> bytes:
    return b'{"role":' + canonical.encode(segment.role) + b',"content":['


def _sorted_head(segment: Segment, role: str) -> bytes:
    """A head in which a message's role comes behind its content, as sorting puts it."""
    head = segment.head.replace(_opening(segment), b'{"content":[')
    return head.replace(b"]},", b'],"role":' + canonical.encode(role) + b"},")
