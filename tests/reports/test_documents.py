"""The versioned documents: every key that was promised is there, and no number has a fraction."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_cli import run
from tests.support.sessions import SESSION, lines, session

MONEY = re.compile(r"-?\d+(\.\d+)?")
COUNTERS = {"uncached", "cache_read", "cache_write_5m", "cache_write_1h"}
PROMISED: dict[str, dict[str, set[str]]] = {
    "diagnose": {
        "": {"schema", "before", "after", "steps", "cache", "cause", "also", "first_difference",
             "tokens", "cost"},
        "before": {"source", "line", "id", "model", "at"},
        "after": {"source", "line", "id", "model", "at"},
        "steps": {"double_send", "counters", "diff"},
        "steps.double_send": {"how", "verdict"},
        "steps.counters": {"origin", "cache_read", "cache_write", "uncached", "input"},
        "steps.diff": {"ran", "sorted_body_byte", "sorted_prompt_byte", "prompt_byte"},
        "cause": {"id", "title", "group", "confidence", "explanation", "fix"},
        "first_difference": {"section", "json_path", "byte", "before", "after"},
        "tokens": {"identical_prefix", "survives", "lost", "origin"},
        "cost": {"paid", "if_hit", "lost"},
    },
    "replay": {
        "": {"schema", "log", "totals", "fidelity", "sessions", "causes", "blocks", "requests"},
        "log": {"files", "records", "requests", "sessions", "skipped", "formats"},
        "totals": COUNTERS | {"input", "output", "hit_ratio", "cost", "cost_without_cache",
                              "lost_cost", "unpriced_requests"},
        "fidelity": {"compared", "within", "share"},
        "sessions.0": {"id", "requests", "models", "growth"},
        "sessions.0.growth.0": {"from", "to", "turns", "prefix_tokens", "per_turn_tokens",
                                "law_tokens", "exact_tokens", "recorded_tokens", "r2"},
        "causes.0": {"id", "count", "lost_tokens", "lost_cost"},
        "blocks.0": {"json_path", "kind", "label", "tokens", "times_sent", "lifetime_tokens",
                     "lifetime_cost"},
        "requests.0": {"id", "source", "line", "at", "model", "session", "reported", "simulated",
                       "reason", "cause", "lost_tokens", "lost_cost", "cost"},
        "requests.0.reported": COUNTERS | {"output"},
        "requests.0.simulated": COUNTERS,
    },
    "simulate": {
        "": {"schema", "assumptions", "growth", "rows", "best"},
        "rows.0": {"strategy", "parameters", "requests", "extra_calls", "input", "cache_read",
                   "cache_write", "uncached", "output", "cost", "cost_without_cache",
                   "vs_keep_percent", "vs_keep_percent_without_cache", "rewrites",
                   "rewritten_tokens", "peak_tokens", "lost_tokens", "break_even_turn",
                   "warnings"},
    },
    "image": {
        "": {"schema", "images"},
        "images.0": {"source", "width", "height", "model", "tier", "sent_width", "sent_height",
                     "tokens", "tokens_old_rule", "cost", "per_turn_cost_cached", "suggestions"},
        "images.0.suggestions.0": {"width", "height", "tokens"},
    },
    "gate": {
        "": {"schema", "verdict", "limits", "findings"},
        "limits.0": {"name", "limit", "value", "verdict", "where"},
    },
}  # fmt: skip
"""Command → where in its document → keys (design, section 10)."""
SUBJECTS = {"image": "1092x1092", "diagnose": f"{SESSION}"}


def refuse(number: str) -> None:
    raise AssertionError(f"{number} is a number with a fraction")


def document(command: str) -> Any:
    more = ("--pair", "4,5") if command == "diagnose" else ()
    ended = run(command, SUBJECTS.get(command, str(SESSION)), *more, "--format", "json")
    return json.loads(ended.stdout, parse_float=refuse)


@pytest.fixture(scope="module")
def documents() -> dict[str, Any]:
    return {command: document(command) for command in PROMISED}


def at(value: Any, path: str) -> Any:
    for step in filter(None, path.split(".")):
        value = value[int(step)] if step.isdigit() else value[step]
    return value


@pytest.mark.parametrize(
    ("command", "path"), [(command, path) for command in PROMISED for path in PROMISED[command]]
)
def test_a_document_has_every_key_that_was_promised(
    command: str, path: str, documents: dict[str, Any]
) -> None:
    """Keys may be added: that is no new version."""
    assert PROMISED[command][path] <= set(at(documents[command], path))


@pytest.mark.parametrize("command", PROMISED)
def test_a_document_begins_with_its_version(command: str, documents: dict[str, Any]) -> None:
    assert next(iter(documents[command].items())) == ("schema", f"ctxdoc/{command}/1")


def money_of(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every member that is named as an amount of money."""
    if isinstance(value, list):
        return [found for each in value for found in money_of(each, path)]
    if not isinstance(value, dict):
        return []
    found = [(f"{path}.{key}", each) for key, each in value.items() if re.search(r"cost$", key)]
    found = [(name, each) for name, each in found if not isinstance(each, dict)]
    inside = [pair for key, each in value.items() for pair in money_of(each, f"{path}.{key}")]
    return found + inside


@pytest.mark.parametrize("command", ["replay", "simulate", "image"])
def test_money_is_a_decimal_string_or_null(command: str, documents: dict[str, Any]) -> None:
    """No exponent, which not every reader of decimals takes."""
    found = money_of(documents[command])
    assert found
    wrong = [
        (name, value)
        for name, value in found
        if value is not None and not (isinstance(value, str) and MONEY.fullmatch(value))
    ]
    assert wrong == []


def test_what_nobody_knows_is_null_and_no_zero(tmp_path: Path) -> None:
    """Without counters and with a model that has no price."""
    rows = session({}, turns=2)
    for row in rows:
        row["request"]["model"], row["response"] = "claude-unheard-of-9", None
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows), encoding="utf-8")
    data = json.loads(run("replay", str(path), "--format", "json").stdout)
    assert [each["reported"] for each in data["requests"]] == [None, None]
    assert [each["cost"] for each in data["requests"]] == [None, None]
    assert (data["totals"]["cost"], data["totals"]["input"]) == (None, None)
