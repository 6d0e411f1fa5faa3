"""The package as Python sees it: nothing is loaded before its time, names stay, functions are explained."""

from __future__ import annotations

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import ctxdoc
from ctxdoc.errors import CtxdocError

VERBS = ("advise", "diagnose", "gate", "image", "read", "replay", "simulate")
OF_THE_PROGRAM = {
    "format", "output", "plot", "emit", "no-excerpts", "quiet", "no-color", "debug", "exit-code",
    "live", "yes", "diagnostics", "help", "schema",
}  # fmt: skip
"""Options on how a report is written, and what is sent after asking: methods of an outcome, or of no use."""


def in_a_fresh_interpreter(code: str) -> str:
    """What the last line of some code evaluates to, as text."""
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, timeout=60, check=True, text=True
    )
    return ended.stdout.strip()


def test_the_import_loads_nothing_else() -> None:
    code = "import sys; a = set(sys.modules); import ctxdoc; print(sorted(set(sys.modules) - a))"
    assert in_a_fresh_interpreter(code) == "['ctxdoc']"


@pytest.mark.parametrize(
    ("name", "absent"),
    [
        ("read", ("diagnosis", "ledger", "simulation", "gate", "live", "cli")),
        ("diagnose", ("ledger.totals", "simulation", "gate", "live", "cli")),
        ("replay", ("simulation", "gate", "live", "cli")),
        ("gate", ("simulation", "live", "cli")),
        ("image", ("gate", "live", "cli")),
        ("simulate", ("gate", "live", "cli")),
        ("advise", ("gate", "live", "cli")),
    ],
)
def test_a_function_loads_what_it_needs_and_no_more(name: str, absent: tuple[str, ...]) -> None:
    loaded = in_a_fresh_interpreter(
        f"import sys, ctxdoc; ctxdoc.{name}; print(*sys.modules)"
    ).split()
    assert f"ctxdoc.api.{name}" in loaded
    assert not {f"ctxdoc.{module}" for module in absent}.intersection(loaded)
    assert not {"anthropic", "matplotlib", "pandas", "typer"}.intersection(loaded)


def test_folders_of_the_same_name_do_not_take_the_place_of_functions() -> None:
    code = (
        "import ctxdoc, ctxdoc.replay.link, ctxdoc.gate.run\n"
        "from ctxdoc.gate import run; from ctxdoc.replay.link import in_time\n"
        "print(*(type(each).__name__ for each in (ctxdoc.replay, ctxdoc.gate, run, in_time)))"
    )
    assert in_a_fresh_interpreter(code) == "function function module function"


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'repaly'"):
        ctxdoc.repaly  # type: ignore[attr-defined]  # noqa: B018


def test_what_is_handed_out_is_listed_and_typed() -> None:
    """The names that a type checker sees are those that are there."""
    assert set(ctxdoc.__all__) == {*VERBS, "CtxdocError"}
    assert set(ctxdoc.__all__) < set(dir(ctxdoc))
    assert ctxdoc.CtxdocError is CtxdocError
    tree = ast.parse(Path(ctxdoc.__file__).read_text())
    (typed,) = (node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    assert {name.name for node in imports for name in node.names} == set(ctxdoc.__all__)
    assert (Path(ctxdoc.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize("name", VERBS)
def test_a_function_says_its_errors_and_shows_how_it_is_called(name: str) -> None:
    function = getattr(ctxdoc, name)
    page = inspect.getdoc(function) or ""
    assert "Raises InputError" in page
    assert f"ctxdoc.{name}(" in page
    hints = inspect.signature(function)
    assert hints.return_annotation is not inspect.Signature.empty
    for parameter in hints.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
        assert parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY)


@pytest.mark.parametrize("name", [verb for verb in VERBS if verb != "read"])
def test_options_and_parameters_have_the_same_names(name: str) -> None:
    command = typer.main.get_command(importlib.import_module(f"ctxdoc.cli.{name}").app)
    options = {
        word.removeprefix("--") for each in command.params for word in each.opts if "--" in word
    }
    asked = {word.replace("-", "_") for word in options - OF_THE_PROGRAM}
    parameters = inspect.signature(getattr(ctxdoc, name)).parameters
    given = {
        word.rstrip("_") for word, each in parameters.items() if each.kind is each.KEYWORD_ONLY
    }
    # What a function has of its own: a function of this process, the folder of a builder, who is told.
    assert given - asked <= {"build", "folder", "progress"}
    assert asked <= given
