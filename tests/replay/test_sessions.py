"""Which requests belong together."""

from __future__ import annotations

import copy
import json
from io import BytesIO
from typing import Any

import pytest

from ctxdoc.reading.formats import FORMATS
from ctxdoc.reading.source import Source
from ctxdoc.replay.sessions import part
from ctxdoc.request.request import Request
from tests.support.sessions import demo_session, lines

Body = dict[str, Any]
TOOL = {"name": "t", "input_schema": {}}


def said(role: str, text: str) -> Body:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def body(*texts: str, tools: bool = True) -> Body:
    """A body whose messages alternate, beginning with the user."""
    roles = ("user", "assistant")
    messages = [said(roles[i % 2], text) for i, text in enumerate(texts)]
    return {"model": "claude-opus-5", "messages": messages} | ({"tools": [TOOL]} if tools else {})


def parted(*records: Body) -> list[tuple[str, str | None, tuple[int, ...]]]:
    rows = [record if "request" in record else {"request": record} for record in records]
    items = list(FORMATS["native"].read(Source("-", BytesIO(lines(rows).encode()))))
    requests = [item for item in items if isinstance(item, Request)]
    return [(s.id, s.parent, s.requests) for s in part(requests)]


def test_a_request_continues_the_one_whose_messages_it_extends() -> None:
    found = parted(body("a"), body("x"), body("a", "b", "c"), body("x", "y", "z"))
    assert found == [("s1", None, (0, 2)), ("s2", None, (1, 3))]


def test_a_moved_breakpoint_and_a_string_for_a_block_change_nothing() -> None:
    other = body("a", "b", "c")
    other["messages"][0]["content"] = "a"
    other["messages"][2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    assert parted(body("a"), other) == [("s1", None, (0, 1))]


def test_a_branch_names_its_parent() -> None:
    found = parted(body("a"), body("a", "b", "c"), body("a", "b", "other"))
    assert found == [("s1", None, (0, 1)), ("s2", "s1", (2,))]


def test_a_call_with_the_conversation_but_without_tools_is_a_side_call() -> None:
    found = parted(body("a", "b", "c"), body("a", "b", "c", "d", "Sum up.", tools=False))
    assert found == [("s1", None, (0,)), ("s2", "s1", (1,))]


def test_an_edited_history_is_the_same_session() -> None:
    """The oldest result was cleared; the newest messages are still there in a row."""
    before = body("a", "long result", "c", "d", "e")
    after = copy.deepcopy(before)
    after["messages"][1] = said("assistant", "[cleared]")
    after["messages"] += [said("assistant", "f"), said("user", "g")]
    assert parted(before, after) == [("s1", None, (0, 1))]


def test_a_window_that_slid_is_the_same_session() -> None:
    after = body("c", "d", "e", "f", "g")
    assert parted(body("a", "b", "c", "d", "e"), after) == [("s1", None, (0, 1))]


def test_an_id_of_the_log_is_taken_as_it_is() -> None:
    records = [
        {"request": body("a"), "session_id": "main"},
        {"request": body("b"), "session_id": "main/agent"},
    ]
    assert parted(*records) == [("main", None, (0,)), ("main/agent", "main", (1,))]


@pytest.mark.parametrize("turns", [12])
def test_one_agent_is_one_session_whatever_happens_to_its_prefix(turns: int) -> None:
    rows = json.loads(json.dumps(demo_session()))
    assert parted(*rows) == [("s1", None, tuple(range(turns)))]


def test_requests_with_neither_id_nor_body_are_the_session_of_their_file() -> None:
    bare = [Request(source=file, line=n, model="gpt-4o", body=None) for n, file in enumerate("aab")]
    assert [session.requests for session in part(bare)] == [(0, 1), (2,)]
