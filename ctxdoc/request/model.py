"""The values that the parts of ctxdoc hand to each other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

import msgspec
from msgspec import Raw, Struct


class Origin(StrEnum):
    """Where a number comes from."""

    REPORTED = "reported"
    """Stated by the API."""
    CALIBRATED = "calibrated"
    """Shared out inside an interval whose ends were reported."""
    ESTIMATED = "estimated"
    """Made from characters, without any counter."""
    SIMULATED = "simulated"
    """Computed by the cache model."""
    NONE = "none"


class Trait(StrEnum):
    """What a log format can tell."""

    EXACT_BYTES = "exact bytes"
    """Bodies stand in the log as they were sent."""
    PARSED_BYTES = "parsed bodies"
    """Bodies are there, but key order and spelling may be the recorder's."""
    TIME = "time"
    USAGE = "usage"
    HEADERS = "headers"
    SESSION = "session"
    """The log says which requests belong together."""


class Event(StrEnum):
    """What a transcript notes between two requests, the weightiest first."""

    COMPACTION = "compaction"
    MICRO_COMPACTION = "micro-compaction"
    """Old tool results were taken out of the history."""
    LOGIN = "login"
    TOOLS = "change of tools"
    """Tools, MCP servers or agents came or went."""
    EFFORT = "effort change"
    THINKING = "thinking level change"
    USER_TURN = "user turn"
    """The user said something: the request is the first of a turn."""


class Section(StrEnum):
    """The parts of a request in render order, and the two that stand outside of it."""

    MODEL = "model"
    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGES = "messages"
    SETTINGS = "settings"
    NONE = "none"


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """The tokens of one request, in parts that do not overlap."""

    uncached: int
    """Input neither read from nor written to the cache."""
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int = 0
    split_known: bool = True
    """Whether the lifetimes of the writes were stated; if not, all count as 5m."""
    contradiction: str = ""
    """How the recorded parts contradict each other, if they do."""

    @property
    def cache_write(self) -> int:
        """Both lifetimes together."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def input(self) -> int:
        """The whole prompt."""
        return self.uncached + self.cache_read + self.cache_write


class Pass(Struct, frozen=True, kw_only=True, gc=False):
    """One pass of a model over a prompt, of an answer that took several (`usage.iterations`)."""

    kind: str
    """`message`, `compaction`, `advisor_message` or `fallback_message`."""
    usage: Usage
    model: str = ""
    """Who ran it, where it is said; else the model that answered."""

    @property
    def is_extra(self) -> bool:
        """Whether its tokens are outside of the counters of the answer (SDK 2.14.0; advisor page,
        2026-08)."""
        return self.kind in EXTRA_PASSES


EXTRA_PASSES = frozenset({"compaction", "advisor_message"})


class ServerEdit(Struct, frozen=True, kw_only=True, gc=False):
    """What the API did to the prompt of a request by itself, as its answer says it.

    From `context_management.applied_edits` (context-editing page, 2026-10-08) and
    `input_transformations` (SDK 2.14.0).
    """

    kind: str
    """`clear_tool_uses`, `clear_thinking` or `thinking_dropped`."""
    count: int = 0
    """Tool uses or turns of thinking that were cleared, the oldest first; of dropped blocks 1."""
    tokens: int = 0
    """Input tokens that were cleared, as the API counts them."""
    path: str = ""
    """Of a dropped block: where it stands in the body."""


BLOTTED = "redacted"
"""In the ids of some recorders."""

NULL = Raw(b"null")
"""A member that is left out; for the cache the same as an explicit null."""


class Marked(Struct, frozen=True, gc=False):
    """A message with one breakpoint: the next request sends it without, and both are held once."""

    plain: bytes
    """Without the breakpoint."""
    at: int
    """Where it stood."""
    mark: bytes

    def __bytes__(self) -> bytes:
        """The message as it was sent."""
        return self.plain[: self.at] + self.mark + self.plain[self.at :]


NEUTRAL = frozenset(
    {
        "max_tokens", "temperature", "top_p", "top_k", "stream", "stop_sequences", "diagnostics",
        "anthropic_version",
    }
)  # fmt: skip
"""Members of a body that are no part of the prompt (facts 1.7: own inference for the first ones)."""


class Body(Struct, frozen=True):
    """A Messages API body: the fields that reach the prompt, each part still as its bytes."""

    messages: tuple[Raw, ...]
    """Bytes or `Marked` ones once a reader has parted them."""
    model: str | None = None
    tools: tuple[Raw, ...] | None = None
    """Bytes once a reader has parted them."""
    system: Raw = NULL
    cache_control: Raw = NULL
    tool_choice: Raw = NULL
    thinking: Raw = NULL
    output_config: Raw = NULL
    output_format: Raw = NULL
    context_management: Raw = NULL
    inference_geo: Raw = NULL
    service_tier: Raw = NULL
    fallbacks: Raw = NULL
    speed: Raw = NULL
    mcp_servers: Raw = NULL
    container: Raw = NULL
    max_tokens: int | None = None
    metadata: Raw = NULL
    """No part of the prompt; it may name the user."""
    thread: Raw = NULL
    """Set on a body that creates a message thread, and on one that is only the end of it."""
    others: tuple[tuple[str, bytes], ...] = msgspec.field(name="", default=())
    """Members that have no field here and are not known to be neutral, by name; see `NEUTRAL`."""


class Response(Struct, frozen=True, kw_only=True, gc=False):
    """What came back, as far as the cache is concerned."""

    id: str = ""
    model: str = ""
    error: str = ""
    """The API's message when it refused the request."""
    usage: Usage | None = None
    speed: str = ""
    batch: bool = False
    us_only: bool = False
    """Billed at the price of US-only inference."""
    passes: tuple[Pass, ...] = ()
    """The passes that the answer lists, where they are more than the one that the usage counts."""
    several_passes: bool = False
    """Whether server tools ran, so that the counters may add up several passes over the prompt."""
    edits: tuple[ServerEdit, ...] = ()
    """What the API took out of the prompt before the model saw it."""
    compacted: bool = False
    """Whether the answer begins with a compaction block: it was given behind the summary in it."""
    searches: int = 0
    """Searches of the web, which are billed by number."""
    called: tuple[str, ...] = ()
    """Names of the tools that it calls."""
    miss_reason: str = ""
    """The API's own word on a cache miss."""
    notes: tuple[str, ...] = ()
    """What could not be read of it."""
    content: Raw = NULL
    """The blocks, where a later request is held beside them: the results of server tools and
    compaction blocks were in the prompt of this request already. Of other answers they are held
    while reading: a message thread goes on from them."""

    @property
    def extra_passes(self) -> tuple[Pass, ...]:
        """Passes whose tokens the usage leaves out: compactions and advisors."""
        return tuple([each for each in self.passes if each.is_extra])

    @property
    def prompt_passes(self) -> tuple[Usage, ...]:
        """The counters of each pass of the model itself, where they are listed; the first is that over
        the prompt as it was sent."""
        if not self.passes:
            return ()
        return tuple([each.usage for each in self.passes if each.kind == "message"])


class _Block(Struct):
    type: str = ""


_SERVER_BLOCK = re.compile(
    rb'"(?:server_tool_use|mcp_tool_use|\w+_tool_result|compaction)"', re.ASCII
)


def has_server_blocks(content: Raw) -> bool:
    """Whether the blocks of an answer hold a compaction, or calls of server tools or their results:
    what the API itself put behind the prompt of the request."""
    if not _SERVER_BLOCK.search(bytes(content)):
        return False
    try:
        blocks = msgspec.json.decode(content, type=list[_Block])
    except (msgspec.MsgspecError, RecursionError):
        return False
    return any(is_server_block(block.type) for block in blocks)


def is_server_block(kind: str) -> bool:
    """Whether a block of that type is the API's own, and no call or text of the model alone."""
    return kind in SERVER_BLOCKS or (kind.endswith("_tool_result") and kind != "tool_result")


SERVER_BLOCKS = frozenset({"server_tool_use", "mcp_tool_use", "compaction"})
"""Besides the results, whose types end in `_tool_result` (SDK 2.14.0)."""


class Request(Struct, frozen=True, kw_only=True, gc=False):
    """One call to a model: the unit of replay."""

    source: str
    """The file, or `-`."""
    line: int
    """1-based line where the record starts."""
    model: str
    """As the request, or else the answer, spells it."""
    body: Body | None
    """None where the log holds none, or none of the Messages API."""
    raw: Raw | None = None
    """The whole body as it stands in the log, where the log keeps it and the reader did not let it
    go."""
    exact: bool = False
    """Whether the log keeps the body as it was sent, though `raw` is let go."""
    at: datetime | None = None
    """Start of the request, aware."""
    duration: float | None = None
    """Seconds until the response ended."""
    session: str = ""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Lower-case names; only those that cannot hold a secret."""
    response: Response | None = None
    simulated: Response | None = None
    """What a simulation computed in the place of an answer, where one wrote the log."""
    cost_reported: Decimal | None = None
    """USD that a tracker beside the log wrote down."""
    notes: tuple[str, ...] = ()
    """What could not be read of this record."""
    records: int = 1
    """Records of the log that tell of it."""
    counted: int | None = None
    """Tokens of the prompt as the API counted them afterwards, where the log has no counters."""
    events: tuple[Event, ...] = ()
    """What the log says happened since the request before, where it has no bodies to show it."""

    @property
    def event(self) -> Event | None:
        """The weightiest of the events."""
        return next((event for event in Event if event in self.events), None)

    @property
    def usage(self) -> Usage | None:
        """The reported counters."""
        return self.response.usage if self.response else None

    @property
    def simulated_usage(self) -> Usage | None:
        """The counters that a simulation wrote; never taken for the API's."""
        return self.simulated.usage if self.simulated and self.response is None else None

    @property
    def server_edits(self) -> tuple[ServerEdit, ...] | None:
        """What the API took out of the prompt, as its answer says or a simulation computed; None where
        neither is there."""
        answer = self.response or self.simulated
        return answer.edits if answer is not None else None

    @property
    def is_exact(self) -> bool:
        """Whether the log holds the body as it was sent."""
        return self.exact or self.raw is not None

    @property
    def refused(self) -> str:
        """The API's error message, or nothing."""
        return self.response.error if self.response else ""

    @property
    def id(self) -> str | None:
        """The response id, where there is one."""
        return (self.response.id or None) if self.response else None

    def is_same_response(self, other: Request) -> bool:
        """Whether both tell of one response by its id; one that a recorder blotted out names none, nor does
        one that two files give to responses with other counters."""
        if not self.id or self.id != other.id or BLOTTED in self.id.lower():
            return False
        one, two = self.usage, other.usage
        if (
            one is None
            or two is None
            or (self.source == other.source and not (self.body and other.body))
        ):
            return True
        return (one.uncached, one.cache_read, one.cache_write) == (
            two.uncached,
            two.cache_read,
            two.cache_write,
        )

    @property
    def place(self) -> tuple[tuple[str, str], ...]:
        """What is known of the platform, account, workspace and upstream that served the request."""
        known = tuple((name, self.headers[name]) for name in PLACE_HEADERS if name in self.headers)
        platform = platform_of(self.model)
        return (("platform", platform), *known) if platform else known


_PLATFORMS = (
    (re.compile(r"^(?:[a-z]{2,6}\.)?anthropic\.claude|^arn:aws"), "Bedrock"),
    (re.compile(r"^claude[\w.-]*@"), "Google Cloud"),
    (re.compile(r"^claude"), "Claude API"),
)


@lru_cache(maxsize=256)
def platform_of(model: str) -> str:
    """Where a model is served, as far as the spelling of its name tells; empty where it does not."""
    return next((name for spelled, name in _PLATFORMS if spelled.search(model)), "")


PLACE_HEADERS = (
    "x-upstream",
    "x-account",
    "anthropic-organization-id",
    "anthropic-workspace-id",
    "host",
)
"""Entries are parted by organization and workspace, and each upstream has its own
(prompt-caching page, 2026-10-08)."""

KEPT_HEADERS = frozenset(
    (*PLACE_HEADERS, "anthropic-beta", "anthropic-version", "user-agent", "request-id")
)
"""The headers that readers may keep: none can hold a secret."""


class Skipped(Struct, frozen=True, gc=False):
    """A record that is no request, and why."""

    source: str
    line: int
    reason: str
    other: bool = False
    """Whether it is in its place and was never meant to be one: a tool result of a transcript, a
    call to another service."""


class Log(Struct, frozen=True, kw_only=True):
    """Requests in the order of the log, and what was passed over."""

    requests: tuple[Request, ...]
    skipped: tuple[Skipped, ...] = ()
    traits: frozenset[Trait] = frozenset()
    """What every format that was read carries."""
    formats: tuple[str, ...] = ()
    files: int = 1
    records: int = 0
    """Records that were read, those of one response and the skipped ones counted each."""
