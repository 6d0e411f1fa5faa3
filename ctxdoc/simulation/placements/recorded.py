"""The breakpoints as they were sent.

What it does
    Each breakpoint stands where the request had it: on its block of the tools or the system prompt, or
    on its block of the message as counted from the last one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement, last_block, marks_at


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    return marks_at(_places(prompt))


def _places(prompt: Prompt) -> Iterator[tuple[int | None, str]]:
    count = len(prompt.messages)
    for mark in prompt.call.marks:
        if not mark.message:
            segment = prompt.call.head.segments[mark.block]
            found = [i for i, s in enumerate(prompt.head.segments) if s is segment]
            yield (found[0] if found else None), mark.ttl
        elif mark.message <= count:
            index = count - mark.message
            start = prompt.ends[index - 1] if index else len(prompt.head.segments)
            end = prompt.ends[index]
            # A message that a strategy has shortened carries it at its end.
            yield last_block(prompt, min(start + mark.block + 1, end)), mark.ttl


PLACEMENT = Placement(id="recorded", title="as they were sent", place=_place, as_sent=True)
