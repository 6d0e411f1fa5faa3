"""What the functions give back: the command's document to the byte, tables, sums that add up, errors."""

from __future__ import annotations

import csv
import gc
import io
import json
import math
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ctxdoc
from ctxdoc.api.gate import GateVerdict
from ctxdoc.api.outcome import Outcome
from ctxdoc.errors import InputError, NoRequestError, UncheckedError, UnknownNameError
from ctxdoc.pricing.cost import usd_text
from tests.support.frame import DataFrame
from tests.support.program import call
from tests.support.sessions import ROOT, SESSION, demo_session, lines

CASES = ROOT / "fixtures" / "cases"
PAIR = tuple(str(CASES / "clock-at-head-of-system" / f"{name}.json") for name in "ab")
LOG = str(SESSION)
EVIDENCE = ROOT / "fixtures" / "evidence"

Made = Callable[[], Outcome]
CALLS: dict[str, tuple[Made, tuple[str, ...]]] = {
    "a pair": (lambda: ctxdoc.diagnose(*PAIR), ("diagnose", *PAIR)),
    "a log": (lambda: ctxdoc.diagnose(LOG), ("diagnose", LOG)),
    "two of a log": (
        lambda: ctxdoc.diagnose(LOG, pair=(2, 3), diff=True),
        ("diagnose", LOG, "--pair", "2,3", "--diff"),
    ),
    "another model": (
        lambda: ctxdoc.diagnose(*PAIR, model="claude-opus-5-5"),
        ("diagnose", *PAIR, "--model", "claude-opus-5-5"),
    ),
    "a replay": (lambda: ctxdoc.replay(LOG), ("replay", LOG)),
    "a session": (lambda: ctxdoc.replay(LOG, session="s1"), ("replay", LOG, "--session", "s1")),
    "half without counters": (
        lambda: ctxdoc.replay(EVIDENCE / "half_without_counters.jsonl.gz"),
        ("replay", str(EVIDENCE / "half_without_counters.jsonl.gz")),
    ),
    "a folder": (lambda: ctxdoc.replay(CASES), ("replay", str(CASES))),
    "usual strategies": (lambda: ctxdoc.simulate(LOG), ("simulate", LOG)),
    "chosen strategies": (
        lambda: ctxdoc.simulate(LOG, strategy="clear:keep=2", placement=["oracle", "none"]),
        ("simulate", LOG, "--strategy", "clear:keep=2", "--placement", "oracle", "--placement", "none"),
    ),
    "what is hidden": (
        lambda: ctxdoc.simulate(LOG, strategy="offload:over=300", verbose=True),
        ("simulate", LOG, "--strategy", "offload:over=300", "--verbose"),
    ),
    "searches": (
        lambda: ctxdoc.simulate(LOG, sweep="clear.keep=1,2", optimize="trim.high=3k..6k"),
        ("simulate", LOG, "--sweep", "clear.keep=1,2", "--optimize", "trim.high=3k..6k"),
    ),
    "a made-up session": (
        lambda: ctxdoc.simulate(
            prefix=800, per_turn=500, turns=6, tool_share=0.5, payload=90, gap=400.0, output_tokens=40,
            seed=3, model="claude-sonnet-4-6",
        ),
        (
            "simulate", "--prefix", "800", "--per-turn", "500", "--turns", "6", "--tool-share", "0.5",
            "--payload", "90", "--gap", "400", "--output-tokens", "40", "--seed", "3", "--model",
            "claude-sonnet-4-6",
        ),
    ),
    "a gate": (
        lambda: ctxdoc.gate(
            LOG, min_hit_ratio=0.6, max_lost_cost=0.1, max_lost_tokens=10, max_prefix_tokens=5000,
            max_growth_per_turn=1000, allow=["tool_order"], fail_on=["ttl_expired"],
        ),
        (
            "gate", LOG, "--min-hit-ratio", "60%", "--max-lost-cost", "0.1", "--max-lost-tokens", "10",
            "--max-prefix-tokens", "5_000", "--max-growth-per-turn", "1000", "--allow", "tool_order",
            "--fail-on", "ttl_expired",
        ),
    ),
    "a program": (
        lambda: ctxdoc.gate(command=f"cat {PAIR[0]}", skip=["pause", "locale"], timeout=30),
        ("gate", "--command", f"cat {PAIR[0]}", "--skip", "pause", "--skip", "locale", "--timeout", "30"),
    ),
    "sizes": (
        lambda: ctxdoc.image("1920x1080", "57x57", turns=3),
        ("image", "1920x1080", "57x57", "--turns", "3"),
    ),
    "images of a log": (lambda: ctxdoc.image(LOG), ("image", LOG)),
}  # fmt: skip


@pytest.fixture(params=CALLS)
def both(request: pytest.FixtureRequest) -> tuple[Outcome, tuple[str, ...]]:
    """An outcome, and the words of the command that gives the same."""
    make, words = CALLS[request.param]
    return make(), words


def test_an_outcome_is_the_commands_document_to_the_byte(
    both: tuple[Outcome, tuple[str, ...]],
) -> None:
    """And its text, and its rows as the frame of any other program takes them."""
    found, words = both
    ended = call(*words, "--format", "json")
    assert found.to_json() == ended.out
    assert found.to_dict() == json.loads(ended.out)
    assert found.to_text() == call(*words).out
    for rows in (found.rows, found.findings):
        assert DataFrame(rows).shape[0] == len(rows)  # type: ignore[arg-type]
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(rows[0]) if rows else [])
        writer.writeheader()
        writer.writerows(rows)
        assert len(list(csv.reader(io.StringIO(stream.getvalue())))) == len(rows) + 1


@pytest.mark.parametrize("name", ["replay", "simulate"])
def test_rows_are_those_of_the_table_in_types_of_their_own(name: str) -> None:
    """A number of the table is the number of the row, exactly as far as a float goes."""
    rows = getattr(ctxdoc, name)(LOG).rows
    table = list(csv.DictReader(io.StringIO(call(name, LOG, "--format", "csv").out)))
    assert [list(row) for row in table] == [list(row) for row in rows]
    for shown, row in zip(table, rows, strict=True):
        for column, value in row.items():
            text = shown[column].removeprefix("'")
            if value is None:
                assert text in ("", "none")
            elif isinstance(value, float):
                assert float(text) == value
            elif isinstance(value, bool):
                assert text == str(value).lower()
            elif column == "at":
                assert text == value.isoformat()
            else:
                assert text == str(value)


def test_paths_and_a_log_that_is_read_give_the_same() -> None:
    log = ctxdoc.read(LOG)
    assert len(log.requests) == 12
    for function in (ctxdoc.replay, ctxdoc.simulate, ctxdoc.diagnose, ctxdoc.gate):
        one = function(Path(LOG)).to_json()
        assert one == function(log).to_json() == function(LOG).to_json()
    # A replay lets go of the bodies that it read itself, and of no others.
    assert all(request.body is not None for request in log.requests)


def test_a_log_can_be_sent_to_another_model_when_it_is_read_already() -> None:
    log = ctxdoc.read(ctxdoc.read(LOG), model="claude-opus-5-5")
    assert {request.model for request in log.requests} == {"claude-opus-5-5"}
    assert {r.response.model for r in log.requests if r.response} == {"claude-opus-5-5"}
    assert ctxdoc.replay(LOG, model="claude-opus-5-5").to_json() == ctxdoc.replay(log).to_json()


def test_a_condensed_log_costs_the_same_and_holds_no_whole_body() -> None:
    log = ctxdoc.read(LOG, condense=True)
    assert all(request.raw is None for request in log.requests)
    assert ctxdoc.replay(log).to_json() == ctxdoc.replay(LOG).to_json()


def test_totals_are_the_sums_of_the_rows() -> None:
    found = ctxdoc.replay(LOG)
    for column, amount in (
        ("cost", found.totals.cost.amount),
        ("lost_cost", found.totals.lost.amount),
        ("cost_oracle", found.totals.oracle.amount),
    ):
        assert isinstance(amount, Decimal)
        assert math.isclose(sum(row[column] or 0 for row in found.rows), amount)  # type: ignore[misc]
    assert found.totals.lost_tokens == sum(f["lost_tokens"] for f in found.findings)  # type: ignore[misc]
    assert found.is_understood


def test_the_best_strategy_is_named_as_it_is_asked_for() -> None:
    found = ctxdoc.simulate(LOG)
    best = found.totals.best
    assert best is not None
    again = ctxdoc.simulate(LOG, strategy=best)
    assert again.totals.best_cost == found.totals.best_cost
    # The session is billed as it was recorded: the rolling breakpoints are its own.
    assert found.totals.billed == found.totals.keep == ctxdoc.replay(LOG).totals.cost.amount


def test_tokens_and_money_of_sizes_are_those_of_the_formula() -> None:
    """Sonnet 4.5, standard tier: 28 x 56 px are 1 x 2 patches, 57 x 57 are 3 x 3; at 3 USD a million."""
    found = ctxdoc.image("28x56", "57x57", model="claude-sonnet-4-5")
    assert [row["tokens"] for row in found.rows] == [2, 9]
    assert (found.totals.images, found.totals.tokens) == (2, 11)
    assert found.totals.cost == Decimal("0.000033")
    assert found.rows[1]["cost"] == 9 * 3 / 1_000_000


def test_images_of_a_log_without_any_are_none() -> None:
    found = ctxdoc.image(LOG)
    assert found.rows == found.findings == []
    assert (found.totals.images, found.totals.tokens, found.totals.cost) == (0, 0, Decimal(0))
    with pytest.raises(InputError, match="nothing to draw"):
        found.plot()


def test_a_diagnosis_says_state_cause_and_money() -> None:
    """63 uncached, 2,309 written, 284 out of Sonnet 4.5: 0.0131 USD, of it 2309 x (3.75 - 0.30) lost."""
    found = ctxdoc.diagnose(*PAIR)
    assert found.state == "dead"
    assert found.rows is found.findings
    first = found.rows[0]
    assert (first["cause"], first["lost_tokens"]) == ("timestamp_in_prefix", 2309)
    assert found.totals.lost == Decimal("2309") * (Decimal("3.75") - Decimal("0.3")) / 10**6
    assert first["lost_cost"] == float(found.totals.lost)


def test_excerpts_are_left_out_everywhere() -> None:
    found = ctxdoc.diagnose(*PAIR)
    assert "15:09" in found.to_json()
    for text in (found.to_json(excerpts=False), found.to_text(excerpts=False)):
        assert "15:09" not in text
    assert (
        found.to_json(excerpts=False)
        == call("diagnose", *PAIR, "--no-excerpts", "--format", "json").out
    )


def test_text_has_the_width_that_is_asked_for() -> None:
    assert max(map(len, ctxdoc.diagnose(*PAIR).to_text(width=70).splitlines())) <= 70


@pytest.mark.parametrize("kind", ["png", "svg"])
def test_pictures_are_bytes_of_their_kind(kind: str) -> None:
    begins = {"png": b"\x89PNG", "svg": b"<?xml"}[kind]
    for found in (ctxdoc.replay(LOG), ctxdoc.simulate(LOG, strategy="keep"), ctxdoc.image("9x9")):
        assert found.plot(kind).startswith(begins)


def test_a_picture_of_another_kind_is_not_drawn() -> None:
    with pytest.raises(InputError, match="as 'gif'") as caught:
        ctxdoc.replay(LOG).plot("gif")
    assert caught.value.hint == "known: png, svg"


def test_what_is_emitted_costs_on_replay_what_the_row_says(tmp_path: Path) -> None:
    found = ctxdoc.simulate(LOG, strategy="offload:over=200")
    path = tmp_path / "emitted.jsonl"
    path.write_bytes(found.emit())
    again = ctxdoc.replay(path).totals
    assert again.guessed_cost.amount is not None
    assert float(again.guessed_cost.amount) == found.rows[-1]["cost"]


def test_a_baseline_is_given_to_whoever_writes_it(tmp_path: Path) -> None:
    """Held once it is accepted, and again when it is read; broken by another prefix."""
    path = tmp_path / "prefix.lock.json"

    def held_against(system: str, *, update: bool = False) -> GateVerdict:
        # A function that no other interpreter can import is called in this one, here without the pause.
        build = partial(_built, system)
        return ctxdoc.gate(build=build, baseline=path, update=update, skip=["pause"])

    new = held_against("You are careful.", update=True)
    assert not path.exists()
    accepted = new.accept(path.write_bytes)
    assert accepted.verdict == "held"
    assert b"You are" not in path.read_bytes()
    assert held_against("You are careful.").verdict == "held"
    other = held_against("You are quick.")
    assert (other.verdict, other.exit_code) == ("broken", 1)
    assert other.totals.broken == 1


def _built(system: str = "You are a careful agent.") -> dict[str, Any]:
    text = {"type": "text", "text": system * 300, "cache_control": {"type": "ephemeral"}}
    return {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "system": [text],
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_a_function_that_changes_each_time_breaks_the_gate() -> None:
    numbers = iter(range(9))
    found = ctxdoc.gate(build=lambda: _built(f"Run {next(numbers)}."))
    assert found.verdict == "broken"
    assert found.rows[0]["breaks"] is True


def test_what_was_skipped_is_told(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines(demo_session()) + "{broken\n")
    for function in (ctxdoc.replay, ctxdoc.diagnose, ctxdoc.simulate, ctxdoc.gate, ctxdoc.image):
        (line,) = function(path).warnings
        assert line.startswith("1 record skipped, the first: ")
        with pytest.raises(InputError, match="line 13"):
            function(path, strict=True)


def test_an_error_tells_what_was_skipped_before_it(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines(demo_session()) + "{broken\n")
    with pytest.raises(InputError) as caught:
        ctxdoc.simulate(path, session="nobody")
    assert caught.value.__notes__ == [ctxdoc.replay(path).warnings[0]]
    assert "skipped" in call("simulate", path, "--session", "nobody").err
    assert "skipped" not in call("simulate", path, "--session", "nobody", "--quiet").err


def test_of_two_logs_the_last_requests_are_taken() -> None:
    found = ctxdoc.diagnose(LOG, LOG)
    assert found.warnings == (f"{LOG} holds 12 requests; the last one is taken",) * 2


def test_progress_is_told_until_all_is_done(tmp_path: Path) -> None:
    """Bytes while reading, requests while replaying; the last few may not be told."""
    path = tmp_path / "log.jsonl"
    path.write_text(lines(demo_session()) * 20)
    told: dict[str, list[int]] = {}

    def progress(title: str, total: int) -> Callable[[int], None]:
        steps = told[title] = [total]
        return steps.append

    ctxdoc.replay(path, progress=progress)
    assert told["reading"][0] == path.stat().st_size
    assert sum(told["reading"][1:]) == path.stat().st_size
    assert told["replaying"][0] == len(ctxdoc.read(path).requests)
    assert sum(told["replaying"][1:]) <= told["replaying"][0]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled: bool) -> None:
    was_on = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        ctxdoc.replay(LOG)
        assert gc.isenabled() is enabled
        with pytest.raises(InputError):
            ctxdoc.replay("nowhere.jsonl")
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was_on else gc.disable)()


WRONG: list[tuple[Callable[[], object], type[Exception], str]] = [
    (ctxdoc.read, InputError, "there is no log"),
    (lambda: ctxdoc.read("nowhere.jsonl"), InputError, "cannot read nowhere.jsonl"),
    (lambda: ctxdoc.read(ctxdoc.read(LOG), LOG), InputError, "stands alone"),
    (lambda: ctxdoc.read(LOG, model="claude-sonet-4-5"), UnknownNameError, "claude-sonet-4-5"),
    (lambda: ctxdoc.read(ROOT / "pyproject.toml"), NoRequestError, "no usable request"),
    (ctxdoc.diagnose, InputError, "two requests or one log, not 0"),
    (lambda: ctxdoc.diagnose(LOG, LOG, LOG), InputError, "not 3 files"),
    (lambda: ctxdoc.diagnose("-", "-"), InputError, "cannot be both"),
    (lambda: ctxdoc.diagnose(LOG, pair=(3, 2)), InputError, "'3,2' does not name two"),
    (lambda: ctxdoc.diagnose(LOG, pair=(0, 2)), InputError, "from 1 to 12|does not name two"),
    (lambda: ctxdoc.diagnose(LOG, pair=(11, 13)), InputError, "of the 12 requests"),
    (lambda: ctxdoc.diagnose(*PAIR, pair="1,2"), InputError, "goes with one log"),
    (lambda: ctxdoc.replay(LOG, session="nobody"), InputError, "nobody"),
    (lambda: ctxdoc.replay(LOG, model="gpt"), UnknownNameError, "no model named 'gpt'"),
    (ctxdoc.simulate, InputError, "neither a log nor"),
    (lambda: ctxdoc.simulate(LOG, per_turn=5), InputError, "--per-turn goes with a made-up"),
    (lambda: ctxdoc.simulate(LOG, output_tokens=5), InputError, "--output-tokens goes with"),
    (lambda: ctxdoc.simulate(prefix=5), InputError, "what a turn adds"),
    (lambda: ctxdoc.simulate(per_turn=5, tool_share=3.0), InputError, "from 0 to 1"),
    (lambda: ctxdoc.simulate(LOG, strategy="cler"), UnknownNameError, "no strategy named 'cler'"),
    (lambda: ctxdoc.simulate(LOG, placement="roling"), UnknownNameError, "no placement named"),
    (lambda: ctxdoc.simulate(LOG, sweep="clear.keep"), InputError, "has no values"),
    (lambda: ctxdoc.simulate(LOG, optimize="clear.mode"), InputError, "mode"),
    (lambda: ctxdoc.simulate(LOG).emit(), InputError, "there are 0"),
    (
        lambda: ctxdoc.simulate(LOG, strategy="keep", placement="oracle").emit(),
        InputError,
        "places no breakpoints",
    ),
    (
        lambda: ctxdoc.simulate(LOG, sweep="clear.mode=sticky,rolling").plot(),
        InputError,
        "nothing to draw",
    ),
    (ctxdoc.gate, InputError, "no requests to check"),
    (lambda: ctxdoc.gate(LOG, command="true"), InputError, "more than one source"),
    (lambda: ctxdoc.gate(LOG, build=_built), InputError, "more than one source"),
    (lambda: ctxdoc.gate(LOG, skip=["home"]), InputError, "--skip goes with"),
    (lambda: ctxdoc.gate(LOG, min_hit_ratio=1.5), InputError, "min-hit-ratio"),
    (lambda: ctxdoc.gate(LOG, allow=["tool_oder"]), UnknownNameError, "tool_oder"),
    (lambda: ctxdoc.gate(LOG, update=True), InputError, "--update writes a baseline"),
    (lambda: ctxdoc.gate(LOG, model="gpt"), UnknownNameError, "gpt"),
    (lambda: ctxdoc.gate(command="false"), UncheckedError, "exit code 1|status 1|ended with 1"),
    (lambda: ctxdoc.gate(command="no-such-program-here"), InputError, "no-such-program-here"),
    (lambda: ctxdoc.gate(build=lambda: 1 // 0), UncheckedError, "ZeroDivisionError"),
    (ctxdoc.image, InputError, "there is no image"),
    (lambda: ctxdoc.image("0x5"), InputError, "at least one pixel"),
    (lambda: ctxdoc.image("5x5", LOG), InputError, "logs and images at once"),
    (lambda: ctxdoc.image(LOG, turns=2), InputError, "--turns goes with"),
    (lambda: ctxdoc.image(LOG, count_tokens=True), InputError, "--count-tokens goes with"),
    (lambda: ctxdoc.image("nowhere.png"), InputError, "cannot read nowhere.png"),
]


@pytest.mark.parametrize(("wrong", "kind", "said"), WRONG)
def test_a_mistake_is_an_error_of_ctxdoc_with_a_clear_text(
    wrong: Callable[[], object], kind: type[Exception], said: str
) -> None:
    with pytest.raises(ctxdoc.CtxdocError, match=said) as caught:
        wrong()
    assert type(caught.value) is kind
    assert not caught.value.message.endswith(".")
    assert "Traceback" not in caught.value.message


def test_money_in_rows_is_what_the_report_shows() -> None:
    lost = ctxdoc.replay(LOG).findings[0]["lost_cost"]
    assert isinstance(lost, float)
    assert usd_text(Decimal(str(lost))) in call("replay", LOG).out
