"""Which API a body is of: the Messages API, or chat completions in OpenAI's shape."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxdoc.reading.formats.base import text_of
from ctxdoc.reading.formats.shared.members import objects_in

OPENAI_BODY = "body not compared: it is OpenAI-shaped, not one of the Messages API"
OPENAI_MODEL = re.compile(r"(?:openai/|azure/)?(?:gpt-|chatgpt-|o\d)", re.IGNORECASE)
_ROLES = frozenset({"user", "assistant", "system"})
_ANTHROPIC = ("anthropic_version", "system")
"""Members of a body that only the Messages API has."""


def is_messages_body(values: Any) -> bool:
    """Whether a body is the Messages API's and not a chat completion's: its system prompt and its
    tool schemas stand apart from the messages."""
    if not isinstance(values, Mapping) or not isinstance(values.get("messages"), list):
        return False
    # Roles of odd types would not do in a set, and are no roles.
    roles = _roles(values["messages"])
    if is_openai_body(values) or not all(isinstance(role, str) for role in roles):
        return False
    if any(name in values for name in _ANTHROPIC):
        return True
    # Without such a member, the Messages API's own limit or a word of the user's has to be there.
    return _ROLES.issuperset(roles) and ("max_tokens" in values or "user" in roles)


def is_openai_body(values: Any) -> bool:
    """Whether a body is a chat completion's: its system prompt stands in the first message, its tools
    are functions."""
    messages = values.get("messages") if isinstance(values, Mapping) else None
    if not isinstance(messages, list) or any(name in values for name in _ANTHROPIC):
        return False
    return (
        any("function" in tool for tool in objects_in(values.get("tools")))
        or OPENAI_MODEL.match(text_of(values.get("model"))) is not None
        or _is_chat(messages)
    )


def _is_chat(messages: list[Any]) -> bool:
    """Whether roles or calls are those of a chat completion."""
    roles = _roles(messages)
    if roles[:1] in (["system"], ["developer"]) or "tool" in roles:
        return True
    return any("tool_calls" in message for message in objects_in(messages))


def _roles(messages: list[Any]) -> list[Any]:
    """The role of each message; None for what is no message."""
    return [each.get("role") if isinstance(each, Mapping) else None for each in messages]
