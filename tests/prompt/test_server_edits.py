"""What the API itself does to a prompt, as answers and bodies tell it (facts 5.1, 5.2, 8)."""

from __future__ import annotations

import copy
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ctxdoc.diagnosis.diagnose import Diagnosis, State, diagnose_pair
from ctxdoc.ledger.ledger import replay
from ctxdoc.prompt.render import render
from ctxdoc.reading.load import read_log, read_request
from ctxdoc.request.request import Request
from ctxdoc.request.response import ServerEdit
from tests.support.sessions import MARK, START

Body = dict[str, Any]
LONG = "lorem ipsum dolor sit amet " * 200
"""About 1,300 tokens, above the minimum of the model (1,024)."""


def calls(count: int, name: str = "read_file") -> list[Body]:
    """A question and so many rounds of one call and its result."""
    messages: list[Body] = [{"role": "user", "content": [{"type": "text", "text": "Read all."}]}]
    for number in range(count):
        use = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {"n": number}}
        back = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": f"result {number} " + "meter " * 60,
        }
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [back]}]
    return messages


def body(messages: list[Body], **more: Any) -> Body:
    found = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 64,
        "system": [{"type": "text", "text": LONG, "cache_control": dict(MARK)}],
        "messages": copy.deepcopy(messages),
        **more,
    }
    found["messages"][-1]["content"][-1]["cache_control"] = dict(MARK)
    return found


def usage(read: int = 0, write: int = 0, rest: int = 3) -> Body:
    return {
        "input_tokens": rest,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": write,
        "output_tokens": 9,
    }


def line(
    sent: Body, seconds: float, answer: Body | None, number: int = 1, **more: Any
) -> dict[str, Any]:
    at = START + timedelta(seconds=seconds)
    response = None if answer is None else {"id": f"msg_{number}", "model": sent["model"], **answer}
    return {"timestamp": at.isoformat(), "request": sent, "response": response, **more}


def requests_of(folder: Path, *rows: dict[str, Any]) -> list[Request]:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return list(read_log([str(path)]).requests)


def diagnosed(folder: Path, *rows: dict[str, Any]) -> Diagnosis:
    return diagnose_pair(*requests_of(folder, *rows))


def edits(*applied: Body) -> Body:
    return {"usage": usage(), "context_management": {"applied_edits": list(applied)}}


def results_of(request: Request) -> list[str]:
    """The content of every tool result as the model saw it."""
    found = []
    for segment in render(request).segments:
        if segment.kind == "tool_result":
            assert isinstance(segment.value, dict)
            found.append(str(segment.value["content"])[:8])
    return found


@pytest.mark.parametrize(
    ("count", "cleared"), [(0, 0), (1, 1), (3, 3), (4, 4), (5, 4), (10**9, 4), (-1, 0), ("x", 0)]
)
def test_the_oldest_results_are_out_of_the_prompt(tmp_path: Path, count: Any, cleared: int) -> None:
    """An edit that clears more than there is clears what there is; one of another shape nothing."""
    edit = {
        "type": "clear_tool_uses_20250919",
        "cleared_tool_uses": count,
        "cleared_input_tokens": 9,
    }
    (request,) = requests_of(tmp_path, line(body(calls(4)), 0, edits(edit)))
    assert results_of(request) == ["[cleared"] * cleared + [
        f"result {n}" for n in range(cleared, 4)
    ]


def test_excluded_tools_keep_their_results_and_inputs_go_where_it_is_asked(tmp_path: Path) -> None:
    asked = {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "exclude_tools": ["list_files"],
                "clear_tool_inputs": True,
            }
        ]
    }
    messages = calls(3)
    messages[1]["content"][0]["name"] = "list_files"
    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1}
    sent = body(messages, context_management=asked)
    (request,) = requests_of(tmp_path, line(sent, 0, edits(edit)))
    assert results_of(request) == ["result 0", "[cleared", "result 2"]
    inputs = [s.value["input"] for s in render(request).segments if s.kind == "tool_use"]  # type: ignore[call-overload,index]
    assert inputs == [{"n": 0}, {}, {"n": 2}]


def test_an_edit_holds_on_where_the_next_answer_is_not_logged(tmp_path: Path) -> None:
    from ctxdoc.prompt.render import Renderer

    edit = {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2}
    rows = line(body(calls(3)), 0, edits(edit)), line(body(calls(4)), 20, None, 2)
    renderer = Renderer()
    one, two = (renderer.render(request) for request in requests_of(tmp_path, *rows))
    assert two.keys[: len(one.keys)] == one.keys
    assert len(two.as_sent.segments) == len(two.segments)


@pytest.mark.parametrize(
    ("edit", "left"),
    [
        ({"kind": "clear_thinking", "count": 1}, 1),
        ({"kind": "clear_thinking", "count": 9}, 0),
        ({"kind": "thinking_dropped", "path": "messages.1.content.0"}, 1),
        ({"kind": "thinking_dropped", "path": "messages.0.content.0"}, 2),
        ({"kind": "thinking_dropped", "path": "messages.x"}, 2),
    ],
)
def test_thinking_that_the_api_took_out_is_no_part_of_the_prompt(
    tmp_path: Path, edit: Body, left: int
) -> None:
    messages = calls(2)
    for message in messages:
        if message["role"] == "assistant":
            thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
            message["content"].insert(0, thought)
    if edit["kind"] == "clear_thinking":
        answer = edits({"type": "clear_thinking_20251015", "cleared_thinking_turns": edit["count"]})
    else:
        dropped = {
            "type": "thinking_dropped",
            "path": edit["path"],
            "reason": "model_binding_mismatch",
        }
        answer = {"usage": usage(), "input_transformations": [dropped]}
    sent = {**body(messages), "model": "claude-opus-5"}
    (request,) = requests_of(tmp_path, line(sent, 0, answer))
    kinds = [segment.kind for segment in render(request).segments]
    assert kinds.count("thinking") == left if edit.get("path") != "messages.0.content.0" else True
    if edit.get("path") == "messages.0.content.0":
        # What it names is out, whatever it is: the API's own word.
        assert kinds.count("thinking") == 2


def test_edits_of_no_known_shape_say_nothing(tmp_path: Path) -> None:
    odd = [None, 7, {"type": "clear_tool_uses_20250919"}, {"type": 3}, {"cleared_tool_uses": 2}]
    answer = {
        "usage": usage(),
        "context_management": {"applied_edits": odd},
        "input_transformations": 1,
    }
    (request,) = requests_of(tmp_path, line(body(calls(2)), 0, answer))
    assert request.response is not None
    assert request.response.edits == ()
    assert results_of(request) == ["result 0", "result 1"]


@pytest.mark.parametrize(
    ("block", "kept"),
    [
        ({"type": "compaction", "content": "what was said"}, 2),
        ({"type": "compaction", "content": None, "encrypted_content": "abc"}, 2),
        ({"type": "compaction", "content": None}, 7),
    ],
)
def test_what_stands_before_a_compaction_block_is_out_of_the_prompt(
    tmp_path: Path, block: Body, kept: int
) -> None:
    """The head stays; a block without content is a compaction that failed, and changes nothing."""
    messages = [
        *calls(2),
        {"role": "assistant", "content": [block]},
        {"role": "user", "content": [{"type": "text", "text": "go on"}]},
    ]
    (request,) = requests_of(tmp_path, line(body(messages), 0, None))
    prefix = render(request)
    assert len(prefix.row) == kept
    assert prefix.segments[0].pointer == "$.system[0]"


def test_a_dropped_block_is_said_by_the_api(tmp_path: Path) -> None:
    dropped = {"type": "thinking_dropped", "path": "messages.1.content.0"}
    answer = {"usage": usage(), "input_transformations": [dropped, {"type": "other"}]}
    (request,) = requests_of(tmp_path, line(body(calls(1)), 0, answer))
    assert request.response is not None
    assert request.response.edits == (
        ServerEdit(kind="thinking_dropped", count=1, path="messages.1.content.0"),
    )


def test_counters_of_an_answer_that_is_not_logged_are_sums_where_the_next_body_shows_it(
    tmp_path: Path,
) -> None:
    """The first pass wrote 1,500 and the second read them and wrote 700 more: the sums are 2,200 and
    1,500. The next request reads 2,200, all that was cached, and no size of a prefix is 3,700."""
    first = calls(0)
    search = [
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "x"},
        },
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "url": "u", "encrypted_content": "q" * 900}],
        },
        {"type": "text", "text": "Found."},
    ]
    more = [
        *first,
        {"role": "assistant", "content": search},
        {"role": "user", "content": [{"type": "text", "text": "and?"}]},
    ]
    found = diagnosed(
        tmp_path,
        line(body(first), 0, {"usage": usage(read=1500, write=2200, rest=6)}),
        line(body(more), 20, {"usage": usage(read=2200, write=40)}, 2),
    )
    assert (found.state, found.finding.cause.id, found.lost) == (State.ALIVE, "none", 0)
    assert found.case.before.passes


def effort(level: str) -> Body:
    return {"output_config": {"effort": level}}


def test_a_setting_that_came_back_did_not_change(tmp_path: Path) -> None:
    """auto, any, auto: the third reads what the first wrote, and has lost nothing to the second."""
    one, two, three = calls(1), calls(2), calls(3)
    rows = (
        line(body(one), 0, {"usage": usage(write=1500)}),
        line(body(two, tool_choice={"type": "any"}), 20, {"usage": usage(read=1350, write=300)}, 2),
        line(body(three), 40, {"usage": usage(read=1500, write=300)}, 3),
    )
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    causes = [row.miss.cause if row.miss else None for row in replay(read_log([str(path)])).rows]
    assert causes == [None, "tool_choice_changed", None]


@pytest.mark.parametrize(
    ("read", "confidence", "lost"), [(1350, "certain", 150), (0, "likely", 1500)]
)
def test_a_setting_of_unknown_reach_takes_all_that_was_lost(
    tmp_path: Path, read: int, confidence: str, lost: int
) -> None:
    """Effort: the messages at least (facts 1.7). Where nothing was read, all of it is its own."""
    rows = (
        line(body(calls(1), **effort("low")), 0, {"usage": usage(write=1500)}),
        line(
            body(calls(2), **effort("medium")),
            20,
            {"usage": usage(read=read, write=1700 - read)},
            2,
        ),
    )
    found = diagnosed(tmp_path, *rows)
    assert found.finding.cause.id == "effort_changed"
    assert str(found.finding.match.confidence) == confidence
    assert found.lost == lost


@pytest.mark.parametrize(
    ("gap", "duration_ms", "cause"),
    [
        (0.5, None, "concurrent_cold_start"),
        (9.9, None, "concurrent_cold_start"),
        (10.1, None, "provider_side_miss"),
        (2.9, 3000, "concurrent_cold_start"),
        (3.1, 3000, "provider_side_miss"),
    ],
)
def test_twins_within_the_first_answer_are_likely_a_cold_start(
    tmp_path: Path, gap: float, duration_ms: int | None, cause: str
) -> None:
    more = {} if duration_ms is None else {"duration_ms": duration_ms}
    sent = body(calls(1))
    found = diagnosed(
        tmp_path,
        line(sent, 0, {"usage": usage(write=1500)}, **more),
        line(sent, gap, {"usage": usage(write=1500)}, 2),
    )
    assert found.finding.cause.id == cause
    assert str(found.finding.match.confidence) == "likely"


@pytest.mark.parametrize(
    ("uncached", "opaque", "twice"),
    [(1564, False, True), (1500, False, True), (100, False, False), (1564, True, False)],
)
def test_a_double_count_is_proved_by_bytes_alone(
    tmp_path: Path, uncached: int, opaque: bool, twice: bool
) -> None:
    """A token is at least a byte: behind the breakpoint stand some 60 bytes and a frame of 64 tokens. What an
    image by URL holds, its bytes do not bound. 1,564 is 1,500 cached and 64 behind."""
    sent = body([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])
    sent["system"] = [{"type": "text", "text": LONG, "cache_control": dict(MARK)}]
    tail: Body = {"type": "text", "text": "and now?"}
    if opaque:
        tail = {"type": "image", "source": {"type": "url", "url": "https://a.example/1.png"}}
    sent["messages"][-1]["content"].append(tail)
    (request,) = requests_of(tmp_path, line(sent, 0, {"usage": usage(write=1500, rest=uncached)}))
    found = diagnose_pair(request, request)
    assert found.case.after.double_counted is twice
    assert found.case.after.usage is not None
    assert found.case.after.usage.uncached == uncached


def test_hours_that_were_cut_to_five_minutes_end_after_five(tmp_path: Path) -> None:
    """The body asks for an hour and the counters say five minutes; after six the entry is gone, and the
    fix is the gateway's. After four it is read."""
    hour = {"type": "ephemeral", "ttl": "1h"}
    sent = body(calls(1))
    sent["system"][0]["cache_control"] = hour
    sent["messages"][-1]["content"][-1]["cache_control"] = hour
    five = {"ephemeral_5m_input_tokens": 1500, "ephemeral_1h_input_tokens": 0}
    wrote = {"usage": {**usage(write=1500), "cache_creation": five}}
    found = diagnosed(tmp_path, line(sent, 0, wrote), line(sent, 360, wrote, 2))
    assert found.finding.cause.id == "ttl_expired"
    assert "gateway" in found.finding.fix
    again = diagnosed(
        tmp_path, line(sent, 0, wrote), line(sent, 240, {"usage": usage(read=1500)}, 2)
    )
    assert again.state is State.ALIVE


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("inference_geo", "us"),
        ("service_tier", "standard_only"),
        ("container", {"id": "container_1"}),
        ("context_management", {"edits": []}),
        ("fallbacks", [{"model": "claude-opus-4-8"}]),
        ("something_new", True),
    ],
)
def test_a_miss_is_the_providers_only_once_everything_was_compared(
    tmp_path: Path, member: str, value: Any
) -> None:
    sent = body(calls(1))
    rows = (
        line(sent, 0, {"usage": usage(write=1500)}),
        line({**sent, member: value}, 60, {"usage": usage(write=1500)}, 2),
    )
    found = diagnosed(tmp_path, *rows)
    assert found.finding.cause.id == "undocumented_setting_changed"
    assert member in found.finding.match.explanation
    assert str(found.finding.match.confidence) == "possible"
    assert "nothing to change" not in found.finding.fix.lower()
    same = diagnosed(tmp_path, rows[0], {**rows[1], "request": {**sent, "temperature": 0.5}})
    assert same.finding.cause.id == "provider_side_miss"


def test_files_without_times_are_never_compared(tmp_path: Path) -> None:
    """Nothing says which of two bare bodies in two files came first."""
    for name, count in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.json").write_text(json.dumps(body(calls(count))), encoding="utf-8")
    found = replay(read_log([str(tmp_path)]))
    assert [row.compared for row in found.rows] == [None, None]
    assert not any(row.miss for row in found.rows)


@pytest.mark.parametrize(
    ("hours", "session", "compared"), [(23, "", 1), (25, "", None), (25, "s", 1)]
)
def test_calls_of_another_day_go_on_from_nothing(
    tmp_path: Path, hours: int, session: str, compared: int | None
) -> None:
    rows = [
        line(body(calls(1)), 0, {"usage": usage(write=1500)}, session_id=session),
        line(body(calls(2)), hours * 3600, {"usage": usage(write=1700)}, 2, session_id=session),
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert replay(read_log([str(path)])).rows[1].compared == compared


def test_one_pair_of_files_is_still_compared_where_it_is_asked_for(tmp_path: Path) -> None:
    for name, count in (("a", 1), ("b", 2)):
        (tmp_path / f"{name}.json").write_text(json.dumps(body(calls(count))), encoding="utf-8")
    pair = [read_request(str(tmp_path / f"{name}.json"))[0] for name in "ab"]
    assert diagnose_pair(*pair).state is State.ALIVE
