"""Settings of the gate: options go before the table of pyproject.toml, whose paths start from its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxdoc.cli.settings import GateOptions, chosen_settings
from ctxdoc.errors import InputError, UnknownNameError
from ctxdoc.gate.settings import GateSettings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, where the program runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def write(project: Path, table: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.ctxdoc.gate]\n{table}\n")


def chosen(**given: Any) -> GateSettings:
    return chosen_settings(GateOptions(**given))[0]


def test_without_a_file_the_options_are_all(project: Path) -> None:
    found, home = chosen_settings(GateOptions(logs=("a",), limits={"max-lost-tokens": "1_000"}))
    assert found == GateSettings(logs=("a",), max_lost_tokens=1000)
    assert home == project


def test_without_options_the_file_is_all(project: Path) -> None:
    write(project, 'command = "make body"\nmin-hit-ratio = 0.5\nskip = ["home"]\ntimeout = 3')
    assert chosen() == GateSettings(
        command="make body", min_hit_ratio=0.5, skip=("home",), timeout=3.0
    )


def test_limits_replace_and_names_add_up(project: Path) -> None:
    write(
        project,
        'logs = ["a"]\nmin-hit-ratio = 0.5\nmax-lost-cost = 2.0\nallow = ["tool_order"]\n'
        'fail-on = ["ttl_expired"]',
    )
    found = chosen(limits={"min-hit-ratio": "0.9"}, allow=("first_request",), fail_on=("none",))
    assert (found.min_hit_ratio, found.max_lost_cost) == (0.9, 2.0)
    assert found.allow == ("tool_order", "first_request")
    assert found.fail_on == ("ttl_expired", "none")


def test_a_source_that_is_typed_replaces_that_of_the_file(project: Path) -> None:
    write(project, 'import = "agent:build"\nbaseline = "x.lock"\nskip = ["home"]')
    typed = chosen(command="make body")
    assert (typed.command, typed.import_, typed.baseline) == ("make body", None, "x.lock")
    # The baseline and the surroundings of a builder are none of a log.
    log = chosen(logs=("a",))
    assert (log.logs, log.import_, log.baseline) == (("a",), None, None)


def test_the_baseline_of_logs_holds_for_other_logs(project: Path) -> None:
    write(project, 'logs = ["a"]\nbaseline = "x.lock"')
    assert chosen(logs=("b",)).baseline == "x.lock"
    assert chosen(limits={"baseline": "y.lock"}).baseline == "y.lock"


def test_surroundings_of_the_file_are_for_its_builder(project: Path) -> None:
    write(project, 'logs = ["a"]\nskip = ["home"]')
    assert chosen().skip == ()
    assert chosen(command="make body").skip == ("home",)
    assert chosen(skip=("day",)).skip == ("day",)


def test_paths_of_the_file_start_from_its_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, 'command = "make body"\nbaseline = "locks/x.lock"')
    inner = project / "src" / "agent"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    found, home = chosen_settings(GateOptions())
    assert (found.baseline, home) == ("../../locks/x.lock", project)
    write(project, 'logs = ["recorded/a.jsonl", "-"]')
    assert chosen().logs == ("../../recorded/a.jsonl", "-")
    write(project, 'command = "make body"\nbaseline = "locks/x.lock"')
    # A builder that is typed runs where it was typed.
    typed, home = chosen_settings(GateOptions(command="make other"))
    assert (typed.baseline, home) == ("../../locks/x.lock", inner)


@pytest.mark.parametrize(
    ("text", "share"), [("80%", 0.8), ("0%", 0.0), ("100%", 1.0), ("62.5%", 0.625), ("0.3", 0.3)]
)
@pytest.mark.usefixtures("project")
def test_a_share_may_be_in_percent(text: str, share: float) -> None:
    assert chosen(limits={"min-hit-ratio": text}).min_hit_ratio == share


@pytest.mark.parametrize("text", ["%", "x%", "101%", "-1%", "1.01", "nan"])
@pytest.mark.usefixtures("project")
def test_what_is_no_share_is_named(text: str) -> None:
    with pytest.raises(InputError, match="min-hit-ratio"):
        chosen(limits={"min-hit-ratio": text})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"logs": ("a",), "command": "b"}, "more than one source"),
        ({"command": "a", "import_": "b:c"}, "more than one source"),
        ({"limits": {"timeout": "0"}}, "timeout"),
        ({"limits": {"max-lost-cost": "-1"}}, "max-lost-cost"),
        ({"limits": {"max-prefix-tokens": "1.5"}}, "max-prefix-tokens"),
    ],
)
@pytest.mark.usefixtures("project")
def test_wrong_options_are_named(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        chosen(**given)


@pytest.mark.parametrize("field", ["allow", "fail_on"])
@pytest.mark.usefixtures("project")
def test_a_cause_that_there_is_not_is_answered_with_the_nearest(field: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        chosen(**{field: ("tool_oder",)})
    assert "tool_order" in caught.value.hint


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('logs = ["a"]\ncommand = "b"', "more than one source in pyproject.toml"),
        ('command = "a"\nimport = "b:c"', "more than one source in pyproject.toml"),
        ("max-lost = 3", "no setting named 'max-lost'"),
        ("timeout = 'x'", "timeout"),
        ("= broken", "cannot read"),
    ],
)
def test_a_wrong_file_is_named(project: Path, table: str, said: str) -> None:
    write(project, table)
    with pytest.raises(InputError, match=said):
        chosen()
