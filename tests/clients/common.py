"""What the programs share: a system prompt that is long enough to be cached, and a tool."""

from __future__ import annotations

SYSTEM = "You keep the records of a harbour and answer in one sentence. " + " ".join(
    f"Rule {n}: entry {n * 7919 % 10007} belongs to berth {n * 31 % 97}." for n in range(160)
)
QUESTION = "Where does the ship lie, and since when?"
MODEL = "claude-sonnet-4-6"
TOOL = {
    "name": "look_up",
    "description": "Looks a city up.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
MARK = {"type": "ephemeral"}
