"""The options of `ctxdoc gate` by what they change."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.options import (
    LOG,
    document,
    shows,
)
from tests.support.program import call


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
