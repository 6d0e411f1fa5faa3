"""The cache rules of the Claude API (prompt-caching page, 2026-10-08)."""

from __future__ import annotations

from ctxdoc.providers.rules import Provider

PROVIDER = Provider(
    id="anthropic",
    lookback=20,
    max_breakpoints=4,
    ttl_seconds={"5m": 300, "1h": 3600},
    run_kinds=frozenset({"tool_use", "tool_result"}),
    feature_tools=("web_search_", "web_fetch_"),
    unmarkable=frozenset({"thinking", "redacted_thinking"}),
    host="api.anthropic.com",
    # claude-code llm-gateway-protocol page, 2026-08-22; other hosts keep it.
    billing_line="x-anthropic-billing-header:",
    data="anthropic.toml",
)
