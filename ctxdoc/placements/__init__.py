"""Where breakpoints stand, one file each."""

from __future__ import annotations

from ctxdoc.placements.base import Placement
from ctxdoc.registry import Registry

PLACEMENTS: Registry[Placement] = Registry(
    "ctxdoc.placements",
    "PLACEMENT",
    ("recorded", "none", "rolling", "rolling_1h", "automatic", "oracle"),
    "placement",
)

__all__ = ["PLACEMENTS", "Placement"]
