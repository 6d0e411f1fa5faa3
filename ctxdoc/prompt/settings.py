"""What stands ahead of the messages: tools, system prompt, and the settings that reach the prompt.

Settings stand where they invalidate (prompt-caching page, "what invalidates the cache", 2026-10-08):
the model at the root; MCP servers before the tools; speed, skills, web search and citations before the
system prompt; tool choice, thinking, effort, output format and the presence of images before the
messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from ctxdoc.prompt import canonical
from ctxdoc.prompt.messages_form import BILLING_LINE, FEATURE_TOOLS
from ctxdoc.prompt.segments import AT, Facts, Segment, Spot, block_at, digest_of, segment_at
from ctxdoc.providers import ModelRule
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Body, Section


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
            # A line of the client's own for billing: the API takes it out before it looks anything up.
            if index == 0 and _is_billing_line(block) and not self.keep_billing_line:
                continue
            yield block_at(
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
    return block_at(
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
        apart = _is_feature(tool) or _is_deferred(tool)
        # One that comes or goes apart does not move the ordinary ones: these are counted by themselves.
        yield _tool(tool, index, index if apart else ordinary)
        ordinary += not apart


def _tool(tool: dict[str, Json], index: int, item: int) -> Segment:
    """A tool definition; a deferred one is no part of the prompt until it is searched for."""
    feature, deferred = _is_feature(tool), _is_deferred(tool)
    spot = Spot(
        section=Section.TOOLS,
        level=Section.SYSTEM if feature else Section.TOOLS,
        kind="tool",
        pointer=f"$.tools[{index}]",
        rank=(AT["features" if feature else "tools"], item, 0),
    )
    segment = segment_at(tool, spot, mark_fault="a deferred tool" if deferred else "")
    return replace(segment, rendered=False) if deferred else segment


def _is_feature(tool: dict[str, Json]) -> bool:
    """Whether a tool is one of those that lose the system prompt when they are switched, and no tools."""
    return str(tool.get("type", "")).startswith(FEATURE_TOOLS)


def _is_deferred(tool: dict[str, Json]) -> bool:
    return tool.get("defer_loading") is True


def _is_billing_line(block: Json) -> bool:
    match block:
        case {"type": "text", "text": str(text)}:
            return text.startswith(BILLING_LINE)
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
        digest=digest_of(rank, data),
        size=len(data),
        narrow=len(data),
        held=data,
    )
