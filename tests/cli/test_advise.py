"""`ctxdoc advise` as people call it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ctxdoc
from tests.support.options import LOG, shows
from tests.support.program import call

MADE = ("--prefix", "8000", "--per-turn", "2000", "--turns", "30", "--model", "claude-opus-4-8")
NOW = ("--now", "2026-11-02T09:12:00Z")


def document(*words: str) -> dict[str, Any]:
    ended = call("advise", *words, "--format", "json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)  # type: ignore[no-any-return]


def test_the_document_has_its_keys_in_order() -> None:
    found = document(*MADE)
    assert list(found) == [
        "schema", "session", "model", "requests", "prompt_tokens", "prefix_tokens", "history_tokens",
        "per_call_tokens", "window_tokens", "ttl", "last_call_at", "now", "alive_for_seconds", "calls",
        "summary_tokens", "advice", "saved", "ways", "best_window",
    ]  # fmt: skip
    assert found["schema"] == "ctxdoc/advise/1"
    assert (found["prompt_tokens"], found["prefix_tokens"]) == (68_000, 8_000)
    assert [way["way"] for way in found["ways"]] == ["go_on", "compact", "handoff", "wait"]


def test_the_first_line_is_what_to_do() -> None:
    text = call("advise", *MADE).out
    assert text.startswith("ADVICE  hand off to a new session with a summary")
    assert "it pays from call" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    few = call("advise", *MADE, "--calls", "2").out
    assert few.startswith("ADVICE  go on")


def test_each_strategy_is_one_that_simulate_takes() -> None:
    for way in document(*MADE)["ways"]:
        found = ctxdoc.simulate(prefix=8000, per_turn=2000, turns=40, strategy=way["strategy"])
        assert found.comparison.rows[-1].name == way["strategy"].partition(":")[0]


@shows("--now", "advise")
def test_now_decides_whether_the_cache_is_warm() -> None:
    warm = document(LOG, "--now", "2026-11-02T09:11:00Z")
    # The last call was at 09:10:50: ten seconds of its five minutes are over.
    assert (warm["alive_for_seconds"], warm["ttl"]) == (290, "5m")
    cold = document(LOG, "--now", "2026-11-02T10:00:00+00:00")
    assert cold["alive_for_seconds"] == 0
    assert cold["ways"][0]["next_call"] == cold["ways"][0]["next_call_after_pause"]
    assert float(warm["ways"][0]["next_call"]) < float(cold["ways"][0]["next_call"])


@shows("--calls", "advise")
def test_calls_are_those_that_are_weighed() -> None:
    one, ten = (document(*MADE, "--calls", number) for number in ("1", "10"))
    assert (one["calls"], ten["calls"]) == (1, 10)
    assert one["ways"][0]["cost"] == one["ways"][0]["next_call"]
    assert float(ten["ways"][0]["cost"]) > float(one["ways"][0]["cost"])


@shows("--summary", "advise")
def test_summary_is_its_tokens() -> None:
    short, long = (document(*MADE, "--summary", number) for number in ("500", "5000"))
    assert (short["summary_tokens"], long["summary_tokens"]) == (500, 5_000)
    assert float(short["ways"][1]["once"]) < float(long["ways"][1]["once"])


@shows("--prefix", "advise")
@shows("--per-turn", "advise")
@shows("--turns", "advise")
@shows("--gap", "advise")
def test_a_made_up_session_is_given_by_its_numbers() -> None:
    found = document("--prefix", "500", "--per-turn", "300", "--turns", "4", "--gap", "60")
    assert (found["requests"], found["prompt_tokens"], found["per_call_tokens"]) == (4, 1_700, 300)


@shows("--session", "advise")
def test_session_takes_one_by_the_beginning_of_its_name() -> None:
    name = document(LOG, *NOW)["session"]
    assert document(LOG, *NOW, "--session", name[:2])["session"] == name[:2]
    assert call("advise", LOG, "--session", "nobody").code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "neither a log nor a made-up session"),
        ((LOG, "--prefix", "5"), "leave out one of them"),
        ((LOG, "--now", "soon"), "is no time"),
        ((LOG, "--now", "2020-01-01"), "before the last call"),
        ((LOG, "--calls", "0"), "--calls is a number from 1"),
        ((LOG, "--summary", "-1"), "--summary is a number from 1"),
    ],
)
def test_a_mistake_says_what_to_write(words: tuple[str, ...], said: str) -> None:
    ended = call("advise", *words)
    assert ended.code == 2
    assert said in ended.err


def test_model_prices_by_another_model() -> None:
    """Of 60,000 tokens read and 2,000 written, Opus 4.8 takes 5/3 of what Sonnet 4.6 does (5 to 3 USD)."""
    sonnet, opus = (
        document(*MADE[:6], "--model", name) for name in ("claude-sonnet-4-6", "claude-opus-4-8")
    )
    one, two = (float(found["ways"][0]["next_call"]) for found in (sonnet, opus))
    assert two == pytest.approx(one * 5 / 3)


def test_other_programs_get_the_ways_as_rows() -> None:
    lines = call("advise", *MADE, "--format", "csv").out.splitlines()
    assert lines[0].startswith("way,strategy,once,next_call")
    assert len(lines) == 5
    found = ctxdoc.advise(prefix=8000, per_turn=2000, turns=30, model="claude-opus-4-8")
    assert found.totals.advice == found.outlook.best.id == "handoff"
    assert [row["way"] for row in found.rows] == ["go_on", "compact", "handoff", "wait"]
    assert found.findings == []
