"""The double send against the stand-in: what it proves, what fails, what it asks, what it never shows."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import pytest

from ctxdoc.diagnosis.api_word import api_word
from ctxdoc.diagnosis.attribution import case_of_pair
from ctxdoc.diagnosis.diagnose import DoubleSend
from ctxdoc.errors import InputError
from ctxdoc.live.double_send import Plan, plan_of, send_twice
from ctxdoc.reading.load import read_bodies, read_log
from tests.cli.test_cli import ROOT
from tests.clients.common import MARK, MODEL, SYSTEM
from tests.support.api_server import ApiServer
from tests.support.sessions import START, lines, record
from tests.support.stand_in import StandIn

KEY = "sk-ant-api03-never-to-be-shown-000"
Body = dict[str, Any]


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer().running() as server:
        yield server


def body(text: str = SYSTEM, question: str = "Where?", **more: Any) -> Body:
    return {
        "model": MODEL,
        "max_tokens": 400,
        "stream": True,
        "system": [{"type": "text", "text": text, "cache_control": MARK}],
        "messages": [{"role": "user", "content": question}],
        **more,
    }


def case_of(*bodies: Body) -> Any:
    requests = [read_bodies(json.dumps(each).encode(), "-")[0] for each in bodies]
    return case_of_pair(requests[0], requests[-1])


def sent(
    api: ApiServer, case: Any, *, diagnostics: bool = False, slept: list[float] | None = None
) -> DoubleSend:
    with anthropic.Anthropic(base_url=api.url, api_key=KEY, max_retries=0) as client:
        plan = plan_of(case, diagnostics=diagnostics)
        pauses = slept if slept is not None else []
        return send_twice(plan, case, client, sleep=pauses.append)


def test_a_request_that_can_be_cached_is_alive(api: ApiServer) -> None:
    found = sent(api, case_of(body()))
    assert found.how == "live"
    assert found.verdict.startswith(
        "the cache works for this request: sent again at once it read 1,6"
    )
    assert [send.usage.cache_read > 0 for send in found.sendings if send.usage] == [False, True]
    # As small an answer as it allows, and no stream.
    for raw in api.bodies:
        assert json.loads(raw) == {k: v for k, v in body().items() if k != "stream"} | {
            "max_tokens": 1
        }


def test_a_request_without_a_breakpoint_is_never_written(api: ApiServer) -> None:
    bare = body()
    bare["system"] = SYSTEM
    assert sent(api, case_of(bare)).verdict == "never written: the request has no breakpoint"


def test_a_short_prefix_is_below_the_minimum(api: ApiServer) -> None:
    found = sent(api, case_of(body("You keep the records.")))
    assert "below the model's minimum of 1,024" in found.verdict


def test_what_is_readable_a_moment_later_is_no_dead_cache(api: ApiServer) -> None:
    """The entry becomes readable 3 s after it was written; the third sending comes after a pause."""
    now, slept = [1_000.0], []
    api.cache = StandIn(ready=3.0)
    api.clock = lambda: now[0]

    class Sleeper(list[float]):
        def append(self, seconds: float) -> None:
            super().append(seconds)
            now[0] += seconds

    slept = Sleeper()
    found = sent(api, case_of(body()), slept=slept)
    assert found.verdict.startswith("the cache works, a moment later")
    assert slept == [5.0]
    assert len(found.sendings) == 3


def test_written_and_never_read_is_the_places_fault(api: ApiServer) -> None:
    api.cache = StandIn(ready=9e9)
    found = sent(api, case_of(body()))
    assert found.verdict.startswith("written but not read")
    assert "the request is not at fault" in found.verdict


def test_recorded_entries_that_have_expired_are_told(api: ApiServer, tmp_path: Path) -> None:
    cache = StandIn()
    first = cache.answer(body(), 0)
    usage = cache.answer(body(), 20)
    assert usage["cache_read_input_tokens"]
    path = tmp_path / "log.jsonl"
    path.write_text(lines([record(body(), START, first, 1), record(body(), START, usage, 2)]))
    requests = read_log([str(path)]).requests
    found = sent(api, case_of_pair(*requests))
    # Recorded on 2026-11-02, for five minutes.
    assert "the entries of the recorded request have expired by now" in found.verdict
    rows = [record(body(), datetime.now(UTC), usage, n) for n in (1, 2)]
    path.write_text(lines(rows))
    api.cache = StandIn(ready=0.0)
    found = sent(api, case_of_pair(*read_log([str(path)]).requests))
    assert "another key, workspace or place answers" in found.verdict


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ({"status": 401}, "the key is not valid (401)"),
        (
            {"status": 429, "headers": {"retry-after": "7"}},
            "rate limit is reached (429); it asks to wait 7 s",
        ),
        ({"status": 529}, "overloaded (529)"),
        ({"status": 400}, "refuses the request (400)"),
        ({"status": 500}, "status 500"),
    ],
)
@pytest.mark.parametrize("number", [0, 1])
def test_an_error_proves_nothing(api: ApiServer, plan: Body, said: str, number: int) -> None:
    api.plan = [{}] * number + [plan]
    found = sent(api, case_of(body()))
    assert found.verdict.startswith("not proved: ")
    assert said in found.verdict
    assert len(found.sendings) == number + 1


def test_a_network_that_is_down_proves_nothing(api: ApiServer) -> None:
    api.url = "http://127.0.0.1:1"
    assert "was not reached" in sent(api, case_of(body())).verdict


def test_an_answer_is_longer_than_its_thinking() -> None:
    thinking = body(thinking={"type": "enabled", "budget_tokens": 2_000})
    assert plan_of(case_of(thinking)).body["max_tokens"] == 2_001
    adaptive = body(thinking={"type": "adaptive"})
    assert plan_of(case_of(adaptive)).body["max_tokens"] == 1


def test_the_most_that_it_can_cost_is_three_full_writes() -> None:
    """Sonnet 4.6: 3.75 a million to write, 15 for each answer of one token; the size is an estimate, and may
    be a quarter more."""
    plan: Plan = plan_of(case_of(body()))
    tokens = math.ceil(plan.tokens * 1.25)
    assert plan.most == 3 * (tokens * Decimal("3.75") + 15) / 10**6


def test_each_body_has_its_own_price() -> None:
    """With diagnostics the earlier one is sent too: its thinking makes a long answer."""
    thinking = body(thinking={"type": "enabled", "budget_tokens": 32_000})
    plan = plan_of(case_of(thinking, body()), diagnostics=True)
    assert (plan.count, plan.longest) == (4, 32_001)
    assert plan.most is not None
    assert plan.most > 32_001 * Decimal(15) / 10**6


def test_a_body_without_a_model_is_not_sent() -> None:
    nameless = body()
    del nameless["model"]
    with pytest.raises(InputError, match="names no model"):
        plan_of(case_of(nameless))


def test_a_log_without_the_whole_body_says_so(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines([record(body(), START, None, 1)] * 2))
    requests = read_log([str(path)], condense=True).requests
    with pytest.raises(InputError, match="the log does not hold it"):
        plan_of(case_of_pair(*requests))


def test_the_apis_word_is_joined_to_the_byte(api: ApiServer) -> None:
    """The earlier request goes first; the answer to the later one says what changed."""
    reason = {
        "diagnostics": {
            "cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": 9}
        }
    }
    api.plan = [{}, {"members": reason}]
    found = sent(api, case_of(body(), body(SYSTEM + " Now.")), diagnostics=True)
    assert "the API says system_changed (agrees): that is $.system[0].text, byte" in found.verdict
    asked = [json.loads(raw)["diagnostics"]["previous_message_id"] for raw in api.bodies]
    assert asked == [None, "msg_00001", "msg_00002"]
    api.plan = [{}, {"members": reason}]
    found = sent(api, case_of(body(), body(question="When?")), diagnostics=True)
    assert "(disagrees): the first difference is $.messages[0].content" in found.verdict


@pytest.mark.parametrize(
    ("reason", "agrees"),
    [
        ("system_changed", True), ("tools_changed", False), ("messages_changed", False),
        ("previous_message_not_found", None), ("unavailable", None), ("something_new", None),
    ],
)  # fmt: skip
def test_a_recorded_reason_stands_beside_the_cause(
    tmp_path: Path, reason: str, agrees: bool | None
) -> None:
    cache = StandIn()
    rows = [
        record(each, START, cache.answer(each, 20 * n), n)
        for n, each in enumerate((body(), body(SYSTEM + " It is 10:05.")), start=1)
    ]
    rows[1]["response"]["diagnostics"] = {"cache_miss_reason": {"type": reason}}
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    word = api_word(case_of_pair(*read_log([str(path)]).requests))
    assert word is not None
    assert (word.reason, word.agrees) == (reason, agrees)
    shown = subprocess.run(
        [sys.executable, "-m", "ctxdoc", "diagnose", str(path), "--format", "json"],
        capture_output=True, cwd=ROOT, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(shown.stdout)["api_reason"]["agrees"] is agrees
    text = subprocess.run(
        [sys.executable, "-m", "ctxdoc", "diagnose", str(path)],
        capture_output=True, cwd=ROOT, timeout=60, check=True,
    ).stdout.decode()  # fmt: skip
    assert f"API says {reason}" in text
    row = subprocess.run(
        [sys.executable, "-m", "ctxdoc", "replay", str(path), "--format", "json"],
        capture_output=True, cwd=ROOT, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(row.stdout)["requests"][1]["api_reason"] == reason


def live(
    api: ApiServer, *words: str, key: str = KEY, stdin: int = subprocess.DEVNULL
) -> subprocess.CompletedProcess[bytes]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "PATH" or name.startswith("COVERAGE_PROCESS")
    }
    return subprocess.run(
        [sys.executable, "-m", "ctxdoc", "diagnose", *words, "--live"],
        capture_output=True, cwd=ROOT, timeout=60, check=False, stdin=stdin,
        env={**kept, "ANTHROPIC_BASE_URL": api.url, **({"ANTHROPIC_API_KEY": key} if key else {})},
    )  # fmt: skip


def test_it_asks_first_and_shows_what_it_costs(api: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(body()))
    ended = live(api, str(path))
    assert ended.returncode == 2
    assert b"at most $" in ended.stderr
    assert b"--yes" in ended.stderr
    assert api.bodies == []
    ended = live(api, str(path), "--yes", "--format", "json")
    assert ended.returncode == 0, ended.stderr
    step = json.loads(ended.stdout)["steps"]["double_send"]
    assert step["how"] == "live"
    assert step["sendings"][1]["cache_read"] > 1_600
    assert b"at most $" in ended.stderr
    assert KEY.encode() not in ended.stdout + ended.stderr


def test_without_a_key_nothing_is_sent(api: ApiServer, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(body()))
    ended = live(api, str(path), "--yes", key="")
    assert api.bodies == []
    assert b"Traceback" not in ended.stderr
    assert ended.returncode in (0, 2)
    assert b"key" in ended.stderr + ended.stdout
