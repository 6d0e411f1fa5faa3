"""The values of a report and how they are written, one way a file; no command is known here.

Imports pricing, request and registry.
"""

from __future__ import annotations

from ctxdoc.outputs.base import Output, Style, Takes
from ctxdoc.registry import Registry

# What an output takes stands here and not in its file: the help of a command tells it, and must
# not load the drawing library for that.
TAKES = {
    "text": Takes.ALL,
    "json": Takes.ALL,
    "markdown": Takes.ALL,
    "csv": Takes.ROWS,
    "html": Takes.ALL,
    "github": Takes.CHECKS,
    "sarif": Takes.CHECKS,
    "junit": Takes.CHECKS,
}
"""Name → what of a report it writes; the order is the precedence."""

OUTPUTS: Registry[Output] = Registry("ctxdoc.outputs", "OUTPUT", tuple(TAKES), "format")


def names_that_take(*kinds: Takes) -> list[str]:
    """The outputs that write one of these."""
    return [name for name in OUTPUTS.names if TAKES.get(name, Takes.ALL) in kinds]


__all__ = ["OUTPUTS", "TAKES", "Output", "Style", "Takes", "names_that_take"]
