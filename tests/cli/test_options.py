"""Every option of every command, by what it changes; a command with an option that no test shows fails."""

from __future__ import annotations

import csv
import io
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import pytest
import typer
from PIL import Image

from ctxdoc.cli.app import COMMANDS
from tests.support.api_server import ApiServer
from tests.support.program import Ended, call
from tests.support.sessions import ROOT, SESSION, demo_session, lines

LOG = str(SESSION)
CASES = ROOT / "fixtures" / "cases"
DEAD = tuple(str(CASES / "clock-at-head-of-system" / f"{name}.json") for name in "ab")
ALIVE = tuple(str(CASES / "marker-moved-forward" / f"{name}.json") for name in "ab")
KEY = "sk-ant-api03-never-to-be-shown-000"
BASE: dict[str, tuple[str, ...]] = {
    "diagnose": DEAD,
    "replay": (LOG,),
    "simulate": (LOG, "--strategy", "keep"),
    "image": ("57x57",),
    "gate": (LOG,),
    "formats": (),
}
"""A call of each command that reads or shows something."""
OF_LOGS = ("diagnose", "replay", "simulate", "image", "gate")
SHOWN: set[str] = set()
"""Options that a test of this module shows."""

Test = TypeVar("Test", bound=Callable[..., None])


def shows(option: str, *commands: str) -> Callable[[Test], Test]:
    """Marks a test as the one that shows what an option does."""
    SHOWN.update(f"{command} {option}" for command in commands)
    return lambda test: test


def each(*commands: str) -> pytest.MarkDecorator:
    """Runs a test for each of the commands."""
    return pytest.mark.parametrize("command", commands)


def test_every_option_of_every_command_is_shown() -> None:
    every = set()
    for name in COMMANDS:
        command = typer.main.get_command(import_module(f"ctxdoc.cli.{name}").app)
        words = {word for parameter in command.params for word in parameter.opts}
        every |= {f"{name} {word}" for word in words if word.startswith("--")}
    assert every == SHOWN


def document(*words: str, **environment: str) -> dict[str, Any]:
    ended = call(*words, "--format", "json", **environment)
    assert ended.code in (0, 1), ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


@pytest.fixture
def broken_log(tmp_path: Path) -> str:
    """The demo session with a record that is none."""
    path = tmp_path / "broken.jsonl"
    path.write_text(lines(demo_session()) + "{broken\n")
    return str(path)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer().running() as server:
        yield server


def at(api: ApiServer, tmp_path: Path) -> dict[str, str]:
    """The environment of a program that asks the stand-in."""
    return {
        "ANTHROPIC_BASE_URL": api.url,
        "ANTHROPIC_API_KEY": KEY,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


# What commands share.


@shows("--format", *BASE)
@each(*BASE)
def test_format_writes_each_form_that_the_help_names_and_refuses_the_others(command: str) -> None:
    every = {"text", "json", "markdown", "csv", "html", "github", "sarif", "junit"}
    page = " ".join(call(command, "--help").out.split())
    (named,) = re.findall(r"How to write the report: ([^.;]*)", page)
    known = set(re.split(", | or ", named))
    assert {"text", "json"} < known < every
    for form in sorted(every):
        ended = call(command, *BASE[command], "--format", form)
        assert (ended.code in (0, 1)) == (form in known), (form, ended)
        assert bool(ended.out) == (form in known)


@shows("--output", *BASE)
@each(*BASE)
def test_output_writes_to_a_file_what_would_have_been_printed(command: str, tmp_path: Path) -> None:
    path = tmp_path / "report"
    ended = call(command, *BASE[command], "--output", path)
    assert ended.out == ""
    assert path.read_text() == call(command, *BASE[command]).out
    assert path.stat().st_mode & 0o777 == 0o600


@shows("--output", *BASE)
@each(*BASE)
def test_output_to_a_dash_is_standard_output(command: str) -> None:
    assert call(command, *BASE[command], "--output", "-").out == call(command, *BASE[command]).out


@shows("--model", "diagnose", "replay", "simulate", "image")
@pytest.mark.parametrize(
    ("command", "where", "amount"),
    [
        # 63 uncached, 2,309 written, 284 out of Opus 5.5, at 4, 5 and 20 USD a million.
        ("diagnose", ("cost", "paid"), "0.017477"),
        # 57 x 57 pixels are 9 patches, at 4 USD a million.
        ("image", ("images", 0, "cost"), "0.000036"),
    ],
)
def test_model_prices_by_another_model(
    command: str, where: tuple[str | int, ...], amount: str
) -> None:
    found: Any = document(command, *BASE[command], "--model", "claude-opus-5-5")
    for step in where:
        found = found[step]
    assert found == amount


def test_model_prices_every_request_of_a_log() -> None:
    """Without a cache: Opus 5.5 is 4/3 of Sonnet 4.5, 4 to 3 USD a million in, 20 to 15 out."""
    words = ("--model", "claude-opus-5-5")
    one, two = (document("replay", LOG, *more)["totals"] for more in ((), words))
    assert float(two["cost_without_cache"]) == pytest.approx(
        4 / 3 * float(one["cost_without_cache"])
    )
    (one,), (two,) = (rows_of(LOG, "--strategy", "keep", *more) for more in ((), words))
    assert float(two["cost_without_cache"]) == pytest.approx(
        4 / 3 * float(one["cost_without_cache"])
    )


@shows("--model", "gate")
def test_model_is_what_a_limit_of_money_is_held_against() -> None:
    """At Sonnet's rates 0.0327 USD are lost to what breaks or may; at 4/3 of them more than 0.04."""
    words = ("gate", LOG, "--max-lost-cost")
    lost = float(next(e for e in document(*words, "9")["limits"] if e["unit"] == "USD")["value"])
    limit = str(lost * 1.1)
    assert _verdict_of("max_lost_cost", *words, limit) == "held"
    assert _verdict_of("max_lost_cost", *words, limit, "--model", "claude-opus-5-5") == "broken"


def _verdict_of(limit: str, *words: str) -> str:
    (found,) = (check for check in document(*words)["limits"] if check["name"] == limit)
    verdict: str = found["verdict"]
    return verdict


@shows("--strict", *OF_LOGS)
@shows("--quiet", *OF_LOGS)
@each(*OF_LOGS)
def test_a_bad_record_is_told_or_kept_quiet_or_an_error(command: str, broken_log: str) -> None:
    told = call(command, broken_log)
    assert told.code in (0, 1)
    assert "1 record skipped, the first: " in told.err
    quiet = call(command, broken_log, "--quiet")
    assert (quiet.code, quiet.err) == (told.code, "")
    assert quiet.out == told.out
    strict = call(command, broken_log, "--strict")
    assert (strict.code, strict.out) == (2, "")
    assert "line 13" in strict.err
    assert "leave out --strict" in strict.err


@shows("--no-excerpts", "diagnose", "replay", "simulate", "gate")
@each("diagnose", "replay", "simulate", "gate")
def test_no_excerpts_leaves_the_text_of_requests_out(command: str) -> None:
    words = {"simulate": (LOG, "--strategy", "offload:over=200", "--verbose")}.get(command, (LOG,))
    texts = re.compile("You mend|Today is|list_files\n|Garden lantern|thistle")
    for form in ("text", "json"):
        shown = call(command, *words, "--format", form)
        hidden = call(command, *words, "--format", form, "--no-excerpts")
        assert shown.code == hidden.code
        assert not texts.search(hidden.out)
        if form == "text":
            assert texts.search(shown.out), command


@shows("--no-color", *BASE)
@each(*BASE)
def test_colour_is_for_terminals_that_want_it(command: str) -> None:
    words = (command, *BASE[command])
    assert "\x1b[" not in call(*words).out
    with mock.patch("tests.support.program.Piped.isatty", return_value=True):
        assert ("\x1b[" in call(*words).out) is True
        plain = call(*words, "--no-color").out
        for environment in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            assert call(*words, **environment).out == plain
        # An empty value is none (no-color.org).
        assert "\x1b[" in call(*words, NO_COLOR="").out
    assert "\x1b[" not in plain


@shows("--debug", *OF_LOGS)
@each(*OF_LOGS)
def test_debug_shows_where_a_fault_of_the_program_is(command: str) -> None:
    with mock.patch(
        f"ctxdoc.api.{command}.check_model" if command != "replay" else "ctxdoc.api.replay.read"
    ) as fault:
        fault.side_effect = RuntimeError("text of a prompt")
        ended = call(command, *BASE[command])
        assert (ended.code, ended.out) == (70, "")
        assert "a fault in ctxdoc itself (RuntimeError)" in ended.err
        assert "text of a prompt" not in ended.err
        shown = call(command, *BASE[command], "--debug")
    assert shown.code == 70
    assert "Traceback" in shown.err
    assert "text of a prompt" in shown.err


@shows("--count-tokens", "diagnose", "replay", "simulate")
@each("diagnose", "replay", "simulate")
def test_count_tokens_says_what_was_asked_and_why_it_stopped(
    command: str, api: ApiServer, tmp_path: Path
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines([{**row, "response": None} for row in demo_session()]))
    words, where = (command, str(path), "--count-tokens"), at(api, tmp_path)
    api.plan = [{"status": 401}]
    stopped = call(*words, "--quiet", **where)
    assert "--count-tokens stopped: " in stopped.err
    assert "estimates stand for the rest" in stopped.err
    assert "prompts asked" not in stopped.err
    assert "12 prompts asked, 0 known from before" in call(*words, **where).err
    again = call(*words, **where)
    assert "0 prompts asked, 12 known from before" in again.err
    assert again.out != call(command, str(path)).out
    assert KEY not in again.out + again.err


@shows("--count-tokens", "image")
def test_count_tokens_counts_an_image_beside_the_formula(api: ApiServer, tmp_path: Path) -> None:
    words, where = ("image", "56x56", "--count-tokens"), at(api, tmp_path)
    (found,) = document(*words, **where)["images"]
    assert (found["tokens"], found["tokens_counted"] > 0) == (4, True)
    assert call(*words, **where).err == ""
    api.plan = [{"status": 401}]
    other = call("image", "84x84", "--count-tokens", **{**where, "XDG_CACHE_HOME": str(tmp_path)})
    assert "--count-tokens stopped: " in other.err
    assert "Counted" not in other.out


@each("diagnose", "replay", "simulate", "image")
def test_without_a_key_nothing_is_asked_and_it_says_so(command: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines([{**row, "response": None} for row in demo_session()]))
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    words = ("57x57",) if command == "image" else (str(path),)
    ended = call(command, *words, "--count-tokens", **home)
    assert (ended.code, ended.out) == (2, "")
    assert "--count-tokens: there is no key" in ended.err
    assert "set ANTHROPIC_API_KEY" in ended.err
    if command != "image":
        # A log with counters asks nothing.
        assert call(command, LOG, "--count-tokens", **home).code == 0


@shows("--plot", "replay", "simulate", "image")
@each("replay", "simulate", "image")
def test_plot_draws_the_kind_that_the_name_asks_for(command: str, tmp_path: Path) -> None:
    for name, begins in (("a.png", b"\x89PNG"), ("b.SVG", b"<?xml")):
        path = tmp_path / name
        ended = call(command, *BASE[command], "--plot", path)
        assert ended == call(command, *BASE[command])
        assert path.read_bytes().startswith(begins)
    for name, hint in (("a.gif", "name it context.png"), ("no/folder/a.png", "another --plot")):
        ended = call(command, *BASE[command], "--plot", tmp_path / name)
        assert (ended.code, ended.out) == (2, "")
        assert hint in ended.err


@shows("--session", "replay", "simulate")
@each("replay", "simulate")
def test_session_takes_one_by_the_beginning_of_its_name(command: str, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    rows = demo_session()
    for number, row in enumerate(rows):
        row["session_id"] = "morning" if number < 4 else "evening"
    path.write_text(lines(rows))
    found = document(command, str(path), "--session", "morn")
    assert (found["log"]["requests"] if command == "replay" else found["requests"]) == 4
    ended = call(command, str(path), "--session", "noon")
    assert (ended.code, ended.out) == (2, "")
    assert "noon" in ended.err


# diagnose


@shows("--pair", "diagnose")
def test_pair_chooses_two_requests_of_a_log() -> None:
    for text in ("4,5", " 4 - 5", "4:5"):
        found = document("diagnose", LOG, "--pair", text)
        assert (found["before"]["line"], found["after"]["line"]) == (4, 5)


@shows("--diff", "diagnose")
def test_diff_compares_where_it_is_not_needed() -> None:
    assert document("diagnose", *ALIVE)["steps"]["diff"]["ran"] is False
    assert document("diagnose", *ALIVE, "--diff")["steps"]["diff"]["ran"] is True


@shows("--exit-code", "diagnose")
def test_exit_code_tells_whether_the_cache_is_alive() -> None:
    assert [call("diagnose", *pair).code for pair in (DEAD, ALIVE)] == [0, 0]
    assert [call("diagnose", *pair, "--exit-code").code for pair in (DEAD, ALIVE)] == [1, 0]


@shows("--live", "diagnose")
@shows("--yes", "diagnose")
def test_live_sends_after_asking_or_a_yes(api: ApiServer, tmp_path: Path) -> None:
    where = at(api, tmp_path)
    refused = call("diagnose", *DEAD, "--live", **where)
    assert (refused.code, refused.out, api.calls) == (2, "", 0)
    assert "at most $" in refused.err
    assert "say --yes where nobody can be asked" in refused.err
    sent = call("diagnose", *DEAD, "--live", "--yes", "--quiet", **where)
    assert sent.code == 0
    # What costs money is told all the same.
    assert "--live sends " in sent.err
    assert "double send, live" in sent.out
    assert api.calls in (2, 3)


@pytest.mark.parametrize(("answer", "code", "calls"), [(b"n\n", 1, {0}), (b"y\n", 0, {2, 3})])
def test_a_person_is_asked(
    answer: bytes, code: int, calls: set[int], api: ApiServer, tmp_path: Path
) -> None:
    with mock.patch("tests.support.program.Piped.isatty", return_value=True):
        ended = call("diagnose", *DEAD, "--live", stdin=answer, **at(api, tmp_path))
    assert ended.code == code
    assert "Send it?" in ended.err
    assert api.calls in calls


@shows("--diagnostics", "diagnose")
def test_diagnostics_asks_for_the_word_of_the_api(api: ApiServer, tmp_path: Path) -> None:
    for words, asked in (((), False), (("--diagnostics",), True)):
        api.bodies.clear()
        call("diagnose", *DEAD, "--live", "--yes", *words, **at(api, tmp_path))
        assert any(b'"diagnostics"' in body for body in api.bodies) is asked


# simulate


def rows_of(*words: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = document("simulate", *words)["rows"]
    return rows


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


# image


@shows("--turns", "image")
def test_turns_price_the_turns_that_send_it_again() -> None:
    assert "over 10 turns" in call("image", "57x57").out
    assert "over 3 turns" in call("image", "57x57", "--turns", "3").out
    for words in (("57x57", "--turns", "0"), (LOG, "--turns", "3")):
        ended = call("image", *words)
        assert (ended.code, ended.out) == (2, "")


# gate


def checks_of(*words: str) -> dict[str, str]:
    return {check["name"]: check["verdict"] for check in document("gate", *words)["limits"]}


@pytest.mark.parametrize(
    ("limit", "held", "broken"),
    [
        ("--min-hit-ratio", "62%", "0.63"),
        ("--max-lost-cost", "0.0497", "0.03"),
        ("--max-lost-tokens", "14_390", "14389"),
        ("--max-prefix-tokens", "1_906", "1905"),
        ("--max-growth-per-turn", "434", "433"),
    ],
)
@shows("--min-hit-ratio", "gate")
@shows("--max-lost-cost", "gate")
@shows("--max-lost-tokens", "gate")
@shows("--max-prefix-tokens", "gate")
@shows("--max-growth-per-turn", "gate")
def test_a_limit_holds_up_to_its_value(limit: str, held: str, broken: str) -> None:
    """The replay of the session: 62.1 % read, P 1,906, a 434; 5,808 + 4,942 + 3,640 tokens lost."""
    name = limit.removeprefix("--").replace("-", "_")
    assert checks_of(LOG, limit, held)[name] == "held"
    assert checks_of(LOG, limit, broken)[name] == "broken"


@shows("--allow", "gate")
@shows("--fail-on", "gate")
def test_causes_can_be_let_pass_or_break() -> None:
    def broken(*words: str) -> set[str]:
        return {f["cause"] for f in document("gate", LOG, *words)["findings"] if f["breaks"]}

    assert broken() == {"tool_order", "timestamp_in_prefix"}
    assert broken("--allow", "tool-order") == {"timestamp_in_prefix"}
    assert broken("--fail-on", "ttl_expired") == {
        "tool_order",
        "timestamp_in_prefix",
        "ttl_expired",
    }


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module with a function that builds a body, in the folder where the program runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "agent_prompts.py"
    path.write_text(
        "import json, os, time\n"
        "def build(system='You are an agent. ' * 300):\n"
        "    text = {'type': 'text', 'text': system, 'cache_control': {'type': 'ephemeral'}}\n"
        "    return {'model': 'claude-sonnet-4-5', 'max_tokens': 9, 'system': [text],\n"
        "            'messages': [{'role': 'user', 'content': 'hi'}]}\n"
        "def at_home(): return build(os.environ['HOME'] * 300)\n"
        "def slow(): time.sleep(30)\n"
        "if __name__ == '__main__': print(json.dumps(build()))\n"
    )
    return path


WITHOUT_PAUSE = ("--skip", "pause")


@shows("--command", "gate")
@shows("--import", "gate")
def test_builders_are_run_by_command_or_by_name(builder: Path) -> None:
    for words in (
        ("--command", f"{sys.executable} {builder.name}"),
        ("--import", "agent_prompts:build"),
    ):
        ended = call("gate", *words, *WITHOUT_PAUSE)
        assert ended.out.startswith("HELD"), ended
        assert ended.code == 0


@shows("--skip", "gate")
@pytest.mark.usefixtures("builder")
def test_skip_leaves_a_surrounding_out() -> None:
    words = ("gate", "--import", "agent_prompts:at_home", *WITHOUT_PAUSE)
    assert call(*words).code == 1
    assert call(*words, "--skip", "home").code == 0
    ended = call(*words, "--skip", "hoem")
    assert (ended.code, ended.out) == (2, "")
    assert "known: pause, hash_seed, " in ended.err


@shows("--timeout", "gate")
@pytest.mark.usefixtures("builder")
def test_timeout_ends_a_builder() -> None:
    ended = call("gate", "--import", "agent_prompts:slow", "--timeout", "0.3")
    assert ended.code == 3
    assert "0.3" in ended.err


@shows("--baseline", "gate")
@shows("--update", "gate")
def test_a_baseline_is_written_and_held_against(builder: Path, tmp_path: Path) -> None:
    words = ("gate", "--import", "agent_prompts:build", "--baseline", "x.lock", *WITHOUT_PAUSE)
    missing = call(*words)
    assert missing.code in (2, 3)
    assert call(*words, "--update").code == 0
    assert (tmp_path / "x.lock").stat().st_mode & 0o777 == 0o644
    assert call(*words).code == 0
    builder.write_text(builder.read_text().replace("You are an agent", "You are a bot"))
    changed = call(*words)
    assert changed.code == 1
    assert "with --update" in changed.out
    ended = call("gate", "--import", "agent_prompts:build", "--update")
    assert (ended.code, ended.out) == (2, "")
    assert "name it with --baseline FILE" in ended.err


def test_several_formats_go_to_a_file_each(tmp_path: Path) -> None:
    one, two = tmp_path / "a.json", tmp_path / "b.xml"
    ended = call(
        "gate", LOG, "--format", "text", "--format", f"json={one}", "--format", f"junit={two}"
    )
    assert ended == call("gate", LOG)
    assert json.loads(one.read_text())["verdict"] == "broken"
    assert two.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--format", "json", "--format", "text"), "give each a file"),
        (("--format", "json=a", "--output", "b"), "--output has no format left"),
        (("--format", "csv"), "json, sarif and junit are for programs"),
        (("--format", "csv=a"), "json, sarif and junit are for programs"),
        (("--format", f"json={LOG}"), "would replace what is read"),
        (("--min-hit-ratio", "x%"), "min-hit-ratio"),
        (("--min-hit-ratio", "101%"), "min-hit-ratio"),
        (("--max-lost-tokens", "1.5"), "max-lost-tokens"),
        (("--timeout", "0"), "timeout"),
        (("--allow", "tool_oder"), "did you mean tool_order"),
        (("--skip", "home"), "a log has no surroundings"),
        (("--command", "true"), "name a log, --command or --import"),
    ],
)
def test_a_wrong_option_of_the_gate_is_named(words: tuple[str, ...], said: str) -> None:
    ended = call("gate", LOG, *words)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_a_step_summary_is_added_to(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n")
    for form in ("text", "github"):
        call("gate", LOG, "--format", form, GITHUB_STEP_SUMMARY=str(path))
    assert path.read_text().startswith("before\n**BROKEN** ")
    assert path.read_text().count("**BROKEN** ") == 1
    ended = call("gate", LOG, "--format", "github", GITHUB_STEP_SUMMARY=str(tmp_path))
    assert ended.code == 1
    assert "cannot write the step summary" in ended.err


# record

SENDER = """
import json, os, urllib.request
body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9,
                   "messages": [{"role": "user", "content": "a secret word"}]}).encode()
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body,
                                 {"content-type": "application/json", "x-api-key": "k"})
urllib.request.urlopen(request).read()
"""


def recorded(api: ApiServer, log: Path, *words: str) -> Ended:
    program = ("--", sys.executable, "-c", SENDER)
    return call("record", "--out", log, "--upstream", api.url, *words, *program)


@shows("--out", "record")
@shows("--upstream", "record")
@shows("--quiet", "record")
def test_what_a_program_sends_is_written_to_a_log(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "agent.jsonl"
    ended = recorded(api, log)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"ctxdoc: 1 request recorded; ctxdoc replay {log}\n"
    assert (api.calls, len(log.read_text().splitlines())) == (1, 1)
    assert recorded(api, log, "--quiet").err == ""
    assert (api.calls, len(log.read_text().splitlines())) == (2, 2)


@shows("--redact", "record")
def test_redact_leaves_no_text(api: ApiServer, tmp_path: Path) -> None:
    for kind, is_there in (("none", True), ("text", False)):
        recorded(api, tmp_path / kind, "--redact", kind)
        assert ("a secret word" in (tmp_path / kind).read_text()) is is_there


@shows("--debug", "record")
def test_debug_shows_a_fault_of_the_recorder(api: ApiServer, tmp_path: Path) -> None:
    with mock.patch("ctxdoc.record.proxy.Proxy.running", side_effect=RuntimeError("at the door")):
        assert "at the door" not in recorded(api, tmp_path / "a").err
        ended = recorded(api, tmp_path / "a", "--debug")
    assert ended.code == 70
    assert "at the door" in ended.err


@shows("--listen", "record")
@shows("--port", "record")
def test_listen_waits_at_a_port_until_it_is_interrupted(api: ApiServer, tmp_path: Path) -> None:
    """The free port of a first listening is asked for by a second one."""
    words = (sys.executable, "-m", "ctxdoc", "record", "--listen", "--upstream", api.url)
    ports = []
    for port in ("0", None):
        asked = port or ports[0]
        with subprocess.Popen(
            (*words, "--out", str(tmp_path / "log"), "--port", asked),
            stderr=subprocess.PIPE,
            cwd=ROOT,
        ) as process:
            assert process.stderr is not None
            said = process.stderr.readline().decode()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        ports.append(said.strip().rpartition(":")[2])
    assert ports[0] == ports[1] != "0"


def test_a_table_of_a_report_is_read_by_other_programs() -> None:
    for command in ("replay", "simulate"):
        table = call(command, *BASE[command], "--format", "csv").out
        rows = list(csv.DictReader(io.StringIO(table)))
        assert rows
        assert None not in rows[0]


def test_a_picture_has_its_size(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    call("image", "57x57", "--plot", path)
    with Image.open(path) as picture:
        assert picture.size == (800, 600)
