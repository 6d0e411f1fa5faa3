"""Calls of every command, and which test shows what an option does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.api_server import ApiServer
from tests.support.program import call
from tests.support.sessions import ROOT, SESSION

LOG = str(SESSION)
CASES = ROOT / "fixtures" / "cases"
DEAD = tuple(str(CASES / "clock-at-head-of-system" / f"{name}.json") for name in "ab")
ALIVE = tuple(str(CASES / "marker-moved-forward" / f"{name}.json") for name in "ab")
KEY = "sk-ant-api03-never-to-be-shown-000"
BASE: dict[str, tuple[str, ...]] = {
    "diagnose": DEAD,
    "replay": (LOG,),
    "simulate": (LOG, "--strategy", "keep"),
    "advise": (LOG, "--now", "2026-11-02T09:12:00Z"),
    "image": ("57x57",),
    "gate": (LOG,),
    "formats": (),
}
"""A call of each command that reads or shows something."""
OF_LOGS = ("diagnose", "replay", "simulate", "advise", "image", "gate")
SHOWN: set[str] = set()
"""Options that a test of this module shows."""

Test = TypeVar("Test", bound=Callable[..., None])


def shows(option: str, *commands: str) -> Callable[[Test], Test]:
    """Marks a test as the one that shows what an option does."""
    SHOWN.update(f"{command} {option}" for command in commands)
    return lambda test: test


def each(*commands: str) -> pytest.MarkDecorator:
    """Runs a test for each of the commands."""
    return pytest.mark.parametrize("command", commands)


def document(*words: str, **environment: str) -> dict[str, Any]:
    ended = call(*words, "--format", "json", **environment)
    assert ended.code in (0, 1), ended.err
    found: dict[str, Any] = json.loads(ended.out)
    return found


def at(api: ApiServer, tmp_path: Path) -> dict[str, str]:
    """The environment of a program that asks the stand-in."""
    return {
        "ANTHROPIC_BASE_URL": api.url,
        "ANTHROPIC_API_KEY": KEY,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }


def rows_of(*words: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = document("simulate", *words)["rows"]
    return rows
