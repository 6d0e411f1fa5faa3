"""Old tool results give way to a placeholder, as the API's clear_tool_uses does.

What it does
    When the prompt is over `trigger`, all tool results but the last `keep` are replaced. *sticky*: what
    is cleared stays cleared, and nothing more is cleared until the shortened prompt is over the
    trigger again. *rolling*: the rule is applied to the full history on every request, so that once
    it is over the trigger each request clears one more. Which of the two the API's own clearing
    does is not documented (context-editing page, 2026-10-08); the table shows both.
Parameters
    trigger=100000          tokens of the prompt
    tool_uses=0             tool results in the prompt above which it clears, in place of trigger; 0: by trigger
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
from msgspec.structs import replace

from ctxdoc.request.codec import Json
from ctxdoc.simulation.closed_forms import paid_back
from ctxdoc.simulation.history.edit import Edit
from ctxdoc.simulation.history.mapped import Mapped
from ctxdoc.simulation.history.messages import Message, member_of, size_of
from ctxdoc.simulation.recipe import Recipe, pasted
from ctxdoc.simulation.strategies.base import COUNT, Definition, History, Outgoing, prompt

PLACEHOLDER = '"[old tool result cleared]"'


class Memory(Struct, frozen=True, eq=False, gc=False):
    """What is cleared by now."""

    made: dict[Message, Message]
    """What stands in the place of messages."""
    base: Mapped = Mapped()
    """The messages of the request before with those in their places; unused where clearing is rolling."""
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
    tool_uses: Annotated[int, COUNT] = 0

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with what is cleared by now."""
        messages = history.messages
        known = _held(memory, messages)
        # Rolling looks at the full history each time, sticky at what it has left of it.
        put = {} if self.mode == "rolling" else known.made
        base = known.base.next(messages, lambda fresh: _applied(put, fresh))
        if not self._is_due(history, base, known.upto):
            return _sent(base, replace(known, base=base))
        last = self._first_kept(messages)
        more = dict(self._cleared(history, known.upto, last))
        made = {**known.made, **more} if more else known.made
        upto = max(known.upto, min(last[0], len(messages)))
        now = Memory(made, base, upto, messages[upto - 1] if upto else None)
        # What was cleared before stands in the base already, but for the calls right ahead of the new results.
        first = 0 if self.mode == "rolling" else max(0, known.upto - 1)
        sent = base.changed(first, last[0] + 1, lambda fresh: _applied(made, fresh))
        if base.size - sent.size < max(1, self.clear_at_least):
            # Too little is freed. What would be cleared is forgotten: it may be more next time.
            return _sent(base, replace(known, base=base) if more else now)
        return _sent(sent, now if self.mode == "rolling" else replace(now, base=sent))

    def _is_due(self, history: History, base: Mapped, upto: int) -> bool:
        """Whether the prompt is over the trigger; what is cleared for good does not count any more."""
        if not self.tool_uses:
            return history.head.size + base.size > self.trigger
        first = 0 if self.mode == "rolling" else upto
        return sum(len(message.results) for message in base.messages[first:]) > self.tool_uses

    def _cleared(
        self, history: History, first: int, last: tuple[int, int]
    ) -> Iterator[tuple[Message, Message]]:
        """Messages, from one on, whose results or calls are cleared ahead of a place, if that makes them
        shorter."""
        messages = history.messages
        for index in range(first, min(last[0] + 1, len(messages))):
            message = messages[index]
            own = [at for at in self._clearable(messages, index) if (index, at) < last]
            if not own:
                continue
            yield from _if_shorter(
                message, {at: Edit("content", PLACEHOLDER) for at in own}, history
            )
            # The calls of a message are cleared only with all of their results.
            if self.clear_tool_inputs and index and len(own) == len(message.results):
                yield from _without_inputs(messages[index - 1], history)

    def _clearable(self, messages: Sequence[Message], index: int) -> list[int]:
        """The results of a message that are not of a tool whose results stay."""
        results = messages[index].results
        excluded = frozenset(filter(None, self.exclude_tools.split("|")))
        if not excluded or not results:
            return list(results)
        names = _names(messages, index)
        return [at for at in results if names.get(at, "") not in excluded]

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


def _held(memory: object, messages: list[Message]) -> Memory:
    """What was cleared before, as far as it is known to hold for these messages."""
    if not isinstance(memory, Memory):
        return NOTHING
    if memory.before is None:
        return memory
    stands = memory.upto <= len(messages) and messages[memory.upto - 1] is memory.before
    # Where the history is another, what was made is still of use, and all of it is looked at again.
    return memory if stands else Memory(memory.made, memory.base)


def _sent(mapped: Mapped, memory: Memory) -> Outgoing:
    return Outgoing(messages=mapped.sent if mapped.differs else mapped.messages, memory=memory)


def _applied(made: dict[Message, Message], messages: list[Message]) -> list[Message]:
    return [made.get(message, message) for message in messages] if made else messages


def _if_shorter(
    message: Message, edits: dict[int, Edit], history: History
) -> Iterator[tuple[Message, Message]]:
    """A message with its edits, if they make it shorter."""
    made = history.maker.replaced(message, edits, history.call)
    if made.size < message.size:
        yield message, made


def _without_inputs(message: Message, history: History) -> Iterator[tuple[Message, Message]]:
    calls = [at for at, segment in enumerate(message.segments) if segment.kind == "tool_use"]
    return _if_shorter(message, dict.fromkeys(calls, Edit("input", "{}")), history)


def _names(messages: Sequence[Message], index: int) -> dict[int, str]:
    """The tools that the results of a message are of, by their places."""
    called = {
        str(member_of(segment, "id")): segment.name
        for segment in (messages[index - 1].segments if index else ())
        if segment.kind == "tool_use"
    }
    message = messages[index]
    return {
        at: called.get(str(member_of(message.segments[at], "tool_use_id")), "")
        for at in message.results
    }


def _edit(strategy: Clear) -> dict[str, Json]:
    """The API's own edit (context-editing page, 2026-10-08)."""
    trigger: dict[str, Json] = {"type": "input_tokens", "value": strategy.trigger}
    if strategy.tool_uses:
        trigger = {"type": "tool_uses", "value": strategy.tool_uses}
    edit: dict[str, Json] = {
        "type": "clear_tool_uses_20250919",
        "trigger": trigger,
        "keep": {"type": "tool_uses", "value": strategy.keep},
    }
    if strategy.clear_at_least:
        edit["clear_at_least"] = {"type": "input_tokens", "value": strategy.clear_at_least}
    if strategy.exclude_tools:
        edit["exclude_tools"] = [*strategy.exclude_tools.split("|")]
    if strategy.clear_tool_inputs:
        edit["clear_tool_inputs"] = True
    return edit


def _applied_edit(
    strategy: Clear, messages: Sequence[Message], left: Sequence[Message]
) -> dict[str, object] | None:
    """How many calls were cleared, the oldest first: those too whose results are short as they are."""
    is_cleared = [
        own.segments[at].digest != other.segments[at].digest
        for index, (own, other) in enumerate(zip(messages, left, strict=True))
        for at in strategy._clearable(messages, index)
    ]
    if not any(is_cleared):
        return None
    freed = size_of(messages) - size_of(left)
    # Up to the last one that is another.
    count = len(is_cleared) - is_cleared[::-1].index(True)
    kind = _edit(strategy)["type"]
    return {"type": kind, "cleared_tool_uses": count, "cleared_input_tokens": freed}


BETA = "context-management-2025-06-27"


def _recipe(strategy: Clear) -> Recipe:
    return Recipe(
        do="ask the API to clear old tool results (the body stays as it is)",
        code=pasted({"context_management": {"edits": [_edit(strategy)]}}),
        beta=BETA,
        proof="answers name applied_edits with cleared_tool_uses, and prompts stay near the trigger",
    )


STRATEGY = Definition(
    recipe=_recipe,
    id="clear",
    title="replaces old tool results by a placeholder",
    make=Clear,
    law=paid_back,
    server_edit=_edit,
    applied_edit=_applied_edit,
    usual=("", "mode=rolling"),
)
