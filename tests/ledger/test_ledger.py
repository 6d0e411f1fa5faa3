"""A log replayed as a whole: counters, causes, prices, blocks, bounds."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxdoc.ledger.advice import advise
from ctxdoc.ledger.fidelity import Fidelity
from ctxdoc.ledger.ledger import Ledger, replay
from ctxdoc.reading.load import read_log
from ctxdoc.replay.link import in_time
from ctxdoc.reports.blocks import kinds_of
from ctxdoc.reports.json.replay import replay_json
from tests.cli.test_cli import run
from tests.support.sessions import (
    SESSION,
    START,
    Body,
    clock_goes_on,
    demo_session,
    first_body,
    lines,
    marked,
    prose,
    record,
    session,
    tools_move,
    turn,
)
from tests.support.stand_in import StandIn, sizes_of

MILLION = Decimal(1_000_000)


def replayed(folder: Path, records: list[Body], *, condense: bool = True) -> Ledger:
    path = folder / "log.jsonl"
    path.write_text(lines(records), encoding="utf-8")
    return replay(read_log([str(path)], condense=condense))


def causes(found: Ledger) -> dict[int, str]:
    return {row.number: row.miss.cause for row in found.rows if row.miss}


def test_every_miss_of_a_session_has_its_cause_and_its_price(tmp_path: Path) -> None:
    """At $3 a million input tokens a lost token costs 1.25 - 0.1 times as much as it should."""
    found = replayed(tmp_path, demo_session())
    assert causes(found) == {5: "timestamp_in_prefix", 8: "ttl_expired", 10: "tool_order"}
    for row in found.rows:
        if row.miss:
            assert row.miss.cost is not None
            premium = (row.miss.tokens or 0) * 3 * (Decimal("1.25") - Decimal("0.1")) / MILLION
            assert row.miss.cost == premium
    assert {row.fidelity for row in found.rows} == {Fidelity.WITHIN}


def test_the_order_of_a_log_is_not_the_order_of_time(tmp_path: Path) -> None:
    """A recorder that writes a request when it ends shuffles them; the replay does not mind."""
    records = demo_session()
    shuffled = [records[i] for i in (1, 0, 3, 2, 4, 6, 5, 7, 8, 11, 10, 9)]
    found = replayed(tmp_path, shuffled)
    by_line = {row.request.id: row for row in found.rows}
    straight = {row.request.id: row for row in replayed(tmp_path, records).rows}
    for name, row in straight.items():
        assert by_line[name].simulated == row.simulated
        assert bool(by_line[name].miss) == bool(row.miss)


def test_a_request_without_a_time_stays_behind_the_one_before_it() -> None:
    requests = read_log([str(SESSION)]).requests
    mixed = [requests[2], replace(requests[3], at=None), requests[0], requests[1]]
    assert in_time(mixed) == [2, 3, 0, 1]


def test_parallel_requests_read_only_what_had_begun_to_be_answered(tmp_path: Path) -> None:
    """Three requests at once pay the write each; one that comes after their answers reads it."""
    body = marked(first_body(random.Random(3)))
    records = [record(body, START + timedelta(milliseconds=n), None, n) for n in range(3)]
    records.append(record(body, START + timedelta(seconds=5), None, 9))
    found = replayed(tmp_path, records)
    usages = [row.simulated for row in found.rows]
    assert all(usages)
    assert [bool(usage and usage.cache_read) for usage in usages] == [False, False, False, True]
    assert causes(found) == {2: "concurrent_cold_start", 3: "concurrent_cold_start"}


def test_two_sessions_share_the_entries_of_one_prefix(tmp_path: Path) -> None:
    records = []
    for number, question in enumerate(("first question", "second question")):
        body = first_body(random.Random(3))
        body["messages"][0]["content"][0]["text"] = f"{question}: what is wrong with it?"
        sent = record(marked(body), START + timedelta(seconds=20 * number), None, number)
        records.append({**sent, "session_id": f"c{number}"})
    found = replayed(tmp_path, records)
    first, second = (row.simulated for row in found.rows)
    assert first
    assert second
    assert (first.cache_read, second.cache_read > 1500) == (0, True)
    assert causes(found) == {}


def two_agents(tmp_path: Path, *prompts: str) -> Ledger:
    """Two sessions with the same tools that ask the same, with these system prompts."""
    records = []
    for number, prompt in enumerate(prompts):
        body = first_body(random.Random(3))
        body["system"] = [{"type": "text", "text": prompt}]
        sent = record(marked(body), START + timedelta(seconds=20 * number), None, number)
        records.append({**sent, "session_id": f"s{number}"})
    return replayed(tmp_path, records)


def test_a_session_that_only_begins_with_the_same_words_lost_nothing(tmp_path: Path) -> None:
    """Two agents with prompts of their own: neither could have read the other's."""
    rng = random.Random(8)
    assert causes(two_agents(tmp_path, prose(rng, 9000), prose(rng, 9000))) == {}


def test_the_headline_says_how_much_of_it_is_simulated(tmp_path: Path) -> None:
    rows = session({}, turns=6)
    for row in rows[3:]:
        row["response"] = None
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    shown = run("replay", str(path)).stdout.decode().replace("\n", " ")
    assert "(3 of them simulated)" in shown


def test_of_a_session_with_another_opening_only_the_shared_part_is_lost(tmp_path: Path) -> None:
    """A clock ahead of one and the same prompt: the question behind it is the session's own."""
    prompt = prose(random.Random(8), 9000)
    found = two_agents(tmp_path, f"It is 09:07:11. {prompt}", f"It is 09:07:31. {prompt}")
    assert causes(found) == {2: "timestamp_in_prefix"}
    row = found.rows[1]
    assert row.miss is not None
    assert row.simulated is not None
    assert 0 < (row.miss.tokens or 0) < row.simulated.input


PROMPT = {"input_tokens": 1_000, "cache_read_input_tokens": 20_000, "output_tokens": 500}
SPLIT = {"ephemeral_5m_input_tokens": 3_000, "ephemeral_1h_input_tokens": 2_000}


@pytest.mark.parametrize(
    ("model", "more", "dollars"),
    [
        # 1,000·3 + 20,000·0.3 + 3,000·3.75 + 2,000·6 + 500·15 = 39,750 per million
        ("claude-sonnet-4-5", {}, "0.03975"),
        # half of it
        ("claude-sonnet-4-5", {"service_tier": "batch"}, "0.019875"),
        # read at 0.05 of 4: 1,000·4 + 20,000·0.2 + 3,000·5 + 2,000·8 + 500·20 = 49,000
        ("claude-opus-5-5", {}, "0.049"),
        # fast mode is 8/40 and stacks: 1,000·8 + 20,000·0.4 + 3,000·10 + 2,000·16 + 500·40 = 98,000
        ("claude-opus-5-5", {"speed": "fast"}, "0.098"),
        # read at 0.025 of 8: 1,000·8 + 20,000·0.2 + 3,000·10 + 2,000·16 + 500·40 = 94,000
        ("claude-fable-5-2", {}, "0.094"),
        # 26,000 tokens are under the step: 1,000·0.1 + 20,000·0.01 + 3,000·0.125 + 2,000·0.2 + 500·0.5
        ("claude-haiku-5-5", {}, "0.001325"),
        # 126,000 are over it, and every token of the request costs five times as much:
        # 1,000·0.5 + 120,000·0.05 + 3,000·0.625 + 2,000·1 + 500·2.5 = 11,625
        ("claude-haiku-5-5", {"cache_read_input_tokens": 120_000}, "0.011625"),
        # 1.1 of 0.03975
        ("claude-sonnet-4-6", {"inference_geo": "us"}, "0.043725"),
        # a compaction pass beside it: 180,000·3 + 3,500·15 = 592,500
        (
            "claude-sonnet-4-6",
            {
                "iterations": [
                    {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
                ]
            },
            "0.63225",
        ),
    ],
)
def test_the_replay_prices_what_the_table_says(
    model: str, more: Body, dollars: str, tmp_path: Path
) -> None:
    """Prices of facts 3.1 and 3.2, arithmetic beside each row."""
    usage = {**PROMPT, "cache_creation_input_tokens": 5_000, "cache_creation": SPLIT, **more}
    body = marked(first_body(random.Random(3), model))
    row = replayed(tmp_path, [record(body, START, usage, 1)]).rows[0]
    assert row.cost == Decimal(dollars)


def test_writes_for_an_hour_are_priced_as_such_in_the_loss(tmp_path: Path) -> None:
    """A lost token that was written for an hour costs 2 - 0.1 times its price."""
    records = session({4: clock_goes_on}, turns=4)
    usage = records[3]["response"]["usage"]
    written = usage["cache_creation_input_tokens"]
    usage["cache_creation"] = {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written}
    miss = replayed(tmp_path, records).rows[3].miss
    assert miss is not None
    assert miss.cost == (miss.tokens or 0) * 3 * (Decimal(2) - Decimal("0.1")) / MILLION


def naive_blocks(records: list[Body]) -> dict[str, tuple[int, Decimal]]:
    """Times sent and cost of each block by its text, request by request, from the stand-in's sizes."""
    found: dict[str, list[Any]] = defaultdict(lambda: [0, Decimal(0)])
    for row in records:
        usage = row["response"]["usage"]
        read, cached = usage["cache_read_input_tokens"], usage["cache_read_input_tokens"]
        cached += usage["cache_creation_input_tokens"]
        upto = 0
        for name, tokens in sizes_of(row["request"]):
            upto += tokens
            rate = Decimal("0.3") if upto <= read else Decimal("3.75") if upto <= cached else 3
            found[name][0] += 1
            found[name][1] += tokens * Decimal(rate) / MILLION
    return {name: (times, cost) for name, (times, cost) in found.items()}


def test_blocks_cost_what_request_by_request_arithmetic_says(tmp_path: Path) -> None:
    """The tree sums from the leaves; here each request adds to each of its blocks."""
    records = demo_session()
    found = replayed(tmp_path, records)
    naive = naive_blocks(records)
    whole = sum((cost for _, cost in naive.values()), Decimal(0))
    assert sum(block.cost or 0 for block in found.blocks) == pytest.approx(
        whole, rel=Decimal("5e-3")
    )
    by_path = {block.segment.pointer: block for block in found.blocks}
    # The question is in all twelve requests; the results of the last call are in one.
    assert by_path["$.messages[0].content[0]"].times == 12
    assert by_path["$.messages[22].content[0]"].times == 1
    tools = [block for block in found.blocks if block.segment.section == "tools"]
    assert [block.times for block in tools] == [12] * 5


def test_a_block_is_one_wherever_it_stands(tmp_path: Path) -> None:
    """After the tools moved every block behind them has another prefix, and is the same block."""
    found = replayed(tmp_path, session({3: tools_move}, turns=4))
    texts = [block.segment.data for block in found.blocks]
    assert len(texts) == len(set(texts))


@given(st.lists(st.sampled_from(["", "clock", "tools", "pause"]), min_size=1, max_size=7))
def test_nothing_is_cheaper_than_the_oracle_and_no_cache_is_the_input_at_full_price(
    tmp_path_factory: pytest.TempPathFactory, events: list[str]
) -> None:
    changes = {"clock": clock_goes_on, "tools": tools_move}
    made = {n: changes[e] for n, e in enumerate(events, start=1) if e in changes}
    pauses = {n: 400 for n, e in enumerate(events, start=1) if e == "pause"}
    found = replayed(tmp_path_factory.mktemp("log"), session(made, pauses, turns=len(events)))
    for row in found.rows:
        assert row.cost is not None
        assert row.oracle is not None
        assert row.oracle <= row.cost
        assert row.reported is not None
        output = row.reported.output * 15
        assert row.without_cache == Decimal(row.reported.input * 3 + output) / MILLION


def test_the_growth_of_a_session_is_measured(tmp_path: Path) -> None:
    records = session({}, turns=10)
    (grown,) = replayed(tmp_path, records).growth
    sizes = [sum(tokens for _, tokens in sizes_of(row["request"])) for row in records]
    assert grown.fit.recorded == sum(sizes)
    assert grown.fit.per_turn == pytest.approx((sizes[-1] - sizes[0]) / 9, rel=0.05)
    assert grown.rows == tuple(range(1, 11))


def test_tools_that_were_never_called_are_named_with_their_price(tmp_path: Path) -> None:
    """The session calls read_file only."""
    found = replayed(tmp_path, session({}, turns=6))
    advice = {item.id: item for item in advise(found)}
    assert "unused_tools" in advice
    for name in ("list_files", "search", "write_file", "run_tests"):
        assert name in advice["unused_tools"].what
    assert "read_file" not in advice["unused_tools"].what
    costs = [
        block.cost or Decimal(0)
        for block in found.blocks
        if block.segment.section == "tools" and b'"read_file"' not in block.segment.data
    ]
    assert advice["unused_tools"].cost == sum(costs)


def test_advice_is_ranked_by_money_and_at_most_five(tmp_path: Path) -> None:
    advice = advise(replayed(tmp_path, demo_session()))
    assert len(advice) <= 5
    assert all(item.is_lost for item in advice[:3])
    lost = [item.cost for item in advice if item.is_lost]
    assert lost == sorted(lost, reverse=True)
    assert {"timestamp_in_prefix", "ttl_expired", "tool_order"} <= {item.id for item in advice}
    assert next(i for i in advice if i.id == "tool_order").pair == (9, 10)


def test_history_paid_in_full_is_waste_and_no_miss(tmp_path: Path) -> None:
    """A breakpoint on the system prompt only: the history behind it is sent again at full price."""
    rng = random.Random(3)
    body, records, cache = first_body(rng), [], StandIn()
    for number in range(5):
        sent = marked(body)
        del sent["messages"][-1]["content"][-1]["cache_control"]
        usage = cache.answer(sent, 20 * number)
        records.append(record(sent, START + timedelta(seconds=20 * number), usage, number))
        body["messages"] += turn(rng, number, result=3000)
    found = replayed(tmp_path, records)
    assert causes(found) == {}
    wastes = [row.waste.cause for row in found.rows if row.waste]
    assert set(wastes) == {"breakpoint_missing_on_history"}
    data = replay_json(found, (), excerpts=True)
    requests: Any = data["requests"]
    assert requests[4]["cause"] is None
    assert requests[4]["waste"] == "breakpoint_missing_on_history"


def test_a_session_by_its_name_is_shown_alone_but_replayed_with_the_others(tmp_path: Path) -> None:
    records = []
    for number, question in enumerate(("first question", "second question")):
        body = first_body(random.Random(3))
        body["messages"][0]["content"][0]["text"] = f"{question}: what is wrong with it?"
        sent = record(marked(body), START + timedelta(seconds=20 * number), None, number)
        records.append({**sent, "session_id": f"conversation-{number}"})
    path = tmp_path / "log.jsonl"
    path.write_text(lines(records), encoding="utf-8")
    found = replay(read_log([str(path)]), only="conversation-1")
    (row,) = found.rows
    assert (row.number, row.session) == (2, "conversation-1")
    assert row.simulated is not None
    assert row.simulated.cache_read > 1500


def test_a_condensed_log_replays_as_one_that_is_held_as_a_whole(tmp_path: Path) -> None:
    one = replayed(tmp_path, demo_session(), condense=True)
    two = replayed(tmp_path, demo_session(), condense=False)
    assert replay_json(one, (), excerpts=True) == replay_json(two, (), excerpts=True)


def test_unknown_numbers_are_null_in_json(tmp_path: Path) -> None:
    """A request without counters has simulated ones, in columns of their own."""
    good = demo_session()[0]
    found = replayed(tmp_path, [good, {**demo_session()[1], "response": None}])
    data = json.loads(json.dumps(replay_json(found, (), excerpts=True), default=str))
    assert data["requests"][1]["reported"] is None
    assert data["requests"][1]["simulated"]["cache_read"] > 0
    assert data["totals"]["requests_with_counters"] == 1
    assert data["totals"]["simulated"]["requests_without_counters"] == 1


def plain(text: str, usage: Body | None, seconds: float, system: str = "", **more: Any) -> Body:
    """A record of one question with a marked system prompt."""
    block = {"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}
    body: Body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": text}]}
    if system:
        body["system"] = [block]
    row = record(body, START + timedelta(seconds=seconds), usage, 1)
    if row["response"]:
        row["response"]["id"] = f"msg_{seconds}_{len(text)}"
    return {**row, **more}


def used(uncached: int, read: int, written: int) -> Body:
    return {
        "input_tokens": uncached,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": 10,
    }


LONG = prose(random.Random(4), 24_000)


def test_a_marked_prompt_of_which_nothing_was_cached_is_waste_and_no_fault(tmp_path: Path) -> None:
    """A proxy that drops the breakpoint, or the counters, looks like this."""
    (row,) = replayed(tmp_path, [plain("hi", used(6000, 0, 0), 0, LONG)]).rows
    assert row.miss is None
    assert row.waste is not None
    assert row.waste.cause == "unexplained"
    assert "did not reach the API" in row.waste.explanation


@pytest.mark.parametrize(
    "usages",
    [
        # the end of the system prompt is computed a few tokens behind what was read
        [used(0, 0, 6100), used(120, 6003, 0), used(300, 6000, 0)],
        # a log whose counters contradict what its text weighs
        [used(0, 0, 6100), used(10, 20, 5), used(50_000, 0, 0)],
        # nothing behind the breakpoint is counted
        [used(0, 0, 5000)],
        [used(0, 0, 0)],
    ],
)
def test_the_blocks_of_a_log_add_up_to_its_input(usages: list[Body], tmp_path: Path) -> None:
    rows = [plain("hi " * (5 + n), usage, 20 * n, LONG) for n, usage in enumerate(usages)]
    found = replayed(tmp_path, rows)
    output = sum(usage["output_tokens"] for usage in usages) * Decimal(15) / MILLION
    paid = sum(row.cost or 0 for row in found.rows) - output
    assert sum(block.cost or 0 for block in found.blocks) == pytest.approx(
        paid, rel=Decimal("1e-3")
    )
    whole = sum(row.reported.input for row in found.rows if row.reported)
    sent = sum(block.lifetime_tokens for block in found.blocks)
    assert sent == pytest.approx(whole, rel=1e-3, abs=len(usages) * 3)


def test_no_more_is_lost_than_the_prompt_has(tmp_path: Path) -> None:
    """The history of 20,000 tokens went; of the 3,000 that are sent instead some could have been
    read, but no more than are there."""
    rows = [plain("first words", used(10, 0, 20_000), 0, LONG)]
    rows.append(plain("first words", used(0, 0, 3000), 30, LONG[:9000] + "x"))
    for row in replayed(tmp_path, rows).rows:
        if row.miss and row.miss.tokens and row.reported:
            assert row.miss.tokens <= row.reported.input - row.reported.cache_read


def test_a_change_after_the_entries_had_ended_cost_nothing(tmp_path: Path) -> None:
    """Five hours later the clock in the prompt went on: the entries were gone without it, and no
    lifetime would have held them."""
    rows = [plain("go", used(10, 0, 6000), 0, f"It is 09:00:01. {LONG}")]
    rows.append(plain("go", used(10, 0, 6000), 18_000, f"It is 14:00:01. {LONG}"))
    miss = replayed(tmp_path, rows).rows[1].miss
    assert miss is not None
    assert (miss.cause, miss.avoidable) == ("ttl_expired", False)


def test_a_pause_that_an_hour_would_have_bridged_is_avoidable(tmp_path: Path) -> None:
    rows = [plain("go", used(10, 0, 6000), s, LONG) for s in (0, 1200)]
    miss = replayed(tmp_path, rows).rows[1].miss
    assert miss is not None
    assert (miss.cause, miss.avoidable) == ("ttl_expired", True)


def test_records_of_one_response_are_billed_once(tmp_path: Path) -> None:
    row = plain("hi", used(5, 0, 5000), 0, LONG)
    found = replayed(tmp_path, [row, row, row])
    totals: Any = replay_json(found, (), excerpts=True)["totals"]
    # (5·3 + 5,000·3.75 + 10·15) / 1,000,000
    assert totals["cost"] == "0.018915"
    assert (totals["input"], totals["requests_with_counters"]) == (5005, 1)
    assert {block.times for block in found.blocks} == {1}


def test_sessions_do_not_depend_on_the_order_of_the_file(tmp_path: Path) -> None:
    straight = replayed(tmp_path, demo_session())
    backward = replayed(tmp_path, demo_session()[::-1])
    assert len(straight.sessions) == len(backward.sessions) == 1
    assert straight.growth[0].fit.recorded == backward.growth[0].fit.recorded


def test_a_session_without_a_name_gets_none_of_the_log(tmp_path: Path) -> None:
    rows = [plain("one thing", None, 0, session_id="s2"), plain("unrelated", None, 20)]
    rows += [plain("unrelated too", None, 40), plain("last", None, 60, session_id="s3")]
    found = replayed(tmp_path, rows)
    assert sorted(len(session.requests) for session in found.sessions) == [1, 1, 1, 1]


def test_a_name_that_is_shown_can_be_asked_for(tmp_path: Path) -> None:
    name = "12345678-1111-4222-8333-123456789abc"
    rows = [plain("main", None, 0, session_id=name)]
    rows += [plain(f"side {x}", None, 20, session_id=f"{name}/agent-{x}") for x in "ab"]
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    for asked, right in (("12345678", name), ("12345678/agent-a", f"{name}/agent-a")):
        found = replay(read_log([str(path)]), only=asked)
        assert [session.id for session in found.sessions] == [right]


def test_what_is_unpriced_is_no_zero(tmp_path: Path) -> None:
    row = plain("hi", used(5, 0, 5000), 0, LONG)
    row["request"]["model"] = row["response"]["model"] = "claude-nobody-9"
    found = replayed(tmp_path, [row])
    assert {kind.cost for kind in kinds_of(found.blocks)} == {None}
    assert {block.cost for block in found.blocks} == {None}


def test_a_pair_is_advised_only_where_diagnose_takes_it(tmp_path: Path) -> None:
    """In a file that is written backwards the earlier request has the larger number."""
    for item in advise(replayed(tmp_path, demo_session()[::-1])):
        assert item.pair is None or item.pair[0] < item.pair[1]


def test_every_part_of_a_loss_has_an_answer(tmp_path: Path) -> None:
    """The same prompt half a second after one without a time; the moving mark gone; a header that is
    missing in between: no cause of its own knows these, and none is a fault of the program."""
    rng = random.Random(3)
    body = first_body(rng)
    sent = marked(body)
    untimed = {**record(sent, START, None, 1), "timestamp": None}
    rows = [untimed, record(sent, START + timedelta(milliseconds=500), None, 2)]
    body["messages"] += turn(rng, 1, result=300)
    unmarked = marked(body)
    del unmarked["messages"][-1]["content"][-1]["cache_control"]
    rows.append(record(unmarked, START + timedelta(seconds=9), None, 3))
    for number, place in enumerate(("org-a", None, "org-b")):
        headers = {"anthropic-organization-id": place} if place else {}
        at = START + timedelta(seconds=20 + number)
        rows.append({**record(sent, at, None, 10 + number), "headers": headers})
    found = replayed(tmp_path, rows)
    assert all(row.simulated for row in found.rows)


def test_counters_of_several_passes_tell_no_size(tmp_path: Path) -> None:
    """A web search: 13,520 tokens were billed for a prompt of a few; what comes after it is not
    measured by them."""
    rows = [plain("What is new about caches?", used(13_520, 0, 0), 0)]
    rows[0]["response"]["content"] = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    ]
    rows.append(plain("word " * 300, None, 60))
    alone, after = (replayed(tmp_path, each).rows[-1].simulated for each in (rows[1:], rows))
    assert alone is not None
    assert alone == after


def test_a_tool_that_only_an_answer_calls_was_called(tmp_path: Path) -> None:
    body = marked(first_body(random.Random(3)))
    row = record(body, START, used(10, 0, 2300), 1)
    call = {"type": "tool_use", "id": "t", "name": "search", "input": {}}
    row["response"]["content"] = [call]
    body["tool_choice"] = {"type": "tool", "name": "write_file"}
    (advice,) = (a for a in advise(replayed(tmp_path, [row])) if a.id == "unused_tools")
    assert advice.what.endswith(": read_file, list_files, run_tests.")


def test_a_pause_and_a_change_are_both_named_and_neither_alone_is_avoidable(tmp_path: Path) -> None:
    """With a lifetime of an hour the clock would lose it all the same, and the other way round."""
    rows = [plain("go", used(10, 0, 6000), 600 * n, f"It is 09:{n}1. {LONG}") for n in range(2)]
    miss = replayed(tmp_path, rows).rows[1].miss
    assert miss is not None
    assert (miss.cause, miss.avoidable) == ("ttl_expired", False)
    assert "timestamp_in_prefix" in miss.explanation


def test_of_two_lifetimes_only_the_shorter_has_run_out(tmp_path: Path) -> None:
    """A system prompt for an hour, a message for five minutes, ten minutes later another clock in
    the first: the message was gone without it."""
    body = first_body(random.Random(3))
    body["system"][0]["text"] = LONG
    body["messages"][0]["content"][0]["text"] = prose(random.Random(6), 30_000)
    rows = []
    for number, clock in enumerate(("09:00:01", "09:10:01")):
        body["system"][1]["text"] = f"It is {clock}."
        if number:
            body["messages"] += turn(random.Random(7), 1)
        sent = marked(body)
        sent["system"][-1]["cache_control"]["ttl"] = "1h"
        rows.append(record(sent, START + timedelta(seconds=600 * number), None, number))
    found = replayed(tmp_path, rows)
    before = found.rows[0].simulated
    assert before is not None
    miss = found.rows[1].miss
    assert miss is not None
    # What is due to the change is what lived for an hour; the rest had ended.
    assert miss.cause == "ttl_expired"
    assert before.cache_write_1h < before.cache_write_5m


def test_other_conversations_do_not_change_the_sizes_of_one(tmp_path: Path) -> None:
    """A conversation goes on without counters after many others of another density."""
    start = plain("go on", used(10, 0, 4600), 0, LONG)
    end = plain("go on", None, 9000, LONG)
    end["request"]["messages"] += [
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": prose(random.Random(2), 20_000)},
    ]
    sizes = []
    for others in (0, 3, 80):
        rows = [start]
        rows += [
            plain(f"other {n}", used(0, 0, 24_000), 60 + n, f"{n} {LONG}") for n in range(others)
        ]
        usage = replayed(tmp_path, [*rows, end]).rows[-1].simulated
        assert usage is not None
        sizes.append(usage.input)
    assert len(set(sizes)) == 1


def test_what_is_read_and_written_inside_of_one_block_is_all_counted(tmp_path: Path) -> None:
    """9,000 tokens read and 1,000 written end in the one block that the log holds:
    9,000·0.3 + 1,000·3.75 + 3·3 = 6,459 per million."""
    (row,) = (plain("word " * 2000, used(3, 9000, 1000), 0),)
    row["request"]["messages"][0]["content"] = [
        {"type": "text", "text": "word " * 2000, "cache_control": {"type": "ephemeral"}}
    ]
    found = replayed(tmp_path, [row])
    cost = sum(block.cost or Decimal(0) for block in found.blocks)
    assert cost == pytest.approx(Decimal("0.006459"), rel=Decimal("1e-3"))


def test_two_platforms_have_two_caches(tmp_path: Path) -> None:
    rows = [plain("go", used(10, 0, 6000), 0, LONG), plain("go", used(10, 0, 6000), 20, LONG)]
    rows[1]["request"]["model"] = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
    for text in ("gone", "go on"):
        role = "assistant" if text == "gone" else "user"
        rows[1]["request"]["messages"].append({"role": role, "content": text})
    assert causes(replayed(tmp_path, rows)) == {2: "routing_changed"}


def test_a_stretch_names_its_requests_in_the_order_of_the_log(tmp_path: Path) -> None:
    found = replayed(tmp_path, demo_session()[::-1])
    data: Any = replay_json(found, (), excerpts=True)
    (growth,) = data["sessions"][0]["growth"]
    assert (growth["from"], growth["to"]) == (1, 12)
