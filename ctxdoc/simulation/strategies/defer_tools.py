"""Tool definitions that nobody calls are deferred: a search tool stands in their place.

What it does
    The definitions that `tools` names are sent with `defer_loading`: they are no part of the prompt until the
    model searches for them, and a search tool is. They go before the first request, so that nothing is
    rewritten. Which ones an agent never called is known of a log, and not of what comes: the table defers
    those.
Parameters
    tools=              names of the definitions to defer, joined by |
    search_tokens=300   of the search tool's own definition
Rewrites the prefix
    no: the prompt begins otherwise from the first request on
What the model no longer sees
    the deferred definitions, until it searches for them; they are no part of the history that is counted as
    unseen
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.prompt.segments import Segment
from ctxdoc.prompt.settings import iter_tools
from ctxdoc.request.codec import Json
from ctxdoc.simulation.history.edit import with_segment
from ctxdoc.simulation.history.messages import Head, Session
from ctxdoc.simulation.recipe import Recipe, pasted
from ctxdoc.simulation.strategies.base import PAYLOAD, Definition, History, Outgoing

SEARCH: dict[str, Json] = {
    "type": "tool_search_tool_regex_20251119",
    "name": "tool_search_tool_regex",
}


class DeferTools(Struct, frozen=True):
    """Leaves tool definitions out until they are searched for."""

    tools: str = ""
    search_tokens: Annotated[int, PAYLOAD] = 300

    def send(self, history: History, memory: object) -> Outgoing:
        """The history behind a head without the deferred definitions."""
        del memory
        head = history.maker.once(("deferred", history.head), lambda: self._head(history.head))
        return Outgoing(messages=history.messages, head=head)

    def _head(self, head: Head) -> Head | None:
        names = frozenset(filter(None, self.tools.split("|")))
        kept = [
            (segment, tokens)
            for segment, tokens in zip(head.segments, head.tokens, strict=True)
            if not (_is_tool(segment) and segment.name in names)
        ]
        if len(kept) == len(head.segments):
            return None
        left = Head(
            segments=tuple(segment for segment, _ in kept),
            tokens=tuple(tokens for _, tokens in kept),
            size=sum(tokens for _, tokens in kept),
        )
        (segment,) = iter_tools((msgspec.json.encode(SEARCH),))
        last = max((each.rank[1] for each in head.segments if _is_tool(each)), default=-1)
        segment = replace(segment, rank=(segment.rank[0], last + 1, 0))
        return with_segment(left, segment, self.search_tokens)


def _is_tool(segment: Segment) -> bool:
    return segment.kind == "tool" and segment.rendered


def never_called(session: Session) -> list[str]:
    """The names of the definitions that the session sends and no message of it calls."""
    sent = {
        segment.name: None
        for head in dict.fromkeys(call.head for call in session.calls)
        for segment in head.segments
        if _is_tool(segment) and segment.name
    }
    called = {
        segment.name
        for message in session.messages
        for segment in message.segments
        if segment.kind.endswith("tool_use")
    }
    return [name for name in sent if name not in called]


def _recipe(strategy: DeferTools) -> Recipe:
    names = strategy.tools.split("|")
    return Recipe(
        do=f"defer {len(names)} tool definitions that nobody called, and add the search tool",
        code=pasted({"tools": [{**SEARCH}, {"name": names[0], "defer_loading": True}]}),
        caution="the model has to search for what it did not need so far",
        proof="prompts begin with fewer tokens, and answers call the search tool where one is needed",
    )


STRATEGY = Definition(
    id="defer_tools",
    title="definitions that nobody calls are deferred",
    make=DeferTools,
    edits=False,
    withholds=True,
    recipe=_recipe,
    usual=(),
)
