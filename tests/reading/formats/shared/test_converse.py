"""Bodies of Bedrock's Converse: what has a counterpart is the same body, anything else is refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ctxdoc.reading.formats.base import UNREADABLE
from ctxdoc.reading.formats.shared.converse import read_body
from ctxdoc.request.request import Body
from tests.support.records import CONVERSE

MODEL = "anthropic.claude-sonnet-4-5"


def converted(body: Any, model: str = MODEL) -> Body:
    return read_body(Raw(json.dumps(body).encode()), model)


def block(content: Any) -> Any:
    """The block of the Messages API that one of Converse becomes."""
    (message,) = converted({"messages": [{"role": "user", "content": [content]}]}).messages
    (found,) = msgspec.json.decode(message)["content"]
    return found


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        ({"text": "x"}, {"type": "text", "text": "x"}),
        ({"text": "x", "image": None}, {"type": "text", "text": "x"}),
        (
            {"toolUse": {"toolUseId": "i", "name": "t", "input": {"a": None}}},
            {"type": "tool_use", "id": "i", "name": "t", "input": {"a": None}},
        ),
        (
            {"toolResult": {"toolUseId": "i", "content": [{"text": "x"}]}},
            {"type": "tool_result", "tool_use_id": "i", "content": [{"type": "text", "text": "x"}]},
        ),
        (
            {"toolResult": {"toolUseId": "i", "content": [], "status": "error"}},
            {"type": "tool_result", "tool_use_id": "i", "content": [], "is_error": True},
        ),
        (
            {"toolResult": {"toolUseId": "i", "content": [], "status": "success"}},
            {"type": "tool_result", "tool_use_id": "i", "content": []},
        ),
        (
            {"reasoningContent": {"reasoningText": {"text": "x"}}},
            {"type": "thinking", "thinking": "x"},
        ),
        (
            {"reasoningContent": {"redactedContent": "eA=="}},
            {"type": "redacted_thinking", "data": "eA=="},
        ),
    ],
)
def test_a_block_has_its_counterpart(sent: Any, found: Any) -> None:
    assert block(sent) == found


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({}, "not of one kind"),
        ({"text": "x", "image": {}}, "not of one kind"),
        ({"video": {}}, "a block 'video'"),
        ({"toolUse": {"name": "t", "input": {}}}, "missing required field `toolUseId`"),
        ({"toolUse": []}, "Expected `object`, got `array`"),
        ({"toolResult": {"toolUseId": "i"}}, "missing required field `content`"),
        ({"toolResult": {"toolUseId": "i", "content": [{"json": {}}]}}, "a tool result of 'json'"),
        ({"reasoningContent": {"x": 1}}, "reasoning 'x'"),
        ({"reasoningContent": {"reasoningText": {}}}, "missing required field `text`"),
        ({"image": {"format": "png"}}, "missing required field `source`"),
        ({"image": {"format": "png", "source": {"s3Location": {}}}}, "bytes are not in the log"),
        ({"image": {"format": "tiff", "source": {"bytes": "AA=="}}}, "bytes are not in the log"),
        ({"image": {"format": [], "source": {}}}, "Expected `str`, got `array`"),
        ({"cachePoint": {"type": "default"}}, "without a block before it"),
    ],
)
def test_a_block_without_one_is_refused(sent: Any, reason: str) -> None:
    with pytest.raises(UNREADABLE, match=reason):
        block(sent)


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ({"auto": {}}, {"type": "auto"}),
        ({"any": {}}, {"type": "any"}),
        ({"tool": {"name": "t"}}, {"type": "tool", "name": "t"}),
        ({"tool": {}}, "no 'name'"),
        ({"none": {}}, "the tool choice 'none'"),
    ],
)
def test_a_tool_choice(choice: Any, found: Any) -> None:
    body = {"messages": [], "toolConfig": {"tools": [], "toolChoice": choice}}
    if isinstance(found, str):
        with pytest.raises(ValueError, match=found):
            converted(body)
    else:
        assert msgspec.json.decode(converted(body).tool_choice) == found


@pytest.mark.parametrize(
    "spec",
    [
        {"name": "t"},
        {"name": "t", "inputSchema": {}},
        {"name": "t", "inputSchema": {"json": {}, "yaml": {}}},
        {"name": "t", "inputSchema": {"json": {}}, "strict": True},
        {"inputSchema": {"json": {}}},
        [],
    ],
)
def test_a_tool_with_other_fields_is_refused(spec: Any) -> None:
    body = {"messages": [], "toolConfig": {"tools": [{"toolSpec": spec}]}}
    with pytest.raises(ValueError, match="fields that have no counterpart"):
        converted(body)


@pytest.mark.parametrize("described", [{}, {"description": "d"}, {"description": None}])
def test_a_tool_keeps_what_is_stated_of_it(described: Any) -> None:
    spec = {"name": "t", "inputSchema": {"json": {"type": "object"}}, **described}
    body = converted({"messages": [], "toolConfig": {"tools": [{"toolSpec": spec}]}})
    assert body.tools is not None
    assert [msgspec.json.decode(tool) for tool in body.tools] == [
        {"name": "t", **described, "input_schema": {"type": "object"}}
    ]


def test_a_cache_point_marks_the_block_before_it() -> None:
    body = converted(CONVERSE)
    mark = {"type": "ephemeral", "ttl": "1h"}
    assert msgspec.json.decode(body.system) == [
        {"type": "text", "text": "Be brief.", "cache_control": mark}
    ]


@pytest.mark.parametrize("limit", [9, None, "9", 9.5, {}])
def test_a_limit_that_is_no_number_is_none(limit: Any) -> None:
    body = converted({"messages": [], "inferenceConfig": {"maxTokens": limit}})
    assert body.max_tokens == (9 if limit == 9 else None)


@pytest.mark.parametrize("model", ["amazon.nova-pro-v1:0", "", "meta.llama3"])
def test_a_body_of_another_model_is_refused(model: str) -> None:
    with pytest.raises(ValueError, match="no Claude model"):
        converted(CONVERSE, model)
