"""No breakpoints: caching is off, everything is paid in full.

What it does
    A point of comparison and not a bound: a strategy that writes much and reads little costs more.
"""

from __future__ import annotations

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.placements.base import Placement


def _place(prompt: Prompt) -> tuple[Breakpoint, ...]:
    del prompt
    return ()


PLACEMENT = Placement(id="none", title="no breakpoints: caching is off", place=_place)
