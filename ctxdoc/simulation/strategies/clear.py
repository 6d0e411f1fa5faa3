"""Old tool results give way to a placeholder, as the API's clear_tool_uses does.

What it does
    When the prompt is over `trigger`, all tool results but the last `keep` are replaced. *sticky*: what
    is cleared stays cleared, and nothing more is cleared until the shortened prompt is over the
    trigger again. *rolling*: the rule is applied to the full history on every request, so that once
    it is over the trigger each request clears one more. Which of the two the API's own clearing
    does is not documented (context-editing page, 2026-10-08); the table shows both.
Parameters
    trigger=100000          tokens of the prompt
    keep=3                  tool results that stay
    clear_at_least=0        tokens that a clearing has to free, else it is left
    exclude_tools=          names of tools whose results stay, joined by |
    clear_tool_inputs=false also the arguments of the calls
    mode=sticky             or rolling
    by=server               server: the body stays as it is and the API shortens the prompt; client:
                            the body is shortened, which newer models refuse where thinking follows
Rewrites the prefix
    from the first place that is cleared, at every clearing
What the model no longer sees
    the cleared results
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Struct

from ctxdoc.simulation.closed_forms import paid_back
from ctxdoc.simulation.history.edit import Edit
from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.strategies.base import COUNT, Definition, History, Outgoing, prompt, size_of

PLACEHOLDER = '"[old tool result cleared]"'


class Memory(Struct, frozen=True, eq=False, gc=False):
    """What is cleared by now."""

    made: dict[Message, Message]
    """What stands in the place of messages."""
    upto: int = 0
    """Messages that are cleared as far as they will ever be."""
    before: Message | None = None
    """The last of them: while it stands there they are the same."""


NOTHING = Memory({})


class Clear(Struct, frozen=True):
    """Replaces old tool results."""

    trigger: Annotated[int, prompt(0.5)] = 100_000
    keep: Annotated[int, COUNT] = 3
    clear_at_least: Annotated[int, prompt()] = 0
    exclude_tools: str = ""
    clear_tool_inputs: bool = False
    mode: Literal["sticky", "rolling"] = "sticky"
    by: Literal["server", "client"] = "server"

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with what is cleared by now."""
        messages = history.messages
        known = memory if isinstance(memory, Memory) else NOTHING
        if known.before is not None and not _holds(known, messages):
            known = Memory(known.made)
        rolling = self.mode == "rolling"
        base = messages if rolling else _applied(known.made, messages)
        size = size_of(base)
        if history.head.size + size <= self.trigger:
            return Outgoing(messages=base, memory=known)
        last = self._first_kept(messages)
        more = dict(self._cleared(history, known.upto, last))
        made = {**known.made, **more} if more else known.made
        upto = max(known.upto, min(last[0], len(messages)))
        now = Memory(made, upto, messages[upto - 1] if upto else None)
        end = last[0] + 1
        sent = [*_applied(made, messages[:end]), *base[end:]] if made else base
        if size - size_of(sent) < max(1, self.clear_at_least):
            return Outgoing(messages=base, memory=known if more else now)
        return Outgoing(messages=sent, memory=now)

    def _cleared(
        self, history: History, first: int, last: tuple[int, int]
    ) -> Iterator[tuple[Message, Message]]:
        """Messages, from one on, whose results or calls are cleared ahead of a place, if that makes them
        shorter."""
        messages = history.messages
        excluded = frozenset(filter(None, self.exclude_tools.split("|")))
        for index in range(first, min(last[0] + 1, len(messages))):
            message = messages[index]
            names = _names(messages, index) if excluded and message.results else {}
            places = [
                place
                for place in message.results
                if (index, place) < last and names.get(place, "") not in excluded
            ]
            if not places:
                continue
            edits = {place: Edit("content", PLACEHOLDER) for place in places}
            yield from _if_shorter(message, edits, history)
            if self.clear_tool_inputs and index and len(places) == len(message.results):
                before = messages[index - 1]
                calls = [p for p, s in enumerate(before.segments) if s.kind == "tool_use"]
                yield from _if_shorter(before, {p: Edit("input", "{}") for p in calls}, history)

    def _first_kept(self, messages: list[Message]) -> tuple[int, int]:
        """Message and place of the first result that stays; behind all of them where none does."""
        left = self.keep
        if left <= 0:
            return len(messages), 0
        for index in range(len(messages) - 1, -1, -1):
            results = messages[index].results
            if len(results) >= left:
                return index, results[-left]
            left -= len(results)
        return 0, 0


def _holds(memory: Memory, messages: list[Message]) -> bool:
    return memory.upto <= len(messages) and messages[memory.upto - 1] is memory.before


def _applied(made: dict[Message, Message], messages: list[Message]) -> list[Message]:
    return [made.get(message, message) for message in messages] if made else messages


def _if_shorter(
    message: Message, edits: dict[int, Edit], history: History
) -> Iterator[tuple[Message, Message]]:
    """A message with its edits, if they make it shorter."""
    made = history.maker.replaced(message, edits, history.call)
    if made.size < message.size:
        yield message, made


def _names(messages: list[Message], index: int) -> dict[int, str]:
    """The tools that the results of a message are of, by their places."""
    message = messages[index]
    called: dict[str, str] = {}
    for segment in messages[index - 1].segments if index else ():
        value = segment.value
        if segment.kind == "tool_use" and isinstance(value, dict):
            called[str(value.get("id"))] = segment.name
    found = {}
    for place in message.results:
        value = message.segments[place].value
        if isinstance(value, dict):
            found[place] = called.get(str(value.get("tool_use_id")), "")
    return found


def _edit(strategy: Clear) -> dict[str, object]:
    """The API's own edit (context-editing page, 2026-10-08)."""
    edit: dict[str, object] = {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": strategy.trigger},
        "keep": {"type": "tool_uses", "value": strategy.keep},
    }
    if strategy.clear_at_least:
        edit["clear_at_least"] = {"type": "input_tokens", "value": strategy.clear_at_least}
    if strategy.exclude_tools:
        edit["exclude_tools"] = strategy.exclude_tools.split("|")
    if strategy.clear_tool_inputs:
        edit["clear_tool_inputs"] = True
    return edit


def _applied_edit(
    strategy: Clear, messages: Sequence[Message], left: Sequence[Message]
) -> dict[str, object] | None:
    """How many calls were cleared, the oldest first: those too whose results are short as they are."""
    excluded = frozenset(filter(None, strategy.exclude_tools.split("|")))
    every, count, freed = list(messages), 0, 0
    seen = 0
    for index, (own, other) in enumerate(zip(messages, left, strict=True)):
        names = _names(every, index) if excluded and own.results else {}
        for place in own.results:
            if names.get(place, "") in excluded:
                continue
            seen += 1
            if own.segments[place].digest != other.segments[place].digest:
                count = seen
        freed += own.size - other.size
    if not count:
        return None
    kind = _edit(strategy)["type"]
    return {"type": kind, "cleared_tool_uses": count, "cleared_input_tokens": freed}


STRATEGY = Definition(
    id="clear",
    title="replaces old tool results by a placeholder",
    make=Clear,
    law=paid_back,
    server_edit=_edit,
    applied_edit=_applied_edit,
    usual=("", "mode=rolling"),
)
