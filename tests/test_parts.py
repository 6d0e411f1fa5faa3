"""A part that is registered has a page, stands in the help, and is tested: the contract of all registries."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from ctxdoc.cli import explain, names
from ctxdoc.cli.parts import PARTS, PartKind
from ctxdoc.outputs import OUTPUTS, TAKES, Style, Takes
from ctxdoc.outputs.report import Checks, Records, Report
from ctxdoc.registry import Registry, any_of
from ctxdoc.simulation.placements import PLACEMENTS
from tests.support.program import run

TESTS = Path(__file__).parent
FIXTURES = TESTS.parent / "fixtures"
ROOMS = {
    "ctxdoc.diagnosis.causes": ("diagnosis",),
    "ctxdoc.reading.formats": ("reading",),
    "ctxdoc.simulation.strategies": ("simulation", "cli"),
    "ctxdoc.simulation.placements": ("simulation", "cli"),
    "ctxdoc.outputs": ("outputs", "gate"),
    "ctxdoc.providers": ("providers", "pricing"),
}
"""Where the parts of a registry are tested; a new registry needs a line."""
MADE_UP = "made_up_part"


@cache
def names_in_tests(package: str) -> frozenset[str]:
    """The names that tests of a room spell, and those of the fixtures that they go through."""
    found = set(_spelled(ROOMS[package]))
    if package == "ctxdoc.reading.formats":
        found |= {path.name for path in (FIXTURES / "formats").iterdir()}
    if package == "ctxdoc.diagnosis.causes":
        found |= {_expected(path) for path in FIXTURES.glob("cases/*/expect.json")}
    return frozenset(found)


def _spelled(rooms: tuple[str, ...]) -> Iterator[str]:
    for path in (path for room in rooms for path in (TESTS / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                # A strategy is spelled with its parameters, and several are joined.
                yield from (each.partition(":")[0] for each in node.value.split("+"))
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.rpartition(".")[2]


def _expected(path: Path) -> str:
    return str(msgspec.json.decode(path.read_bytes())["kind"])


COMPLETED = {
    "ctxdoc.diagnosis.causes": names.causes,
    "ctxdoc.simulation.strategies": names.strategies,
    "ctxdoc.simulation.placements": names.placements,
    "ctxdoc.outputs": lambda: {*names.outputs_of_rows(), *names.outputs_of_checks()},
}
"""The completion of the option that takes a part."""


def missing(kind: PartKind[Any], name: str) -> list[str]:
    """What a part lacks of page, help and test."""
    registry = kind.registry
    part = registry[name]
    page = registry.page(name).strip()
    completed = COMPLETED.get(registry.package, explain._every_name)()
    named = part.id == name and name in completed and name in explain._every_name()
    # The title of a provider is the first line of its page.
    titled = named and bool(page) and bool(kind.title(part).strip())
    return [
        word
        for word, there in (
            ("page", len(page.split()) >= 4),
            ("help", titled),
            ("test", name in names_in_tests(registry.package)),
        )
        if not there
    ]


EVERY = [(kind, name) for kind in PARTS for name in kind]


@pytest.mark.parametrize(("kind", "name"), EVERY, ids=[name for _, name in EVERY])
def test_a_part_has_its_page_its_help_and_its_test(kind: PartKind[Any], name: str) -> None:
    assert missing(kind, name) == []


@pytest.mark.parametrize("kind", PARTS, ids=[kind.noun for kind in PARTS])
def test_the_contract_names_what_a_made_up_part_lacks(
    kind: PartKind[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of each kind with nothing but its registration."""
    registry = kind.registry
    module = ModuleType(f"{registry.package}.{MADE_UP}")
    part = SimpleNamespace(id=MADE_UP, title="", traits=frozenset(), group="")
    setattr(module, registry.attribute, part)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "names", (*registry.names, MADE_UP))
    # The part is kept by the registry: a copy goes away with the test.
    monkeypatch.setattr(registry, "_parts", dict(registry._parts))
    assert missing(kind, MADE_UP) == ["page", "help", "test"]
    module.__doc__ = "What a made up part is."
    part.title = "what it is"
    assert missing(kind, MADE_UP) == ["test"]
    part.id = "another"
    assert missing(kind, MADE_UP) == ["help", "test"]


def test_every_registry_of_the_package_stands_in_the_list() -> None:
    import ctxdoc

    root = Path(ctxdoc.__file__).parent
    made = {
        ".".join(("ctxdoc", *path.relative_to(root).parent.parts))
        for path in root.rglob("*.py")
        if any(
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "Registry"
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }
    assert made == {kind.registry.package for kind in PARTS} == set(ROOMS)


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        (("simulate",), PLACEMENTS.names),
        (("gate",), [name for name in OUTPUTS.names if TAKES[name] is not Takes.ROWS]),
        (("replay",), [name for name in OUTPUTS.names if TAKES[name] is not Takes.CHECKS]),
    ],
)
def test_a_help_text_names_all_parts_that_an_option_takes(
    command: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    shown = run(*command, "--help").stdout.decode()
    words = set(shown.replace(",", " ").replace(".", " ").replace(";", " ").split())
    assert set(parts) <= words


BARE = Report(make_parts=tuple, make_data=dict)
ROWS = Report(make_parts=tuple, make_data=dict, make_records=lambda: Records(("n",), ((1,),)))
CHECKED = Report(
    make_parts=tuple,
    make_data=dict,
    make_checks=lambda: Checks(verdict="held", summary="", tested=(), annotations=()),
)


@pytest.mark.parametrize("name", OUTPUTS.names)
def test_an_output_takes_what_it_is_registered_for(name: str) -> None:
    """The help tells it without loading the output; the output refuses the rest."""
    takes = {Takes.ALL: BARE, Takes.ROWS: ROWS, Takes.CHECKS: CHECKED}[TAKES[name]]
    OUTPUTS[name].write(takes, Style())
    if TAKES[name] is not Takes.ALL:
        with pytest.raises(Exception, match=r"no (rows|checks)"):
            OUTPUTS[name].write(BARE, Style())


@pytest.mark.parametrize(
    ("words", "text"),
    [((), ""), (("a",), "a"), (("a", "b"), "a or b"), (("a", "b", "c"), "a, b or c")],
)
def test_names_are_listed_as_a_sentence_has_them(words: tuple[str, ...], text: str) -> None:
    assert any_of(words) == text


def test_a_registry_takes_a_dash_for_an_underscore_and_knows_its_nearest_names() -> None:
    parts: Registry[object] = PLACEMENTS  # type: ignore[assignment]
    assert "rolling-1h" in parts
    assert parts["rolling-1h"] is parts["rolling_1h"]
    with pytest.raises(Exception, match="no placement named 'roling'") as raised:
        parts["roling"]
    assert "rolling" in str(getattr(raised.value, "hint", ""))
