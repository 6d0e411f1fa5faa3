"""What loses what: the table of facts 1.7, row by row."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.render import render
from ctxdoc.prompt.settings import forced_tool, iter_tools
from ctxdoc.request.request import Section
from tests.support.prompts import prompt, said, sent

Body = dict[str, Any]
READ = {"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}
WRITE = {"name": "write", "description": "Writes.", "input_schema": {"type": "object"}}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
CITED = {
    "type": "document",
    "source": {"type": "text", "media_type": "text/plain", "data": "x"},
    "citations": {"enabled": True},
}
BASE: Body = {
    "messages": [said("user", "Go on."), said("assistant", "Done.")],
    "tools": [READ, WRITE],
    "system": [{"type": "text", "text": "You are one."}],
}


def kept(before: Prefix, after: Prefix) -> str:
    """Of tools, system and the first message, a `y` for what can still be read."""
    out = ""
    for section in (Section.TOOLS, Section.SYSTEM, Section.MESSAGES):
        blocks = [i for i, s in enumerate(before.segments) if s.section is section]
        end = blocks[0] if section is Section.MESSAGES else blocks[-1]
        out += "y" if before.keys[end] in after.keys else "-"
    return out


def appended(block: Body) -> Body:
    """A message that brings a block, behind the others."""
    return {"messages": [*BASE["messages"], {"role": "user", "content": [block]}]}


@pytest.mark.parametrize(
    ("change", "left"),
    [
        ({"tools": [{**READ, "name": "look"}, WRITE]}, "---"),
        ({"tools": [{**READ, "description": "Looks."}, WRITE]}, "---"),
        ({"tools": [{**READ, "input_schema": {"type": "string"}}, WRITE]}, "---"),
        ({"tools": [WRITE, READ]}, "---"),
        ({"mcp_servers": [{"type": "url", "name": "files", "url": "https://mcp.example"}]}, "---"),
        ({"model": "claude-opus-4-8"}, "---"),
        ({"tools": [READ, WRITE, {"type": "web_search_20250305", "name": "web_search"}]}, "y--"),
        ({"tools": [{"type": "web_fetch_20250910", "name": "web_fetch"}, READ, WRITE]}, "y--"),
        (appended(CITED), "y--"),
        ({"speed": "fast"}, "y--"),
        ({"container": {"skills": [{"type": "anthropic", "skill_id": "pdf"}]}}, "y--"),
        ({"system": [{"type": "text", "text": "You are two."}]}, "y--"),
        ({"tool_choice": {"type": "any"}}, "yy-"),
        ({"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}, "yy-"),
        (appended(IMAGE), "yy-"),
        ({"thinking": {"type": "enabled", "budget_tokens": 2000}}, "yy-"),
        ({"output_config": {"effort": "low"}}, "yy-"),
        ({"output_config": {"format": {"type": "json_schema", "schema": {}}}}, "yy-"),
        ({"messages": [said("user", "Go off.")]}, "yy-"),
        (appended({"type": "text", "text": "More."}), "yyy"),
        ({"max_tokens": 9, "stop_sequences": ["x"], "stream": True}, "yyy"),
        ({"metadata": {"user_id": "u"}}, "yyy"),
        ({"tool_choice": {"type": "auto"}}, "yyy"),
        ({"thinking": {"type": "disabled"}}, "yyy"),
        ({"output_config": {"effort": "high"}}, "yyy"),
        ({"speed": "standard"}, "yyy"),
        ({"tools": [READ, {"defer_loading": True, **WRITE, "name": "later"}, WRITE]}, "yyy"),
        ({"container": {"id": "container_1"}}, "yyy"),
        ({"cache_control": {"type": "ephemeral"}}, "yyy"),
        ({"system": "You are one."}, "yyy"),
    ],
)
def test_a_change_is_lost_from_where_it_is_rendered(change: Body, left: str) -> None:
    before = prompt(**copy.deepcopy(BASE))
    assert kept(before, prompt(**{**copy.deepcopy(BASE), **change})) == left


@pytest.mark.parametrize(
    ("model", "effort"), [("claude-opus-5-5", "medium"), ("claude-opus-5", "high")]
)
def test_the_effort_by_default_is_the_model_s_own(model: str, effort: str) -> None:
    """Medium on Opus 5.5 and Haiku 5.5, high elsewhere; spelled out it changes nothing."""
    plain = prompt(**BASE, model=model)
    assert prompt(**BASE, model=model, output_config={"effort": effort}).keys == plain.keys
    assert prompt(**BASE, model=model, output_config={"effort": "low"}).keys != plain.keys


def test_a_moved_breakpoint_is_no_change_and_is_kept_apart() -> None:
    """Facts 1.1: the marker is not compared."""
    body = copy.deepcopy(BASE)
    plain = prompt(**body)
    body["system"][0]["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
    body["messages"][0]["content"][0]["cache_control"] = {"type": "ephemeral"}
    marked = prompt(**body)
    assert marked.keys == plain.keys
    assert [marked.segments[m.index].section for m in marked.marks] == ["system", "messages"]
    assert [mark.ttl for mark in marked.marks] == ["1h", "5m"]


def test_automatic_caching_goes_to_the_last_block_that_can_carry_a_mark() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    body = {"messages": [said("user", "Go on."), {"role": "assistant", "content": [thought]}]}
    found = prompt(**body, model="claude-opus-5", cache_control={"type": "ephemeral"})
    assert [s.kind for s in found.segments if s.ttl] == ["text"]


@pytest.mark.parametrize("seed", range(4))
def test_parts_come_in_render_order_whatever_the_order_of_the_body(seed: int) -> None:
    """Tools, system, messages (facts 1.1)."""
    body = {**BASE, "speed": "fast", "tool_choice": {"type": "any"}}
    names = list(body)
    turned = {name: body[name] for name in names[seed:] + names[:seed]}
    found = prompt(**turned)
    assert found.keys == prompt(**body).keys
    assert list(found.segments) == sorted(found.segments, key=lambda s: s.rank)


def test_a_tool_that_is_apart_does_not_move_the_ordinary_ones() -> None:
    search = b'{"type":"web_search_20250305","name":"web_search"}'
    plain, later = b'{"name":"a","input_schema":{}}', b'{"name":"b","defer_loading":true}'
    ranks = [s.rank[1] for s in iter_tools((search, plain, later, plain)) if s.name == "a"]
    assert ranks == [0, 1]
    assert [s.rendered for s in iter_tools((plain, later))] == [True, False]


@pytest.mark.parametrize(
    ("choice", "name"),
    [({"type": "tool", "name": "read"}, "read"), ({"type": "any"}, ""), ({"type": "auto"}, "")],
)
def test_only_a_named_tool_is_forced(choice: Body, name: str) -> None:
    body = sent([said("user", "a")], tool_choice=choice).body
    assert body is not None
    assert forced_tool(body) == name


def test_bytes_of_the_segments_tile_the_prompt() -> None:
    found = render(sent(**{**BASE, "speed": "fast"}))
    assert found.data_length == len(found.data)
    parts = zip(found.heads, found.segments, strict=True)
    assert b"".join(head + segment.data for head, segment in parts) == found.data
