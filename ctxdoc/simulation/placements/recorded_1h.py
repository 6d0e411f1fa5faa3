"""The breakpoints as they were sent, all of them for an hour.

What it does
    Every breakpoint stands where the request had it; only the lifetime of what it writes is another one. Beside
    the log as it was sent, this is what the lifetime alone costs or saves.
"""

from __future__ import annotations

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement
from ctxdoc.simulation.placements.recorded import PLACEMENT as RECORDED
from ctxdoc.simulation.recipe import Recipe, pasted


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    return tuple(Breakpoint(mark.index, "1h") for mark in RECORDED.place(prompt))


RECIPE = Recipe(
    do="leave the breakpoints where they are and let them live for an hour",
    code=pasted({"cache_control": {"type": "ephemeral", "ttl": "1h"}}),
    proof="cache_creation has ephemeral_1h_input_tokens alone",
)
PLACEMENT = Placement(
    recipe=RECIPE,
    id="recorded_1h",
    title="as they were sent, for an hour",
    place=_place,
    as_sent=True,
)
