"""The context strategies, one file each with its page. Imports simulation.history and what lies below.

One more is a file with a `STRATEGY`, and its name below; `usual=()` keeps it out of the default table.
"""

from __future__ import annotations

from ctxdoc.registry import Registry
from ctxdoc.simulation.strategies.base import (
    Definition,
    Extra,
    History,
    Measure,
    Outgoing,
    Parameter,
    Spec,
    Strategy,
    as_number,
    made,
)

STRATEGIES: Registry[Definition] = Registry(
    "ctxdoc.simulation.strategies",
    "STRATEGY",
    (
        "keep",
        "trim",
        "window",
        "clear",
        "clear_thinking",
        "compact",
        "offload",
        "drop_images",
        "shrink_images",
        "inject_memory",
        "last_messages",
        "budget_window",
        "when_cold",
        "handoff",
        "keep_alive",
        "defer_tools",
        "truncate",
        "dedupe",
        "reread",
    ),
    "strategy",
)

__all__ = [
    "STRATEGIES",
    "Definition",
    "Extra",
    "History",
    "Measure",
    "Outgoing",
    "Parameter",
    "Spec",
    "Strategy",
    "as_number",
    "made",
]
