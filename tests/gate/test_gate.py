"""The gate: healthy and broken logs, builders in changed surroundings, baselines, outputs, pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
import xmlschema
import yaml
from jsonschema import Draft7Validator

from ctxdoc.errors import InputError, UncheckedError
from ctxdoc.gate.baseline import changes_of, lock_of, write_lock
from ctxdoc.gate.process import Builder, Run
from ctxdoc.gate.settings import settings_of
from ctxdoc.gate.surroundings import SURROUNDINGS
from ctxdoc.outputs import Style
from ctxdoc.outputs.github import OUTPUT as GITHUB
from ctxdoc.outputs.junit import OUTPUT as JUNIT
from ctxdoc.outputs.report import Annotation, CheckResult, Checks, Report, Rule
from ctxdoc.outputs.sarif import OUTPUT as SARIF
from ctxdoc.prompt.render import render
from ctxdoc.reading.load import read_bodies
from ctxdoc.tokens.fingerprint import locked, marked_count, stable_count
from tests.cli.test_cli import ROOT, run
from tests.support.sessions import (
    MARK,
    SESSION,
    START,
    clock_goes_on,
    lines,
    record,
    session,
    tools_move,
)
from tests.support.stand_in import StandIn

Body = dict[str, Any]
SCHEMAS = ROOT / "fixtures" / "schemas"
HELD, BROKEN, WRONG, UNCHECKED = 0, 1, 2, 3

BUILDERS = """
import datetime, json, os, sys, time, uuid


def body(text, tools=("read", "write")):
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 100,
        "tools": [
            {"name": n, "description": "Tool " + n, "input_schema": {"type": "object"}} for n in tools
        ],
        "system": [
            {"type": "text", "text": "You are an agent. " + text, "cache_control": {"type": "ephemeral"}}
        ],
        "messages": [{"role": "user", "content": "Behind the breakpoint: " + str(time.time())}],
    }


def sound(): return body("Be brief.")
def iterates_a_set(): return body("", {"read", "write", "grep", "list", "move"})
def prints_the_time(): return body("It is " + datetime.datetime.now().isoformat())
def prints_a_uuid(): return body("Request " + str(uuid.uuid4()))
def prints_cwd(): return body("Working folder: " + os.getcwd())
def prints_home(): return body("Home: " + os.path.expanduser("~"))
def prints_the_day(): return body("Today is " + datetime.date.today().isoformat())
def prints_the_zone(): return body("Zone: " + time.strftime("%z"))
def prints_minutes(): return body("It is " + datetime.datetime.now().strftime("%Y%m%d-%H%M"))
def walks(): return body(" ".join(sorted(n for _, d, f in os.walk(".") for n in d + f if n.isalpha())))
def joins_a_set(): return body(" ".join({"red", "green", "blue", "black", "white"}))
def shuffles():
    import random
    return body("", random.sample(["read", "write", "grep", "list", "move"], 5))
def several(): return [body("One."), body("Two.")]
def sometimes_more(): return [body("x")] * (2 if os.environ["PYTHONHASHSEED"] == "3" else 1)
async def later(): return body("Be brief.")
def chatty():
    print("not a body")
    return body("Be brief.")
def fails(): raise ValueError("the key is sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123")
def no_body(): return {"hello": 1}
def needs_home():
    if os.environ["HOME"].endswith("somebody"): raise SystemExit(4)
    return body("Be brief.")


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a module of builders."""
    (tmp_path / "builders.py").write_text(BUILDERS)
    return tmp_path


def gate(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[bytes]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME") or name.startswith("COVERAGE_PROCESS")
    }
    return subprocess.run(
        [sys.executable, "-m", "ctxdoc", "gate", *words],
        capture_output=True,
        cwd=cwd,
        env={**kept, **environment},
        timeout=100,
        check=False,
    )


def document(*words: str, cwd: Path = ROOT) -> tuple[int, Body]:
    ended = gate(*words, "--format", "json", cwd=cwd)
    return ended.returncode, json.loads(ended.stdout)


# Logs


def test_appended_turns_moved_breakpoints_and_sampling_settings_hold(tmp_path: Path) -> None:
    records = session({}, turns=8)
    for number, row in enumerate(records):
        row["request"]["max_tokens"] = 100 + number
        row["request"]["temperature"] = number / 10
    path = tmp_path / "log.jsonl"
    path.write_text(lines(records))
    code, found = document(str(path))
    assert (code, found["verdict"], found["findings"]) == (HELD, "held", [])
    assert found["limits"][0]["value"] == 0


def test_an_unstable_prefix_breaks_with_cause_and_place(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines(session({5: clock_goes_on, 9: tools_move})))
    code, found = document(str(path))
    assert (code, found["verdict"]) == (BROKEN, "broken")
    rows = {row["cause"]: row for row in found["findings"]}
    assert list(rows) == ["timestamp_in_prefix", "tool_order"]
    clock = rows["timestamp_in_prefix"]
    assert (clock["requests"], clock["line"]) == ([5], 5)
    assert clock["json_path"] == "$.system[1].text"
    assert "09:0" in clock["before"]
    assert all(row["breaks"] for row in rows.values())


def test_a_pause_is_told_and_breaks_when_it_is_asked_for() -> None:
    """The demo session: a clock at request 5, a pause at 8, tools at 10."""
    log = str(SESSION.relative_to(ROOT))
    allowed = ("--allow", "timestamp_in_prefix", "--allow", "tool-order")
    code, found = document(log, *allowed)
    assert code == HELD
    assert {row["cause"]: row["breaks"] for row in found["findings"]} == {
        "timestamp_in_prefix": False, "ttl_expired": False, "tool_order": False,
    }  # fmt: skip
    code, found = document(log, *allowed, "--fail-on", "ttl_expired")
    assert code == BROKEN
    assert [row["cause"] for row in found["findings"] if row["breaks"]] == ["ttl_expired"]


@pytest.mark.parametrize(
    ("words", "code", "value"),
    [
        # The demo session reads 35,159 of 56,688 tokens, and loses 14,390 in three misses.
        (("--min-hit-ratio", "0.5"), HELD, "0.62"),
        (("--min-hit-ratio", "63%"), BROKEN, "0.62"),
        (("--max-lost-cost", "0.05"), HELD, "0.0496"),
        (("--max-lost-cost", "0.04"), BROKEN, "0.0496"),
        (("--max-lost-tokens", "14_390"), HELD, "14390"),
        (("--max-lost-tokens", "14389"), BROKEN, "14390"),
        (("--max-prefix-tokens", "1906"), HELD, "1906"),
        (("--max-prefix-tokens", "1905"), BROKEN, "1906"),
        (("--max-growth-per-turn", "434"), HELD, "434"),
        (("--max-growth-per-turn", "400"), BROKEN, "434"),
    ],
)
def test_limits(words: tuple[str, ...], code: int, value: str) -> None:
    allowed = ("--allow", "timestamp_in_prefix", "--allow", "tool_order")
    ended, found = document(str(SESSION.relative_to(ROOT)), *allowed, *words)
    assert ended == code
    assert str(found["limits"][1]["value"]).startswith(value)


def conversation(
    number: int,
    system: str,
    tools: tuple[str, ...] = ("a", "b", "c"),
    turns: int = 3,
    apart: int = 1_000,
) -> list[Body]:
    """Records of one conversation, as a stand-in bills them."""
    cache, body, rows = CACHE, agent(system, tools, f"Question number {number}, please."), []
    for turn in range(turns):
        seconds = apart * number + 20 * turn
        sent = json.loads(json.dumps(body))
        sent["messages"][-1]["content"][-1]["cache_control"] = dict(MARK)
        at = START + timedelta(seconds=seconds)
        rows.append(record(sent, at, cache.answer(sent, seconds), 100 * number + turn))
        said = {"type": "text", "text": f"Answer {turn} of conversation {number} in some words."}
        asked = {"type": "text", "text": f"And what of the thing number {turn}, in {number}?"}
        body["messages"] += [
            {"role": "assistant", "content": [said]}, {"role": "user", "content": [asked]},
        ]  # fmt: skip
    return rows


CACHE = StandIn()


def agent(system: str, tools: tuple[str, ...], question: str) -> Body:
    described = "Reads what there is to be read, and tells of it in a few words. " * 12
    return {
        "model": "claude-sonnet-4-6",
        "max_tokens": 50,
        "tools": [
            {"name": n, "description": described + n, "input_schema": {"type": "object"}}
            for n in tools
        ],
        "system": [
            {"type": "text", "text": system + " Be brief and kind. " * 160, "cache_control": MARK}
        ],
        "messages": [{"role": "user", "content": [{"type": "text", "text": question}]}],
    }


def judged(tmp_path: Path, *conversations: list[Body]) -> tuple[int, Body]:
    path = tmp_path / "log.jsonl"
    rows = sorted((row for each in conversations for row in each), key=lambda row: row["timestamp"])
    path.write_text(lines(rows))
    return document(str(path))


def test_several_agents_of_one_log_are_no_fault(tmp_path: Path) -> None:
    """A router, a writer and a critic, and a helper with fewer tools: each is stable by itself."""
    code, found = judged(
        tmp_path,
        conversation(1, "You route."),
        conversation(2, "You write well."),
        conversation(3, "You criticize."),
        conversation(4, "You route.", tools=("a",)),
        conversation(5, "You route.", tools=("c", "b", "a")),
    )
    assert (code, [row for row in found["findings"] if row["breaks"]]) == (HELD, [])


def test_a_conversation_whose_calls_get_new_ids_is_broken(tmp_path: Path) -> None:
    """From request 5 on every call of the history has another id each time."""
    rows = session({}, turns=9)
    cache = StandIn()
    for number, row in enumerate(rows, start=1):
        body = row["request"]
        if number > 4:
            text = json.dumps(body["messages"]).replace('"id": "toolu_', f'"id": "toolu_{number}x')
            text = text.replace('"tool_use_id": "toolu_', f'"tool_use_id": "toolu_{number}x')
            body["messages"] = json.loads(text)
        row["response"]["usage"] = cache.answer(body, 20 * number)
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    code, found = document(str(path))
    assert (code, found["findings"][0]["cause"]) == (BROKEN, "tool_call_id_regenerated")
    assert found["findings"][0]["requests"] == [5, 6, 7, 8, 9]


def test_conversations_that_all_begin_with_another_time_are_broken(tmp_path: Path) -> None:
    begun = [conversation(n, f"It is 10:{n:02d}:07.", turns=1, apart=20) for n in range(1, 6)]
    code, found = judged(tmp_path, *begun)
    assert (code, found["findings"][0]["cause"]) == (BROKEN, "timestamp_in_prefix")


def test_a_day_that_ends_is_told_and_breaks_nothing(tmp_path: Path) -> None:
    rows = session({5: lambda body: body["system"][1].update(text="Today is 2026-11-03.")}, turns=8)
    for row in rows[:4]:
        row["request"]["system"][1]["text"] = "Today is 2026-11-02."
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    code, found = document(str(path))
    assert code == HELD
    assert [(row["cause"], row["breaks"]) for row in found["findings"]] == [
        ("timestamp_in_prefix", False)
    ]


def test_a_log_without_bodies_that_lost_its_prefix_is_unchecked(tmp_path: Path) -> None:
    """20,000 tokens are written anew on each of ten requests, and nothing says why."""
    from tests.simulation.test_run import transcript

    rows = transcript("a", 20_000)
    for row in rows:
        usage = row["message"]["usage"]
        usage["cache_creation_input_tokens"] += usage.pop("cache_read_input_tokens")
        usage["cache_read_input_tokens"] = 0
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    code, found = document(str(path))
    assert (code, found["verdict"]) == (UNCHECKED, "unchecked")
    assert "no bodies that say why" in found["limits"][0]["why"]
    code, found = document(str(path), "--max-lost-tokens", "0", "--allow", "prefix_changed")
    assert code == BROKEN
    assert found["limits"][1]["value"] > 100_000
    assert gate(str(path), "--fail-on", "prefix_changed").returncode == BROKEN


def test_records_that_were_skipped_are_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    good = lines(session({}, turns=4))
    path.write_text(good + '{"request": {"model": "m", "mess\n')
    code, found = document(str(path), "--quiet")
    assert code == HELD
    assert found["not_checked"][0].startswith("1 record was skipped, the first:")
    path.write_text(good + '{"request": {"model": "m", "mess\n' * 5)
    code, found = document(str(path), "--quiet")
    assert code == UNCHECKED
    assert "5 records were skipped" in found["limits"][0]["why"]


def test_two_requests_that_share_nothing_show_nothing(tmp_path: Path) -> None:
    one = session({}, turns=1)
    title = json.loads(json.dumps(one[0]))
    title["request"] = {
        "model": "claude-haiku-4-5", "max_tokens": 9,
        "messages": [{"role": "user", "content": "A title for this, please: harbours of the north"}],
    }  # fmt: skip
    title["response"]["id"] = "msg_title"
    path = tmp_path / "log.jsonl"
    path.write_text(lines([*one, title]))
    assert gate(str(path)).returncode == UNCHECKED


def test_what_cannot_be_checked_is_never_held(tmp_path: Path) -> None:
    one = tmp_path / "one.jsonl"
    one.write_text(lines(session({}, turns=1)))
    code, found = document(str(one))
    assert (code, found["limits"][0]["verdict"]) == (UNCHECKED, "unchecked")
    assert found["limits"][0]["value"] is None
    assert b"UNCHECKED" in gate(str(one)).stdout
    two = tmp_path / "two.jsonl"
    two.write_text(lines(session({}, turns=2)))
    # Two requests make no growth.
    assert gate(str(two), "--max-growth-per-turn", "9").returncode == UNCHECKED
    empty = tmp_path / "empty.jsonl"
    empty.write_text("")
    assert gate(str(empty)).returncode == UNCHECKED
    assert gate("nowhere.jsonl").returncode == WRONG


# Builders


@pytest.mark.parametrize(
    ("name", "code", "cause", "surroundings"),
    [
        ("sound", HELD, None, set()),
        ("later", HELD, None, set()),
        ("chatty", HELD, None, set()),
        ("several", HELD, None, set()),
        ("iterates_a_set", BROKEN, "tool_order", {f"hash_seed_{n}" for n in "1234"}),
        ("prints_the_time", BROKEN, "timestamp_in_prefix", {"pause"}),
        ("prints_a_uuid", BROKEN, "request_id_in_prefix", {"pause"}),
        ("prints_cwd", BROKEN, "environment_state_in_prefix", {"working_folder"}),
        ("prints_home", BROKEN, "environment_state_in_prefix", {"home"}),
        (
            "prints_minutes",
            BROKEN,
            "timestamp_in_prefix",
            {"time_zone_east", "time_zone_west", "clock", "day", "pause"},
        ),
        ("walks", HELD, None, set()),
        ("joins_a_set", BROKEN, "json_key_order", {f"hash_seed_{n}" for n in "1234"}),
        ("shuffles", BROKEN, "tool_order", {"pause"}),
    ],
)
def test_a_builder_is_judged_by_what_changes_it(
    project: Path, name: str, code: int, cause: str | None, surroundings: set[str]
) -> None:
    ended, found = document("--import", f"builders:{name}", cwd=project)
    assert ended == code
    assert [row["cause"] for row in found["findings"]] == ([cause] if cause else [])
    for row in found["findings"]:
        assert set(row["surroundings"]) <= surroundings
        assert row["surroundings"]
        assert row["json_path"].startswith(("$.system[0].text", "$.tools["))


def test_a_program_is_judged_alike(project: Path) -> None:
    command = f"{sys.executable} builders.py"
    assert gate("--command", f"{command} sound", cwd=project).returncode == HELD
    code, found = document("--command", f"{command} iterates_a_set", cwd=project)
    assert (code, found["findings"][0]["cause"]) == (BROKEN, "tool_order")


def test_another_day_is_told_and_breaks_nothing(project: Path) -> None:
    """East or west of here it is another day, at any hour."""
    code, found = document("--import", "builders:prints_the_day", cwd=project)
    assert (code, [row["breaks"] for row in found["findings"]]) == (HELD, [False])
    words = ("--import", "builders:prints_the_day", "--fail-on", "timestamp_in_prefix")
    assert gate(*words, cwd=project).returncode == BROKEN


def test_twenty_runs_give_one_verdict(project: Path) -> None:
    folder = project
    for name, names in (("iterates_a_set", {"tool_order"}), ("sound", set())):
        verdicts = set()
        for _ in range(10):
            code, found = document(
                "--import", f"builders:{name}", "--skip", "pause", "--skip", "locale", cwd=folder
            )
            causes = [(row["cause"], tuple(row["surroundings"])) for row in found["findings"]]
            verdicts.add((code, tuple(causes)))
        assert len(verdicts) == 1
        assert {cause for _, causes in verdicts for cause, _ in causes} == names


def test_the_advice_is_about_what_was_changed(project: Path) -> None:
    _, found = document("--import", "builders:joins_a_set", "--skip", "pause", cwd=project)
    assert found["findings"][0]["fix"].startswith("Sort what comes from a set")
    _, found = document("--import", "builders:prints_cwd", "--skip", "pause", cwd=project)
    assert "absolute paths" in found["findings"][0]["fix"]


def test_a_builder_finds_its_files_in_the_other_folder(project: Path) -> None:
    """In a folder of a repository: what lies above, what git says, and links are still there."""
    deep = project / "app" / "agents"
    deep.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True, timeout=20)
    (project / "rules.md").write_text("Rules.")
    (deep / "link.md").symlink_to(project / "rules.md")
    (deep / "builders.py").write_text(BUILDERS)
    text = (
        "import builders, pathlib, subprocess\n"
        "def build():\n"
        "    status = subprocess.run(['git', 'status', '--short'], capture_output=True, text=True).stdout\n"
        "    near = sorted(str(p.relative_to('.')) for p in pathlib.Path('.').rglob('*.md'))\n"
        "    return builders.body(pathlib.Path('../../rules.md').read_text() + str(near) + status)\n"
    )
    (deep / "deeper.py").write_text(text)
    code, found = document("--import", "deeper:build", "--skip", "pause", cwd=deep)
    assert (code, found["findings"]) == (HELD, []), found


def test_a_number_of_bodies_that_changes_is_found(project: Path) -> None:
    code, found = document("--import", "builders:sometimes_more", cwd=project)
    assert code == BROKEN
    assert "1 bodies and then 2" in found["findings"][0]["explanation"]
    assert found["findings"][0]["surroundings"] == ["hash_seed_3"]


def test_what_fails_elsewhere_only_is_unchecked_and_can_be_skipped(project: Path) -> None:
    code, found = document("--import", "builders:needs_home", cwd=project)
    assert (code, found["verdict"]) == (UNCHECKED, "unchecked")
    assert "another HOME" in found["limits"][0]["why"]
    assert gate("--import", "builders:needs_home", "--skip", "home", cwd=project).returncode == HELD


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("no-such-program-anywhere", WRONG, b"cannot start no-such-program-anywhere"),
        ("python -c 'raise SystemExit(3)'", UNCHECKED, b"exit code 3"),
        ("python -c 'print(\"garbage {\")'", UNCHECKED, b"no request body"),
        ("python -c 'pass'", UNCHECKED, b"printed nothing"),
        ("python -c 'import os; os.abort()'", UNCHECKED, b"signal 6"),
        ("'", WRONG, b"cannot be split"),
        ("python -c 'import time; time.sleep(60)'", UNCHECKED, b"did not end in 1 s"),
    ],
)
def test_a_builder_that_gives_no_body_says_so(command: str, code: int, said: bytes) -> None:
    started = time.monotonic()
    limit = "1" if "sleep" in command else "50"
    words = command.replace("python ", f"{sys.executable} ", 1)
    ended = gate("--command", words, "--timeout", limit)
    assert ended.returncode == code
    assert said in ended.stderr
    assert b"Traceback" not in ended.stderr
    assert time.monotonic() - started < 20


def test_what_a_builder_complains_is_cut_and_holds_no_key(project: Path) -> None:
    ended = gate("--import", "builders:fails", cwd=project)
    assert ended.returncode == UNCHECKED
    assert b"ValueError" in ended.stderr
    assert b"abcdefghijklmnopqrstuvwxyz" not in ended.stderr + ended.stdout
    for words in (
        "Authorization: Bearer abcdefghij",
        "password=hunter2 api_key: k3y AKIAIOSFODNN7EX",
    ):
        said = f"import sys; sys.exit({words!r})"
        shown = gate("--command", f'{sys.executable} -c "{said}"').stderr
        for secret in (b"abcdefghij", b"hunter2", b"k3y", b"AKIAIOSFODNN7EX"):
            assert secret not in shown
    noise = "import sys; sys.stderr.write('secret words ' * 9999); sys.exit(1)"
    ended = gate("--command", f'{sys.executable} -c "{noise}"')
    assert len(ended.stderr) < 400


def test_a_builder_that_floods_is_stopped() -> None:
    builder = Builder(
        [sys.executable, "-c", "while True: print('x' * 1_000_000)"], timeout=60, folder=ROOT
    )
    with pytest.raises(UncheckedError, match="printed over 64,000,000 bytes"):
        builder.reference()


def test_what_a_builder_started_ends_with_it(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    child = f"import time, pathlib; time.sleep(2); pathlib.Path({str(mark)!r}).touch()"
    start = f"subprocess.Popen([sys.executable, '-c', {child!r}])"
    parent = f"import subprocess, sys, time; {start}; time.sleep(60)"
    builder = Builder([sys.executable, "-c", parent], timeout=0.6, folder=tmp_path)
    with pytest.raises(UncheckedError):
        builder.reference()
    time.sleep(2.5)
    assert not mark.exists()


@pytest.mark.parametrize("surrounding", SURROUNDINGS, ids=[each.id for each in SURROUNDINGS])
def test_a_sound_builder_runs_in_every_surrounding(
    project: Path, surrounding: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    builder = Builder([sys.executable, "builders.py", "sound"], timeout=30, folder=project)
    scene = surrounding.change(builder.scene, tmp_path_factory.mktemp("empty"))
    if scene is None:
        pytest.skip("this machine cannot change it")
    found = builder.run(scene)
    assert isinstance(found, Run), found


def test_the_clock_is_an_hour_off_and_the_day_is_another(project: Path) -> None:
    from ctxdoc.gate.surroundings import _find_faketime

    if _find_faketime() is None:
        pytest.skip("libfaketime is not found")
    code, found = document("--import", "builders:prints_the_zone", cwd=project)
    assert code == BROKEN
    assert set(found["findings"][0]["surroundings"]) == {"time_zone_east", "time_zone_west"}
    by_id = {each.id: each for each in SURROUNDINGS}
    tell = [sys.executable, "-c", "import time; print(int(time.time()))"]
    for name, seconds in (("clock", 3_660), ("day", 86_400)):
        scene = by_id[name].change(Builder(tell, timeout=9, folder=project).scene, project)
        assert scene is not None
        shown = subprocess.run(
            tell, env=scene.environment, capture_output=True, timeout=20, check=True
        )
        assert abs(abs(int(shown.stdout) - time.time()) - seconds) < 20


# Baselines


def prefix_of(
    text: str = "Be brief.", tools: tuple[str, ...] = ("a", "b"), model: str = "claude-sonnet-5-5"
) -> Any:
    body = {
        "model": model,
        "max_tokens": 9,
        "tools": [
            {"name": name, "description": f"Does {name}.", "input_schema": {"type": "object"}}
            for name in tools
        ],
        "system": [{"type": "text", "text": text}],
        "messages": [{"role": "user", "content": "hi"}],
    }
    (request,) = read_bodies(json.dumps(body).encode(), "-")
    return render(request)


def lock(*prefixes: Any) -> Any:
    return lock_of(locked(prefix, stable_count(prefix)) for prefix in prefixes)


def changed(before: Any, after: Any) -> tuple[list[str], int | None]:
    (found,) = changes_of(lock(before), lock(after))
    return list(found.lines), found.invalidates


def test_a_baseline_holds_no_text_and_is_the_same_each_time() -> None:
    one, two = prefix_of(), prefix_of("Another agent.", ("c",))
    text = write_lock(lock(one, two, one))
    assert text == write_lock(lock(two, one))
    assert b"brief" not in text
    assert b"Does" not in text
    assert json.loads(text)["schema"] == "ctxdoc/lock/1"
    assert len(json.loads(text)["prefixes"]) == 2


def test_what_changed_is_named() -> None:
    old = prefix_of()
    assert changes_of(lock(old), lock(old)) == ()
    found, lost = changed(old, prefix_of("Be very brief, and kind."))
    assert found[0].startswith("$.system[0].text" if "text" in found[0] else "$.system")
    assert "tokens" in found[0]
    # Only the system prompt is lost; the tools ahead of it stay.
    blocks = lock(old).prefixes[0].blocks
    assert lost == blocks[-1].tokens
    found, lost = changed(old, prefix_of(tools=("a", "b", "c")))
    assert found[0].startswith("tool `c` is new, +")
    assert lost == blocks[-1].tokens
    found, lost = changed(old, prefix_of(tools=("b", "a")))
    assert found == ["tools in another order, from `b` on"]
    assert lost == sum(block.tokens for block in blocks)
    found, lost = changed(old, prefix_of(tools=("a",)))
    assert found[0].startswith("tool `b` is gone, -")
    found, lost = changed(old, prefix_of(model="claude-opus-5-5"))
    assert found[0].startswith("model claude-sonnet-5-5 → claude-opus-5-5")
    assert lost == sum(block.tokens for block in blocks)


def test_a_prefix_that_is_new_is_named_and_one_that_is_not_sent_is_no_change() -> None:
    one, two = prefix_of(), prefix_of("Wholly another agent with much to say.", ("x", "y", "z"))
    assert changes_of(lock(one, two), lock(one)) == ()
    (found,) = changes_of(lock(one), lock(one, two))
    assert "3 tools" in found.lines[0]
    assert found.invalidates is None


def test_a_changed_description_is_told_with_its_tokens(project: Path) -> None:
    words = ("--import", "builders:sound", "--baseline", "prefix.lock.json", "--skip", "pause")
    assert gate(*words, cwd=project).returncode == UNCHECKED
    ended = gate(*words, "--update", cwd=project)
    assert ended.returncode == HELD, ended.stdout
    path = project / "prefix.lock.json"
    first = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o644
    assert gate(*words, cwd=project).returncode == HELD
    changed = BUILDERS.replace(
        '"Tool " + n', '"Tool " + n + " and some more words" * (n == "write")'
    )
    (project / "builders.py").write_text(changed)
    ended = gate(*words, cwd=project)
    assert ended.returncode == BROKEN
    text = ended.stdout.decode()
    # 20 characters more, 2.8 of them a token.
    assert "tool `write` description, +7 tokens" in text
    assert "invalidates about" in text
    assert gate(*words, "--update", cwd=project).returncode == HELD
    assert path.read_bytes() != first


def test_an_unstable_prefix_is_not_written(project: Path) -> None:
    words = ("--import", "builders:iterates_a_set", "--baseline", "a.lock", "--update")
    assert gate(*words, "--skip", "pause", cwd=project).returncode == BROKEN
    assert not (project / "a.lock").exists()
    code, found = document(*words, "--skip", "pause", cwd=project)
    assert code == BROKEN
    assert found["limits"][1]["why"] == "not written: there is no stable prefix"


def test_a_breakpoint_that_moved_is_no_block_that_is_gone() -> None:
    prefix = prefix_of()
    whole, part = locked(prefix, 3), locked(prefix, 2)
    (found,) = changes_of(lock_of([whole]), lock_of([part]))
    assert found.lines == ("what is held ends earlier now, with $.tools[1]",)


def test_the_agents_of_a_baseline_are_paired_by_what_they_share() -> None:
    """One agent's description is longer and a helper is new: the helper is not taken for the agent."""
    old = prefix_of("Be brief.", ("a", "b", "c"))
    longer = prefix_of("Be brief, always and everywhere.", ("a", "b", "c"))
    helper = prefix_of("Help.", ("a",))
    found = changes_of(lock(old), lock(helper, longer))
    told = sorted(line for each in found for line in each.lines)
    assert len(told) == 2
    assert told[0].startswith("$.system")
    assert "with 1 tools" in told[1]


def test_the_tools_and_system_prompt_of_a_log_are_its_baseline(tmp_path: Path) -> None:
    log, other = tmp_path / "log.jsonl", tmp_path / "other.jsonl"
    log.write_text(lines(session({}, turns=4)))
    words = ("--baseline", str(tmp_path / "l.json"))
    assert gate(str(log), *words, "--update").returncode == HELD
    assert len(json.loads((tmp_path / "l.json").read_text())["prefixes"]) == 1
    assert gate(str(log), *words).returncode == HELD
    records = session({1: tools_move}, turns=4)
    other.write_text(lines(records))
    code, found = document(str(other), *words)
    assert code == BROKEN
    assert found["findings"] == []
    assert "another order" in found["baseline"]["changes"][0]["lines"][0]
    # One request is enough for a baseline.
    one = tmp_path / "one.jsonl"
    one.write_text(lines(session({}, turns=1)))
    assert gate(str(one), *words).returncode == HELD


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"schema": "ctxdoc/lock/9", "prefixes": []}', "\x00", "[" * 9999]
)
def test_a_broken_baseline_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "l.json"
    path.write_text(text)
    ended = gate(str(SESSION), "--baseline", str(path))
    assert ended.returncode == WRONG
    assert b"--update" in ended.stderr


# Settings


def test_settings_stand_in_pyproject(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.ctxdoc.gate]\nimport = "builders:iterates_a_set"\nallow = ["tool_order"]\n'
        'skip = ["pause", "locale"]\nbaseline = "locks/p.json"\n'
    )
    (project / "locks").mkdir()
    below = project / "deep" / "er"
    below.mkdir(parents=True)
    assert gate("--update", cwd=below).returncode == HELD
    assert (project / "locks" / "p.json").exists()
    assert gate(cwd=below).returncode == HELD
    # What is given on the command line goes first, and the file's paths still start from its folder.
    assert gate("--import", "builders:sound", "--update", cwd=project).returncode == HELD
    assert not (below / "locks").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.ctxdoc.gate]\nmin-hit-ration = 1", b"did you mean min-hit-ratio"),
        ("[tool.ctxdoc.gate]\nmin-hit-ratio = 3", b"<= 1"),
        ("[tool.ctxdoc.gate]\nallow = ['tool_ordr']", b"did you mean tool_order"),
        ("[tool.ctxdoc]\ngate = 5", b"is no table"),
        ("[tool", b"cannot read"),
        ("[tool.ctxdoc.gate]\nlogs = ['a']\ncommand = 'b'", b"more than one source"),
        ("", b"no requests to check"),
    ],
)
def test_a_mistake_in_the_settings_is_named(tmp_path: Path, text: str, said: bytes) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    ended = gate(cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (WRONG, b"")
    assert said in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a.jsonl", "--command", "b"), b"more than one source"),
        (("--import", "builders"), b"pkg.mod:function"),
        (("a.jsonl", "--allow", "tool_ordr"), b"did you mean tool_order"),
        (("a.jsonl", "--update"), b"--baseline"),
        (("a.jsonl", "--min-hit-ratio", "nan"), b"min-hit-ratio"),
        (("a.jsonl", "--max-lost-tokens", "-4"), b"max-lost-tokens"),
        (("--import", "a:b", "--skip", "hom"), b"known: pause"),
        (("a.jsonl", "--format", "sarfi"), b"did you mean sarif"),
        (("a.jsonl", "--format", "text", "--format", "json"), b"the same place"),
        (("a.jsonl", "--format", "text=o", "--format", "json=o"), b"the same place"),
        (("a.jsonl", "--format", "text=o", "--output", "p"), b"no format left"),
        (("a.jsonl", "--format", "csv"), b"no table for csv"),
        (("a.jsonl", "--skip", "home"), b"no surroundings"),
        (("--command", "cd a && b"), b"no shell runs the command"),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, words: tuple[str, ...], said: bytes) -> None:
    (tmp_path / "a.jsonl").write_text(lines(session({}, turns=2)))
    ended = gate(*words, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (WRONG, b"")
    assert said in ended.stderr


def test_settings_have_types() -> None:
    found = settings_of({"max_lost_cost": 0.5, "fail-on": ["none"]}, "here")
    assert (found.max_lost_cost, found.fail_on) == (0.5, ("none",))
    with pytest.raises(InputError, match="here"):
        settings_of({"timeout": 0}, "here")


# Outputs


def report(message: str, file: str = "logs/a b.jsonl") -> Report:
    rule = Rule(id="tool_order", title="tools, in another order: 100%", help="Sort them.")
    return Report(
        make_parts=tuple,
        make_data=dict,
        make_checks=lambda: Checks(
            verdict="broken",
            summary="one\n::error::two",
            tested=(
                CheckResult(name="stable_prefix", verdict="broken", text=f"{message}\nmore"),
                CheckResult(name="min_hit_ratio", verdict="held", text=""),
                CheckResult(name="baseline", verdict="unchecked", text="none yet"),
            ),
            annotations=(
                Annotation(rule=rule, level="error", message=message, file=file, line=3),
                Annotation(rule=rule, level="note", message=message),
            ),
        ),
    )


HOSTILE = "100% of\nit,\r\n::set-output name=x::y \x00\x1b[31m <b>&\ud800"


def test_github_commands_are_escaped() -> None:
    shown = GITHUB.write(report(HOSTILE), Style())
    rows = shown.splitlines()
    assert len(rows) == 3
    assert rows[0].startswith(
        "::error file=logs/a b.jsonl,line=3,title=ctxdoc tool_order%3A tools%2C in another order%3A 100%25::"
        "100%25 of%0Ait,"
    )
    assert rows[1].startswith("::notice title=")
    assert not rows[2].startswith("::")
    assert "\x1b" not in shown
    assert all("::set-output" not in row[:2] for row in rows)


def test_sarif_is_valid_by_its_schema() -> None:
    schema = json.loads((SCHEMAS / "sarif-2.1.0.json").read_text())
    found = json.loads(SARIF.write(report(HOSTILE), Style()))
    assert list(Draft7Validator(schema).iter_errors(found)) == []
    first, second = found["runs"][0]["results"]
    assert first["ruleId"] == "tool_order"
    where = first["locations"][0]["physicalLocation"]
    assert where == {
        "artifactLocation": {"uri": "logs/a%20b.jsonl", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 3},
    }
    assert "locations" not in second
    # A schema that takes everything would check nothing.
    del found["runs"][0]["tool"]
    assert list(Draft7Validator(schema).iter_errors(found))


def test_junit_is_valid_by_a_common_schema() -> None:
    schema = xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd"))
    text = JUNIT.write(report(HOSTILE), Style())
    schema.validate(text)
    suites = Xml.fromstring(text)
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("3", "1", "1")
    assert [case.get("name") for case in suites.iter("testcase")] == [
        "stable_prefix", "min_hit_ratio", "baseline",
    ]  # fmt: skip


def test_a_real_gate_writes_all_of_them_at_once(tmp_path: Path) -> None:
    log, summary = tmp_path / "log.jsonl", tmp_path / "summary.md"
    log.write_text(lines(session({3: clock_goes_on}, turns=5)))
    outputs = [
        f"--format={name}={name}.out" for name in ("sarif", "junit", "json", "html", "markdown")
    ]
    ended = gate(
        "log.jsonl", "--format", "github", *outputs, cwd=tmp_path, GITHUB_STEP_SUMMARY=str(summary)
    )
    assert ended.returncode == BROKEN
    assert ended.stdout.startswith(b"::error file=log.jsonl,line=3,")
    assert "timestamp_in_prefix" in summary.read_text().replace("\\", "")
    schema = json.loads((SCHEMAS / "sarif-2.1.0.json").read_text())
    found = json.loads((tmp_path / "sarif.out").read_text())
    assert list(Draft7Validator(schema).iter_errors(found)) == []
    (rule,) = found["runs"][0]["tool"]["driver"]["rules"]
    assert rule["id"] == "timestamp_in_prefix"
    assert "newest user message" in rule["help"]["text"]
    xmlschema.XMLSchema(str(SCHEMAS / "junit-10.xsd")).validate(
        (tmp_path / "junit.out").read_text()
    )
    assert json.loads((tmp_path / "json.out").read_text())["schema"] == "ctxdoc/gate/1"


def test_no_name_of_a_log_begins_a_line(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    rows = session({}, turns=4)
    for number, row in enumerate(rows):
        name = f"bad\n::error::tool{number}"
        row["request"]["tools"][0] = {"name": name, "input_schema": {"type": "object"}}
    log.write_text(lines(rows))
    for form in ("text", "markdown", "github"):
        shown = gate(str(log), "--format", form).stdout.decode()
        assert not any(line.strip().startswith("::error::tool") for line in shown.splitlines())


def test_other_reports_have_no_checks() -> None:
    ended = run("replay", str(SESSION), "--format", "sarif")
    assert ended.returncode == WRONG
    assert b"the gate has them" in ended.stderr


def test_no_excerpts_leaves_the_text_out(project: Path) -> None:
    words = ("--import", "builders:prints_cwd", "--no-excerpts", "--skip", "pause")
    for form in ("text", "json", "github", "sarif", "junit"):
        ended = gate(*words, "--format", form, cwd=project)
        assert ended.returncode == BROKEN
        assert str(project).encode() not in ended.stdout


# pytest, pre-commit, GitHub


def in_pytest(folder: Path, text: str, *words: str) -> str:
    (folder / "test_it.py").write_text(textwrap.dedent(text))
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:randomly",
            *words,
            "test_it.py",
        ],
        capture_output=True,
        cwd=folder,
        timeout=100,
        check=False,
    )
    return ended.stdout.decode() + ended.stderr.decode()


def test_the_plugin_judges_functions_and_logs(project: Path) -> None:
    (project / "log.jsonl").write_text(lines(session({3: clock_goes_on}, turns=5)))
    shown = in_pytest(
        project,
        """
        import itertools
        import pytest
        import builders

        def test_sound(assert_stable_prefix):
            assert_stable_prefix(builders.sound, skip=["pause"])

        def test_set(assert_stable_prefix):
            assert_stable_prefix(builders.iterates_a_set, skip=["pause"])

        @pytest.mark.ctxdoc(skip=["pause"], allow=["tool_order"])
        def test_allowed(assert_stable_prefix):
            assert_stable_prefix(builders.iterates_a_set)

        @pytest.mark.filterwarnings("ignore:ctxdoc")
        def test_closure(assert_stable_prefix):
            count = itertools.count(1000)
            assert_stable_prefix(lambda: builders.body(f"Request id: r{next(count)}"))

        def test_log(assert_cache_alive):
            assert_cache_alive("log.jsonl")

        @pytest.mark.ctxdoc(allow=["timestamp_in_prefix"])
        def test_allowed_log(assert_cache_alive):
            assert_cache_alive("log.jsonl")

        def test_no_body(assert_stable_prefix):
            assert_stable_prefix(lambda: 5)

        def test_of_another_agent(assert_stable_prefix):
            assert_stable_prefix(builders.sound, alow=["tool_order"])

        def wrapped():
            return builders.body(str(next(COUNT)))

        COUNT = itertools.count(5000)
        wrapped.__qualname__, wrapped.__module__ = "sound", "builders"

        def test_what_wraps_is_not_what_is_wrapped(assert_stable_prefix):
            assert_stable_prefix(wrapped)

        class Agent:
            def build(self):
                return builders.sound()

        def test_bound(assert_stable_prefix):
            with pytest.warns(UserWarning, match="a second later"):
                assert_stable_prefix(Agent().build)
        """,
    )
    assert "6 failed, 4 passed" in shown, shown
    assert "did you mean allow" in shown
    assert "Cause    tool_order" in shown
    assert "Where    builders:iterates_a_set $.tools[" in shown
    assert "Cause    timestamp_in_prefix" in shown
    assert "could not check: the builder" in shown
    assert "Traceback" not in shown


def test_the_plugin_writes_baselines_when_asked(project: Path) -> None:
    text = """
        import builders

        def test_locked(assert_stable_prefix):
            assert_stable_prefix(builders.sound, baseline="p.lock.json", skip=["pause"])
        """
    assert "there is no baseline yet" in in_pytest(project, text)
    assert "1 passed" in in_pytest(project, text, "--ctxdoc-update-baseline")
    assert "1 passed" in in_pytest(project, text)
    (project / "builders.py").write_text(BUILDERS.replace("You are an agent", "You are no agent"))
    shown = in_pytest(project, text)
    assert "1 failed" in shown
    assert "invalidates about" in shown


def test_two_tests_of_one_baseline_and_the_settings_of_the_project(project: Path) -> None:
    (project / "pyproject.toml").write_text(
        '[tool.ctxdoc.gate]\nskip = ["pause"]\nallow = ["tool_order"]\nimport = "nobody:knows"\n'
    )
    text = """
        import builders

        def test_one(assert_stable_prefix):
            assert_stable_prefix(builders.sound, baseline="locks/p.json")

        def test_two(assert_stable_prefix):
            assert_stable_prefix(builders.several, baseline="locks/p.json")

        def test_allowed_by_the_project(assert_stable_prefix):
            assert_stable_prefix(builders.iterates_a_set)
        """
    assert "3 passed" in in_pytest(project, text, "--ctxdoc-update-baseline")
    assert "3 passed" in in_pytest(project, text)


def test_the_plugin_loads_nothing_heavy_at_collection(project: Path) -> None:
    shown = in_pytest(
        project,
        """
        import sys

        def test_it():
            heavy = {"msgspec", "rich", "typer", "anthropic", "matplotlib", "deepdiff"}
            heavy.add("ctxdoc.diagnosis.causes")
            assert not heavy & set(sys.modules)
        """,
    )
    assert "1 passed" in shown, shown


def test_the_action_runs_the_gate_as_it_is_asked(tmp_path: Path) -> None:
    action = yaml.safe_load((ROOT / ".github/actions/gate/action.yml").read_text())
    steps = action["runs"]["steps"]
    script = steps[-1]["run"]
    assert set(steps[-1]["env"]) == {name.upper() for name in action["inputs"] if name != "install"}
    shim = tmp_path / "bin" / "ctxdoc"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nfor word in "$@"; do echo "[$word]"; done > {tmp_path}/words\n')
    shim.chmod(0o755)
    given = dict.fromkeys(steps[-1]["env"], "")
    given |= {
        "LOGS": "a b.jsonl\nc.jsonl\n", "SARIF": "out file.sarif", "ARGUMENTS": "--allow\ntool_order",
        "COMMAND": "", "PATH": f"{shim.parent}:/usr/bin:/bin",
    }  # fmt: skip
    subprocess.run(["bash", "-e", "-c", script], env=given, check=True, timeout=20)
    assert (tmp_path / "words").read_text().split("\n")[:-1] == [
        "[gate]", "[--format]", "[github]", "[--format]", "[sarif=out file.sarif]",
        "[--allow]", "[tool_order]", "[a b.jsonl]", "[c.jsonl]",
    ]  # fmt: skip


def test_the_hooks_call_what_there_is() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["ctxdoc-gate", "ctxdoc-gate-logs"]
    assert {hook["entry"] for hook in hooks} == {"ctxdoc gate"}


def test_the_marked_part_of_a_body_is_what_is_held() -> None:
    prefix = prefix_of()
    # Without a breakpoint: tools and system prompt.
    assert marked_count(prefix) == stable_count(prefix) == len(prefix.segments) - 1
