"""The causes, one file each with its page: specific ones first, the last always matches.

Imports diagnosis and what lies below.
"""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Cause, Group, Match
from ctxdoc.registry import Registry

CAUSES: Registry[Cause] = Registry(
    "ctxdoc.diagnosis.causes",
    "CAUSE",
    (
        "usage_duplicate_records",
        "breakpoint_invalid_target",
        "breakpoint_over_limit",
        "ttl_order_invalid",
        "message_shape_invalid",
        "bound_thinking_refused",
        "request_failed",
        "first_request",
        "no_breakpoint",
        "below_minimum",
        "concurrent_cold_start",
        "routing_changed",
        "ttl_expired",
        "other_model_answered",
        "beta_set_changed",
        "undocumented_setting_changed",
        "provider_side_miss",
        "per_user_prefix",
        "breakpoint_missing_on_history",
        "lookback_exceeded",
        "compaction_state_lost",
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
        "breakpoint_on_volatile_block",
        "system_edited",
        "history_rewritten",
        "prefix_changed",
        "usage_double_counted",
        "usage_wrong_rate",
        "none",
        "unexplained",
    ),
)

_EXPLAINED: dict[str, tuple[Part, ...]] = {
    "usage_duplicate_records": (Part.RECORD,),
    "breakpoint_invalid_target": (Part.REFUSAL,),
    "breakpoint_over_limit": (Part.REFUSAL,),
    "ttl_order_invalid": (Part.REFUSAL,),
    "message_shape_invalid": (Part.REFUSAL,),
    "bound_thinking_refused": (Part.REFUSAL,),
    "request_failed": (Part.REFUSAL,),
    "first_request": (Part.COLD,),
    "no_breakpoint": (Part.NEVER_CACHED, Part.REACH),
    "below_minimum": (Part.NEVER_CACHED,),
    "concurrent_cold_start": (Part.VISIBILITY,),
    "routing_changed": (Part.PLACE,),
    "ttl_expired": (Part.EXPIRY,),
    "other_model_answered": (Part.PROVIDER,),
    "beta_set_changed": (Part.PROVIDER,),
    "undocumented_setting_changed": (Part.PROVIDER,),
    "provider_side_miss": (Part.PROVIDER,),
    "per_user_prefix": (Part.WASTE,),
    "breakpoint_missing_on_history": (Part.REACH, Part.WASTE),
    "lookback_exceeded": (Part.REACH,),
    "compaction_state_lost": (Part.DIVERGENCE, Part.WASTE),
    "breakpoint_on_volatile_block": (Part.DIVERGENCE, Part.WASTE),
    "usage_double_counted": (Part.ACCOUNTING,),
    "usage_wrong_rate": (Part.ACCOUNTING,),
    "none": (Part.NOTHING,),
    "unexplained": (Part.NEVER_CACHED, Part.DIVERGENCE),
}
"""The parts of a loss that a cause can explain, where that is no first difference. They stand here as well, so
that only those causes are loaded that can be one."""


def can_explain(name: str, parts: frozenset[Part]) -> bool:
    """Whether a cause can explain one of these parts, without loading it."""
    return not parts.isdisjoint(_EXPLAINED.get(name, (Part.DIVERGENCE,)))


__all__ = ["CAUSES", "Case", "Cause", "Confidence", "Group", "Match", "Part", "can_explain"]
