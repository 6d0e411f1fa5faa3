"""Where breakpoints stand, one file each with its page. Imports simulation.history and what lies below."""

from __future__ import annotations

from ctxdoc.registry import Registry
from ctxdoc.simulation.placements.base import Placement

PLACEMENTS: Registry[Placement] = Registry(
    "ctxdoc.simulation.placements",
    "PLACEMENT",
    (
        "recorded",
        "recorded_5m",
        "recorded_1h",
        "none",
        "rolling",
        "rolling_1h",
        "all_1h",
        "spare",
        "automatic",
        "oracle",
    ),
    "placement",
)

__all__ = ["PLACEMENTS", "Placement"]
