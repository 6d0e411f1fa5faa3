"""The causes, one file each: specific ones first, the last always matches."""

from __future__ import annotations

from ctxdoc.causes.base import Case, Cause, Confidence, Group, Match, Part
from ctxdoc.registry import Registry

CAUSES: Registry[Cause] = Registry(
    "ctxdoc.causes",
    "CAUSE",
    (
        "usage_duplicate_records",
        "breakpoint_invalid_target",
        "breakpoint_over_limit",
        "ttl_order_invalid",
        "bound_thinking_refused",
        "request_failed",
        "first_request",
        "no_breakpoint",
        "below_minimum",
        "concurrent_cold_start",
        "routing_changed",
        "ttl_expired",
        "beta_set_changed",
        "provider_side_miss",
        "breakpoint_missing_on_history",
        "lookback_exceeded",
        "fork_prefix_mismatch",
        "model_changed",
        "server_feature_toggled",
        "tool_choice_changed",
        "thinking_settings_changed",
        "effort_changed",
        "output_format_changed",
        "task_budget_changed",
        "image_changed",
        "tool_order",
        "tool_set_changed",
        "json_key_order",
        "json_value_encoding",
        "text_normalization",
        "tool_call_id_regenerated",
        "tool_result_order",
        "thinking_blocks_dropped",
        "history_compacted",
        "history_window_slid",
        "injected_block_moved",
        "timestamp_in_prefix",
        "request_id_in_prefix",
        "tool_definition_changed",
        "environment_state_in_prefix",
        "memory_or_instructions_in_prefix",
        "system_edited",
        "breakpoint_on_volatile_block",
        "history_rewritten",
        "prefix_changed",
        "usage_double_counted",
        "usage_wrong_rate",
        "none",
        "unexplained",
    ),
)

__all__ = ["CAUSES", "Case", "Cause", "Confidence", "Group", "Match", "Part"]
