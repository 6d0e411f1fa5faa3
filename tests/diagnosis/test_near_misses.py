"""For every cause, the smallest change to a recorded pair that makes it another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ctxdoc.diagnosis.attribution import case_of_pair
from ctxdoc.diagnosis.causes import CAUSES, Case, Confidence, Part
from ctxdoc.diagnosis.diagnose import Diagnosis, diagnose_pair
from ctxdoc.diagnosis.quotes import quoted_history
from ctxdoc.prompt.message_shape import shape_fault
from ctxdoc.reading.load import read_request

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
HEADINGS = ("What it is", "Why it breaks the prefix", "Example", "What to do")
FORMAT = {"type": "json_schema", "schema": {"type": "object", "properties": {}}}

Record = dict[str, Any]
Change = Callable[[Record, Record], None]


class NearMiss(NamedTuple):
    """A change after which the pair is no case of `cause` any more."""

    cause: str
    case: str
    right: tuple[str, ...]
    """What it is instead; several where the vocabulary leaves it open."""
    change: Change


BY_BODIES = {cause.id for cause in CAUSES if not cause.by_counters}
"""What counters alone show is tested in test_counted."""
NEAR_MISSES: list[NearMiss] = []


def near_miss(cause: str, case: str, *right: str) -> Callable[[Change], Change]:
    def note(change: Change) -> Change:
        assert set(right) <= set(CAUSES.names) - {cause}
        NEAR_MISSES.append(NearMiss(cause, case, right, change))
        return change

    return note


def load(case: str) -> tuple[Record, Record]:
    one, two = (json.loads((CASES / case / f"{name}.json").read_text("utf-8")) for name in "ab")
    return one, two


def diagnose(folder: Path, *pair: Record) -> Diagnosis:
    requests = []
    for name, record in zip("ab", pair, strict=True):
        path = folder / f"{name}.json"
        path.write_text(json.dumps(record), encoding="utf-8")
        requests.append(read_request(str(path))[0])
    return diagnose_pair(*requests)


def count(
    record: Record, *, read: int = 0, write: int = 0, rest: int = 3, hour: bool = False
) -> None:
    """Sets the input counters of a response; its output stays."""
    record["response"]["usage"] |= {
        "input_tokens": rest,
        "cache_creation_input_tokens": write,
        "cache_read_input_tokens": read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": 0 if hour else write,
            "ephemeral_1h_input_tokens": write if hour else 0,
        },
    }


def simulate(*records: Record) -> None:
    """Drops the responses, so that the cache model makes the counters."""
    for record in records:
        del record["response"]


def system(record: Record, index: int = 0) -> Record:
    found: Record = record["request"]["system"][index]
    return found


def block(record: Record, message: int, index: int = 0) -> Record:
    found: Record = record["request"]["messages"][message]["content"][index]
    return found


def say(role: str, text: str) -> Record:
    return {"role": role, "content": [{"type": "text", "text": text}]}


MARK = {"type": "ephemeral"}

# Prompt content changed


@near_miss("timestamp_in_prefix", "clock-at-head-of-system", "request_id_in_prefix")
def request_id_instead_of_a_clock(a: Record, b: Record) -> None:
    for record, value in ((a, "7f3a91c2"), (b, "e04b6d58")):
        rest = system(record)["text"].partition("\n")[2]
        system(record)["text"] = f"Request id: {value}\n{rest}"
    simulate(a, b)


@near_miss("request_id_in_prefix", "message-id-at-end-of-system", "timestamp_in_prefix")
def same_message_id_with_another_time(_: Record, b: Record) -> None:
    system(b)["text"] = system(b)["text"].replace('"message_id":"684"', '"message_id":"682"')


@near_miss("environment_state_in_prefix", "git-status-in-system", "system_edited")
def rule_far_behind_the_git_status_reworded(a: Record, b: Record) -> None:
    text = system(a, 1)["text"]
    system(b, 1)["text"] = text.replace("Rule 9: ", "Rule 9: Please ")  # one token more


@near_miss(
    "memory_or_instructions_in_prefix",
    "recalled-memories-before-marker",
    "environment_state_in_prefix",
)
def open_file_instead_of_recalled_notes(a: Record, b: Record) -> None:
    for record, name in ((a, "src/parser.py"), (b, "docs/index.md")):
        rules = system(record)["text"].partition("\n\n")[2]
        system(record)["text"] = f"# Workspace\nOpen file: {name}\n\n{rules}"
    simulate(a, b)


@near_miss(
    "tool_order", "server-reconnect-moves-tools", "tool_definition_changed", "tool_set_changed"
)
def tool_in_another_order_with_another_description(_: Record, b: Record) -> None:
    """No word of the vocabulary is for both: only tool_order is wrong, its tools are unchanged."""
    tool = b["request"]["tools"][2]
    tool["description"] = tool["description"].replace("Open", "Show", 1)


@near_miss("tool_order", "server-reconnect-moves-tools", "tool_definition_changed")
def tools_in_order_with_another_description(a: Record, b: Record) -> None:
    tools = b["request"]["tools"] = deepcopy(a["request"]["tools"])
    tools[2]["description"] = tools[2]["description"].replace("Read", "Show", 1)


@near_miss("tool_set_changed", "server-dropout-removes-tools", "tool_order")
def missing_tools_at_the_end(a: Record, b: Record) -> None:
    b["request"]["tools"] += a["request"]["tools"][3:5]
    simulate(b)


@near_miss("tool_definition_changed", "random-name-in-tool-description", "tool_set_changed")
def tool_of_another_name(a: Record, b: Record) -> None:
    b["request"]["tools"][2] = a["request"]["tools"][2] | {"name": "read_page"}


@near_miss("tool_definition_changed", "random-name-in-tool-description", "json_key_order")
def schema_members_in_another_order(a: Record, b: Record) -> None:
    tool = b["request"]["tools"][2] = deepcopy(a["request"]["tools"][2])
    tool["input_schema"] = dict(reversed(tool["input_schema"].items()))


@near_miss("json_key_order", "tool-call-arguments-sorted-on-replay", "history_rewritten")
def sorted_arguments_with_another_value(_: Record, b: Record) -> None:
    block(b, 1, 1)["input"]["weight_kg"] = 3


@near_miss("json_value_encoding", "number-one-point-zero-becomes-one", "history_rewritten")
def another_number(_: Record, b: Record) -> None:
    block(b, 1)["input"]["value"] = 2


@near_miss("text_normalization", "assistant-text-trimmed-on-replay", "history_rewritten")
def trimmed_text_with_another_word(_: Record, b: Record) -> None:
    block(b, 1)["text"] = block(b, 1)["text"].replace("two", "six", 1)


@near_miss("history_rewritten", "old-results-cleared-each-request", "text_normalization")
def result_with_a_line_end_more_instead_of_cleared(a: Record, b: Record) -> None:
    block(b, 2)["content"] = block(a, 2)["content"] + "\n"
    simulate(b)


@near_miss("history_window_slid", "fixed-window-slides-by-one", "history_compacted")
def dropped_messages_summed_up(_: Record, b: Record) -> None:
    """Four old messages give way to a summary and its answer."""
    b["request"]["messages"][:2] = [
        say("user", "Summary of the conversation so far: two questions were answered."),
        say("assistant", "Understood, I continue from the summary."),
    ]
    simulate(b)


@near_miss("history_compacted", "compaction-replaces-history", "history_window_slid")
def oldest_messages_dropped_without_a_summary(a: Record, b: Record) -> None:
    kept = deepcopy(a["request"]["messages"][2:])
    del kept[-1]["content"][0]["cache_control"]
    last = say("user", "Go on.")
    last["content"][0]["cache_control"] = MARK
    b["request"]["messages"] = [*kept, say("assistant", "The room is done."), last]
    simulate(b)


@near_miss(
    "injected_block_moved", "skills-reminder-moves-on-resume", "memory_or_instructions_in_prefix"
)
def skills_list_in_place_with_one_skill_more(a: Record, b: Record) -> None:
    reminder = deepcopy(block(a, 0))
    reminder["text"] = reminder["text"].replace("may use: ", "may use: sort-mail, ")
    b["request"]["messages"][0]["content"].insert(0, reminder)
    del b["request"]["messages"][-1]["content"][0]
    count(b, read=2149, write=337)  # 334 before, and about 3 tokens for the new name


@near_miss("tool_call_id_regenerated", "tool-call-ids-made-anew", "history_rewritten")
def new_id_for_another_call(_: Record, b: Record) -> None:
    block(b, 1, 1)["input"]["item_number"] = "A16"


@near_miss("tool_result_order", "parallel-results-in-other-order", "tool_call_id_regenerated")
def results_in_order_with_new_ids(a: Record, b: Record) -> None:
    """Both calls and results get ids of the same length; the system entry is read as before."""
    b["request"]["messages"][2]["content"].reverse()
    text = json.dumps(b["request"])
    b["request"] = json.loads(text.replace("toolu_p1", "toolu_q7").replace("toolu_p2", "toolu_q8"))
    assert block(a, 2)["content"] == block(b, 2)["content"]


@near_miss("thinking_blocks_dropped", "client-drops-thinking-of-last-turn", "history_rewritten")
def thinking_kept_and_the_text_behind_it_edited(a: Record, b: Record) -> None:
    b["request"]["messages"][1]["content"].insert(0, block(a, 1))
    block(b, 1, 1)["text"] = "I have a look."
    simulate(b)


@near_miss("image_changed", "image-replaced-by-note", "history_rewritten")
def same_image_with_another_question(a: Record, b: Record) -> None:
    b["request"]["messages"][0]["content"][0] = block(a, 0)
    block(b, 0, 1)["text"] = "What does the plate say?"
    simulate(b)


def reword_system(_: Record, b: Record) -> None:
    system(b)["text"] = system(b)["text"].replace("Rule 1: Merge the", "Rule 1: Weld the")
    simulate(b)


def replace_half_of_the_system(_: Record, b: Record) -> None:
    """Of the lines and the characters 40 % stay: less than an edit leaves, more than another agent's
    prompt shares."""
    lines = system(b)["text"].split("\n")
    kept = round(0.4 * len(lines))
    system(b)["text"] = "\n".join([*lines[:kept], *(line[::-1] for line in lines[kept:])])
    simulate(b)


@near_miss("system_edited", "marker-moved-forward", "fork_prefix_mismatch")
def another_system_prompt(_: Record, b: Record) -> None:
    system(b)["text"] = "\n".join(line[::-1] for line in system(b)["text"].split("\n"))
    simulate(b)


@near_miss(
    "system_edited", "marker-moved-forward", "unexplained", "first_request", "per_user_prefix"
)
def the_same_edit_ahead_of_another_conversation(a: Record, b: Record) -> None:
    reword_system(a, b)
    b["request"]["messages"] = [say("user", "Which of the parcels came first?" * 9)]
    block(b, 0)["cache_control"] = MARK


@near_miss("system_edited", "marker-moved-forward", "json_key_order")
def shuffled_names_in_the_system_prompt(a: Record, b: Record) -> None:
    for record, names in ((a, "draw, sing, dance"), (b, "dance, draw, sing")):
        system(record)["text"] += f"\nAvailable tools: {names}."
    simulate(a, b)


@near_miss("system_edited", "marker-moved-forward", "injected_block_moved")
def wrapped_block_in_the_system_prompt(_: Record, b: Record) -> None:
    b["request"]["system"].append(say("", "<reminder>Two are idle.</reminder>")["content"][0])
    simulate(b)


@near_miss("system_edited", "marker-moved-forward", "request_id_in_prefix")
def turns_counted_in_the_system_prompt(a: Record, b: Record) -> None:
    for record, turn in ((a, 12), (b, 13)):
        system(record)["text"] += f"\nThis is turn {turn}."
    simulate(a, b)


@near_miss("injected_block_moved", "reminder-hoisted-with-its-marker", "system_edited")
def plain_block_in_the_system_prompt(_: Record, b: Record) -> None:
    system(b, 1)["text"] = "Ask before paying more than 50."


@near_miss(
    "injected_block_moved", "reminder-hoisted-with-its-marker", "memory_or_instructions_in_prefix"
)
def recalled_notes_in_the_system_prompt(_: Record, b: Record) -> None:
    system(b, 1)["text"] = "# Recalled notes\n- pays late"


@near_miss("unexplained", "marker-moved-forward", "system_edited")
def reworded_rule_instead_of_half_of_the_prompt(a: Record, b: Record) -> None:
    reword_system(a, b)


@near_miss("unexplained", "marker-moved-forward", "text_normalization")
def line_end_more_instead_of_another_wording(_: Record, b: Record) -> None:
    system(b)["text"] += "\n"
    simulate(b)


# A request setting changed


@near_miss("thinking_settings_changed", "thinking-budget-per-request", "none")
def disabled_spelled_out(a: Record, b: Record) -> None:
    del a["request"]["thinking"]
    b["request"]["thinking"] = {"type": "disabled"}
    count(b, read=2477, write=37)  # 1802 + 712 = 2514 = 2477 of a + 37


@near_miss("effort_changed", "effort-lowered-mid-session", "none")
def default_high_effort_spelled_out(a: Record, b: Record) -> None:
    a["request"]["output_config"]["effort"] = "high"
    del b["request"]["output_config"]
    count(b, read=2438, write=29)  # 1774 + 693 = 2467 = 2438 of a + 29


@near_miss("effort_changed", "effort-lowered-mid-session", "none")
def default_medium_effort_of_opus_5_5_spelled_out(a: Record, b: Record) -> None:
    for record in (a, b):
        record["request"]["model"] = "claude-opus-5-5"
    del b["request"]["output_config"]
    simulate(a, b)


@near_miss("tool_choice_changed", "forced-tool-for-final-answer", "none")
def default_tool_choice_left_out(_: Record, b: Record) -> None:
    del b["request"]["tool_choice"]
    count(b, read=2736, write=33)  # 2022 + 747 = 2769 = 2736 of a + 33


@near_miss("server_feature_toggled", "web-search-switched-on", "tool_set_changed")
def own_tool_instead_of_web_search(_: Record, b: Record) -> None:
    b["request"]["tools"][-1] = {"name": "look_up", "input_schema": {"type": "object"}}
    simulate(b)


@near_miss("server_feature_toggled", "fast-mode-switched-on", "none")
def default_speed_spelled_out(_: Record, b: Record) -> None:
    del b["headers"]
    b["request"]["speed"] = "standard"
    count(b, read=3319, write=30)  # 1440 + 1909 = 3349 = 3319 of a + 30


@near_miss("model_changed", "fallback-to-other-model", "none")
def same_model(a: Record, b: Record) -> None:
    b["request"]["model"] = b["response"]["model"] = a["request"]["model"]
    count(b, read=2441, write=27)  # 2468 = 2441 of a + 27


def ask_for_json(_: Record, b: Record) -> None:
    b["request"]["output_config"] = {"effort": "medium", "format": FORMAT}
    simulate(b)


@near_miss("output_format_changed", "effort-lowered-mid-session", "effort_changed")
def same_format_with_another_effort(a: Record, b: Record) -> None:
    for record in (a, b):
        record["request"]["output_config"]["format"] = FORMAT
    simulate(a, b)


@near_miss("task_budget_changed", "budget-counted-down-by-the-client", "none")
def same_task_budget(a: Record, b: Record) -> None:
    b["request"]["output_config"] = a["request"]["output_config"]
    count(b, read=2433, write=28)  # 1776 + 685 = 2461 = 2433 of a + 28


def other_betas(a: Record, b: Record) -> None:
    """The recorded miss, and a feature that came with it."""
    a["headers"] = {"anthropic-beta": "one-2026-01-01"}
    b["headers"] = {"anthropic-beta": "two-2026-01-01, one-2026-01-01"}


@near_miss("beta_set_changed", "miss-with-identical-prefix", "provider_side_miss")
def same_betas_in_another_order(a: Record, b: Record) -> None:
    a["headers"] = {"anthropic-beta": "one-2026-01-01,two-2026-01-01"}
    b["headers"] = {"anthropic-beta": "two-2026-01-01, one-2026-01-01"}


@near_miss("beta_set_changed", "miss-with-identical-prefix", "provider_side_miss")
def betas_of_one_request_unknown(_: Record, b: Record) -> None:
    b["headers"] = {"anthropic-beta": "two-2026-01-01"}


@near_miss("beta_set_changed", "miss-with-identical-prefix", "none")
def other_betas_and_all_is_read(a: Record, b: Record) -> None:
    other_betas(a, b)
    whole = a["response"]["usage"]
    count(b, read=whole["cache_read_input_tokens"] + whole["cache_creation_input_tokens"])


# Markers and limits


@near_miss("no_breakpoint", "markers-lost-on-the-way", "none")
def marker_at_the_top_level(a: Record, b: Record) -> None:
    for record in (a, b):
        record["request"]["cache_control"] = MARK
    count(a, write=2503)  # 2506 = 2503 + 3
    count(b, read=2503, write=30)  # 2536 = 2503 of a + 30 + 3


@near_miss("no_breakpoint", "markers-lost-on-the-way", "first_request")
def marker_in_the_second_request_only(_: Record, b: Record) -> None:
    b["request"]["cache_control"] = MARK
    count(b, write=2533)  # 2536 = 2533 + 3


@near_miss("breakpoint_on_volatile_block", "row-data-inside-marked-block", "none")
def row_behind_the_marked_block(a: Record, b: Record) -> None:
    for record in (a, b):
        head, _, tail = block(record, 0)["text"].partition("\nRow: ")
        row, _, tail = tail.partition("\n")
        block(record, 0)["text"] = head + tail
        record["request"]["messages"][0]["content"].append({"type": "text", "text": row})
    simulate(a, b)


@near_miss("breakpoint_missing_on_history", "history-without-marker", "none")
def marker_on_the_newest_result(a: Record, b: Record) -> None:
    for record in (a, b):
        block(record, -1)["cache_control"] = MARK
    count(a, write=2633)  # 1943 + 693 = 2636 = 2633 + 3
    count(b, read=2633, write=674)  # 1943 + 1367 = 3310 = 2633 of a + 674 + 3


@near_miss("breakpoint_over_limit", "fifth-marker-added-by-proxy", "none")
def four_markers(_: Record, b: Record) -> None:
    del block(b, 0)["cache_control"]
    simulate(b)


@near_miss("ttl_order_invalid", "one-hour-marker-after-five-minute-one", "none")
def one_hour_marker_ahead_of_the_others(_: Record, b: Record) -> None:
    b["request"]["tools"][-1]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    system(b)["cache_control"] = MARK
    simulate(b)


@near_miss("breakpoint_invalid_target", "marker-lands-on-thinking-block", "none")
def marker_on_the_text_behind_the_thinking(_: Record, b: Record) -> None:
    block(b, 1, 1)["cache_control"] = block(b, 1).pop("cache_control")
    simulate(b)


def keep_documents(b: Record, number: int) -> None:
    content = b["request"]["messages"][-1]["content"]
    del content[: len(content) - number]
    simulate(b)


@near_miss("lookback_exceeded", "twenty-four-blocks-in-one-turn", "none")
def eighteen_documents(_: Record, b: Record) -> None:
    """Marker is number 1, 17 more documents to 18, the answer 19, the entry 20: still in reach."""
    keep_documents(b, 18)


@near_miss("request_failed", "markers-lost-on-the-way", "no_breakpoint")
def an_answer_in_place_of_an_error(_: Record, b: Record) -> None:
    """Status 200 with counters is no failure, whatever they say."""
    b["status"] = 200


@near_miss("bound_thinking_refused", "bound-thinking-behind-new-instructions", "request_failed")
def refused_for_another_fault_of_the_signature(_: Record, b: Record) -> None:
    b["response"]["error"]["message"] = (
        "messages.1.content.0: Invalid `signature` in `thinking` block"
    )


@near_miss(
    "bound_thinking_refused",
    "bound-thinking-behind-new-instructions",
    "environment_state_in_prefix",
    "memory_or_instructions_in_prefix",
    "system_edited",
)
def answered_instead_of_refused(_: Record, b: Record) -> None:
    simulate(b)


@near_miss("below_minimum", "short-system-block", "none")
def twice_the_text_on_a_model_with_a_minimum_of_512(a: Record, b: Record) -> None:
    """470 tokens are too few even for that model; 3,000 characters make more than 512."""
    for record in (a, b):
        record["request"]["model"] = "claude-opus-5"
        system(record)["text"] *= 2
    simulate(a, b)


# Time, place, other call


@near_miss("ttl_expired", "seven-minute-pause", "none")
def one_second_before_the_end(_: Record, b: Record) -> None:
    b["timestamp"] = "2026-09-14T09:04:59.000Z"
    count(b, read=2493, write=30)  # 2523 = 2493 of a + 30


@near_miss("ttl_expired", "seven-minute-pause", "provider_side_miss")
def nothing_read_one_second_before_the_end(_: Record, b: Record) -> None:
    b["timestamp"] = "2026-09-14T09:04:59.000Z"


@near_miss("ttl_expired", "seven-minute-pause", "none")
def seven_minutes_of_an_hour(a: Record, b: Record) -> None:
    for record in (a, b):
        system(record)["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
        block(record, -1)["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    count(a, write=2493, hour=True)
    count(b, read=2493, write=30, hour=True)  # 2523 = 2493 of a + 30


@near_miss("concurrent_cold_start", "fan-out-on-cold-cache", "none")
def second_call_after_the_first_response_began(_: Record, b: Record) -> None:
    b["timestamp"] = "2026-09-14T09:00:06.000Z"
    count(b, read=2264, rest=18)  # the 2264 that it wrote before


@near_miss("fork_prefix_mismatch", "compaction-call-without-tools", "tool_set_changed")
def side_call_with_one_tool_less(a: Record, b: Record) -> None:
    b["request"]["tools"] = a["request"]["tools"][:-1]
    simulate(b)


@near_miss("routing_changed", "router-picks-other-provider", "provider_side_miss")
def nothing_read_at_the_same_place(a: Record, b: Record) -> None:
    b["headers"] = a["headers"]


@near_miss("provider_side_miss", "miss-with-identical-prefix", "routing_changed")
def another_account(a: Record, b: Record) -> None:
    a["headers"], b["headers"] = {"x-account": "one"}, {"x-account": "two"}
    count(b, write=2435)  # 1500 + 935: no entry of the first account can be read


# Counting and prices; nothing wrong


@near_miss("usage_double_counted", "input-tokens-include-cached", "none")
def input_tokens_without_the_cached(a: Record, b: Record) -> None:
    count(a, write=2091)  # 2094 - 2091 = 3
    count(b, read=2091, write=26)  # 2120 - 2091 - 26 = 3


@near_miss("usage_duplicate_records", "one-response-in-two-records", "none")
def another_response_id(_: Record, b: Record) -> None:
    b["response"]["id"] = "msg_other0002"
    count(b, read=1849)  # the same prompt again: 1849 + 3


@near_miss("usage_wrong_rate", "one-hour-writes-at-five-minute-rate", "none")
def one_hour_writes_at_twice_the_input_price(a: Record, b: Record) -> None:
    """In millionths of a dollar: input 3, one-hour write 6, read 0.3, output 15."""
    a["cost_usd"] = 0.021777  # 3 * 3 + 3278 * 6 + 140 * 15 = 9 + 19668 + 2100
    b["cost_usd"] = 0.005486  # 3 * 3 + 29 * 6 + 3278 * 0.3 + 288 * 15 = 9 + 174 + 983.4 + 4320


@near_miss("first_request", "first-request-after-title-call", "provider_side_miss")
def same_prompt_a_minute_earlier(a: Record, b: Record) -> None:
    a["request"], a["response"] = b["request"], b["response"] | {"id": "msg_earlier"}
    b["timestamp"] = "2026-09-14T09:01:00.000Z"


@near_miss("none", "nineteen-positions-back", "lookback_exceeded")
def one_block_more(_: Record, b: Record) -> None:
    """The entry is number 21 from the marker."""
    b["request"]["messages"][-1]["content"].insert(0, {"type": "text", "text": "Here they are."})
    simulate(b)


@near_miss("none", "deferred-tool-text-changed", "tool_definition_changed")
def changed_tool_not_deferred(a: Record, b: Record) -> None:
    for record in (a, b):
        del record["request"]["tools"][6]["defer_loading"]
    simulate(a, b)


@near_miss("undocumented_setting_changed", "miss-with-identical-prefix", "provider_side_miss")
def one_place_of_inference(a: Record, b: Record) -> None:
    a["request"]["inference_geo"] = b["request"]["inference_geo"] = "us"


@near_miss("other_model_answered", "miss-with-identical-prefix", "provider_side_miss")
def one_model_answers_by_two_names(a: Record, b: Record) -> None:
    model = a["request"]["model"].removesuffix("-20250929")
    a["response"]["model"], b["response"]["model"] = model, f"{model}-20250929"


@near_miss("per_user_prefix", "marker-moved-forward", "none")
def users_of_one_prompt(a: Record, b: Record) -> None:
    two_users(a, b)
    b["request"]["system"] = a["request"]["system"]


@near_miss(
    "compaction_state_lost",
    "server-writes-a-compaction-block",
    "none",
    "breakpoint_missing_on_history",
)
def the_block_is_given_back(a: Record, b: Record) -> None:
    goes_on_behind_compaction(a, b, b["response"]["content"])


@near_miss("message_shape_invalid", "tool-call-ids-made-anew", "tool_call_id_regenerated")
def refused_shape_that_was_answered(_: Record, b: Record) -> None:
    assert b["response"]["usage"]


def other_place_of_inference(_: Record, b: Record) -> None:
    b["request"]["inference_geo"] = "us"


def another_model_answers(_: Record, b: Record) -> None:
    b["response"]["model"] = "claude-opus-4-8"


def two_users(a: Record, b: Record) -> None:
    """The first requests of two users whose names stand ahead of what both share."""
    b["request"] = deepcopy(a["request"])
    for record, name in ((a, "Ann"), (b, "Bob")):
        record["request"]["metadata"] = {"user_id": name}
        system = record["request"]["system"]
        system[0]["text"] = f"You help {name}. {system[0]['text']}"
        system[-1]["cache_control"] = {"type": "ephemeral"}
        record["request"]["messages"] = [{"role": "user", "content": f"I am {name}."}]
    simulate(a, b)


def goes_on_behind_compaction(a: Record, b: Record, content: list[Any]) -> None:
    """The request after the one whose answer begins with a compaction block."""
    a.clear()
    a.update(deepcopy(b))
    said = {"role": "assistant", "content": content}
    asked = {"role": "user", "content": [{"type": "text", "text": "And then?"}]}
    b["request"]["messages"] += [said, asked]
    b["timestamp"] = "2026-10-19T09:01:30.000Z"
    simulate(b)


def only_the_text_is_kept(a: Record, b: Record) -> None:
    text = [block for block in b["response"]["content"] if block["type"] == "text"]
    goes_on_behind_compaction(a, b, text)


def a_result_without_its_call(_: Record, b: Record) -> None:
    messages = b["request"]["messages"]
    first = next(i for i, m in enumerate(messages) if m["role"] == "assistant")
    del messages[first]
    b["response"] = None


def overloaded(_: Record, b: Record) -> None:
    b["status"], b["response"] = 529, None


def as_recorded(_: Record, b: Record) -> None:
    assert b


BUILT: dict[str, tuple[str, Change]] = {
    "undocumented_setting_changed": ("miss-with-identical-prefix", other_place_of_inference),
    "other_model_answered": ("miss-with-identical-prefix", another_model_answers),
    "per_user_prefix": ("marker-moved-forward", two_users),
    "compaction_state_lost": ("server-writes-a-compaction-block", only_the_text_is_kept),
    "message_shape_invalid": ("tool-call-ids-made-anew", a_result_without_its_call),
    "beta_set_changed": ("miss-with-identical-prefix", other_betas),
    "bound_thinking_refused": ("bound-thinking-behind-new-instructions", as_recorded),
    "system_edited": ("marker-moved-forward", reword_system),
    "request_failed": ("markers-lost-on-the-way", overloaded),
    "output_format_changed": ("effort-lowered-mid-session", ask_for_json),
    "unexplained": ("marker-moved-forward", replace_half_of_the_system),
}
"""Causes without a recorded case of their own: no report showed one, or its answer leaves another word
open, so a pair is changed."""


@pytest.mark.parametrize("miss", NEAR_MISSES, ids=lambda m: f"{m.cause}-{m.change.__name__}")
def test_near_miss_has_another_cause(miss: NearMiss, tmp_path: Path) -> None:
    a, b = load(miss.case)
    miss.change(a, b)
    assert diagnose(tmp_path, a, b).finding.cause.id in miss.right


@pytest.mark.parametrize("cause", BUILT)
def test_cause_without_a_recorded_case_is_found_in_a_built_pair(cause: str, tmp_path: Path) -> None:
    case, change = BUILT[cause]
    a, b = load(case)
    change(a, b)
    assert diagnose(tmp_path, a, b).finding.cause.id == cause


def test_nineteen_documents_are_out_of_reach(tmp_path: Path) -> None:
    """The entry is number 21 from the marker, and 20 are looked at."""
    a, b = load("twenty-four-blocks-in-one-turn")
    keep_documents(b, 19)
    assert diagnose(tmp_path, a, b).finding.cause.id == "lookback_exceeded"


@pytest.mark.parametrize(
    ("case", "survives"),
    [
        ("skills-reminder-moves-on-resume", 2149),
        ("old-results-cleared-each-request", 1593),
        ("compaction-replaces-history", 1973),
        ("client-drops-thinking-of-last-turn", 2128),
    ],
)
def test_simulated_read_is_the_recorded_one_within_three_percent(
    case: str, survives: int, tmp_path: Path
) -> None:
    """The earlier counters calibrate the later sizes; `survives` is expect.json's."""
    a, b = load(case)
    simulate(b)
    assert diagnose(tmp_path, a, b).survives == pytest.approx(survives, rel=0.03)


def the_case(folder: Path, *pair: Record) -> Case:
    return diagnose(folder, *pair).case


def test_a_refusal_of_bound_thinking_has_the_whole_message_and_the_place(tmp_path: Path) -> None:
    """`first_difference` of expect.json: byte 3,656 of the first system block."""
    a, b = load("bound-thinking-behind-new-instructions")
    match = diagnose(tmp_path, a, b).finding.match
    assert b["response"]["error"]["message"] in match.explanation
    assert "$.system[0].text, byte 3,656" in match.explanation
    assert match.confidence is Confidence.CERTAIN


def test_another_set_of_betas_is_possible_and_named(tmp_path: Path) -> None:
    a, b = load("miss-with-identical-prefix")
    other_betas(a, b)
    match = diagnose(tmp_path, a, b).finding.match
    assert match.confidence is Confidence.POSSIBLE
    assert "two-2026-01-01 came" in match.explanation


def test_betas_in_a_body_count_like_those_of_the_header(tmp_path: Path) -> None:
    a, b = load("miss-with-identical-prefix")
    a["request"]["anthropic_beta"] = ["one-2026-01-01"]
    b["request"]["anthropic_beta"] = ["two-2026-01-01"]
    explanation = diagnose(tmp_path, a, b).finding.match.explanation
    assert "two-2026-01-01 came and one-2026-01-01 went" in explanation


@pytest.mark.parametrize(
    ("added", "words"),
    [("\nBe brief.", "gained \x02Be brief.\x03"), (None, "lost")],
)
def test_an_edit_says_what_came_or_went(added: str | None, words: str, tmp_path: Path) -> None:
    a, b = load("marker-moved-forward")
    text = system(b)["text"]
    system(b)["text"] = text + added if added else text[:-200]
    simulate(b)
    found = diagnose(tmp_path, a, b).finding
    assert found.cause.id == "system_edited"
    assert words in found.match.explanation


def test_a_reminder_lifted_out_of_the_messages_stands_in_the_system_prompt(tmp_path: Path) -> None:
    """Its text needs no wrapping where the messages hold it too."""
    a, b = load("reminder-hoisted-with-its-marker")
    system(b, 1)["text"] = "Ask before paying more than 50."
    block(a, 0)["text"] += " Ask before paying more than 50."
    block(b, 0)["text"] = block(a, 0)["text"]
    simulate(a, b)
    found = diagnose(tmp_path, a, b).finding
    assert found.cause.id == "injected_block_moved"
    assert "stands in the system prompt now" in found.match.explanation


WORDS = "The parcel of the north gate came at noon and was weighed twice. "


def quoting(folder: Path, *texts: str, quote: str) -> int | None:
    """What `quoted_history` says of a call whose one message holds a text."""
    a = {"model": "claude-sonnet-5", "messages": [say("user", text) for text in texts]}
    b = {"model": "claude-sonnet-5", "system": "Name it.", "messages": [say("user", quote)]}
    return quoted_history(the_case(folder, {"request": a}, {"request": b}))


LEAD = "Give this conversation a title of at most six words, in its own language. " * 8


def test_a_call_quotes_three_whole_messages_and_not_two(tmp_path: Path) -> None:
    said = [f"{number}: {WORDS}" for number in range(3)]
    assert quoting(tmp_path, *said, quote=LEAD + "\n".join(said)) == 3
    assert quoting(tmp_path, *said, quote=LEAD + "\n".join(said[:2])) is None


def test_a_call_quotes_five_hundred_characters_and_not_499(tmp_path: Path) -> None:
    said = "".join(f"{number} {WORDS}" for number in range(20))
    assert len(said) > 1300
    assert quoting(tmp_path, said, quote=f"{LEAD}<{said[777:1277]}>") == 0
    assert quoting(tmp_path, said, quote=f"{LEAD}<{said[777:1276]}>") is None


def test_a_call_quotes_messages_written_as_json(tmp_path: Path) -> None:
    said = [f'{number}:\n"{WORDS}"' for number in range(3)]
    assert quoting(tmp_path, *said, quote=LEAD + json.dumps(said)) == 3


def test_a_side_call_that_quotes_is_told_as_one(tmp_path: Path) -> None:
    a, b = load("compaction-call-without-tools")
    said = [block(a, number).get("text", "") for number in range(len(a["request"]["messages"]))]
    b["request"]["messages"] = [say("user", LEAD + "\n".join(said))]
    block(b, 0)["cache_control"] = MARK
    match = CAUSES["fork_prefix_mismatch"].match(the_case(tmp_path, a, b))
    assert match is not None
    assert "quotes the conversation in one message" in match.explanation
    assert match.confidence is Confidence.LIKELY


def call(*names: str) -> Record:
    blocks = [{"type": "tool_use", "id": name, "name": "look", "input": {}} for name in names]
    return {"role": "assistant", "content": blocks}


def answer(*names: str, text: str = "") -> Record:
    blocks: list[Record]
    blocks = [{"type": "tool_result", "tool_use_id": name, "content": "ok"} for name in names]
    if text:
        blocks.append({"type": "text", "text": text})
    return {"role": "user", "content": blocks}


SEARCH = {
    "role": "assistant",
    "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "text", "text": "Found."},
    ],
}
COMPACTED = {"role": "assistant", "content": [{"type": "compaction", "content": "So far."}]}
HI = say("user", "hi")
OK = say("assistant", "ok")
FORTY = [
    message
    for number in range(40)
    for message in (HI, call(f"t{number}"), answer(f"t{number}"), OK)
]


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([HI, call("t1"), answer("t1")], None),
        ([HI, call("t1", "t2"), answer("t1"), answer("t2")], None),
        ([HI, call("t1"), answer("t1", text="and?")], None),
        ([HI, call("t1")], None),
        ([HI, SEARCH, HI], None),
        ([OK, HI], None),
        ([COMPACTED, HI], None),
        ([HI, call("t1"), COMPACTED, HI], None),
        ([HI, call("t1"), answer("t1"), {"role": "system", "content": "Be brief."}, OK, HI], None),
        ([HI, call("a1"), answer("b1")], None),
        (FORTY, None),
        ([answer("t1")], "$.messages[0].content[0]"),
        ([answer("t1"), OK, HI], "$.messages[0].content[0]"),
        ([HI, OK, answer("t1")], "$.messages[2].content[0]"),
        ([HI, call("t1"), answer("t1", "t2")], "$.messages[2].content[1]"),
        ([HI, call("t1", "t2"), answer("t1")], "$.messages[1].content[1]"),
        ([HI, call("t1"), HI], "$.messages[1].content[0]"),
        ([HI, call("t1"), answer("t1"), OK, answer("t1")], "$.messages[4].content[0]"),
        ([*FORTY, answer("t1")], "$.messages[160].content[0]"),
    ],
)
def test_the_shape_of_a_conversation_is_judged(
    messages: list[Record], place: str | None, tmp_path: Path
) -> None:
    """A recorder may make all ids anew, so that equal numbers of other ids are no fault."""
    found = fault_of(tmp_path, {"messages": messages})
    assert (found[0] if found else None) == place


def fault_of(folder: Path, body: Record, start: int = 0) -> tuple[str, str] | None:
    path = folder / "one.json"
    record = {"request": {"model": "claude-sonnet-5", "max_tokens": 9, **body}}
    path.write_text(json.dumps(record), encoding="utf-8")
    request = read_request(str(path))[0]
    return shape_fault(case_of_pair(request, request).after.prefix, start)


@pytest.mark.parametrize(
    ("start", "faulty"), [(0, True), (1, True), (2, True), (3, True), (4, False)]
)
def test_messages_that_are_known_to_be_right_are_not_judged_again(
    start: int, faulty: bool, tmp_path: Path
) -> None:
    """The fault is in message 2; a later start goes back to the answer ahead of it."""
    messages = [HI, OK, answer("t1"), call("t2"), answer("t2")]
    assert bool(fault_of(tmp_path, {"messages": messages}, start)) is faulty


FIVE, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
ORDER, LIMIT = "ttl_order_invalid", "breakpoint_over_limit"


@pytest.mark.parametrize(
    ("system", "last", "automatic", "cause"),
    [
        # One block, two lifetimes: 400; the same one twice: no effect (facts 1.2).
        (None, FIVE, HOUR, ORDER),
        (None, HOUR, FIVE, ORDER),
        (HOUR, FIVE, HOUR, ORDER),
        (None, {"type": "ephemeral", "ttl": "5m"}, FIVE, None),
        (None, HOUR, HOUR, None),
        (HOUR, FIVE, FIVE, None),
        # Two blocks: the longer lifetime has to come first (facts 1.4).
        (FIVE, None, HOUR, ORDER),
        (HOUR, None, FIVE, None),
        (FIVE, None, FIVE, None),
        (HOUR, None, HOUR, None),
        (None, None, HOUR, None),
    ],
)
def test_the_lifetime_of_automatic_caching_agrees_with_the_breakpoints(
    system: Record | None,
    last: Record | None,
    automatic: Record,
    cause: str | None,
    tmp_path: Path,
) -> None:
    block = {"type": "text", "text": "hi", **({"cache_control": last} if last else {})}
    head = {"type": "text", "text": "Be brief.", **({"cache_control": system} if system else {})}
    body = {
        "system": [head],
        "messages": [{"role": "user", "content": [block]}],
        "cache_control": automatic,
    }
    assert refusal_of(tmp_path, body) == cause


@pytest.mark.parametrize(("explicit", "cause"), [(3, None), (4, LIMIT), (5, LIMIT)])
def test_automatic_caching_takes_one_of_the_four_slots(
    explicit: int, cause: str | None, tmp_path: Path
) -> None:
    blocks: list[Record] = [{"type": "text", "text": f"part {n}"} for n in range(6)]
    for each in blocks[:explicit]:
        each["cache_control"] = FIVE
    body = {"messages": [{"role": "user", "content": blocks}], "cache_control": FIVE}
    assert refusal_of(tmp_path, body) == cause


def refusal_of(folder: Path, body: Record) -> str | None:
    """The cause for which a request without an answer would be refused; None where it would not."""
    path = folder / "one.json"
    record = {"request": {"model": "claude-sonnet-5", "max_tokens": 9, **body}}
    path.write_text(json.dumps(record), encoding="utf-8")
    found = diagnose_pair(*(read_request(str(path))[0],) * 2)
    if found.case.refusal is None:
        return None
    assert found.case.part is Part.REFUSAL
    return found.finding.cause.id


@pytest.mark.parametrize("heading", HEADINGS)
@pytest.mark.parametrize("cause", CAUSES.names)
def test_page_of_a_cause_has_each_heading(cause: str, heading: str) -> None:
    assert heading in CAUSES.page(cause).splitlines()


def test_every_cause_has_a_recorded_case_or_a_built_one() -> None:
    recorded = {json.loads(p.read_text("utf-8"))["kind"] for p in CASES.glob("*/expect.json")}
    assert recorded | set(BUILT) == BY_BODIES


def test_every_cause_has_a_near_miss() -> None:
    assert {miss.cause for miss in NEAR_MISSES} == BY_BODIES
