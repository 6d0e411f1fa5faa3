"""One top-level `cache_control`: the API puts a breakpoint on the last block that can carry one.

What it does
    Automatic caching (prompt-caching page, 2026-10-08): nothing is marked in the blocks. Where the end
    of the prompt changes from request to request, nothing is ever read.
"""

from __future__ import annotations

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement, last_block


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    # The API knows nothing of blocks that are sent once.
    index = last_block(prompt, len(prompt.prefix.segments))
    return () if index is None else (Breakpoint(index, "5m"),)


PLACEMENT = Placement(
    id="automatic", title="one top-level cache_control", place=_place, top_level=True
)
