"""Rolling breakpoints that all live for an hour.

What it does
    Breakpoints stand at the end of the tools, of the system prompt and of the last message, as `rolling` sets
    them, and each writes for an hour: dearer to write (twice the input price), and still there after a pause
    of up to an hour.
"""

from __future__ import annotations

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement
from ctxdoc.simulation.placements.rolling import PLACEMENT as ROLLING


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    return tuple(Breakpoint(mark.index, "1h") for mark in ROLLING.place(prompt))


PLACEMENT = Placement(id="all_1h", title="rolling, for an hour throughout", place=_place)
