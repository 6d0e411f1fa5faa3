"""The bound: what is sent again is written once, nothing expires, breakpoints are free.

What it does
    It knows the rest of the session. No placement is cheaper for the same prompts.
"""

from __future__ import annotations

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    del prompt
    return ()


PLACEMENT = Placement(id="oracle", title="the bound", place=_place, bound=True)
