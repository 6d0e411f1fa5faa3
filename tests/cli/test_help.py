"""Help, completion and pages: names of parts come from the registries, and a new part is in all of them."""

from __future__ import annotations

import re
from importlib import import_module

import pytest
import typer

from ctxdoc.cli import names
from ctxdoc.cli.app import COMMANDS
from ctxdoc.cli.parts import PARTS
from ctxdoc.diagnosis.causes import CAUSES, Group
from ctxdoc.outputs import OUTPUTS
from ctxdoc.reading.formats import FORMATS
from ctxdoc.registry import Registry
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.strategies import STRATEGIES
from tests.support.program import call

EVERY_NAME = [name for kind in PARTS for name in kind]


def page_of(command: str) -> str:
    """The help of a command in one line."""
    return " ".join(call(command, "--help").out.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_says_what_it_does_with_examples(command: str) -> None:
    ended = call(command, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert "Examples:\n" in ended.out
    assert f"ctxdoc {command}" in ended.out or command in ("formats", "explain")
    assert not re.search(r"\{[a-z_]+\}", ended.out)
    assert max(map(len, ended.out.splitlines())) <= 100
    assert call(command, "-h").out == ended.out


def test_the_first_page_lists_the_commands_and_the_exit_codes() -> None:
    ended = call("--help")
    for name, text in COMMANDS.items():
        assert re.search(rf"^  {name} +\S", ended.out, re.M)
        assert text.split()[0] in ended.out
    assert "70 a fault in ctxdoc" in " ".join(ended.out.split())
    assert call("--version").out.startswith("ctxdoc ")


def test_no_command_is_a_call_for_help() -> None:
    ended = call()
    assert ended.code == 2
    assert "Usage: ctxdoc" in ended.out + ended.err


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("simulate", STRATEGIES.names),
        ("simulate", PLACEMENTS.names),
        ("gate", names.surroundings()),
    ],
)
def test_help_names_every_part(command: str, parts: tuple[str, ...]) -> None:
    assert f"{', '.join(parts[:-1])} or {parts[-1]}" in page_of(command)


@pytest.mark.parametrize("registry", [CAUSES, STRATEGIES, PLACEMENTS, FORMATS])
def test_no_source_of_a_help_names_parts(registry: Registry[object]) -> None:
    """An example may show one; a list of them would be out of date with the next part."""
    for name in COMMANDS:
        command = typer.main.get_command(import_module(f"ctxdoc.cli.{name}").app)
        texts = [str(getattr(each, "help", None)) for each in command.params]
        prose = (command.help or "").split("Examples:")[0]
        words = set(re.findall(r"[a-z_]{5,}", " ".join((*texts, prose))))
        found = words & {part for part in registry.names if "_" in part}
        assert not found, (name, found)


def test_outputs_are_parted_by_what_they_need() -> None:
    """README: csv is for tables; GitHub, SARIF and JUnit are for the gate."""
    every = {"text", "json", "markdown", "html"}
    assert set(names.outputs()) == every
    assert set(names.outputs_of_rows()) == {*every, "csv"}
    assert set(names.outputs_of_checks()) == {*every, "github", "sarif", "junit"}
    assert every | {"csv", "github", "sarif", "junit"} == set(OUTPUTS.names)


def test_surroundings_of_one_kind_share_a_name() -> None:
    found = names.surroundings()
    assert {"hash_seed", "time_zone", "working_folder", "environment_order"} <= set(found)
    assert not [name for name in found if name.startswith(("hash_seed_", "time_zone_"))]


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("no names", "no names"),
        ("a {pictures} file", "a .png or .svg file"),
        (
            "{placements}",
            "recorded, recorded_5m, recorded_1h, none, rolling, rolling_1h, all_1h, spare, automatic or oracle",
        ),
        ("{unknown}", "{unknown}"),
    ],
)
def test_marks_stand_for_names(text: str, filled: str) -> None:
    assert names.with_names(text) == filled


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("dia", {"diagnose"}),
        ("replay --form", {"--format"}),
        ("replay --format m", {"markdown"}),
        ("gate --format s", {"sarif"}),
        ("gate --allow tool_o", {"tool_order"}),
        ("gate --skip ho", {"home"}),
        ("simulate --strategy off", {"offload"}),
        ("simulate --placement roll", {"rolling", "rolling_1h"}),
        ("explain json_k", {"json_key_order"}),
    ],
)
def test_the_shell_is_offered_names(typed: str, offered: set[str]) -> None:
    words = f"ctxdoc {typed}"
    ended = call(
        _CTXDOC_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(len(words.split()) - 1)
    )
    assert set(ended.out.split()) == offered


def test_a_shell_that_shows_help_shows_names_and_no_marks() -> None:
    ended = call(_CTXDOC_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="ctxdoc gate --format")
    assert "{" not in ended.out.replace("_arguments", "")


# Pages


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_part_of_every_kind_has_a_page_and_a_line_in_the_list(name: str) -> None:
    ended = call("explain", name)
    assert ended.code == 0
    assert re.match(rf"{name} \(.+\)\n\n.+", ended.out)
    assert call("explain", name.replace("_", "-")).out == ended.out


def test_the_list_has_every_name_once_a_kind() -> None:
    shown = re.findall(r"^  (\S+) ", call("explain").out, re.M)
    for name in EVERY_NAME:
        assert shown.count(name) == EVERY_NAME.count(name), name


def test_causes_are_listed_by_their_groups() -> None:
    lines = call("explain").out.splitlines()
    assert [line for line in lines if line.startswith("Causes: ")] == [
        f"Causes: {g}" for g in Group
    ]
    at = lines.index("Causes: content")
    assert "  tool_order " in "\n".join(lines[at : lines.index("", at)])


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("jsn_key_order", "json_key_order"),
        ("keyorder", "json_key_order"),
        ("expried", "ttl_expired"),
    ],
)
def test_a_name_that_there_is_not_is_answered_with_the_nearest(wrong: str, hint: str) -> None:
    ended = call("explain", wrong)
    assert (ended.code, ended.out) == (2, "")
    assert hint in ended.err


def test_a_kind_is_shown_by_the_name_of_its_parts() -> None:
    assert all(len(kind.registry) for kind in PARTS)
    assert call("explain", "none").out.count("\n\n") > 1
    assert "(healthy)" in call("explain", "none").out
    assert "(placement)" in call("explain", "none").out
    assert "(log format; carries: " in call("explain", "native").out
