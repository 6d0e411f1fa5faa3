"""What is known and not read: sessions of other programs, and the parts that a log keeps beside it.

Their records look like bodies or answers here and there; taken for such they would tell nonsense.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from ctxdoc.reading.source import Source

Shape: TypeAlias = frozenset[str]
PART = re.compile(r"\.blobs(?:[/\\]|$)")
"""A folder or a file that another file is the index of."""
KEPT_BESIDE = "a part that another log keeps beside its index"


def _all_of(*paths: str) -> Callable[[Shape], bool]:
    wanted = frozenset(paths)
    return wanted.issubset


def _is_cline_event(shape: Shape) -> bool:
    return {"ts", "type"} <= shape and not shape.isdisjoint(("say", "ask"))


def _is_cline_message(shape: Shape) -> bool:
    return {"ts", "role", "content"} <= shape and shape.isdisjoint(("messages", "usage"))


def _is_gemini_cli(shape: Shape) -> bool:
    if {"sessionId", "projectHash"} <= shape:
        return True
    return {"sessionId", "messages[].type"} <= shape and "messages[].role" not in shape


PROGRAMS: tuple[tuple[str, Callable[[Shape], bool]], ...] = (
    ("a chat of the Gemini CLI", _is_gemini_cli),
    ("a task of Cline or Roo (ui_messages.json)", _is_cline_event),
    ("a task of Cline or Roo (api_conversation_history.json)", _is_cline_message),
    ("a rollout of Codex", _all_of("timestamp", "type", "payload.type")),
    ("a rollout of Codex", _all_of("timestamp", "type", "payload.id", "payload.cwd")),
    ("a message of opencode", _all_of("id", "sessionID", "role")),
    ("a part of a message of opencode", _all_of("id", "sessionID", "messageID")),
    ("a session of opencode", _all_of("info.id", "messages[].info", "messages[].parts")),
    ("a session of Continue", _all_of("sessionId", "workspaceDirectory", "history")),
    ("a chat of VS Code", _all_of("requesterUsername", "requests")),
)
"""Sessions by the members of their records; see `Source.shapes`."""


def refusal(source: Source) -> str:
    """Why a file is not read though it is known; empty for any other."""
    if PART.search(source.name):
        return KEPT_BESIDE
    named = (name for name, fits in PROGRAMS if any(map(fits, source.shapes[:2])))
    name = next(named, "")
    return f"{name}, not read yet" if name else ""
