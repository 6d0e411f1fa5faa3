"""Breakpoints at the end of the tools, of the system prompt and of the last message, for 5 minutes.

What it does
    What the prompt-caching page recommends for growing conversations (2026-10-08): the last message's
    breakpoint moves with each request, and reads what the one before it wrote.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement, last_block, marks_at, stable_ends
from ctxdoc.simulation.recipe import Recipe, pasted


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    return marks_at(_places(prompt))


def _places(prompt: Prompt) -> Iterator[tuple[int | None, str]]:
    yield last_block(prompt), "5m"
    for index in stable_ends(prompt):
        yield index, "5m"


RECIPE = Recipe(
    do="mark the end of tools, of the system prompt and of the last message, for 5 minutes",
    code=pasted({"cache_control": {"type": "ephemeral"}}),
    proof="each request reads what the one before it read and wrote",
)
PLACEMENT = Placement(
    recipe=RECIPE,
    id="rolling",
    title="end of tools, of system and of the last message",
    place=_place,
)
