"""Agent sessions made for the tests: bodies, and the records that the stand-in bills for them.

`python -m tests.support.sessions` writes the session that the fixtures and the README show.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.support.stand_in import StandIn

Body = dict[str, Any]
ROOT = Path(__file__).parents[2]
SESSION = ROOT / "fixtures" / "logs" / "session.jsonl"
START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)
MARK = {"type": "ephemeral"}
WORDS = (
    "ledger", "harbour", "window", "parcel", "needle", "orchard", "copper", "ticket", "mirror",
    "garden", "summit", "barrel", "lantern", "pencil", "market", "valley", "anchor", "thistle",
    "saddle", "cactus",
)  # fmt: skip


def prose(rng: random.Random, size: int) -> str:
    """Sentences of about that many characters."""
    words: list[str] = []
    while sum(len(word) + 1 for word in words) < size:
        words.append(rng.choice(WORDS))
    return " ".join(words).capitalize() + "."


def tool(rng: random.Random, name: str) -> Body:
    """A tool definition."""
    return {
        "name": name,
        "description": prose(rng, 420),
        "input_schema": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": prose(rng, 60)},
                "limit": {"type": "integer"},
            },
            "required": ["path"],
        },
    }


def first_body(rng: random.Random, model: str = "claude-sonnet-4-5") -> Body:
    """Tools, a system prompt with the time, and one question."""
    names = ("read_file", "list_files", "search", "write_file", "run_tests")
    return {
        "model": model,
        "max_tokens": 1024,
        "tools": [tool(rng, name) for name in names],
        "system": [
            {"type": "text", "text": "You mend programs. " + prose(rng, 5600)},
            {"type": "text", "text": "Today is 2026-11-02, 09:00."},
        ],
        "messages": [{"role": "user", "content": [{"type": "text", "text": prose(rng, 300)}]}],
    }


def turn(rng: random.Random, number: int, calls: int = 1, result: int = 1400) -> list[Body]:
    """An assistant message with calls, and the user message with their results."""
    ids = [f"toolu_{number:03d}_{call}" for call in range(calls)]
    uses = [
        {"type": "tool_use", "id": i, "name": "read_file", "input": {"path": f"src/{i}.py"}}
        for i in ids
    ]
    results = [
        {"type": "tool_result", "tool_use_id": i, "content": prose(rng, result)} for i in ids
    ]
    return [
        {"role": "assistant", "content": [{"type": "text", "text": prose(rng, 120)}, *uses]},
        {"role": "user", "content": results},
    ]


def marked(body: Body) -> Body:
    """A copy with breakpoints at the end of the system prompt and of the last message."""
    body = copy.deepcopy(body)
    body["system"][-1]["cache_control"] = dict(MARK)
    body["messages"][-1]["content"][-1]["cache_control"] = dict(MARK)
    return body


def record(body: Body, at: datetime, usage: Body | None, number: int) -> Body:
    """One line of the native log."""
    response = {"id": f"msg_{number:03d}", "model": body["model"], "usage": usage}
    return {"timestamp": at.isoformat(), "request": body, "response": response if usage else None}


def session(
    events: dict[int, Callable[[Body], None]],
    gaps: dict[int, int] | None = None,
    turns: int = 12,
) -> list[Body]:
    """Records of an agent that appends one call a request; `events` change its body for good."""
    rng = random.Random(20261102)
    body, cache, now = first_body(rng), StandIn(), 0
    records = []
    for number in range(1, turns + 1):
        if number in events:
            events[number](body)
        now += (gaps or {}).get(number, 20)
        sent = marked(body)
        usage = cache.answer(sent, now)
        records.append(record(sent, START + timedelta(seconds=now), usage, number))
        body["messages"] += turn(rng, number)
    return records


def clock_goes_on(body: Body) -> None:
    """The time in the system prompt is another one."""
    body["system"][1]["text"] = "Today is 2026-11-02, 09:07."


def tools_move(body: Body) -> None:
    """A tool server comes back and its tool stands last."""
    body["tools"].append(body["tools"].pop(1))


def demo_session() -> list[Body]:
    """Twelve requests with a clock that goes on, a pause, and a tool that moves."""
    return session({5: clock_goes_on, 10: tools_move}, gaps={8: 430})


def lines(records: list[Body]) -> str:
    """Records as JSONL."""
    return "".join(json.dumps(r, separators=(",", ":"), ensure_ascii=False) + "\n" for r in records)


if __name__ == "__main__":
    SESSION.write_text(lines(demo_session()), encoding="utf-8")
