"""How the package is laid out: what stands in its root, what a folder of parts holds, who imports whom."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ctxdoc
from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.outputs import OUTPUTS
from ctxdoc.providers import PROVIDERS
from ctxdoc.reading.formats import FORMATS
from ctxdoc.registry import Registry
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.strategies import STRATEGIES
from tests import bench
from tests.support.sessions import SESSION

PACKAGE = Path(ctxdoc.__file__).parent
ROOT = {"__init__", "__main__", "api", "errors", "py.typed", "pytest_plugin", "registry"}
BESIDE = {"__init__", "base"}
"""What a folder of parts may hold besides: what a part is."""


def test_the_root_holds_packages_and_what_all_of_them_need() -> None:
    found = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.is_file()}
    assert found <= ROOT


@pytest.mark.parametrize(
    ("parts", "beside"),
    [
        (CAUSES, {"__init__"}),
        (FORMATS, BESIDE),
        (STRATEGIES, BESIDE | {"spec"}),
        (PLACEMENTS, BESIDE),
        (
            OUTPUTS,
            BESIDE | {"plot", "report", "numbers", "printable", "plain", "styled", "columns"},
        ),  # what all of them are made of
        (PROVIDERS, {"__init__", "rules"}),
    ],
)
def test_a_folder_of_parts_holds_registered_parts_only(
    parts: Registry[object], beside: set[str]
) -> None:
    folder = PACKAGE.joinpath(*parts.package.split(".")[1:])
    files = {path.stem for path in folder.glob("*.py")}
    assert files - beside == set(map(parts.file_of, parts.names)) - beside


def test_every_folder_says_what_it_holds_and_what_it_may_import() -> None:
    for folder in {path.parent for path in PACKAGE.rglob("*.py")} - {PACKAGE}:
        told = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
        first, second, *_ = [*told.split("\n\n"), "", ""]
        # In its first line, or in one of its own right behind it.
        said = re.search(r"\bImports (.+)\.", first) or re.match("Imports (.+)[.]$", second)
        assert said, folder
        rooms = re.findall("[a-z_]{4,}(?:[.][a-z_]+)*", said[1])
        words = {"what", "lies", "below", "only", "imports"}
        unknown = [r for r in rooms if r not in words and not _is_room(r)]
        assert unknown == [], folder


def _is_room(name: str) -> bool:
    path = PACKAGE.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def test_no_module_imports_itself_by_a_detour() -> None:
    """Imports inside of functions count: they are put off, and not away. The package itself names the functions
    that it hands out, for whoever checks types, and imports none."""
    files = {_name(path): path for path in PACKAGE.rglob("*.py") if path != Path(ctxdoc.__file__)}
    graph = {
        name: set(_imports(path, files)) & files.keys() - {name} for name, path in files.items()
    }
    assert len(tuple(TopologicalSorter(graph).static_order())) == len(files)


def test_no_module_takes_the_rules_of_one_provider_by_its_name() -> None:
    """A request knows its provider: what holds for one is asked of its model."""
    for path in set(PACKAGE.rglob("*.py")) - set((PACKAGE / "providers").glob("*.py")):
        taken = set(_imports_of_names(path)) & {
            f"ctxdoc.providers.{name}" for name in PROVIDERS.names
        }
        assert not taken, path
        assert 'PROVIDERS["' not in path.read_text(), path


def _imports_of_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imports(path: Path, files: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ctxdoc"):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in files else str(node.module)


@pytest.mark.parametrize("name", ["REPLAY", "CONDENSE", "READ", "ORJSON", "SIMULATE"])
def test_what_the_benchmarks_time_runs(name: str) -> None:
    """They are no part of CI, and name modules in texts."""
    words = (sys.executable, "-c", getattr(bench, name), str(SESSION))
    seconds, peak = subprocess.run(
        words, capture_output=True, check=True, timeout=60
    ).stdout.split()
    assert float(seconds) > 0
    assert float(peak) > 1


def test_nothing_else_lies_at_the_top() -> None:
    files = {each.name for each in PACKAGE.parent.iterdir() if each.is_file()}
    assert {each for each in files if not each.startswith(".")} <= {
        "LICENSE", "Makefile", "README.md", "pyproject.toml",
    }  # fmt: skip
