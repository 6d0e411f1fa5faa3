"""The cache rules of the Claude API (prompt-caching page, 2026-10-08)."""

from __future__ import annotations

from ctxdoc.providers.rules import Provider

PROVIDER = Provider(
    id="anthropic",
    # A request may name no model.
    names="claude|^$",
    lookback=20,
    max_breakpoints=4,
    ttl_seconds={"5m": 300, "1h": 3600},
    run_kinds=frozenset({"tool_use", "tool_result"}),
    data="anthropic.toml",
)
