"""The Messages API's bodies and those of chat completions: told apart, and never both."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.reading.formats.shared.body_kind import is_messages_body, is_openai_body

USER, ASSISTANT = {"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}
FUNCTION = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [USER]},
        {"messages": [ASSISTANT], "max_tokens": 1},
        {"messages": [], "max_tokens": 1},
        {"messages": [], "system": "x"},
        # The API takes a system message behind the first one; with `system` anything may follow.
        {"messages": [USER, {"role": "system", "content": "z"}]},
        {"messages": [{"role": "anything"}], "system": "x"},
        {"messages": [USER], "tools": [{"name": "t", "input_schema": {}}]},
        {"messages": [USER], "anthropic_version": "bedrock-2023-05-31", "tools": [FUNCTION]},
    ],
)
def test_a_body_of_the_messages_api(body: Any) -> None:
    assert is_messages_body(body)
    assert not is_openai_body(body)


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{"role": "system", "content": "x"}, USER]},
        {"messages": [{"role": "developer", "content": "x"}]},
        {"messages": [USER, {"role": "tool", "content": "x"}]},
        {"messages": [USER, {**ASSISTANT, "tool_calls": []}]},
        {"messages": [USER], "tools": [FUNCTION]},
        {"messages": [USER], "model": "gpt-5.4"},
        {"messages": [USER], "model": "azure/o3"},
        {"messages": [USER], "model": "OpenAI/ChatGPT-4o-latest"},
    ],
)
def test_a_body_of_chat_completions(body: Any) -> None:
    assert is_openai_body(body)
    assert not is_messages_body(body)


@pytest.mark.parametrize(
    "body",
    [
        None, [], "x", 5, {}, {"messages": None}, {"messages": {}}, {"messages": "x"},
        {"messages": []}, {"messages": [ASSISTANT]}, {"messages": [{}], "system": "x"},
        {"messages": ["x"], "max_tokens": 1}, {"messages": [{"role": []}], "max_tokens": 1},
        {"messages": [{"role": {}}], "system": "x"}, {"messages": [USER, {"role": "function"}]},
        {"messages": [USER], "model": "gptq", "tools": [{"function": 1}, 5][1:], "x": 1} | {"messages": [5]},
    ],
)  # fmt: skip
def test_what_is_neither(body: Any) -> None:
    assert not is_messages_body(body)
    assert not is_openai_body(body)


VALUES = st.none() | st.integers() | st.sampled_from(["user", "tool", "system", "gpt-5"])
ODD = st.recursive(
    VALUES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "function", "tool_calls", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip
MEMBERS = st.sampled_from(["messages", "tools", "system", "model", "max_tokens"])


@given(ODD | st.dictionaries(MEMBERS, ODD, max_size=5))
def test_no_body_is_of_both(values: Any) -> None:
    assert not (is_messages_body(values) and is_openai_body(values))
