"""Answers in one piece: passes, edits, calls, errors, and what is left out with a note."""

from __future__ import annotations

from typing import Any

import pytest

from ctxdoc.reading.formats.shared.answer import read_answer, response_of
from ctxdoc.reading.formats.shared.passes import MOST_PASSES
from ctxdoc.request.response import Response, ServerEdit

PASS = {"type": "message", "input_tokens": 3, "output_tokens": 1}


def of_usage(**usage: Any) -> Response:
    return response_of({"id": "m", "usage": {"input_tokens": 3, "output_tokens": 1, **usage}})


@pytest.mark.parametrize(
    ("kinds", "count"),
    [
        ([], 0),
        # The only pass of the model is what the usage counts already.
        (["message"], 0),
        (["message", "message"], 2),
        (["compaction"], 1),
        (["message", "compaction"], 2),
        (["advisor_message", "fallback_message"], 2),
    ],
)
def test_passes_are_listed_where_they_tell_more_than_the_usage(
    kinds: list[str], count: int
) -> None:
    found = of_usage(iterations=[{**PASS, "type": kind} for kind in kinds])
    assert [each.kind for each in found.passes] == (kinds if count else [])
    assert found.notes == ()


@pytest.mark.parametrize("entry", [None, 5, "message", [], {}, {"type": "x"}, {"type": []}])
def test_a_pass_of_an_unknown_kind_is_left_out_once_noted(entry: Any) -> None:
    found = of_usage(iterations=[PASS, entry, entry, PASS])
    assert len(found.passes) == 2
    assert found.notes == ("a pass of an unknown kind in usage.iterations is left out",)


@pytest.mark.parametrize(
    ("count", "noted"), [(MOST_PASSES - 1, 0), (MOST_PASSES, 0), (MOST_PASSES + 1, 1)]
)
def test_more_passes_than_an_answer_has_are_not_held(count: int, noted: int) -> None:
    found = of_usage(iterations=[PASS] * count)
    assert len(found.passes) == min(count, MOST_PASSES)
    assert len(found.notes) == noted


@pytest.mark.parametrize("iterations", [None, {}, "x", 5])
def test_what_is_no_list_of_passes_is_none(iterations: Any) -> None:
    assert of_usage(iterations=iterations) == of_usage()


def test_edits_are_counted_by_their_own_names() -> None:
    applied = [
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2, "cleared_input_tokens": 9},
        {"type": "clear_thinking_20251015", "cleared_thinking_turns": 1, "cleared_input_tokens": 4},
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 0, "cleared_input_tokens": 0},
        {"type": "something_else", "cleared_tool_uses": 5},
    ]
    dropped = [{"type": "thinking_dropped", "path": "messages.1"}, {"type": "other"}, None]
    found = response_of(
        {"context_management": {"applied_edits": applied}, "input_transformations": dropped}
    )
    assert found.edits == (
        ServerEdit(kind="clear_tool_uses", count=2, tokens=9),
        ServerEdit(kind="clear_thinking", count=1, tokens=4),
        ServerEdit(kind="thinking_dropped", count=1, path="messages.1"),
    )
    assert found.notes == ()


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({}, ""),
        ({"error": None}, ""),
        ({"error": {}}, ""),
        ({"type": "error"}, "error"),
        ({"type": "error", "error": {"message": "Overloaded"}}, "Overloaded"),
        ({"error": {"code": 5}}, "error"),
        ({"error": "quota"}, "quota"),
        ({"error": 5}, "error"),
    ],
)
def test_an_error_is_its_message_or_the_word(answer: Any, error: str) -> None:
    assert response_of(answer).error == error


@pytest.mark.parametrize(
    ("content", "compacted"),
    [
        ([{"type": "compaction", "content": "so far"}], True),
        ([{"type": "compaction", "encrypted_content": "E"}], True),
        ([{"type": "compaction", "content": None}], False),
        ([{"type": "text", "text": "x"}, {"type": "compaction", "content": "so far"}], False),
        (["compaction", {"type": "compaction", "content": "so far"}], False),
        ([], False),
        (None, False),
        ("compaction", False),
    ],
)
def test_only_a_summary_at_the_start_stands_before_the_answer(
    content: Any, compacted: bool
) -> None:
    assert response_of({"content": content}).compacted is compacted


def test_calls_are_named_once_and_server_calls_show_several_passes() -> None:
    calls = [{"type": "tool_use", "name": name} for name in ("a", "b", "a", "", None, 5)]
    found = response_of({"content": [*calls, {"type": "text", "name": "c"}, "x"]})
    assert (found.called, found.several_passes) == (("a", "b"), False)
    for kind in ("server_tool_use", "mcp_tool_use"):
        assert response_of({"content": [{"type": kind, "name": "d"}]}).several_passes


@pytest.mark.parametrize("body", [None, b"", ""])
def test_no_body_is_no_answer(body: Any) -> None:
    assert read_answer(body) is None


@pytest.mark.parametrize("body", [5, 2.5, True, object()])
def test_a_body_of_another_type_is_named(body: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected 'str', got '\w+' - at '\$.response.body'"):
        read_answer(body)
