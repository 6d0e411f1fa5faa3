"""Turns a request into the prompt that the cache sees.

What several requests of a log send is rendered once: tools, system prompts and messages are looked up by
their bytes, and a request that goes on from an earlier one takes its segments and hashes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.errors import NoRequestError
from ctxdoc.prompt.chain import chained
from ctxdoc.prompt.messages_form import OWN_HOST, THINKING_KINDS
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import (
    NOTHING,
    Facts,
    MessageParts,
    Segment,
    answer_blocks,
    read_message,
    with_breakpoint,
)
from ctxdoc.prompt.server_edits import keeps_all_thinking, parted_by_compaction, parted_by_edits
from ctxdoc.prompt.settings import Ahead, iter_tools
from ctxdoc.providers import ModelRule, find_model
from ctxdoc.request import codec
from ctxdoc.request.digest import blake2b
from ctxdoc.request.request import Body, MarkedMessage, Request
from ctxdoc.request.response import ServerEdit


def render(request: Request) -> Prefix:
    """The prompt of a request.

    Raises NoRequestError, naming file and line, for a body that cannot be rendered.
    """
    return Renderer().render(request)


Message: TypeAlias = bytes | MarkedMessage
HELD = (bytes, MarkedMessage)


def _plain(message: Message) -> bytes:
    return message.plain if isinstance(message, MarkedMessage) else message


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
        self._messages: dict[tuple[bytes, int], MessageParts] = {}
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
        body = _body_of(request)
        rule = find_model(request.model)
        messages = _messages_of(body)
        old = self._lanes.get(_plain(messages[0])) if messages else None
        lane = self._lane(messages, old)
        top = self._top(request, body, rule, lane.facts)
        segments, stripped = _given_to_model(lane, rule, body)
        whole = top.rendered + segments
        # Keys are chained: they can be taken over only behind the same tools, system and settings, and
        # only while no thinking was taken out of the middle.
        known = old.prefix if old is not None and old.root is top and not stripped else None
        prefix = Prefix(
            root=rule.id,
            model=request.model,
            segments=_with_automatic_breakpoint(body, whole),
            keys=chained(
                rule.id, whole, known.keys[: len(top.rendered) + lane.shared] if known else ()
            ),
            row=_paired(segments, known.row[: lane.shared] if known else ()),
            unrendered=top.unrendered + stripped,
            rule=rule,
        )
        if messages:
            lane.root, lane.prefix = top, None if stripped else prefix
            lane.edits = _edits_of(request, old)
            self._lanes[_plain(messages[0])] = lane
        # The next request is compared by what was sent; the cache meets what the model saw.
        if lane.edits or lane.compacts:
            return self._seen(prefix, len(top.rendered), lane, body)
        return prefix

    def _seen(self, sent: Prefix, start: int, lane: _Lane, body: Body) -> Prefix:
        """The prompt as the model saw it: without what the API took out of the messages."""
        segments, gone = parted_by_edits(sent.segments[start:], lane.edits, body)
        segments, before = parted_by_compaction(segments)
        if not gone and not before:
            return sent
        left_out = tuple(replace(s, rendered=False) for s in (*before, *gone))
        return self._of(sent, (*sent.segments[:start], *segments), len(segments), left_out, body)

    def _of(
        self,
        sent: Prefix,
        whole: tuple[Segment, ...],
        messages: int,
        left_out: tuple[Segment, ...],
        body: Body,
    ) -> Prefix:
        """Another prompt than the one that was sent; the last `messages` segments are messages."""
        return Prefix(
            root=sent.root,
            model=sent.model,
            segments=_with_automatic_breakpoint(body, whole),
            keys=chained(sent.root, whole, ()),
            row=_paired(whole[len(whole) - messages :], ()),
            unrendered=(*sent.unrendered, *left_out),
            rule=sent.rule,
            sent=sent,
        )

    def compacted(self, request: Request, prefix: Prefix) -> Prefix | None:
        """The prompt that an answer was given to once the API had put a summary in place of the whole
        history; None where the answer does not hold it."""
        body, response = request.body, request.response
        if body is None or response is None or not response.compacted:
            return None
        blocks = answer_of(request)
        if not blocks or blocks[0].kind != "compaction":
            return None
        sent = prefix.as_sent
        start = len(sent.segments) - len(sent.row)
        gone = tuple(replace(segment, rendered=False) for segment in sent.segments[start:])
        return self._of(sent, (*sent.segments[:start], blocks[0]), 1, gone, body)

    def answered(self, request: Request, prefix: Prefix) -> Prefix | None:
        """A prompt with those blocks of its answer that were a part of it already: the calls and
        results of server tools, over which the API went again. None where there are none.

        The API writes a five-minute entry of its own behind the last result of a request that has a
        breakpoint (tool-use-with-prompt-caching page, 2026-08-22).
        """
        blocks = answer_of(request)
        ends = [i for i, s in enumerate(blocks) if s.kind in SERVER_RESULTS]
        if not ends:
            return None
        added = blocks[: ends[-1] + 1]
        if prefix.breakpoints:
            added = (*added[:-1], replace(added[-1], ttl="5m"))
        pairs = [one.digest + two.digest for one, two in pairwise((*prefix.segments[-1:], *added))]
        segments = (*prefix.segments, *added)
        return Prefix(
            root=prefix.root,
            model=prefix.model,
            segments=segments,
            keys=chained(prefix.root, segments, prefix.keys),
            row=(*prefix.row, *pairs),
            unrendered=prefix.unrendered,
            rule=prefix.rule,
        )

    def _top(self, request: Request, body: Body, rule: ModelRule, facts: Facts) -> _Top:
        """Everything ahead of the messages."""
        kept = _billing_line_kept(request)
        parts = (body.system, body.tool_choice, body.thinking, body.output_config)
        more = (body.output_format, body.speed, body.mcp_servers, body.container)
        tools = tuple(map(bytes, body.tools or ()))
        key = (rule.id, kept, facts, tools, *map(bytes, parts), *map(bytes, more))
        found = self._tops.get(key)
        if found is None:
            # An agent has few of these; one with a clock in its system prompt has one a request.
            if len(self._tops) >= HELD_TOPS:
                self._tops.clear()
                self._tools.clear()
            ahead = Ahead(body, rule, kept, facts)
            found = self._tops[key] = _top_of([*self._toolset(tools), *ahead.blocks()])
        return found

    def _toolset(self, tools: tuple[bytes, ...]) -> tuple[Segment, ...]:
        found = self._tools.get(tools)
        if found is None:
            found = self._tools[tools] = tuple(iter_tools(tools))
        return found

    def _lane(self, messages: tuple[Message, ...], old: _Lane | None) -> _Lane:
        """The messages; of those that an earlier request has too, nothing is done again."""
        same = common_messages(old.messages, messages) if old is not None else 0
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

    def _message(self, message: Message, index: int) -> MessageParts:
        if isinstance(message, MarkedMessage):
            found_marked = with_breakpoint(message, self._message(message.plain, index))
            return found_marked or read_message(bytes(message), index, self.lean)
        raw = message
        found = self._messages.get((raw, index))
        if found is None:
            if len(self._messages) >= HELD_MESSAGES:
                # Those of conversations that go on are held in their lanes.
                self._messages.clear()
            found = self._messages[raw, index] = read_message(raw, index, self.lean)
        return found


def common_messages(before: Sequence[Message], after: Sequence[Message]) -> int:
    """How many leading messages of two requests are equal."""
    same = 0
    for one, two in zip(before, after, strict=False):
        # A reader hands the same value out again for the same bytes: most are told without comparing.
        if one is not two and one != two:
            break
        same += 1
    return same


class _Top(Struct, frozen=True):
    """Tools, system prompt and settings."""

    rendered: tuple[Segment, ...]
    unrendered: tuple[Segment, ...]


def _top_of(segments: list[Segment]) -> _Top:
    """What stands ahead, in order: a body has it in any, the API renders it in one."""
    segments.sort(key=lambda segment: segment.rank)
    return _Top(
        rendered=tuple(s for s in segments if s.rendered),
        unrendered=tuple(s for s in segments if not s.rendered),
    )


class _End(Struct, frozen=True):
    """What is known after a message."""

    count: int
    """Segments up to here."""
    facts: Facts
    last_user_text: int
    thinks: bool
    compacts: bool = False
    """Whether a compaction block stands for a part of the history."""

    def followed_by(self, message: MessageParts, index: int, count: int) -> _End:
        facts = self.facts
        if message.facts is not NOTHING:
            facts = Facts(
                citations=facts.citations or message.facts.citations,
                image=facts.image or message.facts.image,
            )
        return _End(
            count=count,
            facts=facts,
            last_user_text=index if message.is_user_text else self.last_user_text,
            thinks=self.thinks or message.thinks,
            compacts=self.compacts or message.compaction >= 0,
        )


START = _End(count=0, facts=NOTHING, last_user_text=0, thinks=False)


class _Lane(Struct):
    """The messages of a conversation as they were last sent."""

    messages: tuple[Message, ...]
    segments: tuple[Segment, ...]
    ends: list[_End]
    shared: int
    """Segments that the request before it has too."""
    root: _Top | None = None
    prefix: Prefix | None = None
    """What was rendered, where all of the segments are in it."""
    edits: tuple[ServerEdit, ...] = ()
    """What the API took out of it."""

    @property
    def compacts(self) -> bool:
        return bool(self.ends) and self.ends[-1].compacts

    @property
    def facts(self) -> Facts:
        return self.ends[-1].facts if self.ends else NOTHING

    @property
    def thinks(self) -> bool:
        return bool(self.ends) and self.ends[-1].thinks


def _body_of(request: Request) -> Body:
    """The body of a request; raises NoRequestError where the log holds none."""
    if request.body is None:
        why = "; ".join(request.notes) or "the log holds no body"
        raise NoRequestError(f"{request.source}, line {request.line}: {why}")
    return request.body


def _messages_of(body: Body) -> tuple[Message, ...]:
    """The messages as their bytes, those that a reader has parted as it holds them."""
    return tuple([m if type(m) in HELD else bytes(m) for m in body.messages])


def _given_to_model(
    lane: _Lane, rule: ModelRule, body: Body
) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """The segments of the messages that the model gets, and the thinking that it does not."""
    if lane.thinks and not rule.keeps_thinking and not keeps_all_thinking(body):
        return _without_stripped(lane)
    return lane.segments, ()


def _without_stripped(lane: _Lane) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """The segments without the thinking that the API takes out, and that thinking.

    Models before Opus 4.5, Sonnet 4.6 and Haiku 5.5 strip the thinking before the last user text that
    is no tool result (prompt-caching page, 2026-10-08).
    """
    start = lane.ends[-1].last_user_text
    gone = [s.kind in THINKING_KINDS and s.rank[1] < start for s in lane.segments]
    kept = tuple(s for s, out in zip(lane.segments, gone, strict=True) if not out)
    stripped = (
        replace(s, rendered=False) for s, out in zip(lane.segments, gone, strict=True) if out
    )
    return kept, tuple(stripped)


def _paired(segments: tuple[Segment, ...], known: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """Each message block with the one before it, those that are known taken over."""
    start = len(known)
    last = segments[start - 1].digest if start else b""
    row = list(known)
    for segment in segments[start:]:
        row.append(last + segment.digest)
        last = segment.digest
    return tuple(row)


SERVER_RESULTS = frozenset(
    {
        "web_search_tool_result", "web_fetch_tool_result", "tool_search_tool_result",
        "code_execution_tool_result", "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result", "mcp_tool_result", "advisor_tool_result",
    }
)  # fmt: skip
"""Blocks of an answer that hold what a tool of the API's own gave (SDK 2.14.0)."""


def answer_of(request: Request) -> tuple[Segment, ...]:
    """The blocks of an answer, where they are held, as a message behind those of the body."""
    body, response = request.body, request.response
    content = bytes(response.content) if response else b"null"
    if body is None or content in (b"null", b"[]"):
        return ()
    try:
        return answer_blocks(content, len(body.messages))
    except (msgspec.DecodeError, RecursionError):
        return ()


def _edits_of(request: Request, old: _Lane | None) -> tuple[ServerEdit, ...]:
    """What the answer says that the API took out; where it is not logged, what it took out of the
    request before: an edit holds on."""
    if request.server_edits is not None:
        return request.server_edits
    return old.edits if old is not None else ()


def _billing_line_kept(request: Request) -> bool:
    if not request.headers:
        return False
    scope = dict(request.scope)
    host = scope.get("x-upstream") or scope.get("host") or OWN_HOST
    return host != OWN_HOST


def _with_automatic_breakpoint(body: Body, segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Puts the breakpoint of a top-level `cache_control` on the last block that can carry one.

    Automatic caching, prompt-caching page, 2026-10-08.
    """
    control = codec.decode(body.cache_control)
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
