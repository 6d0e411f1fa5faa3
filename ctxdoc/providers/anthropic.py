"""The cache rules of the Claude API (prompt-caching page, 2026-10-08)."""

from __future__ import annotations

from ctxdoc.providers.rules import Provider

PROVIDER = Provider(
    id="anthropic",
    lookback=20,
    max_breakpoints=4,
    ttl_seconds={"5m": 300, "1h": 3600},
    data="anthropic.toml",
)
