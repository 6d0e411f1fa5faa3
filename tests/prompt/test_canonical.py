"""The canonical form by its laws: what is no part of the prompt is gone, what is free stays as sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.prompt.canonical import DEFAULTS, FREE, ORDER, canonical, lifted
from ctxdoc.request import codec

LEAF = st.one_of(st.text(max_size=4), st.integers(-9, 9), st.booleans())
NAME = st.sampled_from([*ORDER[:12], "other", "more"])
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAME, inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
OBJECT = st.dictionaries(NAME, VALUE, max_size=6)


@settings(max_examples=100, deadline=None)
@given(OBJECT)
def test_a_canonical_form_is_its_own(value: dict[str, Any]) -> None:
    once = canonical(value)
    assert codec.encode(canonical(once)) == codec.encode(once)


@settings(max_examples=100, deadline=None)
@given(OBJECT, st.randoms(use_true_random=False))
def test_the_order_of_members_that_the_api_names_is_no_difference(
    value: dict[str, Any], rng: Any
) -> None:
    names = list(value)
    rng.shuffle(names)
    turned = {name: value[name] for name in names}
    assert codec.encode(canonical(turned)) == codec.encode(canonical(value))


@settings(max_examples=60, deadline=None)
@given(OBJECT)
def test_a_breakpoint_is_no_part_of_it(value: dict[str, Any]) -> None:
    marked = {"cache_control": {"type": "ephemeral"}, **value}
    assert codec.encode(canonical(marked)) == codec.encode(canonical(value))


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_a_default_that_is_written_out_is_one_that_is_left_out(name: str) -> None:
    plain = {"type": "text", "text": "a"}
    assert canonical({**plain, name: DEFAULTS[name]}) == canonical(plain)
    assert canonical({**plain, name: None}) == canonical(plain)
    assert canonical({**plain, name: "other"}) != canonical(plain)


@pytest.mark.parametrize("name", sorted(FREE))
def test_free_json_keeps_the_order_in_which_it_was_sent(name: str) -> None:
    """Key order inside a tool's input can break the match (facts 1.1)."""
    one, two = ({name: {"b": 1, "a": 2}}, {name: {"a": 2, "b": 1}})
    assert codec.encode(canonical(one)) != codec.encode(canonical(two))


def test_a_string_is_short_for_one_text_block() -> None:
    long = {"type": "tool_result", "content": [{"type": "text", "text": "a"}]}
    assert canonical(long) == canonical({"type": "tool_result", "content": "a"})
    assert lifted("a") == [{"type": "text", "text": "a"}]
    two = {"type": "tool_result", "content": [{"type": "text", "text": t} for t in "ab"]}
    assert canonical(two) != canonical({"type": "tool_result", "content": "ab"})


def test_a_tool_of_the_user_s_own_needs_no_type() -> None:
    tool = {"name": "t", "input_schema": {}}
    assert canonical({**tool, "type": "custom"}) == canonical(tool)
