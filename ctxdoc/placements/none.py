"""No breakpoints: caching is off, everything is paid in full.

What it does
    A point of comparison and not a bound: a strategy that writes much and reads little costs more.
"""

from __future__ import annotations

from ctxdoc.placements.base import Placement
from ctxdoc.prefix import Mark
from ctxdoc.prompts import Prompt


def _place(prompt: Prompt) -> tuple[Mark, ...]:
    del prompt
    return ()


PLACEMENT = Placement(id="none", title="no breakpoints: caching is off", place=_place)
