"""Small logs and what is true of them, checked through the command line as a user runs it."""

from __future__ import annotations

import json
import re
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from ctxdoc.cli.app import main

LOGS = Path(__file__).parents[2] / "fixtures" / "evidence"
EXPECTED: dict[str, Any] = json.loads((LOGS / "expect.json").read_text("utf-8"))
CHECKS = [
    pytest.param(log, check, id=f"{log}-{number}")
    for log, entry in EXPECTED.items()
    for number, check in enumerate(entry["checks"])
]
SEEN: dict[tuple[str, str, bool], tuple[int, str]] = {}


def run(log: str, command: str, *, as_json: bool) -> tuple[int, str]:
    """Exit code and output of a command on a log; each is run once."""
    key = (log, command, as_json)
    if key not in SEEN:
        name, *rest = command.split()
        more = ["--format", "json"] if as_json else []
        words = [name, str(LOGS / log), *rest, "--quiet", *more]
        held = BytesIO()
        out = TextIOWrapper(held, encoding="utf-8", write_through=True)
        with redirect_stdout(out), pytest.raises(SystemExit) as ended:
            main(words)
        assert isinstance(ended.value.code, int)
        SEEN[key] = ended.value.code, held.getvalue().decode()
    return SEEN[key]


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that breaks no line of a check in two."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


def value_at(document: Any, path: str) -> Any:
    """The value at a path such as `requests[1].cause`."""
    for name, index in re.findall(r"([^.\[\]]+)|\[(-?\d+)\]", path):
        if document is None:
            return None
        document = document.get(name) if name else document[int(index)]
    return document


def holds(check: dict[str, Any], got: Any) -> bool:
    """Whether a value is as it should be; numbers within a share, 1 % by default."""
    if "is" in check:
        try:
            right = float(check["is"])
            return abs(float(got) - right) <= max(0.00005, check.get("within", 0.01) * abs(right))
        except (TypeError, ValueError):
            return bool(got == check["is"])
    if "in" in check:
        return (got or "none") in check["in"]
    if "not_in" in check:
        return (got or "none") not in check["not_in"]
    if got is None:
        return False
    return float(got) <= check["most"] if "most" in check else float(got) >= check["least"]


@pytest.mark.parametrize(("log", "check"), CHECKS)
def test_what_is_true_of_a_small_log_is_said(log: str, check: dict[str, Any]) -> None:
    code, output = run(log, check["run"], as_json="at" in check or "exit" in check)
    if "exit" in check:
        assert code == check["exit"]
    if "says" in check or "silent" in check:
        code, text = run(log, check["run"], as_json=False)
        words = " ".join(text.split()).lower()
        assert check.get("says", "").lower() in words
        assert "silent" not in check or check["silent"].lower() not in words
    if "at" in check:
        paths = check["at"] if isinstance(check["at"], list) else [check["at"]]
        document = json.loads(output or "{}")
        assert any(holds(check, value_at(document, path)) for path in paths)
