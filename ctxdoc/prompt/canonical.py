"""API objects in one form: members in a fixed order, defaults and breakpoints left out.

The cache compares the rendered prompt, not the JSON text (design: what counts as the same
prompt). What the API names has an order of its own here; free JSON, which is a tool's
`input_schema` and a call's `input`, keeps the order and the number spelling in which it was sent.
"""

from __future__ import annotations

from functools import lru_cache

from ctxdoc.request.codec import Json

ORDER = (
    "tool_use_id",
    "id",
    "name",
    "type",
    "media_type",
    "description",
    "text",
    "thinking",
    "signature",
    "data",
    "source",
    "title",
    "context",
    "content",
    "input",
    "input_schema",
    "is_error",
)
"""Members that the API names, in the order in which they are rendered; others follow sorted."""

FREE = frozenset({"input", "input_schema", "schema", "json_schema"})
"""Members whose value is the user's own JSON."""

DEFAULTS: dict[str, Json] = {
    "is_error": False,
    "defer_loading": False,
    "strict": False,
    "citations": {"enabled": False},
    "disable_parallel_tool_use": False,
    "allowed_callers": ["direct"],
}
"""Members that mean the same when left out."""

_RANK = {name: rank for rank, name in enumerate(ORDER)}


def canonical(value: Json) -> Json:
    """An API object in its fixed form; lists item by item, anything else as it is."""
    if type(value) is dict:
        return _canonical_object(value)
    if type(value) is list:
        return [canonical(item) for item in value]
    return value


def _canonical_object(value: dict[str, Json]) -> Json:
    out: dict[str, Json] = {}
    tool = "input_schema" in value
    for name in _ordered(tuple(value), tool):
        member = value[name]
        if name in DEFAULTS and member in (DEFAULTS[name], None):
            continue
        if tool and name == "type" and member == "custom":
            continue
        if type(member) is str or name in FREE:
            out[name] = member
        else:
            out[name] = canonical(member)
    if out.get("type") == "tool_result":
        out["content"] = _lowered(out.get("content"))
    return out


@lru_cache(maxsize=4096)
def _ordered(names: tuple[str, ...], tool: bool) -> tuple[str, ...]:
    """The members that are a part of the prompt, in the order in which they are rendered."""

    def rank(name: str) -> tuple[int, str]:
        first = not tool and name == "type"
        return (-1 if first else _RANK.get(name, len(ORDER)), name)

    return tuple(sorted((name for name in names if name != "cache_control"), key=rank))


def _lowered(content: Json) -> Json:
    """A tool result's content as a string where it is one text block (SDK: a string is short for
    one text block)."""
    match content:
        case [{"type": "text", "text": str(text), **rest}] if not rest:
            return text
        case None:
            return ""
        case _:
            return content


def lifted(content: Json) -> list[Json]:
    """A message's or the system prompt's content as blocks."""
    match content:
        case str():
            return [{"type": "text", "text": content}]
        case list():
            return content
        case _:
            return []
