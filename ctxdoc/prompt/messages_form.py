"""What the form of a Messages API body says, whoever serves it: kinds of blocks that are rendered apart."""

from __future__ import annotations

THINKING_KINDS = frozenset({"thinking", "redacted_thinking"})
"""Blocks of thinking, which cannot carry a breakpoint (prompt-caching page, 2026-10-08)."""
FEATURE_TOOLS = ("web_search_", "web_fetch_")
"""Beginnings of the types of tools that are rendered ahead of the system prompt (prompt-caching page,
2026-10-08)."""
OWN_HOST = "api.anthropic.com"
"""The host that removes the billing line."""
BILLING_LINE = "x-anthropic-billing-header:"
"""Beginning of a first system block that this host removes; others keep it (claude-code
llm-gateway-protocol page, 2026-08-22)."""
