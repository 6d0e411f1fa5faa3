"""Counts from the API: asked once, kept on disk, bounded, and used where a log has no counters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from ctxdoc.ledger.ledger import replay
from ctxdoc.live.count_tokens import TokenCounter, count_body, with_counts
from ctxdoc.reading.load import read_log
from tests.cli.test_cli import ROOT
from tests.support.api_server import ApiServer
from tests.support.sessions import demo_session, lines

KEY = "sk-ant-api03-never-to-be-shown-000"
Body = dict[str, Any]


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer().running() as server:
        yield server


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The demo session without its counters."""
    rows = demo_session()
    for row in rows:
        row["response"] = None
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    return path


def counter(api: ApiServer, path: Path, **how: Any) -> TokenCounter:
    client = anthropic.Anthropic(base_url=api.url, api_key=KEY, max_retries=0)
    return TokenCounter(client, path, **how)


def test_counted_prompts_have_the_size_that_was_counted(
    api: ApiServer, log: Path, tmp_path: Path
) -> None:
    """The stand-in counts as it bills: sizes are those of the session's own counters."""
    found = with_counts(read_log([str(log)], condense=True), counter(api, tmp_path / "c.sqlite"))
    billed = [row["response"]["usage"] for row in demo_session()]
    whole = [
        usage["input_tokens"]
        + usage["cache_read_input_tokens"]
        + usage["cache_creation_input_tokens"]
        for usage in billed
    ]
    assert [request.counted for request in found.requests] == whole
    rows = replay(found).rows
    assert [row.simulated.input for row in rows if row.simulated] == whole
    read = [usage["cache_read_input_tokens"] for usage in billed]
    for row, tokens in zip(rows, read, strict=True):
        assert row.simulated is not None
        assert abs(row.simulated.cache_read - tokens) <= max(20, 0.03 * tokens)


def test_a_prompt_is_asked_once_wherever_its_breakpoints_stand(
    api: ApiServer, tmp_path: Path
) -> None:
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }
    marked = json.loads(json.dumps(body))
    marked["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    path = tmp_path / "deep" / "c.sqlite"
    first = counter(api, path)
    assert first.count(body) == first.count(marked)
    assert (first.asked, first.known, api.calls) == (1, 1, 1)
    first.close()
    second = counter(api, path)
    assert second.count(body) is not None
    assert (second.asked, api.calls) == (0, 1)
    second.close()
    assert KEY.encode() not in path.read_bytes()


def test_retry_after_is_obeyed_and_requests_are_apart(api: ApiServer, tmp_path: Path) -> None:
    slept: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    api.plan = [{"status": 429, "headers": {"retry-after": "7"}}]
    found = counter(api, tmp_path / "c.sqlite", per_minute=60, sleep=sleep, clock=lambda: now[0])
    for text in ("one", "two"):
        assert found.count({"model": "m", "messages": [{"role": "user", "content": text}]})
    # 7 s after the first answer; then the second prompt, a second after the repeat of the first.
    assert slept == [7.0, 1.0]
    assert found.asked == 3


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ([{"status": 401}], "status 401"),
        ([{"status": 429, "headers": {"retry-after": "0"}}] * 3, "status 429"),
        ([{"status": 500}] * 3, "status 500"),
    ],
)
def test_what_fails_stops_the_counting_and_not_the_replay(
    api: ApiServer, log: Path, tmp_path: Path, plan: list[Body], said: str
) -> None:
    times, api.plan = len(plan), plan
    found = counter(api, tmp_path / "c.sqlite", sleep=lambda _: None)
    counted = with_counts(read_log([str(log)], condense=True), found)
    assert said in found.stopped
    assert all(request.counted is None for request in counted.requests)
    assert found.asked == times
    assert len(replay(counted).rows) == 12


def test_a_model_that_is_not_known_leaves_the_others(api: ApiServer, tmp_path: Path) -> None:
    api.plan = [{"status": 404}]
    found = counter(api, tmp_path / "c.sqlite")
    asked = [
        found.count({"model": m, "messages": [{"role": "user", "content": t}]})
        for m, t in (("x", "a"), ("x", "b"), ("y", "a"))
    ]
    assert [tokens is None for tokens in asked] == [True, True, False]
    assert (found.asked, found.refused, found.stopped) == (2, 1, "")


def test_another_programs_file_is_no_fault(api: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_bytes(b"no database at all, " * 400)
    found = counter(api, path)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert found.count(body) == found.count(body)
    assert api.calls == 1


def test_a_prompt_that_is_refused_leaves_the_others(api: ApiServer, tmp_path: Path) -> None:
    api.plan = [{"status": 400}]
    found = counter(api, tmp_path / "c.sqlite")
    bodies = [{"model": "m", "messages": [{"role": "user", "content": t}]} for t in "ab"]
    assert found.count(bodies[0]) is None
    assert found.count(bodies[1]) is not None


def test_a_disk_that_takes_nothing_is_no_fault(api: ApiServer) -> None:
    found = counter(api, Path("/dev/null/nowhere/c.sqlite"))
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    assert found.count(body) == found.count(body)
    assert api.calls == 1


def test_requests_with_counters_and_other_models_are_not_asked(
    api: ApiServer, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    rows = demo_session()[:2]
    rows[1]["response"] = None
    rows[1]["request"]["model"] = "gpt-9"
    path.write_text(lines(rows))
    with_counts(read_log([str(path)], condense=True), counter(api, tmp_path / "c.sqlite"))
    assert api.calls == 0
    (first, _) = read_log([str(path)], condense=True).requests
    body = count_body(first)
    assert body is not None
    assert set(body) == {"model", "messages", "system", "tools"}


def command(api: ApiServer, tmp_path: Path, *words: str, key: str = KEY) -> Any:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "PATH" or name.startswith("COVERAGE_PROCESS")
    }
    return subprocess.run(
        [sys.executable, "-m", "ctxdoc", *words, "--count-tokens"],
        capture_output=True, cwd=ROOT, timeout=60, check=False,
        env={
            **kept, "ANTHROPIC_BASE_URL": api.url, "XDG_CACHE_HOME": str(tmp_path / "cache"),
            **({"ANTHROPIC_API_KEY": key} if key else {}),
        },
    )  # fmt: skip


@pytest.mark.parametrize("name", ["replay", "simulate", "diagnose"])
def test_every_command_can_count(api: ApiServer, log: Path, tmp_path: Path, name: str) -> None:
    ended = command(api, tmp_path, name, str(log), "--format", "json")
    assert ended.returncode == 0, ended.stderr
    assert b"12 prompts asked, 0 known" in ended.stderr
    again = command(api, tmp_path, name, str(log), "--format", "json")
    assert b"0 prompts asked, 12 known" in again.stderr
    assert again.stdout == ended.stdout
    assert KEY.encode() not in ended.stdout + ended.stderr


def test_an_image_is_counted_beside_the_formula(api: ApiServer, tmp_path: Path) -> None:
    ended = command(api, tmp_path, "image", "56x56", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    (found,) = json.loads(ended.stdout)["images"]
    assert found["tokens"] == 4
    # The stand-in counts a quarter of the block's characters.
    assert found["tokens_counted"] > 20


def test_without_a_key_it_says_so(api: ApiServer, log: Path, tmp_path: Path) -> None:
    ended = command(api, tmp_path, "replay", str(log), key="")
    assert b"Traceback" not in ended.stderr
    assert api.calls == 0
