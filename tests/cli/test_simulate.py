"""`ctxdoc simulate` as people call it, and what it writes."""

from __future__ import annotations

import csv
import io
import json
import re
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from PIL import Image

from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.strategies import STRATEGIES
from tests.support.program import run
from tests.support.sessions import ROOT, SESSION

LOG = str(SESSION.relative_to(ROOT))
EVIDENCE = ROOT / "fixtures" / "evidence"
MADE = ("--prefix", "8000", "--per-turn", "1500", "--turns", "60", "--model", "claude-sonnet-4-6")
KEYS = [
    "schema", "assumptions", "requests", "left_out", "recorded", "growth", "closed_forms", "rows",
    "as_sent", "best", "best_row", "best_whole", "best_whole_row", "best_whole_placement", "max_unseen",
    "history_tokens", "best_within", "best_within_row", "front", "prefix_to_mend", "searches",
]  # fmt: skip
ROW = [
    "strategy", "parameters", "placement", "requests", "extra_calls", "changed_requests", "input", "cache_read",
    "cache_write", "cache_write_1h", "uncached", "output", "cost", "cost_without_cache",
    "vs_keep_percent", "vs_keep_percent_without_cache", "rewrites", "rewritten_tokens",
    "peak_tokens", "fits_window", "lost_tokens", "unseen_tokens", "break_even_turn",
    "vs_sent_percent", "unseen_share", "within_limit", "on_front", "rereads", "same_as",
    "unpriced_requests", "warnings",
]  # fmt: skip


def document(*words: str) -> dict[str, object]:
    ended = run("simulate", *words, "--format", "json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)  # type: ignore[no-any-return]


def test_the_document_has_its_keys_in_order() -> None:
    found = document(LOG)
    assert list(found) == KEYS
    assert found["schema"] == "ctxdoc/simulate/1"
    rows = found["rows"]
    assert isinstance(rows, list)
    assert all(list(row) == ROW for row in rows)
    keep = rows[0]
    assert keep["strategy"] == "keep"
    assert keep["vs_keep_percent"] == "0.00"
    assert keep["input"] == keep["cache_read"] + keep["cache_write"] + keep["uncached"]


def test_money_follows_from_the_counters() -> None:
    """Sonnet 4.6: input 3, read 0.30, write 3.75, output 15 USD per million."""
    rows = document(*MADE, "--strategy", "keep")["rows"]
    assert isinstance(rows, list)
    (row,) = rows
    cost = (
        row["uncached"] * Decimal(3)
        + row["cache_read"] * Decimal("0.3")
        + row["cache_write"] * Decimal("3.75")
        + row["output"] * Decimal(15)
    ) / 10**6
    assert (row["cache_read"], row["cache_write"]) == (3_127_000, 98_000)
    assert Decimal(row["cost"]) == cost
    bare = (row["input"] * Decimal(3) + row["output"] * Decimal(15)) / 10**6
    assert Decimal(row["cost_without_cache"]) == bare


def test_the_text_says_what_surprises() -> None:
    text = run("simulate", *MADE).stdout.decode()
    assert "with nothing hidden that is the cheapest" in " ".join(text.splitlines()[:3])
    assert re.search(r"Beyond +the lowest number: offload", text)
    assert "is not priced" in text.replace("\n  ", " ")
    assert "w·(P + a·n)" in text


def test_placements_stand_side_by_side() -> None:
    words = [word for name in PLACEMENTS.names for word in ("--placement", name)]
    rows = document(LOG, "--strategy", "offload", *words)["rows"]
    assert isinstance(rows, list)
    names = ["rolling", *(name for name in PLACEMENTS.names if name != "rolling")]
    assert [row["placement"] for row in rows] == 2 * names
    for strategy in ("keep", "offload"):
        cost = {r["placement"]: Decimal(r["cost"]) for r in rows if r["strategy"] == strategy}
        assert min(cost.values()) == cost["oracle"]


STRATEGIES_EMITTED = (
    "keep",
    "clear:trigger=4000,keep=2",
    "clear:trigger=4000,keep=2,by=client",
    "clear:trigger=3000,keep=1,mode=rolling",
    "clear_thinking",
    "compact:trigger=4000",
    "compact:trigger=6000,summary_tokens=800",
    "compact:trigger=4000,by=server",
    "window:turns=3,summary_tokens=500",
    "trim:high=4000,low=2000",
    "last_messages",
    "offload:over=200",
    "offload:over=200+clear:trigger=3000",
)


@pytest.mark.parametrize("counters", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES_EMITTED)
def test_an_emitted_log_costs_on_replay_what_the_row_says(
    tmp_path: Path, strategy: str, counters: bool
) -> None:
    """To the token and the dollar: a record carries the counters that the row is made of."""
    log, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    records = [json.loads(line) for line in SESSION.read_text().splitlines()]
    kept = records if counters else [{**each, "response": None} for each in records]
    log.write_text("".join(json.dumps(each) + "\n" for each in kept))
    row = document(str(log), "--strategy", strategy, "--emit", str(out))["rows"][-1]  # type: ignore[index]
    assert out.stat().st_mode & 0o777 == 0o600
    replayed = json.loads(run("replay", str(out), "--format", "json").stdout)
    found = replayed["totals"]["simulated"]
    assert found["input"] == row["input"]
    assert found["cache_read"] == row["cache_read"]
    assert found["cache_write_5m"] + found["cache_write_1h"] == row["cache_write"]
    assert found["cost_without_counters"] == row["cost"]
    # What was simulated is never told as reported, and what a strategy did has a name.
    assert replayed["totals"]["cost"] is None
    assert {each["simulated_origin"] for each in replayed["requests"]} == {"simulated"}
    causes = {each["id"] for each in replayed["causes"]}
    assert causes.isdisjoint({"unexplained", "provider_side_miss"})
    # The answers are in the sum, so it is not called one of the input.
    assert b"for the input" not in run("replay", str(out)).stdout
    assert run("diagnose", str(out)).returncode == 0


UNCACHED_TAIL = str(EVIDENCE / "uncached_tail.jsonl")


def test_an_emitted_compaction_of_a_log_without_bodies_reads_what_was_there(tmp_path: Path) -> None:
    """The call for the summary goes a second ahead of its request, and reads the 28,298 tokens that the one
    before had written seconds earlier: by then its answer had begun."""
    out = tmp_path / "out.jsonl"
    rows = document(UNCACHED_TAIL, "--strategy", "compact:trigger=30k", "--emit", str(out))["rows"]
    replayed = json.loads(run("replay", str(out), "--format", "json").stdout)
    assert isinstance(rows, list)
    assert replayed["totals"]["simulated"]["cost_without_counters"] == rows[-1]["cost"]
    assert [each["simulated"]["cache_read"] for each in replayed["requests"]][:2] == [0, 28_298]
    causes = {each["cause"] for each in replayed["requests"]}
    assert causes <= {None, "first_request", "history_rewritten", "history_compacted"}


def test_other_providers_are_not_simulated_by_the_rules_of_this_one() -> None:
    """The same as replay says of them: exit code 3, and why."""
    done = run("simulate", str(EVIDENCE / "kimi.jsonl"))
    assert done.returncode == 3
    assert b"the cache rules of 'kimi" in done.stderr
    assert not done.stdout


def test_a_recorded_text_that_looks_like_a_summary_is_emitted_to_the_byte(tmp_path: Path) -> None:
    """A log that was emitted before: nothing is filled up a second time, whatever its counters say."""
    text = "[summary of 3 messages, 0a1b2c3d]"
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
    }
    usage = {"input_tokens": 3000, "output_tokens": 5}
    answer = {"id": "m", "model": "claude-sonnet-4-5", "usage": usage}
    log, out = tmp_path / "log.jsonl", tmp_path / "out.jsonl"
    log.write_text(json.dumps({"request": body, "response": answer}) + "\n")
    run("simulate", str(log), "--strategy", "keep", "--emit", str(out))
    (line,) = out.read_text().splitlines()
    assert json.loads(line)["request"]["messages"][0]["content"][0]["text"] == text


def test_keep_emits_what_was_recorded(tmp_path: Path) -> None:
    path = tmp_path / "keep.jsonl"
    run("simulate", LOG, "--strategy", "keep", "--emit", str(path))
    bodies = [json.loads(line)["request"] for line in path.read_text().splitlines()]
    sent = [json.loads(line)["request"] for line in SESSION.read_text().splitlines()]
    assert len(bodies) == len(sent)
    for own, theirs in zip(bodies, sent, strict=True):
        for part in ("model", "max_tokens", "tools", "system", "messages"):
            assert _unmarked(own[part]) == _unmarked(theirs[part])
        # Tools, system prompt and last message: the rolling placement.
        assert json.dumps(own).count('"cache_control"') == 3


def _unmarked(value: object) -> object:
    """A part without its breakpoints; a bare string and its one text block are the same."""
    match value:
        case dict():
            kept = {name: _unmarked(v) for name, v in value.items() if name != "cache_control"}
            if isinstance(kept.get("content"), str):
                kept["content"] = [{"type": "text", "text": kept["content"]}]
            return kept
        case list():
            return [_unmarked(each) for each in value]
        case _:
            return value


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_no_row_of_the_table_loses_its_name_or_its_end(columns: str) -> None:
    text = run("simulate", LOG, COLUMNS=columns).stdout.decode()
    rows = document(LOG)["rows"]
    assert isinstance(rows, list)
    heads = [line for line in text.splitlines() if line.lstrip().startswith("strategy ")]
    assert len(heads) == 2
    for head in heads:
        # The columns that a choice is made by are never left out.
        assert {"cost", "sent", "unseen", "rereads"} <= set(head.split())
    for row in rows:
        if row["changed_requests"] or row["extra_calls"]:
            assert f"${Decimal(row['cost']):.4f}" in text
    assert "summary_tokens=480" in text


def test_the_command_for_the_best_row_runs_it() -> None:
    lines = run("simulate", LOG).stdout.decode().splitlines()
    shown = [line.split() for line in lines if line.strip().startswith("ctxdoc simulate")]
    # The plan, and what the lowest number hides.
    assert [words[-1] for words in shown] == ["--plan", "--verbose"]
    command = shown[-1]
    best = document(*command[2:])["rows"]
    every = document(LOG)
    assert isinstance(best, list)
    assert isinstance(every["rows"], list)
    assert best[1]["cost"] == every["rows"][every["best_row"]]["cost"]  # type: ignore[call-overload]


def test_what_the_api_edits_itself_is_not_in_the_body(tmp_path: Path) -> None:
    path = tmp_path / "server.jsonl"
    run("simulate", LOG, "--strategy", "clear:trigger=4000,keep=2", "--emit", str(path))
    bodies = [json.loads(line)["request"] for line in path.read_text().splitlines()]
    sent = [json.loads(line)["request"] for line in SESSION.read_text().splitlines()]
    assert [len(body["messages"]) for body in bodies] == [len(body["messages"]) for body in sent]
    assert bodies[-1]["context_management"] == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 4000},
                "keep": {"type": "tool_uses", "value": 2},
            }
        ]
    }
    assert bodies[-1]["messages"][2] == sent[-1]["messages"][2]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), b"neither a log nor a made-up session"),
        ((LOG, "--prefix", "5"), b"--prefix goes with a made-up session"),
        ((LOG, "--gap", "400"), b"--gap goes with a made-up session"),
        (("--prefix", "8000"), b"--per-turn"),
        ((LOG, "--strategy", "clear:keep=-3"), b"explain clear"),
        ((LOG, "--optimize", "trigger"), b"write --optimize clear.trigger\n"),
        ((LOG, "--strategy", "keep", "--emit", "-"), b"takes a file"),
        ((LOG, "--strategy", "keep", "--strategy", "clear", "--emit", "x"), b"there are 2"),
        ((LOG, "--strategy", "cler"), b"did you mean clear"),
        ((LOG, "--strategy", "clear:keeep=2"), b"did you mean keep"),
        ((LOG, "--strategy", "clear:keep=many"), b"explain clear"),
        ((LOG, "--placement", "roling"), b"did you mean rolling"),
        ((LOG, "--sweep", "clear.trigger"), b"has no values"),
        ((LOG, "--optimize", "clear.mode"), b"--sweep"),
        ((LOG, "--emit", "x.jsonl"), b"give one --strategy"),
        ((LOG, "--strategy", "keep", "--placement", "oracle", "--emit", "x.jsonl"), b"bound"),
        ((LOG, "--plot", "x.gif"), b"no .png"),
        ((LOG, "--strategy", "keep", "--emit", LOG), b"would replace what is read"),
        ((LOG, "--output", f"./{LOG}"), b"would replace what is read"),
        ((LOG, "--strategy", "offload:reread=nan"), b"is no number"),
        ((LOG, "--strategy", "trim:high=infk"), b"explain trim"),
        ((LOG, "--strategy", "trim:high=2e30"), b"explain trim"),
        (("--per-turn", "5", "--gap", "nan"), b"--gap is a number of seconds"),
        (("--per-turn", "5", "--gap", "1e18"), b"--gap is a number of seconds"),
        (("--per-turn", "9" * 60), b"at most"),
        ((LOG, "--session", "nobody"), b"no sessions begin with 'nobody'"),
        (("--per-turn", "5", "--turns", "0"), b"--turns is 1 or more"),
        (("--per-turn", "100", "--output-tokens", "90"), b"use at most 20"),
        (("--per-turn", "100", "--tool-share", "3"), b"from 0 to 1"),
        (("--per-turn", "5", "--turns", "99999"), b"more than 20,000"),
        (("nowhere.jsonl",), b"cannot read nowhere.jsonl"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(words: tuple[str, ...], said: bytes) -> None:
    ended = run("simulate", *words)
    assert (ended.returncode, ended.stdout) == (2, b"")
    assert said in ended.stderr
    assert b"Traceback" not in ended.stderr


def test_a_log_without_anything_to_simulate_ends_with_3(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    body = {"model": "gpt-6", "messages": [{"role": "user", "content": "hi"}]}
    path.write_text(json.dumps({"request": body, "response": None}) + "\n")
    ended = run("simulate", str(path))
    assert ended.returncode == 3
    assert b"no request of the log can be simulated" in ended.stderr


def test_rows_for_other_programs() -> None:
    ended = run("simulate", LOG, "--strategy", "trim:high=5k,low=3k", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ended.stdout.decode())))
    assert [row["strategy"] for row in rows] == ["keep", "trim"]
    assert rows[1]["parameters"] == "high=5000; low=3000; unit=tokens"
    assert int(rows[1]["input"]) < int(rows[0]["input"])


def test_verbose_lists_what_the_model_would_not_see() -> None:
    words = ("simulate", LOG, "--strategy", "offload:over=300", "--verbose")
    text = run(*words).stdout.decode()
    assert "Not seen under offload over=300: 11 blocks" in text
    assert "$.messages[2].content[0]" in text
    bare = run(*words, "--no-excerpts").stdout.decode()
    excerpt = text.split("$.messages[2].content[0]")[1].split("\n")[0].split()[-1]
    assert excerpt not in bare


@pytest.mark.parametrize("kind", ["png", "svg"])
@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--sweep", "clear.keep=1,2,3"),
        ("--sweep", "clear.keep=1,2", "--sweep", "clear.trigger=4k,5k"),
        ("--optimize", "trim.high=3k..6k"),
    ],
)
def test_pictures(words: tuple[str, ...], kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    ended = run("simulate", LOG, *words, "--plot", str(path))
    assert ended.returncode == 0, ended.stderr
    if kind == "png":
        with Image.open(path) as image:
            # Below the curves of strategies stands what each costs and hides.
            assert image.size == (800, 600 if words else 900)
    else:
        text = path.read_text()
        assert text.count("USD in all") == (1 if words else 2)
        assert ("share of the history that is hidden" in text) is (not words)
        assert "http" not in re.sub(r'xmlns[:\w]*="[^"]+"|<!DOCTYPE[^>]+>|"http[^"]*"', "", text)


def test_a_sweep_of_words_has_nothing_to_draw(tmp_path: Path) -> None:
    ended = run(
        "simulate", LOG, "--sweep", "clear.mode=sticky,rolling", "--plot", str(tmp_path / "a.png")
    )
    assert ended.returncode == 2
    assert b"nothing to draw" in ended.stderr


def test_a_page_for_browsers_holds_the_picture() -> None:
    page = run("simulate", LOG, "--format", "html").stdout.decode()
    assert page.count("<svg") == 1
    assert "tokens of the prompt" in page


@pytest.mark.parametrize("name", STRATEGIES.names)
def test_a_strategy_has_a_page_that_names_its_parameters(name: str) -> None:
    page = run("explain", name).stdout.decode()
    for part in ("What it does", "Parameters", "Rewrites the prefix", "no longer sees"):
        assert part in page
    fields = msgspec.structs.fields(STRATEGIES[name].make)  # type: ignore[arg-type]
    for field in fields:
        default = field.default
        text = str(default).lower() if isinstance(default, bool) else str(default)
        text = text.removesuffix(".0")
        assert re.search(
            rf"^    {field.name}={re.escape(text)}\b|^    {field.name}=\s", page, re.M
        ), field.name


@pytest.mark.parametrize("name", PLACEMENTS.names)
def test_a_placement_has_a_page(name: str) -> None:
    assert b"What it does" in run("explain", name).stdout


def test_a_name_of_two_things_has_both_pages() -> None:
    page = run("explain", "none").stdout
    assert b"none (healthy)" in page
    assert b"none (placement)" in page


def test_a_seed_makes_the_same_session_again() -> None:
    words = ("--per-turn", "900", "--turns", "12", "--strategy", "keep")
    one, two, three = (
        document(*words, *seed) for seed in (("--seed", "4"), ("--seed", "4"), ("--seed", "5"))
    )
    assert one == two
    assert one["rows"] != three["rows"]
    assert document(*words) == document(*words)
