"""One set of totals: text, JSON, gate and advice say the same, and what each number rests on."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.gate.limits import LIMITS
from ctxdoc.ledger.advice import advise
from ctxdoc.ledger.forecast import falls_of, forecast
from ctxdoc.ledger.ledger import Ledger, replay
from ctxdoc.ledger.losses import losses_of
from ctxdoc.ledger.pauses import idle_of
from ctxdoc.ledger.totals import totals_of
from ctxdoc.reading.load import read_log
from ctxdoc.reports.json.replay import replay_json
from ctxdoc.reports.replay import replay_report
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs
from tests.cli.test_cli import run
from tests.support.sessions import (
    ROOT,
    SESSION,
    START,
    Body,
    clock_goes_on,
    first_body,
    lines,
    marked,
    prose,
    record,
    session,
    tools_move,
)

MILLION = Decimal(1_000_000)
LOGS = [
    path
    for folder in ("logs", "formats/native", "formats/vcrpy", "formats/har", "formats/httpmock",
                   "formats/bedrock_log", "formats/claude_tap", "threads")
    for path in sorted((ROOT / "fixtures" / folder).iterdir())
    if path.suffix not in (".md", ".png")
]  # fmt: skip


def replayed(folder: Path, records: list[Body]) -> Ledger:
    path = folder / "log.jsonl"
    path.write_text(lines(records), encoding="utf-8")
    return replay(read_log([str(path)], condense=True))


def measured(found: Ledger, name: str) -> Any:
    return next(limit for limit in LIMITS if limit.name == name).measure(found).value


def shown(found: Ledger) -> str:
    from ctxdoc.outputs import OUTPUTS, Style

    return " ".join(OUTPUTS["text"].write(replay_report(found), Style(width=300)).split())


def data_of(found: Ledger) -> Any:
    return replay_json(found, (), excerpts=True)


EVENTS = st.sampled_from(["", "clock", "tools", "pause", "no counters", "refused", "again"])


@given(st.lists(EVENTS, min_size=1, max_size=7))
def test_text_json_gate_and_advice_rest_on_the_same_totals(
    tmp_path_factory: pytest.TempPathFactory, events: list[str]
) -> None:
    changes = {"clock": clock_goes_on, "tools": tools_move}
    made = {n: changes[e] for n, e in enumerate(events, start=1) if e in changes}
    pauses = {n: 400 for n, e in enumerate(events, start=1) if e == "pause"}
    records = session(made, pauses, turns=len(events))
    for number, event in enumerate(events):
        if event == "no counters":
            records[number]["response"] = None
        if event == "refused":
            error = {"type": "error", "error": {"type": "overloaded_error", "message": "no"}}
            records[number] |= {"response": error, "status": 529}
        if event == "again" and number:
            records[number]["response"] = records[number - 1]["response"]
    found = replayed(tmp_path_factory.mktemp("log"), records)
    totals, data = totals_of(found.rows), data_of(found)["totals"]

    rows = [row for row in found.rows if not row.repeated and row.counters is not None]
    assert totals.priced.amount == (sum(row.cost or 0 for row in rows) if rows else None)
    reported = [row for row in rows if row.reported is not None]
    assert data["requests_with_counters"] == len(reported)
    assert data["cost"] is None or Decimal(data["cost"]) == sum(row.cost or 0 for row in reported)
    assert totals.priced.amount is None or totals.priced.amount == (
        (totals.cost.amount or 0) + (totals.guessed_cost.amount or 0)
    )
    lost = [row.miss for row in rows if row.miss is not None and row.miss.tokens is not None]
    if rows:
        assert Decimal(data["lost_cost"]) == sum((miss.cost or 0 for miss in lost), Decimal(0))
        gated = sum((m.cost or 0 for m in lost if m.avoidable is not False), Decimal(0))
        assert measured(found, "max_lost_cost") == Decimal(data["gated_cost"]) == gated
        ratio = measured(found, "min_hit_ratio")
        assert data["hit_ratio"] == f"{ratio:.4f}"
        assert f"read {float(ratio):.0%}".replace("0%", "") in shown(found)
    assert data["basis"]["cost"]["simulated"] == 0
    assert totals.oracle.amount is None or totals.oracle.amount <= (totals.cost.amount or 0)
    for item in advise(found):
        if item.id in ("timestamp_in_prefix", "tool_order"):
            assert item.cost == next(
                loss.cost for loss in losses_of(found.rows) if loss.cause == item.id
            )


def test_half_of_a_log_without_counters_is_judged_like_the_other_half(tmp_path: Path) -> None:
    """The whole log loses to a clock at 5, a pause at 8 and a tool at 10; 7 to 12 have no counters."""
    records = [json.loads(line) for line in SESSION.read_text(encoding="utf-8").splitlines()]
    for row in records[6:]:
        row["response"] = None
    found = replayed(tmp_path, records)
    totals, data = totals_of(found.rows), data_of(found)["totals"]
    assert totals.lost.count == 3
    assert totals.lost.basis.origin == data["basis"]["lost_cost"]["origin"] == "mixed"
    assert (data["basis"]["cost"]["requests"], data["basis"]["cost"]["origin"]) == (6, "reported")
    assert f"${totals.lost.amount:.4f} in 3 avoidable misses" in shown(found)
    path = tmp_path / "log.jsonl"
    dear = str((totals.lost.amount or Decimal(0)) - Decimal("0.001"))
    cheap = str((totals.lost.amount or Decimal(0)) + Decimal("0.001"))
    allow = ("--allow", "timestamp_in_prefix", "--allow", "tool_order")
    assert run("gate", str(path), *allow, "--max-lost-cost", dear).returncode == 1
    assert run("gate", str(path), *allow, "--max-lost-cost", cheap).returncode == 0


def test_a_headline_over_partly_priced_requests_says_so_first(tmp_path: Path) -> None:
    records = session({}, turns=4)
    for row in records[1:]:
        row["request"]["model"] = row["response"]["model"] = "claude-unheard-of-9"
    found = replayed(tmp_path, records)
    cost = found.rows[0].cost
    text = shown(found)
    assert text.startswith(f"REPLAY 1 of 4 requests is priced: ${cost:.4f} of them;")
    assert "3 requests of unpriced models (claude-unheard-of-9)" in text
    assert data_of(found)["totals"]["unpriced"] == [{"model": "claude-unheard-of-9", "requests": 3}]


def test_fast_mode_that_has_no_price_is_named(tmp_path: Path) -> None:
    body = marked(first_body(random.Random(3), "claude-opus-4-7"))
    usage = {"input_tokens": 3, "output_tokens": 5, "cache_creation_input_tokens": 4000}
    found = replayed(tmp_path, [record(body, START, {**usage, "speed": "fast"}, 1)])
    assert found.rows[0].cost is None
    assert "claude-opus-4-7 in fast mode" in shown(found)


def test_an_own_price_is_marked_as_such(tmp_path: Path) -> None:
    body = marked(first_body(random.Random(3), "claude-mythos-5-1"))
    usage = {"input_tokens": 1000, "output_tokens": 10, "cache_read_input_tokens": 4000}
    found = replayed(tmp_path, [record(body, START, usage, 1)])
    # 1,000·10 + 4,000·0.25 + 10·50 = 11,500 per million
    assert found.rows[0].cost == Decimal("0.0115")
    assert "claude-mythos-5-1: a price of our own table (pricing page, 2026-10-10)" in shown(found)
    (own,) = data_of(found)["totals"]["own_prices"]
    assert own == {"model": "claude-mythos-5-1", "source": "pricing page", "date": "2026-10-10"}


def test_counters_that_contradict_each_other_have_no_share(tmp_path: Path) -> None:
    """900 cached tokens of a prompt of 500: what share of the prompt was read nobody knows."""
    path = tmp_path / "chat.jsonl"
    usage = {"prompt_tokens": 500, "completion_tokens": 5,
             "prompt_tokens_details": {"cached_tokens": 900}}  # fmt: skip
    request = {"model": "grok-4", "messages": [{"role": "user", "content": "hello"}]}
    answer = {"id": "a", "object": "chat.completion", "model": "grok-4", "usage": usage,
              "choices": [{"message": {"role": "assistant", "content": "hi"}}]}  # fmt: skip
    path.write_text(json.dumps({"request": request, "response": answer}) + "\n")
    found = replay(read_log([str(path)]))
    assert found.rows[0].reported is not None
    assert found.rows[0].reported.contradiction
    data, text = data_of(found)["totals"], shown(found)
    assert data["hit_ratio"] is None
    assert data["contradicting_requests"] == 1
    assert "read - (not known: 1 request contradicts itself" in text
    assert "100%" not in text


def test_nothing_was_lost_is_not_said_where_nothing_was_checked(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    rows = []
    for number in range(3):
        usage = {"prompt_tokens": 5000 + number, "completion_tokens": 5}
        request = {"model": "gpt-5.4", "messages": [{"role": "user", "content": f"hello {number}"}]}
        answer = {"id": f"a{number}", "object": "chat.completion", "model": "gpt-5.4",
                  "usage": usage, "choices": []}  # fmt: skip
        rows.append({"request": request, "response": answer, "session_id": "s"})
    path.write_text(lines(rows))
    found = replay(read_log([str(path)]))
    text = shown(found)
    assert "nothing was lost" not in text
    assert "no miss could be checked" in text
    assert data_of(found)["totals"]["lost_cost"] is None
    assert measured(found, "max_lost_cost") is None


def test_a_log_of_which_nothing_is_understood_ends_with_3(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    request = {"model": "gpt-5.4", "messages": [{"role": "user", "content": "hello"}]}
    path.write_text(json.dumps({"request": request, "response": None}) + "\n")
    assert run("replay", str(path)).returncode == 3


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_replay_and_simulation_have_one_bound(path: Path) -> None:
    """Where counters give sizes and answers of all requests, each has the same bound."""
    found = replay(read_log([str(path)], condense=True))
    rows = [row for row in found.rows if row.oracle is not None and row.reported is not None]
    if not rows or len(rows) < len(found.rows):
        pytest.skip("not every request has a body and counters")
    simulated = recorded_session(read_log([str(path)], condense=True))
    places = [PLACEMENTS[name] for name in ("oracle", "rolling", "recorded", "none")]
    bound, *others = Simulation(simulated).rows(parse_specs("keep"), places)
    assert totals_of(found.rows).oracle.amount == bound.cost
    if len(rows) == len(simulated.calls):
        assert all((row.cost or 0) >= (bound.cost or 0) for row in others)


def test_the_bound_reads_and_writes_nothing_below_the_minimum(tmp_path: Path) -> None:
    """A prompt of 900 tokens sent twice on a model that caches from 1,024: 2·900·3 = 5,400 per million
    at best. With 1,100 it is written once and read once: 1,100·3.75 + 1,100·0.3 = 4,455."""
    for size, dollars in ((900, "0.0054"), (1100, "0.004455")):
        body = marked(first_body(random.Random(3)))
        body["tools"] = []
        usage = {"input_tokens": size, "output_tokens": 0}
        records = [record(body, START + timedelta(seconds=20 * n), usage, n) for n in range(2)]
        found = replayed(tmp_path, records)
        assert totals_of(found.rows).oracle.amount == Decimal(dollars)


def test_where_no_body_was_compared_there_is_no_bound() -> None:
    found = replay(read_log([str(ROOT / "fixtures" / "formats" / "claude_code")]))
    assert all(row.oracle is None for row in found.rows)
    assert data_of(found)["totals"]["cost_oracle"] is None
    assert "- at best" in shown(found)


def paused(tmp_path: Path, *pauses: int, turns: int = 4, size: int = 0) -> Ledger:
    """A session with these pauses ahead of its last requests."""
    gaps = {turns - len(pauses) + 1 + n: pause for n, pause in enumerate(pauses)}
    del size
    return replayed(tmp_path, session({}, gaps, turns=turns))


@pytest.mark.parametrize(("pause", "reads"), [(300, 1), (430, 1), (599, 1), (600, 2), (3599, 11)])
def test_a_keep_alive_is_a_read_of_the_cached_prefix_within_each_five_minutes(
    pause: int, reads: int, tmp_path: Path
) -> None:
    found = paused(tmp_path, pause)
    idle = idle_of(found)
    assert idle is not None
    before = found.rows[2].reported
    assert before is not None
    cached = before.cache_read + before.cache_write
    assert (idle.pauses, idle.short, idle.longest) == (1, 1, 0)
    assert idle.keep_alive.extra == reads * cached * Decimal("0.3") / MILLION
    miss = found.rows[3].miss
    assert miss is not None
    assert idle.keep_alive.saved == idle.cost == miss.cost


def test_an_hours_lifetime_costs_its_premium_on_every_other_write(tmp_path: Path) -> None:
    """Written for an hour is 6 instead of 3.75 a million; the write that it saves pays nothing."""
    found = paused(tmp_path, 430)
    idle, miss = idle_of(found), found.rows[3].miss
    assert idle is not None
    assert miss is not None
    written = sum(row.reported.cache_write_5m for row in found.rows if row.reported)
    premium = (written - (miss.tokens or 0)) * (Decimal(6) - Decimal("3.75")) / MILLION
    assert idle.hour.extra == premium
    text = shown(found)
    assert f"${idle.cost:.4f} in 1 pause over the lifetime" in text
    assert idle.hour.pays == (idle.hour.saved > premium)
    data = data_of(found)["totals"]["idle"]
    assert data["hour_ttl"]["pays"] is idle.hour.pays
    assert Decimal(data["keep_alive"]["extra_cost"]) == idle.keep_alive.extra


def test_a_pause_of_an_hour_is_told_and_nothing_is_advised_against_it(tmp_path: Path) -> None:
    found = paused(tmp_path, 3600)
    idle = idle_of(found)
    assert idle is not None
    assert (idle.short, idle.longest, idle.keep_alive.extra) == (0, 1, 0)
    (advice,) = (item for item in advise(found) if item.id == "ttl_expired")
    assert "no lifetime bridges" in advice.what
    assert "1 pause over the lifetime" in shown(found)


def test_where_neither_pays_it_says_so(tmp_path: Path) -> None:
    """Pauses of 59 minutes: eleven reads at 0.1 are nearly one write at 1.25 less one read at 0.1, and a
    premium of 0.75 on all writes of a log that loses little to them is more than they save."""
    found = paused(tmp_path, 3590, turns=12)
    idle = idle_of(found)
    assert idle is not None
    assert idle.keep_alive.pays is (idle.keep_alive.saved > idle.keep_alive.extra)
    if not (idle.keep_alive.pays or idle.hour.pays):
        assert "neither pays" in shown(found)


def test_waste_stands_among_the_causes(tmp_path: Path) -> None:
    rng = random.Random(3)
    body, records = first_body(rng), []
    for number in range(3):
        sent = marked(body)
        del sent["messages"][-1]["content"][-1]["cache_control"]
        records.append(record(sent, START + timedelta(seconds=20 * number), None, number))
        body["messages"] += [
            {"role": "assistant", "content": [{"type": "text", "text": prose(rng, 9000)}]},
            {"role": "user", "content": [{"type": "text", "text": prose(rng, 9000)}]},
        ]
    found = replayed(tmp_path, records)
    kinds = {(cause["id"], cause["kind"]) for cause in data_of(found)["causes"]}
    assert kinds == {("breakpoint_missing_on_history", "waste")}


def test_what_a_prefix_lacks_to_be_cached_is_said(tmp_path: Path) -> None:
    """600 tokens are marked; Haiku 4.5 caches from 4,096."""
    body = marked(first_body(random.Random(3), "claude-haiku-4-5"))
    body["messages"][0]["content"][0].pop("cache_control", None)
    usage = {"input_tokens": 3000, "output_tokens": 5}
    found = replayed(tmp_path, [record(body, START, usage, 1)])
    below = found.rows[0].below
    assert below is not None
    assert below.missing == 4096 - below.tokens > 0
    (request,) = data_of(found)["requests"]
    assert request["below_minimum"] == {
        "tokens": below.tokens, "minimum": 4096, "missing": below.missing,
    }  # fmt: skip
    assert f"it is {below.missing:,} tokens short of 4,096 (#1)" in shown(found)
    # As much is enough for another model.
    body["model"] = "claude-opus-5"
    assert replayed(tmp_path, [record(body, START, usage, 1)]).rows[0].below is None


def test_a_repeated_record_is_counted_once(tmp_path: Path) -> None:
    records = session({}, turns=3)
    records[2] = {**records[1]}
    found = replayed(tmp_path, records)
    repeated = sum(row.repeated for row in found.rows)
    merged = sum(row.request.records > 1 for row in found.rows)
    assert repeated + merged == 1
    log = data_of(found)["log"]["merged"]
    assert log["repeated_requests"] + log["responses"] == 1
    assert "repeats a response" in shown(found) or "records of 1 response were merged" in shown(
        found
    )


def test_an_advisor_stands_beside_the_counters_with_its_own_price(tmp_path: Path) -> None:
    """2,000 tokens at 5 and 100 of output at 25: 12,500 per million."""
    body = marked(first_body(random.Random(3)))
    usage = {
        "input_tokens": 1000, "output_tokens": 10,
        "iterations": [
            {"type": "message", "input_tokens": 1000, "output_tokens": 10},
            {"type": "advisor_message", "model": "claude-opus-4-8", "input_tokens": 2000,
             "output_tokens": 100},
        ],
    }  # fmt: skip
    found = replayed(tmp_path, [record(body, START, usage, 1)])
    (advisor,) = data_of(found)["requests"][0]["advisor"]
    assert advisor["model"] == "claude-opus-4-8"
    assert Decimal(advisor["cost"]) == Decimal("0.0125")
    # 1,000·3 + 10·15 = 3,150 per million beside it
    assert found.rows[0].cost == Decimal("0.01565")


USAGE = {
    "input_tokens": 1_000, "output_tokens": 500, "cache_read_input_tokens": 20_000,
    "cache_creation_input_tokens": 4_000,
}  # fmt: skip
RIGHT = Decimal("0.0315")
"""1,000·3 + 20,000·0.3 + 4,000·3.75 + 500·15 = 31,500 per million."""


def verdict(tmp_path: Path, cost: str, model: str = "claude-sonnet-4-5", **usage: Any) -> Any:
    """Cause and confidence of a diagnosis of two requests, the second with a tracker's cost."""
    body = marked(first_body(random.Random(3), model))
    first = record(body, START, {**USAGE, **usage}, 1)
    longer = marked(first_body(random.Random(3), model))
    second = record(longer, START + timedelta(seconds=20), {**USAGE, **usage}, 2)
    second |= {"cost_usd": float(cost)}
    path = tmp_path / "log.jsonl"
    path.write_text(lines([first, second]))
    from ctxdoc.diagnosis.attribution import iter_cases
    from ctxdoc.diagnosis.causes.usage_wrong_rate import find_wrong_rate

    *_, last = iter_cases(read_log([str(path)]).requests)
    found = find_wrong_rate(last)
    return None if found is None else (str(found.confidence), found.explanation)


@pytest.mark.parametrize(
    ("cost", "model", "usage", "says"),
    [
        # half of it
        ("0.01575", "claude-sonnet-4-5", {}, "the price of a batch"),
        # in full where it is a batch
        ("0.0315", "claude-sonnet-4-5", {"service_tier": "batch"}, "without the price of a batch"),
        # 1,000·3 + 20,000·0.3 + 4,000·3.75: the output left out
        ("0.024", "claude-sonnet-4-5", {}, "no output"),
        # Haiku 5.5, a prompt of 125,000: 1,000·0.5 + 120,000·0.05 + 4,000·0.625 + 500·2.5 = 10,250 is
        # right; a fifth of it is the row of shorter prompts
        ("0.00205", "claude-haiku-5-5", {"cache_read_input_tokens": 120_000}, "a long prompt"),
        # 25,000 tokens: 1,000·0.1 + 20,000·0.01 + 4,000·0.125 + 500·0.5 = 1,050 is right; five times
        ("0.00525", "claude-haiku-5-5", {}, "a short prompt"),
        # Opus 5.5 fast costs twice as much: 1,000·8 + 20,000·0.4 + 4,000·10 + 500·40 = 76,000
        ("0.076", "claude-opus-5-5", {}, "the price of fast mode"),
        ("0.038", "claude-opus-5-5", {"speed": "fast"}, "without the price of fast mode"),
        # Sonnet 4.6 in the US: 1.1 of 0.0315 is right
        ("0.0315", "claude-sonnet-4-6", {"inference_geo": "us"}, "without the tenth"),
        ("0.03465", "claude-sonnet-4-6", {}, "a tenth more"),
    ],
)
def test_one_known_mistake_that_fits_is_certain(
    cost: str, model: str, usage: Body, says: str, tmp_path: Path
) -> None:
    found = verdict(tmp_path, cost, model, **usage)
    assert found is not None
    assert says in found[1]
    # 1.1 · (5,000·3 + 6,000 + 7,500) = 31,350: writes as plain input fit the one with the US too.
    assert found[0] == ("likely" if "inference_geo" in usage else "certain")


@pytest.mark.parametrize(
    ("cost", "found"),
    [
        # within a hundredth
        ("0.0315", False), ("0.0317", False),
        # cents: half a unit of the last place is 0.005
        ("0.03", False), ("0.04", True),
        # off by less than 5 %, and no known mistake
        ("0.0325", False),
        # 2.23 times, and no known mistake
        ("0.0701", True),
    ],
)  # fmt: skip
def test_a_cost_that_is_far_off_is_likely_wrong_though_no_mistake_fits(
    cost: str, found: bool, tmp_path: Path
) -> None:
    said = verdict(tmp_path, cost)
    assert (said is not None) == found
    if said is not None and cost == "0.0701":
        assert said[0] == "likely"
        assert "2.23 times the right one, $0.0315" in said[1]


def compacted(body: Body) -> None:
    """A summary stands for the history."""
    del body["messages"][1:]
    text = "This session is being continued from a previous conversation. Summary: "
    body["messages"][0]["content"] = [{"type": "text", "text": text + prose(random.Random(5), 900)}]


def test_no_forecast_goes_past_a_compaction_that_the_log_shows(tmp_path: Path) -> None:
    found = replayed(tmp_path, session({7: compacted}, turns=10))
    (first, second) = sorted(found.growth, key=lambda grown: grown.rows)
    falls = falls_of(found)
    assert (first.rows, second.rows) == ((1, 2, 3, 4, 5, 6), (7, 8, 9, 10))
    assert forecast(first.fit, found.grown_rows(first), falls[first.rows]) is None
    ahead = forecast(second.fit, found.grown_rows(second), falls[second.rows])
    assert ahead is not None
    assert (ahead.turns_left, ahead.falls_at) == (None, first.fit.latest)
    assert ahead.falls_in == int(
        (first.fit.latest - second.fit.latest) / (second.fit.per_turn or 1)
    )
    longer = replayed(tmp_path, session({7: compacted}, turns=14))
    text = shown(longer)
    assert "is full in" not in text
    assert f"the log shows prompts fall at {first.fit.latest:,} tokens" in text
    (one, two) = (grown for each in data_of(found)["sessions"] for grown in each["growth"])
    assert (one["turns_left"], one["next"]) == (None, [])
    assert (two["turns_left"], two["falls_at_tokens"]) == (None, first.fit.latest)


def test_a_session_that_begins_anew_is_no_fall_of_the_one_before(tmp_path: Path) -> None:
    records = session({}, turns=6)
    again = [{**row, "session_id": "other"} for row in session({}, turns=3)]
    for number, row in enumerate(again):
        at = START + timedelta(seconds=400 + 20 * number)
        row |= {"timestamp": at.isoformat(), "response": {**row["response"], "id": f"o{number}"}}
    found = replayed(tmp_path, [{**row, "session_id": "one"} for row in records] + again)
    assert falls_of(found) == {}
