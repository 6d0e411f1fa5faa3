"""What is loaded by a run: what it uses, and nothing beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ctxdoc.diagnosis.causes import CAUSES
from tests.support.sessions import START, lines, marked, record

RUN = """
import sys
before = set(sys.modules)  # what a measure of coverage, say, has brought
from ctxdoc.cli.app import main
sys.argv = ["ctxdoc", *sys.argv[1:]]
try:
    main()
finally:
    sys.stdout.flush()
    sys.stderr.write("\\n".join(set(sys.modules) - before))
"""
HEAVY = {
    "PIL", "aiohttp", "anthropic", "asyncio", "brotli", "deepdiff", "email", "genai_prices", "gzip", "hashlib",
    "h11", "http", "importlib.metadata", "json", "logging", "matplotlib", "pypdf", "random", "rich", "secrets",
    "ssl", "tempfile", "yaml", "zipfile", "zstandard",
}  # fmt: skip
"""Modules that take long to load, and that few runs need."""
MOST_MODULES = 140
"""Of the program itself, for a pair; causes aside."""


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a run of the program has loaded at its end."""
    command = [sys.executable, "-c", RUN, *arguments]
    # Where a table has to be fitted to fewer columns, rich is what fits it.
    wide = {**os.environ, "COLUMNS": "100"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=wide)
    return set(done.stderr.splitlines())


def body(clock: str, *said: str) -> dict[str, object]:
    """A body whose system prompt tells the time."""
    system = [{"type": "text", "text": f"Today is 2026-11-02, {clock}. " + "You help. " * 2000}]
    messages = [
        {
            "role": "user" if index % 2 == 0 else "assistant",
            "content": [{"type": "text", "text": text}],
        }
        for index, text in enumerate(said)
    ]
    return {"model": "claude-sonnet-4-5", "max_tokens": 64, "system": system, "messages": messages}


@pytest.fixture
def pair(tmp_path: Path) -> list[str]:
    """Two requests of which the later one has another time in its system prompt."""
    names = []
    for number, clock in enumerate(("09:06", "09:07")):
        path = tmp_path / f"{number}.json"
        path.write_text(
            lines([record(marked(body(clock, "Hello.")), START, None, number)]), "utf-8"
        )
        names.append(str(path))
    return names


def parts_of(modules: set[str], package: str) -> set[str]:
    return {name for name in modules if name.startswith(f"{package}.")}


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_pair_loads_what_it_uses(pair: list[str], form: str) -> None:
    modules = loaded_by("diagnose", *pair, "--format", form)
    assert HEAVY & modules == set()
    for other in ("gate", "live", "record", "simulation", "ledger"):
        assert not parts_of(modules, f"ctxdoc.{other}")
    formats = parts_of(modules, "ctxdoc.reading.formats")
    read = {name for name in formats if ".shared" not in name}
    # A record of this program is told by the first format.
    assert read == {"ctxdoc.reading.formats.base", "ctxdoc.reading.formats.native"}
    # Something changed, and nothing was refused: of the causes no others are asked.
    asked = parts_of(modules, "ctxdoc.diagnosis.causes")
    assert "ctxdoc.diagnosis.causes.timestamp_in_prefix" in asked
    assert "ctxdoc.diagnosis.causes.request_failed" not in asked
    assert len(asked) < len(CAUSES)
    assert len(parts_of(modules, "ctxdoc")) - len(asked) <= MOST_MODULES


def test_help_loads_no_command() -> None:
    modules = loaded_by("--help")
    assert HEAVY & modules == set()
    assert "msgspec" not in modules
    assert parts_of(modules, "ctxdoc") == {
        "ctxdoc.cli", "ctxdoc.cli.app", "ctxdoc.cli.command", "ctxdoc.cli.names", "ctxdoc.errors",
    }  # fmt: skip


def test_a_small_replay_loads_what_it_uses(pair: list[str]) -> None:
    modules = loaded_by("replay", *pair)
    assert HEAVY & modules == set()
    for other in ("gate", "live", "record"):
        assert not parts_of(modules, f"ctxdoc.{other}")
