"""The cache model at its edges, and what a diagnosis makes of them."""

from __future__ import annotations

import copy
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ctxdoc.diagnosis.diagnose import Diagnosis, State, diagnose_pair
from ctxdoc.reading.load import read_request
from tests.support.sessions import MARK, START, first_body, lines, marked, prose, record, turn

Body = dict[str, Any]


@pytest.fixture
def start() -> Body:
    return first_body(random.Random(1))


def diagnose(tmp_path: Path, before: Body, after: Body, gap: float = 20) -> Diagnosis:
    """The diagnosis of two bodies that were sent that many seconds apart, without counters."""
    rows = (record(before, START, None, 1), record(after, START + timedelta(seconds=gap), None, 2))
    found = []
    for name, row in zip("ab", rows, strict=True):
        path = tmp_path / f"{name}.json"
        path.write_text(lines([row]), encoding="utf-8")
        found.append(read_request(str(path))[0])
    return diagnose_pair(*found)


def grown(body: Body, *messages: Body) -> Body:
    """The body with more messages."""
    return {**copy.deepcopy(body), "messages": [*body["messages"], *messages]}


def appended_texts(count: int) -> Body:
    rng = random.Random(2)
    return {
        "role": "user",
        "content": [{"type": "text", "text": prose(rng, 80)} for _ in range(count)],
    }


REPLY = {"role": "assistant", "content": [{"type": "text", "text": "Go on."}]}


def test_twelve_parallel_calls_and_results_are_two_positions(tmp_path: Path, start: Body) -> None:
    """24 blocks, but a run of calls and a run of results count once each."""
    after = grown(start, *turn(random.Random(3), 1, calls=12, result=200))
    found = diagnose(tmp_path, marked(start), marked(after))
    assert (found.state, found.finding.cause.id) == (State.ALIVE, "none")


def test_twenty_four_texts_are_out_of_the_lookback(tmp_path: Path, start: Body) -> None:
    found = diagnose(tmp_path, marked(start), marked(grown(start, REPLY, appended_texts(24))))
    assert (found.state, found.finding.cause.id) == (State.PARTIAL, "lookback_exceeded")


@pytest.mark.parametrize(("texts", "alive"), [(18, True), (19, False)])
def test_the_breakpoint_is_position_one_of_twenty(
    tmp_path: Path, start: Body, texts: int, alive: bool
) -> None:
    """18 texts and the reply: the entry is number 20 from the breakpoint; one more is 21."""
    found = diagnose(tmp_path, marked(start), marked(grown(start, REPLY, appended_texts(texts))))
    assert (found.state is State.ALIVE) is alive


@pytest.mark.parametrize(("gap", "cause"), [(299, "none"), (301, "ttl_expired")])
def test_an_entry_lives_five_minutes_from_the_start(
    tmp_path: Path, start: Body, gap: float, cause: str
) -> None:
    found = diagnose(tmp_path, marked(start), marked(grown(start, *turn(random.Random(4), 1))), gap)
    assert found.finding.cause.id == cause


@pytest.mark.parametrize(("gap", "cause"), [(3599, "none"), (3601, "ttl_expired")])
def test_an_hour_entry_lives_an_hour(tmp_path: Path, start: Body, gap: float, cause: str) -> None:
    bodies = [marked(start), marked(grown(start, *turn(random.Random(4), 1)))]
    for body in bodies:
        for block in (body["system"][-1], body["messages"][-1]["content"][-1]):
            block["cache_control"]["ttl"] = "1h"
    assert diagnose(tmp_path, *bodies, gap).finding.cause.id == cause


def test_a_one_hour_breakpoint_ahead_splits_the_write(tmp_path: Path, start: Body) -> None:
    """Written at 1h up to the last 1h breakpoint, at 5m from there to the last one."""
    body = marked(start)
    body["system"][-1]["cache_control"]["ttl"] = "1h"
    usage = diagnose(tmp_path, body, body).case.outcome.usage
    first = diagnose(tmp_path, body, {**body, "model": "claude-opus-4-8"}).case.outcome.usage
    assert (usage.cache_write_1h, usage.cache_write_5m) == (0, 0)
    assert first.cache_write_1h > first.cache_write_5m > 0


def test_automatic_caching_marks_the_last_block(tmp_path: Path, start: Body) -> None:
    """A top-level cache_control is one breakpoint at the end of the prompt."""
    bodies = [
        {**b, "cache_control": dict(MARK)}
        for b in (start, grown(start, *turn(random.Random(4), 1)))
    ]
    found = diagnose(tmp_path, *bodies)
    assert found.state is State.ALIVE


def test_automatic_caching_on_top_of_four_breakpoints_is_refused(
    tmp_path: Path, start: Body
) -> None:
    body = {**copy.deepcopy(start), "cache_control": dict(MARK)}
    for block in (*body["tools"][:2], *body["system"]):
        block["cache_control"] = dict(MARK)
    assert diagnose(tmp_path, start, body).finding.cause.id == "breakpoint_over_limit"


def test_the_second_of_two_parallel_requests_is_cold(tmp_path: Path, start: Body) -> None:
    other = copy.deepcopy(start)
    other["messages"][0]["content"][0]["text"] = "Another question."
    bodies = [marked(start), marked(other)]
    for body in bodies:
        del body["messages"][-1]["content"][-1]["cache_control"]
    found = diagnose(tmp_path, *bodies, gap=0.3)
    assert (found.state, found.finding.cause.id) == (State.COLD, "concurrent_cold_start")


@pytest.mark.parametrize(
    ("model", "cause"),
    [("claude-sonnet-4-5", "thinking_blocks_dropped"), ("claude-opus-4-8", "none")],
)
def test_older_models_drop_thinking_when_a_new_user_text_comes(
    tmp_path: Path, start: Body, model: str, cause: str
) -> None:
    thought = {"type": "thinking", "thinking": prose(random.Random(5), 900), "signature": "c2ln"}
    call, result = turn(random.Random(6), 1)
    call["content"].insert(0, thought)
    before = {**grown(start, call, result), "model": model}
    after = grown(
        before, REPLY, {"role": "user", "content": [{"type": "text", "text": "And then?"}]}
    )
    assert diagnose(tmp_path, marked(before), marked(after)).finding.cause.id == cause


@pytest.mark.parametrize(
    ("change", "cause", "level"),
    [
        ({"tool_choice": {"type": "any"}}, "tool_choice_changed", "messages"),
        ({"tool_choice": {"type": "auto"}}, "none", "none"),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2000}},
            "thinking_settings_changed",
            "messages",
        ),
        ({"thinking": {"type": "disabled"}}, "none", "none"),
        ({"output_config": {"effort": "low"}}, "effort_changed", "messages"),
        ({"output_config": {"effort": "high"}}, "none", "none"),
        (
            {"output_config": {"format": {"type": "json_schema"}}},
            "output_format_changed",
            "messages",
        ),
        ({"speed": "fast"}, "server_feature_toggled", "system"),
        ({"container": {"skills": [{"skill_id": "pdf"}]}}, "server_feature_toggled", "system"),
        ({"model": "claude-opus-4-8"}, "model_changed", "tools"),
        ({"model": "claude-sonnet-4-5-20250929"}, "none", "none"),
        ({"stop_sequences": ["x"], "max_tokens": 9}, "none", "none"),
    ],
)
def test_a_setting_is_lost_from_its_level_on(
    tmp_path: Path, start: Body, change: Body, cause: str, level: str
) -> None:
    """What invalidates what: prompt-caching page, 2026-10-08."""
    after = {**grown(start, *turn(random.Random(4), 1)), **change}
    found = diagnose(tmp_path, marked(start), marked(after))
    assert (found.finding.cause.id, str(found.invalidates_from)) == (cause, level)


@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_search_tool_is_a_server_feature_wherever_it_stands(
    tmp_path: Path, start: Body, place: int
) -> None:
    after = grown(start, *turn(random.Random(4), 1))
    after["tools"].insert(place, {"type": "web_search_20250305", "name": "web_search"})
    found = diagnose(tmp_path, marked(start), marked(after))
    assert found.finding.cause.id == "server_feature_toggled"
    assert found.first_difference is not None
    assert found.first_difference.pointer == f"$.tools[{place}]"


def test_a_rewind_is_no_miss(tmp_path: Path, start: Body) -> None:
    """The user goes back and asks another question: what lies ahead of it is read."""
    rng = random.Random(7)
    before = grown(start, *turn(rng, 1), *turn(rng, 2))
    before["messages"][0]["content"][0]["cache_control"] = dict(MARK)
    after = grown(
        start, REPLY, {"role": "user", "content": [{"type": "text", "text": "No, wait."}]}
    )
    found = diagnose(tmp_path, marked(before), marked(after))
    assert (found.state, found.finding.cause.id) == (State.ALIVE, "none")


def test_the_billing_line_of_a_client_matters_on_other_hosts_only(
    tmp_path: Path, start: Body
) -> None:
    """api.anthropic.com removes it; a proxy keeps it (llm-gateway-protocol page, 2026-08-22)."""
    bodies = [marked(start), marked(grown(start, *turn(random.Random(4), 1)))]
    for body, cch in zip(bodies, ("a1b2c", "d3e4f"), strict=True):
        line = f"x-anthropic-billing-header: cc_version=2.1.181; cc_entrypoint=cli; cch={cch};"
        body["system"].insert(0, {"type": "text", "text": line})
    assert diagnose(tmp_path, *bodies).finding.cause.id == "none"
    rows = [record(b, START + timedelta(seconds=20 * i), None, i) for i, b in enumerate(bodies)]
    for row in rows:
        row["headers"] = {"host": "gateway.example"}
    paths = [tmp_path / "c.json", tmp_path / "d.json"]
    for path, row in zip(paths, rows, strict=True):
        path.write_text(lines([row]), encoding="utf-8")
    found = diagnose_pair(*(read_request(str(path))[0] for path in paths))
    assert found.finding.cause.id == "request_id_in_prefix"
