"""Simulated requests as a log: replay prices what `simulate` is willing to price, and names what it did."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.support.program import run
from tests.support.sessions import ROOT, START

TAIL = str(ROOT / "fixtures/evidence/uncached_tail.jsonl")
KIMI = str(ROOT / "fixtures/evidence/kimi.jsonl")
MODEL = "claude-sonnet-4-6"


def transcript(path: Path, seconds: list[float], model: str = MODEL) -> str:
    """A session by counters: 9,000 tokens at first and 3,000 more with each answer of 150."""
    rows = []
    for number, at in enumerate(seconds):
        usage = {
            "input_tokens": 0,
            "cache_read_input_tokens": 6_000 + 3_000 * number if number else 0,
            "cache_creation_input_tokens": 3_000 if number else 9_000,
            "output_tokens": 150,
        }
        message = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "content": [],
            "model": model, "usage": usage,
        }  # fmt: skip
        rows.append(
            {
                "type": "assistant", "sessionId": "s", "uuid": f"u{number}", "parentUuid": None,
                "isSidechain": False, "timestamp": (START + timedelta(seconds=at)).isoformat(),
                "requestId": f"r{number}", "version": "2.1.0", "message": message,
            }
        )  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def row_and_replay(log: str, strategy: str, out: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The row of a strategy, and the replay of what it emits."""
    words = ("simulate", log, "--strategy", strategy, "--emit", str(out), "--format", "json")
    ended = run(*words)
    assert ended.returncode == 0, ended.stderr
    replayed = run("replay", str(out), "--format", "json")
    assert replayed.returncode == 0, replayed.stderr
    return json.loads(ended.stdout)["rows"][-1], json.loads(replayed.stdout)


STRATEGIES_EMITTED = (
    "keep",
    "compact:trigger=4000,summary_tokens=100",
    "clear:trigger=30000,keep=1",
    "window:turns=2,summary_tokens=50",
    "last_messages:keep=2,summary_tokens=50",
)


@pytest.mark.parametrize("strategy", STRATEGIES_EMITTED)
def test_placeholders_are_equal_where_the_simulation_takes_them_for_the_same(
    tmp_path: Path, strategy: str
) -> None:
    """What was sent before and is sent again is read in both, so that nothing is left unexplained."""
    row, replayed = row_and_replay(TAIL, strategy, tmp_path / "out.jsonl")
    found = replayed["totals"]["simulated"]
    assert found["cost_without_counters"] == row["cost"]
    assert (found["input"], found["cache_read"]) == (row["input"], row["cache_read"])
    causes = {each["id"] for each in replayed["causes"]}
    assert causes.isdisjoint({"unexplained", "provider_side_miss", "concurrent_cold_start"})


@pytest.mark.parametrize("gap", [0.25, 1.0, 1.999, 2.0])
def test_a_summary_is_asked_for_behind_what_was_cached(tmp_path: Path, gap: float) -> None:
    """Request 3 of 15,000 tokens is over the trigger: the call ahead of it reads the 12,000 of request 2,
    however short the pause is, since it goes on from its answer."""
    log = transcript(tmp_path / "log.jsonl", [0, gap, 2 * gap])
    out = tmp_path / "out.jsonl"
    strategy = "compact:trigger=14000,summary_tokens=100"
    row, replayed = row_and_replay(log, strategy, out)
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    reads = [line["simulated"]["usage"]["cache_read_input_tokens"] for line in lines]
    assert reads == [0, 9_000, 12_000, 9_000]
    assert replayed["totals"]["simulated"]["cost_without_counters"] == row["cost"]
    assert "unexplained" not in {each["id"] for each in replayed["causes"]}
    starts = [datetime.fromisoformat(line["timestamp"]) for line in lines]
    assert starts == sorted(starts)


@pytest.mark.parametrize("model", ["kimi-k3", "gpt-6"])
def test_counters_of_another_provider_are_not_priced_by_these_rules(
    tmp_path: Path, model: str
) -> None:
    """Replay refuses the emitted bodies, so the simulation refuses the counters, with its reason."""
    out = tmp_path / "out.jsonl"
    log = transcript(tmp_path / "log.jsonl", [0, 20, 40], model)
    ended = run("simulate", log, "--strategy", "keep", "--emit", str(out))
    assert (ended.returncode, ended.stdout) == (3, b"")
    assert f"the cache rules of '{model}' are not known".encode() in ended.stderr
    assert not out.exists()
    named = run("simulate", log, "--model", MODEL, "--strategy", "keep", "--emit", str(out))
    assert named.returncode == 0
    assert run("replay", str(out)).returncode == 0


def test_a_log_of_kimi_is_refused_by_both() -> None:
    assert run("simulate", KIMI).returncode == 3


def test_what_other_providers_answered_is_left_out_and_counted(tmp_path: Path) -> None:
    one = Path(transcript(tmp_path / "a.jsonl", [0, 20])).read_text()
    two = Path(transcript(tmp_path / "b.jsonl", [0, 20], "kimi-k3")).read_text()
    both = tmp_path / "both.jsonl"
    both.write_text(one + two.replace('"sessionId": "s"', '"sessionId": "t"').replace("msg_", "k_"))
    ended = run("simulate", str(both), "--strategy", "keep", "--format", "json")
    found = json.loads(ended.stdout)
    assert found["requests"] == 2
    assert found["left_out"] == [
        {"reason": "the cache rules of 'kimi-k3' are not known", "requests": 2}
    ]
