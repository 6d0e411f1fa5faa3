"""The options of `ctxdoc simulate` by what they change."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.options import (
    LOG,
    document,
    rows_of,
    shows,
)
from tests.support.program import call
from tests.support.sessions import demo_session, lines


@shows("--strategy", "simulate")
def test_strategy_compares_those_that_are_named_beside_keep() -> None:
    rows = rows_of(LOG, "--strategy", "offload+clear:keep=1", "--strategy", "trim:high=5k")
    assert [row["strategy"] for row in rows] == ["keep", "offload+clear", "trim"]
    assert rows[1]["parameters"]["clear.keep"] == 1
    assert rows[2]["parameters"]["high"] == 5000


@shows("--placement", "simulate")
def test_placement_adds_rows_with_other_breakpoints() -> None:
    rows = rows_of(LOG, "--strategy", "keep", "--placement", "none", "--placement", "oracle")
    assert [row["placement"] for row in rows] == ["rolling", "none", "oracle"]
    assert rows[1]["cache_read"] == 0


@shows("--max-unseen", "simulate")
def test_max_unseen_is_the_share_of_the_history_that_a_choice_may_hide() -> None:
    for typed, share in (("0", "0.0000"), ("10%", "0.1000"), ("0.6", "0.6000"), ("100%", "1.0000")):
        found = document("simulate", LOG, "--max-unseen", typed)
        assert found["max_unseen"] == share
        for row in found["rows"]:
            if row["strategy"] != "defer_tools":
                assert row["within_limit"] == (float(row["unseen_share"]) <= float(share))
    whole = document("simulate", LOG, "--max-unseen", "0")
    assert whole["best_within"] == whole["best_whole"] == "keep_alive"
    every = document("simulate", LOG, "--max-unseen", "1")
    assert every["best_within"] == every["best"] == "offload"


@pytest.mark.parametrize("typed", ["", "ten", "-1", "101%", "1.5", "nan"])
def test_what_is_no_share_is_a_mistake_with_an_example(typed: str) -> None:
    ended = call("simulate", LOG, "--max-unseen", typed)
    assert ended.code == 2
    assert "write --max-unseen 10%" in ended.err


@shows("--assume", "simulate")
def test_assume_switches_what_nobody_documents() -> None:
    """Forty requests 20 s apart: behind 300 s the first entry of 8,000 tokens has ended, unless reads of longer
    ones renewed it. A summary at request 30 then reads it or writes it again (Opus 4.8: 6.25 and 0.50 USD)."""
    words = (
        "--prefix",
        "8000",
        "--per-turn",
        "1000",
        "--turns",
        "40",
        "--model",
        "claude-opus-4-8",
    )
    costs = []
    for name in ("shorter_entries_die", "shorter_entries_live"):
        found = document("simulate", *words, "--strategy", "handoff:at=30", "--assume", name)
        assert found["assumptions"]["shorter_entries"] == name.rpartition("_")[2]
        costs.append(float(found["rows"][1]["cost"]))
    assert costs[0] - costs[1] == pytest.approx(8_000 * (6.25 - 0.5) / 10**6)
    ended = call("simulate", *words, "--assume", "shorter_entries_liv")
    assert (ended.code, "shorter_entries_live" in ended.err) == (2, True)


@shows("--batch", "simulate")
def test_batch_is_half_of_everything() -> None:
    one, two = (rows_of(LOG, "--strategy", "keep", *more)[0] for more in ((), ("--batch",)))
    assert float(two["cost"]) == pytest.approx(float(one["cost"]) / 2)
    assert (two["cache_read"], two["cache_write"]) == (one["cache_read"], one["cache_write"])
    assert "priced as message batches" in " ".join(call("simulate", LOG, "--batch").out.split())


@shows("--model-for", "simulate")
def test_model_for_sends_the_requests_of_subagents_to_another_model(tmp_path: Path) -> None:
    """Sonnet 4.5 costs 3 and 15 USD a million, Haiku 4.5 a third of each; half is the agent below."""
    rows = demo_session()
    for number, row in enumerate(rows):
        row["session_id"] = "main" if number < 6 else "main/agent-1"
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    words = ("--strategy", "keep")
    alone = float(rows_of(str(path), *words, "--session", "main/agent-1")[0]["cost"])
    all_ = float(rows_of(str(path), *words)[0]["cost"])
    other = rows_of(str(path), *words, "--model-for", "subagents=claude-haiku-4-5")[0]
    # Its prompts are too short for the minimum of Haiku, 4,096 tokens, until they have grown.
    assert float(other["cost"]) < all_ - alone / 3
    for typed in ("subagents", "agents=claude-haiku-4-5", "subagents=nobody"):
        ended = call("simulate", path, "--model-for", typed)
        assert (ended.code, "write --model-for subagents=" in ended.err) == (2, True)
    ended = call("simulate", LOG, "--model-for", "subagents=claude-haiku-4-5")
    assert (ended.code, "no session below another one" in ended.err) == (2, True)


@shows("--plan", "simulate")
def test_plan_shows_the_changes_alone() -> None:
    text = call("simulate", LOG, "--plan").out
    assert text.startswith("PLAN  3 changes: ")
    assert "strategy" not in text.split()
    assert document("simulate", LOG, "--plan")["schema"] == "ctxdoc/plan/1"


@shows("--sweep", "simulate")
def test_sweeps_make_one_grid() -> None:
    (found,) = document(
        "simulate", LOG, "--sweep", "clear.keep=1,2", "--sweep", "clear.trigger=4k,5k,6k"
    )["searches"]
    assert found["parameters"] == ["clear.keep", "clear.trigger"]
    assert len(found["points"]) == 2 * 3


@shows("--optimize", "simulate")
def test_optimize_finds_the_cheapest_of_its_points() -> None:
    searches = document(
        "simulate", LOG, "--optimize", "trim.high=3k..6k", "--optimize", "compact.trigger"
    )["searches"]
    assert [found["parameters"] for found in searches] == [["trim.high"], ["compact.trigger"]]
    costs = [float(point["cost"]) for point in searches[0]["points"]]
    best = next(p for p in searches[0]["points"] if p["values"] == searches[0]["best"])
    assert float(best["cost"]) == min(costs)


@shows("--prefix", "simulate")
@shows("--per-turn", "simulate")
@shows("--turns", "simulate")
def test_a_made_up_session_sends_the_law() -> None:
    """n·P + a·n(n+1)/2 = 5 · 800 + 300 · 15."""
    (row,) = rows_of("--prefix", "800", "--per-turn", "300", "--turns", "5", "--strategy", "keep")
    assert row["input"] == 5 * 800 + 300 * 15
    (usual,) = rows_of("--per-turn", "300", "--strategy", "keep")
    assert (usual["requests"], usual["input"]) == (20, 300 * 210)


MADE = ("--prefix", "4000", "--per-turn", "1000", "--turns", "8", "--strategy")


@shows("--tool-share", "simulate")
def test_tool_share_is_what_offloading_can_take() -> None:
    seen = [
        rows_of(*MADE, "offload:over=100", "--tool-share", share)[1]["lost_tokens"]
        for share in ("0", "0.4", "0.8")
    ]
    assert seen[0] == 0 < seen[1] < seen[2]


@shows("--payload", "simulate")
def test_payload_is_sent_with_every_request() -> None:
    plain, large = (
        rows_of(*MADE, "keep", *more)[0]["input"] for more in ((), ("--payload", "5000"))
    )
    assert large == plain + 8 * 5000


@shows("--gap", "simulate")
def test_gap_beyond_the_lifetime_reads_nothing() -> None:
    """An entry of five minutes is read after 299 seconds, and is gone after 301."""
    read = [rows_of(*MADE, "keep", "--gap", gap)[0]["cache_read"] for gap in ("299", "301")]
    assert read[0] > 0 == read[1]


@shows("--output-tokens", "simulate")
def test_output_tokens_are_those_of_each_answer() -> None:
    (row,) = rows_of(*MADE, "keep", "--output-tokens", "30")
    assert row["output"] == 8 * 30


@shows("--seed", "simulate")
def test_seed_varies_and_can_be_had_again() -> None:
    one, same, other = (rows_of(*MADE, "keep", "--seed", seed)[0]["input"] for seed in "778")
    assert one == same != other


@shows("--emit", "simulate")
def test_emit_writes_a_log_that_says_when_it_has_no_text(tmp_path: Path) -> None:
    path = tmp_path / "emitted.jsonl"
    ended = call("simulate", LOG, "--strategy", "keep", "--emit", path)
    assert (ended.code, ended.err) == (0, "")
    assert len(path.read_text().splitlines()) == 12
    made = (*MADE, "keep", "--emit", str(path))
    assert "placeholders stand for their text" in call("simulate", *made).err
    assert call("simulate", *made, "--quiet").err == ""
    assert len(path.read_text().splitlines()) == 8


@shows("--verbose", "simulate")
def test_verbose_lists_what_the_model_would_not_see() -> None:
    words = ("simulate", LOG, "--strategy", "offload:over=300")
    assert "Not seen under" not in call(*words).out
    assert "Not seen under" in call(*words, "--verbose").out
    assert "lost_blocks" in document(*words, "--verbose")["rows"][1]
