"""As rolling, with a lifetime of an hour on tools and system prompt.

What it does
    The stable part survives pauses of up to an hour; it is written at twice the input price instead of
    1.25 times.
"""

from __future__ import annotations

from collections.abc import Iterator

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement, last_block, marks_at, stable_ends


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    return marks_at(_places(prompt))


def _places(prompt: Prompt) -> Iterator[tuple[int | None, str]]:
    yield last_block(prompt), "5m"
    for index in stable_ends(prompt):
        yield index, "1h"


PLACEMENT = Placement(
    id="rolling_1h", title="rolling, with 1h on tools and system prompt", place=_place
)
