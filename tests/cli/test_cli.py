"""The program as people call it: what it prints, and with which exit code it ends."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.sessions import SESSION, demo_session, lines

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures" / "cases"
DEAD = [str(CASES / "clock-at-head-of-system" / f"{name}.json") for name in "ab"]
ALIVE = [str(CASES / "marker-moved-forward" / f"{name}.json") for name in "ab"]


def run(
    *arguments: str, stdin: bytes = b"", **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """Runs ctxdoc with an environment that says nothing about the person who tests."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME") or name.startswith("COVERAGE_PROCESS")
    }
    return subprocess.run(
        [sys.executable, "-m", "ctxdoc", *arguments],
        input=stdin,
        capture_output=True,
        cwd=ROOT,
        env={**kept, **environment},
        timeout=60,
        check=False,
    )


def test_the_first_screen_holds_verdict_place_cause_money_and_fix() -> None:
    screen = run("diagnose", *DEAD).stdout.decode().splitlines()[:24]
    assert max(map(len, screen)) <= 100
    text = "\n".join(screen)
    for word in ("DEAD", "$.system[0].text, byte 22", "timestamp_in_prefix", "Money", "Fix"):
        assert word in text


def test_a_healthy_pair_says_so_and_runs_no_diff() -> None:
    text = run("diagnose", *ALIVE).stdout.decode()
    assert text.startswith("ALIVE")
    assert "not needed" in text
    assert "keys sorted" not in text


def test_the_diff_can_be_asked_for() -> None:
    found = json.loads(run("diagnose", *ALIVE, "--diff", "--format", "json").stdout)
    assert found["steps"]["diff"]["ran"] is True
    # Markers moved and a string became a block: only the textbook comparison sees a difference.
    assert found["steps"]["diff"]["sorted_body_byte"] is not None
    assert found["steps"]["diff"]["prompt_byte"] is None


def test_the_json_document_has_the_contract_keys_in_order() -> None:
    found = json.loads(run("diagnose", *DEAD, "--format", "json").stdout)
    assert list(found)[:10] == [
        "schema", "before", "after", "steps", "cache", "cause", "also", "first_difference",
        "tokens", "cost",
    ]  # fmt: skip
    assert found["schema"] == "ctxdoc/diagnose/1"
    assert list(found["before"]) == ["source", "line", "id", "model", "at"]
    assert list(found["steps"]) == ["double_send", "counters", "diff"]
    assert list(found["steps"]["counters"]) == [
        "origin", "cache_read", "cache_write", "uncached", "input",
    ]  # fmt: skip
    assert list(found["cause"]) == ["id", "title", "group", "confidence", "explanation", "fix"]
    assert list(found["first_difference"])[:5] == [
        "section",
        "json_path",
        "byte",
        "before",
        "after",
    ]
    assert list(found["tokens"])[:4] == ["identical_prefix", "survives", "lost", "origin"]
    assert list(found["cost"])[:3] == ["paid", "if_hit", "lost"]


def test_the_price_is_that_of_the_reported_counters() -> None:
    """Sonnet 4.5: 63 uncached at 3, 2,309 written at 3.75, 284 out at 15, in millionths.

    63*3 + 2309*3.75 + 284*15 = 189 + 8658.75 + 4260 = 13107.75; read instead, 2309*0.3 = 692.7.
    """
    cost = json.loads(run("diagnose", *DEAD, "--format", "json").stdout)["cost"]
    assert cost == {
        "paid": "0.01310775",
        "if_hit": "0.0051417",
        "lost": "0.00796605",
        "corrected": None,
    }


def test_markdown_is_for_an_issue() -> None:
    text = run("diagnose", *DEAD, "--format", "markdown").stdout.decode()
    assert text.startswith("**DEAD** ")
    assert "```diff" in text
    assert "| whole bodies, keys sorted |" in text


def test_the_one_fault_of_a_log_is_called_so(tmp_path: Path) -> None:
    """The first five requests of the session, of which the fifth has a fault."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(SESSION.read_bytes().splitlines(keepends=True)[:5]))
    assert b"the one request with a fault, of 5 (number 5)" in run("diagnose", str(path)).stdout


def test_a_log_shows_its_costliest_miss_and_says_which() -> None:
    text = run("diagnose", str(SESSION)).stdout.decode()
    assert "session.jsonl:9 → :10" in text
    assert "the costliest of 3 requests with a fault, of 12 (numbers 5, 8, 10)" in text
    assert "tool_order" in text


@pytest.mark.parametrize(
    ("pair", "cause"),
    [
        ("4,5", "timestamp_in_prefix"),
        ("7,8", "ttl_expired"),
        ("9,10", "tool_order"),
        ("2,3", "none"),
    ],
)
def test_a_pair_of_a_log_is_counted_from_one(pair: str, cause: str) -> None:
    found = json.loads(run("diagnose", str(SESSION), "--pair", pair, "--format", "json").stdout)
    assert found["cause"]["id"] == cause
    assert [found["before"]["line"], found["after"]["line"]] == [int(n) for n in pair.split(",")]


def test_replay_lists_every_request_with_its_place_and_counters() -> None:
    found = json.loads(run("replay", str(SESSION), "--format", "json").stdout)
    assert found["schema"] == "ctxdoc/replay/1"
    assert found["log"]["requests"] == 12
    assert [r["line"] for r in found["requests"]] == list(range(1, 13))
    # The second request reads what the first one wrote.
    first, second = (r["reported"] for r in found["requests"][:2])
    assert second["cache_read"] == first["cache_write_5m"]
    reads = sum(r["reported"]["cache_read"] for r in found["requests"])
    assert found["totals"]["cache_read"] == reads


def replayed(tmp_path: Path, *records: dict[str, Any]) -> dict[str, Any]:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    found: dict[str, Any] = json.loads(run("replay", str(path), "--format", "json").stdout)
    return found


def test_totals_that_nobody_reported_are_null(tmp_path: Path) -> None:
    body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}
    totals = replayed(tmp_path, {"request": body})["totals"]
    assert totals["unpriced_requests"] == totals["requests_with_counters"] == 0
    simulated = totals["simulated"]
    counters = ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "input", "output")
    assert {totals[name] for name in (*counters, "cost", "cost_without_cache", "cost_oracle")} == {
        None
    }
    assert totals["basis"]["lost_cost"]["origin"] == "simulated"
    assert simulated["requests_without_counters"] == 1
    assert simulated["cache_read"] == 0
    shown = run("replay", str(tmp_path)).stdout.decode()
    assert "1 request in 1 session" in shown
    assert "simulated; sizes estimated" in shown


def test_totals_hold_the_compaction_passes(tmp_path: Path) -> None:
    """The example of the compaction page: 180,000 in and 3,500 out beside 23,000 and 1,000; at
    $3 and $15 a million tokens that is 0.54 + 0.0525 + 0.069 + 0.015."""
    passed = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
    last = {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000}
    usage = {"input_tokens": 23_000, "output_tokens": 1_000, "iterations": [passed, last]}
    body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}
    found = replayed(tmp_path, {"request": body, "response": {"id": "m", "usage": usage}})
    totals = found["totals"]
    assert (totals["input"], totals["output"]) == (203_000, 4_500)
    assert totals["cost"] == "0.6765"
    assert found["requests"][0]["compaction"][0]["uncached"] == 180_000


def test_what_only_some_requests_lack_is_counted(tmp_path: Path) -> None:
    body = {"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "hi"}]}
    tool = {"type": "function", "function": {"name": "f"}}
    known = {"request": body, "response": {"usage": {"input_tokens": 1, "output_tokens": 1}}}
    other = {"request": {**body, "model": "gpt-4o", "tools": [tool]}}
    (tmp_path / "other.jsonl").write_text(json.dumps(other))
    replayed(tmp_path, known, {"request": body})
    found = json.loads(run("replay", str(tmp_path), "--format", "json").stdout)
    lines = found["not_checked"]
    assert "2 of 3 requests: no counters: what was really read, written and paid" in lines
    assert (
        "1 of 3 requests: no bodies: where a prefix changed, what changed it, and which blocks cost most"
        in lines
    )
    assert "no times: lifetimes, pauses and parallel starts" in lines
    assert any(line.startswith("1 x body not compared: it is OpenAI-shaped") for line in lines)


def test_replay_names_what_it_skipped(tmp_path: Path) -> None:
    (tmp_path / "good.jsonl").write_bytes(SESSION.read_bytes())
    (tmp_path / "README.md").write_text("# Not a log\n\n{broken\n")
    found = json.loads(run("replay", str(tmp_path), "--format", "json").stdout)
    assert [s["line"] for s in found["log"]["skipped"]] == [1]
    assert b"Skipped: 1" in run("replay", str(tmp_path)).stdout


def test_formats_lists_what_each_carries() -> None:
    found = json.loads(run("formats", "--format", "json").stdout)
    native = next(form for form in found["formats"] if form["id"] == "native")
    assert native["traits"] == ["exact bytes", "headers", "time", "usage"]


def test_standard_input_is_a_log() -> None:
    found = run("diagnose", "-", "--format", "json", stdin=SESSION.read_bytes())
    assert json.loads(found.stdout)["after"]["source"] == "-"


def test_the_fixture_session_is_the_one_that_its_maker_makes() -> None:
    assert SESSION.read_text("utf-8") == lines(demo_session())


@pytest.mark.parametrize(("pair", "code"), [(DEAD, 1), (ALIVE, 0)])
def test_exit_code_tells_whether_the_cache_is_alive(pair: list[str], code: int) -> None:
    assert run("diagnose", *pair, "--exit-code").returncode == code
    assert run("diagnose", *pair).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["diagnose", "no-such-file.json"], b"check the path"),
        (["diagnose", ""], b"the name of a file is empty"),
        (["diagnose", *DEAD, DEAD[0]], b"two requests or one log"),
        (["diagnose", "-", "-"], b"name one of the files"),
        (["diagnose", *DEAD, "--pair", "1,2"], b"one log"),
        (["diagnose", str(SESSION), "--pair", "2,1"], b"the earlier one first"),
        (["diagnose", str(SESSION), "--pair", "1,99"], b"of the 12 requests"),
        (["diagnose", str(SESSION), "--pair", "one"], b"as in --pair 1,2"),
        (["diagnose", *DEAD, "--format", "jsno"], b"did you mean json?"),
        (["diagnose", *DEAD, "--output", "no/such/folder/x"], b"choose another --output"),
        (["explain", "tool_oder"], b"did you mean tool_order"),
        (["dignose"], b"diagnose"),
        (["diagnose", "--nonsense"], b"No such option"),
    ],
)
def test_a_wrong_call_ends_with_2_and_says_what_to_do(arguments: list[str], hint: bytes) -> None:
    ended = run(*arguments)
    assert ended.returncode == 2
    assert hint in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert ended.stdout == b""


def test_colour_is_for_terminals_only() -> None:
    assert b"\x1b[" not in run("diagnose", *DEAD).stdout


def test_the_width_is_that_of_columns() -> None:
    text = run("diagnose", *DEAD, COLUMNS="70").stdout.decode()
    assert max(map(len, text.splitlines())) <= 70


@pytest.mark.parametrize("columns", ["²", "0", "x" * 50, "9" * 5000, ""])
def test_a_strange_columns_is_no_error(columns: str) -> None:
    assert run("diagnose", *DEAD, COLUMNS=columns).returncode == 0


def test_text_can_be_left_out() -> None:
    for form in ("text", "json", "markdown"):
        text = run("diagnose", *DEAD, "--no-excerpts", "--format", form).stdout.decode()
        assert "Current time" not in text
        assert "15:09" not in text


def test_a_report_is_written_whole_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("old")
    assert run("diagnose", *DEAD, "--format", "json", "--output", str(path)).returncode == 0
    assert json.loads(path.read_text())["cache"] == "dead"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_a_model_can_be_given() -> None:
    found = json.loads(
        run("diagnose", *DEAD, "--model", "claude-opus-5-5", "--format", "json").stdout
    )
    # 63*4 + 2309*5 + 284*20 = 252 + 11545 + 5680, in millionths
    assert found["cost"]["paid"] == "0.017477"


def test_a_reader_who_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m ctxdoc explain | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(
        ["bash", "-c", command], capture_output=True, cwd=ROOT, timeout=60, check=False
    )
    assert ended.returncode == 0
    assert ended.stderr == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_behind_standard_output_is_an_error_of_its_own() -> None:
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "ctxdoc", "diagnose", *DEAD],
            stdout=full, stderr=subprocess.PIPE, cwd=ROOT, timeout=60, check=False,
        )  # fmt: skip
    assert ended.returncode == 2
    assert b"cannot write to standard output" in ended.stderr


def test_help_loads_no_part_of_the_program() -> None:
    """Typer only: the commands and what they need stay out."""
    code = (
        "import sys\nfrom ctxdoc.cli.app import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('msgspec', 'rich', 'pydantic', 'genai_prices')]\n"
        "sys.exit(','.join(bad))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=60, check=False
    )
    assert ended.stderr.strip() == b""
    assert b"diagnose" in ended.stdout


def test_a_diagnosis_loads_none_of_the_heavy_libraries() -> None:
    heavy = ("anthropic", "matplotlib", "genai_prices", "deepdiff", "pydantic", "numpy")
    code = (
        "import sys\nfrom ctxdoc.cli.app import main\n"
        f"try: main(['diagnose', *{DEAD!r}])\nexcept SystemExit: pass\n"
        f"sys.exit(','.join(m for m in {heavy!r} if m in sys.modules))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=60, check=False
    )
    assert ended.stderr.strip() == b""


def test_a_fault_of_the_program_ends_with_70_and_no_traceback() -> None:
    code = (
        "import sys\nimport ctxdoc.cli.app as a\nimport ctxdoc.api.diagnose as d\n"
        "def broken(*_, **__): raise RuntimeError('secret prompt text')\n"
        "d.read = broken\nsys.argv = ['ctxdoc', 'diagnose', 'x.json']\na.main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, cwd=ROOT, timeout=60, check=False
    )
    assert ended.returncode == 70
    assert b"a fault in ctxdoc itself (RuntimeError)" in ended.stderr
    assert b"secret" not in ended.stderr


@pytest.mark.parametrize(
    "name", ["", "json_key_order", "json-key-order", "native", "rules", "exit-codes"]
)
def test_explain_has_a_page(name: str) -> None:
    ended = run("explain", *([name] if name else []))
    assert ended.returncode == 0
    assert len(ended.stdout.splitlines()) > 5


def test_the_shell_is_told_what_can_be_completed() -> None:
    ended = run("", _CTXDOC_COMPLETE="complete_bash", COMP_WORDS="ctxdoc dia", COMP_CWORD="1")
    assert b"diagnose" in ended.stdout
