"""One call to a model: its body, headers and time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache

import msgspec
from msgspec import Raw, Struct

from ctxdoc.request.response import NULL, Response, ServerEdit
from ctxdoc.request.usage import Usage


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


BLOTTED = "redacted"
"""In the ids of some recorders."""


class MarkedMessage(Struct, frozen=True, gc=False):
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
    """Bytes or `MarkedMessage` ones once a reader has parted them."""
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
        # The API's own word comes before a computed one.
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
        # Recorders that blot ids out give many responses one id.
        if not self.id or self.id != other.id or BLOTTED in self.id.lower():
            return False
        # A transcript writes the counters of an answer anew with each record of it.
        if self.source == other.source and not (self.body and other.body):
            return True
        one, two = self.usage, other.usage
        return one is None or two is None or one.prompt_parts == two.prompt_parts

    @property
    def scope(self) -> tuple[tuple[str, str], ...]:
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
