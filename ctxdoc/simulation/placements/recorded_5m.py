"""The breakpoints as they were sent, all of them for 5 minutes.

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
    return tuple(Breakpoint(mark.index, "5m") for mark in RECORDED.place(prompt))


RECIPE = Recipe(
    do="leave the breakpoints where they are and let them live for 5 minutes",
    code=pasted({"cache_control": {"type": "ephemeral"}}),
    proof="cache_creation has ephemeral_5m_input_tokens alone",
)
PLACEMENT = Placement(
    recipe=RECIPE,
    id="recorded_5m",
    title="as they were sent, for 5 minutes",
    place=_place,
    as_sent=True,
)
