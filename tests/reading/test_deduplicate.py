"""Reading what repeats once must read what reading everything reads."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxdoc.prompt.render import Renderer, render
from ctxdoc.reading.load import read_log
from ctxdoc.request.request import Request
from tests.support.sessions import Body, demo_session, first_body, lines, marked, session, turn

DECOY = {"type": "object", "properties": {"messages": {"type": "array", "items": ["messages"]}}}


def plain(request: Request) -> Request:
    """Without what the two ways of reading keep differently."""
    body = request.body
    assert body is not None
    parts = {
        "messages": tuple(map(bytes, body.messages)),
        "tools": None if body.tools is None else tuple(map(bytes, body.tools)),
        "system": bytes(body.system),
        "tool_choice": bytes(body.tool_choice),
        "thinking": bytes(body.thinking),
        "thread": bytes(body.thread),
    }
    return replace(request, body=replace(body, **parts), raw=None, exact=request.is_exact)  # type: ignore[arg-type]


def both(folder: Path, text: str | bytes) -> tuple[list[Request], list[Request]]:
    """The requests read whole, and with the repeated parts once."""
    path = folder / "log.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    logs = (read_log([str(path)]), read_log([str(path)], condense=True))
    assert logs[0].skipped == logs[1].skipped
    one, two = ([plain(request) for request in log.requests] for log in logs)
    return one, two


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\t", " : ")])
@pytest.mark.parametrize("bare", [False, True])
def test_a_session_is_read_alike_however_it_is_spelled(
    separators: tuple[str, str], bare: bool, tmp_path: Path
) -> None:
    rows = [row["request"] for row in demo_session()] if bare else demo_session()
    text = "".join(json.dumps(row, separators=separators) + "\n" for row in rows)
    one, two = both(tmp_path, text)
    assert one == two
    assert len(one) == 12


def test_members_of_the_same_name_elsewhere_are_no_history(tmp_path: Path) -> None:
    """`messages`, `tools` and `system` inside of a schema, a call, metadata and the response."""
    records = session({}, turns=5)
    for number, row in enumerate(records):
        row["request"]["tools"].insert(0, {"name": "odd", "input_schema": DECOY})
        row["request"]["metadata"] = {"messages": row["request"]["messages"][: number + 1]}
        row["response"]["tools"] = row["response"]["system"] = row["request"]["messages"]
        call = {"messages": row["request"]["messages"][:1], "system": "x" * 600}
        block = {"type": "tool_use", "id": f"t{number}", "name": "odd", "input": call}
        row["request"]["messages"].append({"role": "assistant", "content": [block]})
    for order in (1, -1):
        text = lines([dict(list(row.items())[::order]) for row in records])
        one, two = both(tmp_path, text)
        assert one == two


def test_a_line_that_breaks_off_is_skipped_for_the_same_reason(tmp_path: Path) -> None:
    rows = lines(demo_session()).encode().splitlines(keepends=True)
    for cut in (10, 5000, 9000, len(rows[5]) - 300, len(rows[5]) - 2):
        broken = b"".join([*rows[:5], rows[5][:cut] + b"\n", *rows[6:]])
        one, two = both(tmp_path, broken)
        assert one == two
        assert len(one) == 11


BODIES = st.lists(
    st.tuples(
        st.sampled_from(["grow", "edit", "drop", "clock", "tools", "fork", "unicode"]),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=8,
)


def changed(body: Body, change: str, at: int) -> None:
    messages: list[Any] = body["messages"]
    match change:
        case "edit":
            messages[at % len(messages)]["content"] = f"edited {at}"
        case "drop" if len(messages) > 3:
            del messages[at % len(messages)]
        case "clock":
            body["system"][-1]["text"] = f"It is 09:0{at}."
        case "tools":
            body["tools"].append(body["tools"].pop(at % len(body["tools"])))
        case "fork":
            del messages[1 + at :]
        case "unicode":
            messages.append({"role": "user", "content": "é\u2028\U0001f600 " * at})


@given(BODIES, st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_any_history_of_bodies_is_read_and_rendered_alike(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int]],
    separators: tuple[str, str],
    ascii_only: bool,
) -> None:
    """What is taken over from earlier requests is what rendering each by itself makes."""
    rng = random.Random(1)
    body, text = first_body(rng), ""
    for number, (change, at) in enumerate(steps):
        changed(body, change, at)
        sent = marked(body) if isinstance(body["messages"][-1]["content"], list) else body
        row = {"request": sent, "response": None}
        text += json.dumps(row, separators=separators, ensure_ascii=ascii_only) + "\n"
        body = copy.deepcopy(body)
        body["messages"] += turn(rng, number)
    one, two = both(tmp_path_factory.mktemp("log"), text)
    assert one == two
    renderer, lean = Renderer(), Renderer(lean=True)
    for request in two:
        alone = render(request)
        for prefix in (renderer.render(request), lean.render(request)):
            assert prefix.keys == alone.keys
            assert prefix.row == alone.row
            assert prefix.data == alone.data
            assert prefix.breakpoints == alone.breakpoints
            assert [s.pointer for s in prefix.segments] == [s.pointer for s in alone.segments]


def test_thinking_that_the_api_strips_is_rendered_alike(tmp_path: Path) -> None:
    """A new user text strips the thinking before it, for models up to Sonnet 4.5."""
    rng = random.Random(1)
    body = first_body(rng)
    text = ""
    for number in range(6):
        text += lines([{"request": body, "response": None}])
        body = copy.deepcopy(body)
        said, results = turn(rng, number)
        said["content"].insert(0, {"type": "thinking", "thinking": "hm", "signature": "s"})
        if number % 2:
            results["content"].append({"type": "text", "text": "go on with it, please"})
        body["messages"] += [said, results]
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    renderer = Renderer(lean=True)
    for request in read_log([str(path)], condense=True).requests:
        alone, shared = render(request), renderer.render(request)
        assert (alone.keys, alone.data, alone.row) == (shared.keys, shared.data, shared.row)
        stripped = [s.data for s in shared.unrendered]
        assert [s.data for s in alone.unrendered] == stripped


def test_a_list_of_tools_with_one_more_is_another_list(tmp_path: Path) -> None:
    """The first line has the longer list elsewhere, ahead of its own."""
    rows = demo_session()[:2]
    tools = rows[0]["request"]["tools"]
    rows[0] = {"metadata": {"tools": [*tools, 5]}, **rows[0]}
    rows[1]["request"]["tools"] = [*tools, 5]
    one, two = both(tmp_path, lines(rows))
    assert one == two


def test_a_body_of_another_api_stays_one_when_its_history_repeats(tmp_path: Path) -> None:
    user = {"role": "user", "content": "word " * 200}
    body = {"model": "m", "messages": [user, {"role": "tool", "content": "x"}, user]}
    usage = {"input_tokens": 9, "output_tokens": 1}
    rows = [{**body, "system": "s", "usage": usage}]
    rows.append({**body, "messages": [*body["messages"], user], "max_tokens": 9, "usage": usage})
    path = tmp_path / "log.jsonl"
    path.write_text(lines(rows))
    logs = (read_log([str(path)], condense=condense) for condense in (False, True))
    one, two = ([request.body is None for request in log.requests] for log in logs)
    assert one == two
