"""Streamed answers: put together, they are what would have come in one piece."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.reading.formats.shared.answer import read_answer, response_of
from ctxdoc.reading.formats.shared.stream import events_of, merged, merged_answer

Event = dict[str, Any]
PIECES = st.lists(st.text(max_size=5), max_size=4)
BLOCKS = st.lists(st.tuples(st.sampled_from(["text", "thinking"]), PIECES), max_size=4)


def streamed(blocks: list[tuple[str, list[str]]], usage: dict[str, int]) -> list[Event]:
    """An independent model of the API's stream: a start, the pieces, and the end with the totals."""
    message = {"id": "m", "model": "claude-sonnet-4-5", "usage": {"input_tokens": 3}}
    events: list[Event] = [{"type": "message_start", "message": message}]
    for index, (kind, pieces) in enumerate(blocks):
        start = {"type": kind, kind: ""}
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        for piece in pieces:
            delta = {"type": f"{kind}_delta", kind: piece}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
    return [*events, {"type": "message_delta", "delta": {}, "usage": usage}]


def sse(events: list[Event], end: str = "\n") -> str:
    return "".join(f"event: e{end}data: {json.dumps(event)}{end}{end}" for event in events)


@given(BLOCKS, st.integers(0, 10**6))
def test_a_stream_is_the_answer_in_one_piece(
    blocks: list[tuple[str, list[str]]], output: int
) -> None:
    usage = {"input_tokens": 3, "output_tokens": output}
    whole = {
        "id": "m",
        "model": "claude-sonnet-4-5",
        "usage": usage,
        "content": [{"type": kind, kind: "".join(pieces)} for kind, pieces in blocks],
    }
    events = streamed(blocks, usage)
    one, two = response_of(whole), read_answer(sse(events))
    assert two is not None
    assert (two.id, two.model, two.usage) == (one.id, one.model, one.usage)
    assert msgspec.json.decode(two.content) == (whole["content"] or None)
    assert read_answer(sse(events, "\r\n").encode()) == two == read_answer(events)


def test_a_null_at_the_end_keeps_what_was_said_before() -> None:
    usage: dict[str, Any] = {"input_tokens": None, "output_tokens": 4}
    found = merged(streamed([], usage))
    assert found is not None
    assert found["usage"] == {"input_tokens": 3, "output_tokens": 4}


def test_the_split_by_lifetime_is_that_of_the_start() -> None:
    split = {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 6}
    start = {"usage": {"cache_creation_input_tokens": 7, "cache_creation": split}}
    found = read_answer(
        [
            {"type": "message_start", "message": start},
            {"usage": {"cache_creation_input_tokens": 7, "output_tokens": 2}},
        ]
    )
    assert found is not None
    assert found.usage is not None
    assert (found.usage.cache_write_5m, found.usage.cache_write_1h) == (1, 6)


def test_the_arguments_of_a_tool_are_put_together_if_they_are_json() -> None:
    """A stream that broke off leaves the block as it began."""
    start = {"type": "tool_use", "id": "i", "name": "t", "input": {}}
    pieces = ['{"a": ', "1.50}"]
    for sent, arguments in ((pieces, b'{"a": 1.50}'), (pieces[:1], b"{}")):
        deltas = [
            {"index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}}
            for piece in sent
        ]
        opened = {"type": "content_block_start", "index": 0, "content_block": start}
        found = merged([{"type": "message_start", "message": {"id": "m"}}, opened, *deltas])
        assert found is not None
        (block,) = msgspec.json.decode(found["content"], type=list[dict[str, msgspec.Raw]])
        assert bytes(block["input"]) == arguments


def test_an_error_in_a_stream_is_one_of_the_answer() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    found = read_answer(sse([*streamed([], {})[:1], error]))
    assert found is not None
    assert found.error == "Overloaded"


def test_the_type_of_an_event_is_not_that_of_the_answer() -> None:
    found = merged([{"type": "message_start", "message": {"id": "m", "type": "message"}}])
    assert found is not None
    assert found["type"] == "message"
    assert merged([{"type": "ping"}]) is None


@pytest.mark.parametrize("text", ["", "hello", "event: x\n", '{"a"'])
def test_what_is_no_stream_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither JSON nor a stream"):
        events_of(text)


@pytest.mark.parametrize("line", ["data: [DONE]", "data: {", "data: 5", "data:", 'data: {"a"'])
def test_a_line_of_a_stream_that_is_no_object_is_passed_over(line: str) -> None:
    events = streamed([], {"output_tokens": 1})
    assert list(events_of(f"{line}\n\n{sse(events)}{line}\n")) == events


def test_an_answer_of_the_recorder_is_one_object_either_way() -> None:
    assert merged_answer(b' {"id": "m"}') == {"id": "m"}
    found = merged_answer(sse(streamed([], {"output_tokens": 1})).encode())
    assert found is not None
    assert (found["id"], found["usage"]) == ("m", {"input_tokens": 3, "output_tokens": 1})
    assert merged_answer(b"data: [DONE]\n") is None


@pytest.mark.parametrize(
    "delta", [None, [], {}, {"type": []}, {"type": "x"}, {"type": "text_delta"}]
)
@pytest.mark.parametrize("index", [0, None, "0", [], -1])
def test_an_odd_delta_adds_nothing(delta: Any, index: Any) -> None:
    events = streamed([("text", ["a"])], {"output_tokens": 1})
    odd = {"type": "content_block_delta", "index": index, "delta": delta}
    assert merged([*events[:3], odd, *events[3:]]) == merged(events)
