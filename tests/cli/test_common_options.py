"""The options that commands share, by what they change in each of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.support.api_server import ApiServer
from tests.support.options import (
    BASE,
    KEY,
    LOG,
    OF_LOGS,
    at,
    document,
    each,
    rows_of,
    shows,
)
from tests.support.program import call
from tests.support.sessions import demo_session, lines


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


@shows("--schema", "diagnose", "replay", "simulate", "advise")
@each("diagnose", "replay", "simulate", "advise")
def test_schema_2_has_numbers_where_schema_1_has_strings(command: str) -> None:
    one, two = (document(command, *BASE[command], "--schema", number) for number in "12")
    assert one == document(command, *BASE[command])
    assert (one["schema"], two["schema"]) == (f"ctxdoc/{command}/1", f"ctxdoc/{command}/2")
    pairs = [pair for pair in _members(one, two) if pair[1] != pair[2]]
    assert {name for name, _, _ in pairs} <= {
        "schema", "hit_ratio", "error_share", "r2", "largest_error_share", "vs_keep_percent",
        "vs_keep_percent_without_cache", "difference_percent", "vs_sent_percent", "unseen_share",
        "max_unseen", "pays_below_share", "share",
    }  # fmt: skip
    for name, text, number in pairs:
        assert name == "schema" or float(text) == number
        assert name == "schema" or not isinstance(number, str)
    assert len(pairs) > 1 or command in ("diagnose", "advise")
    ended = call(command, *BASE[command], "--schema", "3")
    assert (ended.code, ended.out) == (2, "")
    assert "write --schema 1 or --schema 2" in ended.err


def _members(one: Any, two: Any, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The values of two documents of one form, by the name of their member."""
    if isinstance(one, dict):
        assert list(one) == list(two)
        for key in one:
            yield from _members(one[key], two[key], key)
    elif isinstance(one, list):
        for each_one, each_two in zip(one, two, strict=True):
            yield from _members(each_one, each_two, name)
    else:
        yield name, one, two


@shows("--output", *BASE)
@each(*BASE)
def test_output_to_a_dash_is_standard_output(command: str) -> None:
    assert call(command, *BASE[command], "--output", "-").out == call(command, *BASE[command]).out


@shows("--model", "diagnose", "replay", "simulate", "advise", "image")
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


@shows("--count-tokens", "diagnose", "replay", "simulate", "advise")
@each("diagnose", "replay", "simulate", "advise")
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


@each("diagnose", "replay", "simulate", "advise", "image")
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


def test_a_table_of_a_report_is_read_by_other_programs() -> None:
    for command in ("replay", "simulate"):
        table = call(command, *BASE[command], "--format", "csv").out
        rows = list(csv.DictReader(io.StringIO(table)))
        assert rows
        assert None not in rows[0]
