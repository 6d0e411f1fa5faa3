"""Breakpoints at the end of the fixed part and of the last message, and spare ones 20 and 40 blocks back.

What it does
    A breakpoint looks back over at most 20 blocks. A turn that adds more (many parallel calls, long lists of
    blocks) leaves the entry of the request before out of its reach; the spare ones reach it, for nothing
    where it is in reach anyway. Four are allowed: the tools have none of their own where there is a system
    prompt.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement, last_block, marks_at, stable_ends

APART = 20
"""Blocks that a breakpoint looks back over (prompt-caching page, 2026-10-08)."""
SPARE = 2


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    return marks_at(_places(prompt))


def _places(prompt: Prompt) -> Iterator[tuple[int | None, str]]:
    last = last_block(prompt)
    yield last, "5m"
    head = len(prompt.head.segments)
    for number in range(1, SPARE + 1):
        ahead = None if last is None else last_block(prompt, last + 1 - number * APART)
        if ahead is not None and ahead >= head:
            yield ahead, "5m"
    ends = list(stable_ends(prompt))
    if ends:
        yield ends[-1], "5m"


PLACEMENT = Placement(
    id="spare", title="rolling, with spare ones 20 and 40 blocks back", place=_place
)
