"""Transcripts of agents: what is one request, whose it is, and what its counters are."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from ctxdoc.reading.formats.shared.answer import response_of
from ctxdoc.reading.formats.shared.transcript import Message, read_response
from ctxdoc.reading.load import read_log
from ctxdoc.reading.shape import HEAD
from ctxdoc.reading.source import PIECE, Source
from ctxdoc.request.log import Log, Trait
from ctxdoc.request.request import Event
from ctxdoc.request.usage import Usage

SAMPLES = Path(__file__).parents[3] / "fixtures" / "formats"
T = "2026-11-20T09:00:00.000Z"


def written(path: Path, *records: Any) -> str:
    """A file with a record a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = (r if isinstance(r, str) else json.dumps(r, separators=(",", ":")) for r in records)
    path.write_text("\n".join(text) + "\n")
    return str(path)


def counted(**counters: Any) -> dict[str, Any]:
    return {"input_tokens": 4, "output_tokens": 10, "cache_read_input_tokens": 100, **counters}


def answer(number: int = 1, /, usage: Any = None, **line: Any) -> dict[str, Any]:
    """A line of Claude Code with one block of an answer."""
    message = {
        "id": f"msg_{number}",
        "role": "assistant",
        "model": line.pop("model", "claude-sonnet-4-5"),
        "content": [{"type": "text", "text": "x"}],
        "usage": counted() if usage is None else usage,
    }
    named = {"requestId": f"req_{number}", "uuid": f"u{number}", "timestamp": T}
    head = {"parentUuid": None, "isSidechain": False, "sessionId": "s", "type": "assistant"}
    return {**head, **named, "message": message, **line}


def asked(**line: Any) -> dict[str, Any]:
    head = {"parentUuid": None, "isSidechain": False, "sessionId": "s", "type": "user"}
    return {**head, "uuid": "u0", "message": {"role": "user", "content": "hi"}, **line}


def reasons(log: Log) -> list[tuple[int, str]]:
    return [(item.line, item.reason) for item in log.skipped]


def outputs(log: Log) -> list[int]:
    return [r.usage.output for r in log.requests if r.usage]


class TestClaudeCode:
    """One response is several lines; many lines are no response."""

    def test_sample(self) -> None:
        log = read_log([str(SAMPLES / "claude_code" / "sample.jsonl")])
        (request,) = log.requests
        assert log.formats == ("claude_code",)
        assert log.traits == {Trait.TIME, Trait.USAGE, Trait.SESSION}
        assert request.usage == Usage(
            uncached=4, cache_read=0, cache_write_5m=500, cache_write_1h=1500, output=40
        )
        assert (request.id, request.model) == ("msg_1", "claude-sonnet-4-5")
        assert (request.session, request.body, request.raw) == ("s1", None, None)
        assert request.headers == {"request-id": "req_1"}

    def test_place_and_time_are_those_of_the_first_line(self) -> None:
        (request,) = read_log([str(SAMPLES / "claude_code" / "sample.jsonl")]).requests
        assert (request.line, request.at) == (3, datetime(2026, 11, 20, 9, 0, 2, tzinfo=UTC))

    def test_every_line_is_counted(self) -> None:
        log = read_log([str(SAMPLES / "claude_code" / "sample.jsonl")])
        assert (log.records, [line for line, _ in reasons(log)]) == (4, [1, 2])

    @pytest.mark.parametrize(
        ("grown", "kept"), [([3, 172], 172), ([172, 3], 172), ([None, 5], 5), ([7, None], 7)]
    )
    def test_largest_output_of_a_response(
        self, tmp_path: Path, grown: list[int | None], kept: int
    ) -> None:
        rows = [answer(usage=counted(output_tokens=output)) for output in grown]
        assert outputs(read_log([written(tmp_path / "a.jsonl", *rows)])) == [kept]

    def test_last_of_equal_outputs(self, tmp_path: Path) -> None:
        rows = [answer(usage=counted(input_tokens=n)) for n in (1, 2)]
        (request,) = read_log([written(tmp_path / "a.jsonl", *rows)]).requests
        assert request.usage is not None
        assert request.usage.uncached == 2

    def test_order_is_that_of_the_first_lines(self, tmp_path: Path) -> None:
        rows = [
            answer(1),
            answer(2),
            asked(),
            answer(1, usage=counted(output_tokens=50)),
            answer(3),
        ]
        log = read_log([written(tmp_path / "a.jsonl", *rows)])
        assert [(r.id, r.line) for r in log.requests] == [("msg_1", 1), ("msg_2", 2), ("msg_3", 5)]
        assert outputs(log) == [50, 10, 10]

    def test_late_line_beyond_those_waited_for(self, tmp_path: Path) -> None:
        late = answer(1, usage=counted(output_tokens=99))
        log = read_log([written(tmp_path / "a.jsonl", *map(answer, range(1, 201)), late)])
        assert (len(log.requests), outputs(log)[0], log.records) == (200, 99, 201)

    def test_resumed_session_repeats_no_response(self, tmp_path: Path) -> None:
        written(tmp_path / "a.jsonl", answer(1), answer(2))
        written(tmp_path / "b.jsonl", answer(1, sessionId="t", uuid="v"), answer(3, sessionId="t"))
        log = read_log([str(tmp_path)])
        assert [(r.id, r.session) for r in log.requests] == [
            ("msg_1", "s"),
            ("msg_2", "s"),
            ("msg_3", "t"),
        ]

    def test_same_message_id_under_two_requests(self, tmp_path: Path) -> None:
        rows = [answer(1), answer(1, requestId="req_other")]
        assert len(read_log([written(tmp_path / "a.jsonl", *rows)]).requests) == 2

    def test_without_request_id(self, tmp_path: Path) -> None:
        rows = [answer(1, requestId=None), answer(1, requestId=None)]
        assert len(read_log([written(tmp_path / "a.jsonl", *rows)]).requests) == 1

    def test_without_any_id_each_line_is_a_response(self, tmp_path: Path) -> None:
        row = answer(1, requestId=None)
        del row["message"]["id"]
        assert len(read_log([written(tmp_path / "a.jsonl", row, row)]).requests) == 2

    def test_synthetic_answer_is_skipped(self, tmp_path: Path) -> None:
        log = read_log([written(tmp_path / "a.jsonl", answer(1), answer(2, model="<synthetic>"))])
        assert reasons(log) == [(2, "no call: written by the program (<synthetic>)")]
        assert len(log.requests) == 1

    @pytest.mark.parametrize(
        ("usage", "reason"),
        [
            ({}, "an answer without counters"),
            ({"tokens": 3}, "counters of unknown names"),
            ({"input_tokens": -1}, "counter 'input_tokens' is no whole number from 0 up"),
            ({"input_tokens": "4"}, "counter 'input_tokens' is no whole number from 0 up"),
        ],
    )
    def test_broken_counters_cost_one_record(self, tmp_path: Path, usage: Any, reason: str) -> None:
        log = read_log([written(tmp_path / "a.jsonl", answer(1, usage=usage), answer(2))])
        assert reasons(log) == [(1, reason)]
        assert [r.id for r in log.requests] == ["msg_2"]

    def test_cut_line(self, tmp_path: Path) -> None:
        cut = json.dumps(answer(2))[:-40]
        log = read_log([written(tmp_path / "a.jsonl", answer(1), cut, answer(3))])
        assert [r.id for r in log.requests] == ["msg_1", "msg_3"]
        assert [line for line, _ in reasons(log)] == [2]

    def test_spaces_between_the_tokens(self, tmp_path: Path) -> None:
        rows = (json.dumps(answer(n)) for n in (1, 2))
        assert len(read_log([written(tmp_path / "a.jsonl", *rows)]).requests) == 2

    def test_counters_that_a_tool_result_holds_are_no_request(self, tmp_path: Path) -> None:
        inside = {"type": "assistant", "usage": counted(), "role": "assistant"}
        row = asked(toolUseResult=inside)
        log = read_log([written(tmp_path / "a.jsonl", row, answer(1))])
        assert reasons(log) == [(1, "no answer of a model")]

    def test_old_line_with_its_cost(self, tmp_path: Path) -> None:
        (request,) = read_log([written(tmp_path / "a.jsonl", answer(costUSD=0.0125))]).requests
        assert request.cost_reported == Decimal("0.0125")

    def test_lifetimes_not_stated(self, tmp_path: Path) -> None:
        row = answer(usage=counted(cache_creation_input_tokens=7))
        (request,) = read_log([written(tmp_path / "a.jsonl", row)]).requests
        assert request.usage is not None
        assert (request.usage.cache_write_5m, request.usage.split_known) == (7, False)

    def test_compaction_passes_are_kept_apart(self, tmp_path: Path) -> None:
        passes = [{"type": "compaction", "input_tokens": 9, "output_tokens": 1}]
        (request,) = read_log(
            [written(tmp_path / "a.jsonl", answer(usage=counted(iterations=passes)))]
        ).requests
        assert request.response is not None
        assert [p.usage.uncached for p in request.response.extra_passes] == [9]


class TestClaudeCodeAgents:
    """Sub-agents have prompts, and so caches, of their own."""

    def test_named_agent_has_a_session_of_its_own(self, tmp_path: Path) -> None:
        rows = [answer(1), answer(2, isSidechain=True, agentId="a7"), answer(3)]
        log = read_log([written(tmp_path / "a.jsonl", *rows)])
        assert [r.session for r in log.requests] == ["s", "s/a7", "s"]

    def test_agent_named_by_its_file(self, tmp_path: Path) -> None:
        path = tmp_path / "s" / "subagents" / "agent-b9.jsonl"
        (request,) = read_log([written(path, answer(1, isSidechain=True))]).requests
        assert request.session == "s/b9"

    def test_unnamed_agents_side_by_side(self, tmp_path: Path) -> None:
        """Two agents interleave; their lines hang together by uuid and parentUuid."""
        rows = [
            asked(isSidechain=True, uuid="a0"),
            asked(isSidechain=True, uuid="b0"),
            answer(1, isSidechain=True, uuid="a1", parentUuid="a0"),
            answer(2, isSidechain=True, uuid="b1", parentUuid="b0"),
            asked(isSidechain=True, uuid="a2", parentUuid="a1"),
            answer(3, isSidechain=True, uuid="a3", parentUuid="a2"),
        ]
        log = read_log([written(tmp_path / "a.jsonl", *rows)])
        assert [r.session for r in log.requests] == ["s/a0", "s/b0", "s/a0"]


def system(subtype: str, **line: Any) -> dict[str, Any]:
    head = {"parentUuid": None, "isSidechain": False, "sessionId": "s", "type": "system"}
    return {**head, "uuid": "u9", "subtype": subtype, **line}


def attached(kind: str, **more: Any) -> dict[str, Any]:
    head = {"parentUuid": None, "isSidechain": False, "sessionId": "s", "type": "attachment"}
    return {**head, "uuid": "u9", "attachment": {"type": kind, **more}}


def typed(text: str, **line: Any) -> dict[str, Any]:
    return asked(message={"role": "user", "content": text}, **line)


RETURNED = asked(
    message={"role": "user", "content": [{"type": "tool_result", "content": '"is_meta"'}]}
)


class TestClaudeCodeNotes:
    """What stands between two answers and can explain a miss."""

    @pytest.mark.parametrize(
        ("row", "events"),
        [
            (RETURNED, ()),
            (asked(), (Event.USER_TURN,)),
            (typed('a "tool_result" in words'), (Event.USER_TURN,)),
            (asked(isMeta=True), ()),
            (system("turn_duration"), ()),
            (system("compact_boundary"), (Event.COMPACTION,)),
            (asked(isCompactSummary=True), (Event.COMPACTION, Event.USER_TURN)),
            (system("microcompact_boundary"), (Event.MICRO_COMPACTION,)),
            (
                typed("<local-command-stdout>Login successful</local-command-stdout>"),
                (Event.LOGIN,),
            ),
            (
                system(
                    "local_command",
                    content="<local-command-stdout>Login successful</local-command-stdout>",
                ),
                (Event.LOGIN,),
            ),
            (typed("I saw: Login successful"), (Event.USER_TURN,)),
            (typed("<local-command-stdout>Set model</local-command-stdout>"), ()),
            (
                typed("<local-command-stdout>Reconnected to files.</local-command-stdout>"),
                (Event.TOOLS,),
            ),
            (attached("mcp_instructions_delta", addedNames=["files"]), (Event.TOOLS,)),
            (attached("deferred_tools_delta", removedNames=["Old"]), (Event.TOOLS,)),
            (attached("agent_listing_delta", addedTypes=["reader"]), (Event.TOOLS,)),
            # nothing came and nothing went, or it is what a session begins with
            (attached("deferred_tools_delta", addedNames=[], removedNames=[]), ()),
            (attached("agent_listing_delta", addedTypes=["reader"], isInitial=True), ()),
            (attached("todo_reminder", addedNames=["x"]), ()),
            # of a sub-agent
            (typed("go", isSidechain=True, agentId="b"), ()),
            (system("compact_boundary", isSidechain=True, agentId="b"), ()),
            # odd ones
            (attached("deferred_tools_delta", addedNames=7), (Event.TOOLS,)),
            ({**asked(), "message": 7}, (Event.USER_TURN,)),
            ({**system("x"), "subtype": ["x"]}, ()),
            ({**attached("x"), "attachment": "deferred_tools_delta"}, ()),
            ("{", ()),
        ],
    )
    def test_a_line_between_two_answers(
        self, tmp_path: Path, row: Any, events: tuple[Event, ...]
    ) -> None:
        one, two = read_log([written(tmp_path / "a.jsonl", answer(1), row, answer(2))]).requests
        assert (one.events, two.events) == ((), events)

    def test_a_note_waits_for_a_call_and_holds_for_one_alone(self, tmp_path: Path) -> None:
        refused = answer(2, model="<synthetic>")
        rows = [answer(1), system("compact_boundary"), refused, answer(3), answer(4)]
        found = read_log([written(tmp_path / "a.jsonl", *rows)]).requests
        assert [r.events for r in found] == [(), (Event.COMPACTION,), ()]

    def test_a_note_of_a_sub_agent_is_that_of_its_own_thread(self, tmp_path: Path) -> None:
        mine = {"isSidechain": True, "agentId": "b"}
        rows = [answer(1), typed("go", **mine), answer(2), answer(3, **mine), answer(4, **mine)]
        found = read_log([written(tmp_path / "a.jsonl", *rows)]).requests
        assert [(r.session, r.events) for r in found] == [
            ("s", ()), ("s", ()), ("s/b", (Event.USER_TURN,)), ("s/b", ()),
        ]  # fmt: skip

    def test_another_effort_is_noted_where_it_changes(self, tmp_path: Path) -> None:
        rows = [answer(n, effort=effort) for n, effort in enumerate(["high", "high", "low"])]
        found = read_log([written(tmp_path / "a.jsonl", *rows)]).requests
        assert [r.events for r in found] == [(), (), (Event.EFFORT,)]

    def test_the_weightiest_event_stands_for_all(self, tmp_path: Path) -> None:
        rows = [answer(1), asked(), system("microcompact_boundary"), answer(2)]
        (_, found) = read_log([written(tmp_path / "a.jsonl", *rows)]).requests
        assert found.event is Event.MICRO_COMPACTION


def progress(number: int, agent: str = "b9", **message: Any) -> dict[str, Any]:
    """A line of the main session that tells of an answer of a sub-agent."""
    inner = answer(number, **message)
    told = {
        "type": "assistant",
        "message": inner["message"],
        "requestId": inner["requestId"],
        "uuid": f"p{number}",
        "timestamp": T,
    }
    return {
        "parentUuid": "u0",
        "isSidechain": False,
        "sessionId": "s",
        "type": "progress",
        "uuid": f"q{number}",
        "timestamp": T,
        "toolUseID": f"agent_msg_{number}",
        "parentToolUseID": "toolu_1",
        "data": {"type": "agent_progress", "agentId": agent, "prompt": "go", "message": told},
    }


class TestClaudeCodeProgress:
    """Calls of sub-agents that the main session alone tells of."""

    def test_they_are_calls_of_the_agents_session(self, tmp_path: Path) -> None:
        told = progress(3)
        del told["data"]["agentId"]
        rows = [answer(1), progress(2), progress(2, usage=counted(output_tokens=90)), told]
        found = read_log([written(tmp_path / "a.jsonl", *rows)]).requests
        assert [(r.id, r.session) for r in found] == [
            ("msg_1", "s"), ("msg_2", "s/b9"), ("msg_3", "s/toolu_1"),
        ]  # fmt: skip
        assert [r.usage.output for r in found if r.usage] == [10, 90, 10]

    @pytest.mark.parametrize("named", [True, False])
    def test_one_that_has_a_line_of_its_own_is_one_call(self, tmp_path: Path, named: bool) -> None:
        told = progress(2)
        if not named:
            del told["data"]["message"]["requestId"]
        written(tmp_path / "s.jsonl", answer(1), told)
        written(
            tmp_path / "s" / "subagents" / "agent-b9.jsonl",
            answer(2, isSidechain=True, usage=counted(output_tokens=77)),
        )
        found = read_log([str(tmp_path)]).requests
        assert sorted((r.id, r.session, r.usage.output) for r in found if r.usage and r.id) == [
            ("msg_1", "s", 10),
            ("msg_2", "s/b9", 77),
        ]

    @pytest.mark.parametrize(
        "data",
        [
            {"type": "bash_progress", "output": "assistant"},
            {"type": "agent_progress", "message": {"type": "user"}, "x": "assistant"},
            {"type": "agent_progress", "message": {"type": "assistant", "message": 7}},
            {"type": "agent_progress", "message": [{"type": "assistant"}]},
            "assistant",
            None,
        ],
    )
    def test_other_progress_is_no_call(self, tmp_path: Path, data: Any) -> None:
        row = {**progress(2), "data": data, "x": {"type": "assistant"}}
        log = read_log([written(tmp_path / "a.jsonl", answer(1), row)])
        assert (len(log.requests), [s.line for s in log.skipped]) == (1, [2])


class TestClaudeCodeIsFound:
    """The content tells the format, whatever stands before it."""

    @pytest.mark.parametrize("before", [0, 1, 40])
    def test_behind_other_lines(self, tmp_path: Path, before: int) -> None:
        rows = [{"type": "file-history-snapshot", "messageId": "m"}] * before
        log = read_log([written(tmp_path / "a.jsonl", *rows, answer(1))])
        assert (log.formats, len(log.skipped)) == (("claude_code",), before)

    def test_behind_a_first_line_longer_than_the_head(self, tmp_path: Path) -> None:
        long = asked(message={"role": "user", "content": 'say "x" \\ ' * 60_000})
        log = read_log([written(tmp_path / "a.jsonl", long, answer(1))])
        assert (log.formats, len(log.requests)) == (("claude_code",), 1)

    @pytest.mark.parametrize(
        "gone",
        [
            ("sessionId",),
            ("parentUuid",),
            ("isSidechain", "sessionId"),
            ("isSidechain", "parentUuid", "sessionId"),
        ],
    )
    def test_without_members_that_say_whose_it_is(
        self, tmp_path: Path, gone: tuple[str, ...]
    ) -> None:
        rows = [{k: v for k, v in row.items() if k not in gone} for row in (asked(), answer(1))]
        log = read_log([written(tmp_path / "one.jsonl", *rows)])
        assert log.formats == ("claude_code",)
        assert [r.session for r in log.requests] == ["one" if "sessionId" in gone else "s"]

    def test_lines_that_name_each_other_end(self, tmp_path: Path) -> None:
        rows = [answer(n, isSidechain=True, uuid=f"u{n}", parentUuid=f"u{3 - n}") for n in (1, 2)]
        rows += [answer(3, isSidechain=True, uuid="u3", parentUuid="u3")]
        found = read_log([written(tmp_path / "a.jsonl", *rows)]).requests
        assert [r.session for r in found] == ["s/u1", "s/u1", "s/u3"]

    def test_a_body_that_quotes_a_transcript_is_none(self, tmp_path: Path) -> None:
        body = {"messages": [{"role": "user", "content": json.dumps(answer(1))}]}
        assert read_log([written(tmp_path / "a.jsonl", body)]).formats == ("body",)

    def test_a_body_that_holds_the_names_deeper_is_none(self, tmp_path: Path) -> None:
        block = {"type": "tool_use", "id": "t", "name": "n", "input": answer(1)}
        body = {"messages": [{"role": "assistant", "content": [block]}]}
        assert read_log([written(tmp_path / "a.jsonl", body)]).formats == ("body",)


def pi_answer(usage: Any = None, **message: Any) -> dict[str, Any]:
    counters = {"input": 5, "output": 20, "cacheRead": 1000, "cacheWrite": 300, **(usage or {})}
    said = {"role": "assistant", "model": "m", "stopReason": "stop", "usage": counters, **message}
    return {"type": "message", "timestamp": T, "message": said}


PI = {"type": "session", "id": "p", "timestamp": T, "cwd": "/srv"}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"cache_creation_input_tokens": 7},
        {"cache_creation_input_tokens": None, "cache_creation": None},
        {"cache_creation_input_tokens": 7, "cache_creation": {}},
        {
            "cache_creation_input_tokens": 7,
            "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4},
        },
        {"cache_creation_input_tokens": 7, "cache_creation": {"ephemeral_1h_input_tokens": 4}},
        {"service_tier": "batch", "speed": "fast", "inference_geo": "us"},
        {"service_tier": None, "speed": None, "server_tool_use": {"web_search_requests": 1}},
        {"iterations": [{"type": "compaction", "input_tokens": 9, "output_tokens": 1}]},
        {"input_tokens_details": {"cached_tokens": 2}, "total_tokens": 14},
        {"input_tokens": 4.0},
    ],
)
def test_the_fast_way_reads_what_the_general_one_reads(more: dict[str, Any]) -> None:
    usage = counted(**more)
    message = Message("i", "m", Raw(json.dumps(usage).encode()))
    assert read_response(message) == response_of({"id": "i", "model": "m", "usage": usage})


class TestPi:
    """Sessions of pi."""

    def test_sample(self) -> None:
        log = read_log([str(SAMPLES / "pi_session" / "sample.jsonl")])
        (request,) = log.requests
        assert (log.formats, log.records) == (("pi_session",), 3)
        assert (request.line, request.session, request.model) == (3, "p1", "claude-sonnet-4-5")
        assert request.cost_reported == Decimal("0.00174")

    def test_input_leaves_the_cached_part_out(self) -> None:
        (request,) = read_log([str(SAMPLES / "pi_session" / "sample.jsonl")]).requests
        assert request.usage == Usage(
            uncached=5,
            cache_read=1000,
            cache_write_5m=300,
            cache_write_1h=0,
            output=20,
            split_known=False,
        )

    def test_time_is_the_start_of_the_request(self) -> None:
        (request,) = read_log([str(SAMPLES / "pi_session" / "sample.jsonl")]).requests
        assert request.at == datetime(2026, 11, 20, 9, 0, 1, 500_000, tzinfo=UTC)
        assert request.duration == 3.0

    def test_time_of_the_line_where_the_message_has_none(self, tmp_path: Path) -> None:
        (request,) = read_log([written(tmp_path / "a.jsonl", PI, pi_answer())]).requests
        assert (request.at, request.duration) == (datetime(2026, 11, 20, 9, tzinfo=UTC), None)

    def test_other_lines_are_skipped_by_their_type(self, tmp_path: Path) -> None:
        rows = [{"type": "thinking_level_change"}, {"type": "compaction", "summary": "x"}]
        log = read_log([written(tmp_path / "a.jsonl", PI, *rows, pi_answer())])
        assert reasons(log) == [
            (1, "no call: session"),
            (2, "no call: thinking_level_change"),
            (3, "no call: compaction"),
        ]

    def test_request_without_an_answer(self, tmp_path: Path) -> None:
        none = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
        row = pi_answer(none, stopReason="error", errorMessage="400 bad")
        (request,) = read_log([written(tmp_path / "a.jsonl", PI, row)]).requests
        assert request.refused == "400 bad"

    def test_answer_that_broke_off_was_no_refusal(self, tmp_path: Path) -> None:
        row = pi_answer(stopReason="aborted", errorMessage="Request was aborted.")
        (request,) = read_log([written(tmp_path / "a.jsonl", PI, row)]).requests
        assert request.refused == ""

    @pytest.mark.parametrize(
        ("between", "events"),
        [
            ([], ()),
            (["user"], (Event.USER_TURN,)),
            (["compaction"], (Event.COMPACTION,)),
            (["low", "user"], (Event.THINKING, Event.USER_TURN)),
            # what came back to what it was did not change
            (["low", "high", "user"], (Event.USER_TURN,)),
            # set while the turn runs: it holds from the next word of the user's on
            (["user", "low"], (Event.USER_TURN,)),
            (["low"], (Event.THINKING,)),
        ],
    )
    def test_what_is_noted_between_two_calls(
        self, tmp_path: Path, between: list[str], events: tuple[Event, ...]
    ) -> None:
        lines = {
            "user": {"type": "message", "message": {"role": "user", "content": "go"}},
            "compaction": {"type": "compaction", "summary": "so far"},
        }
        levels = [{"type": "thinking_level_change", "thinkingLevel": n} for n in ("low", "high")]
        lines |= dict(zip(("low", "high"), levels, strict=True))
        used = pi_answer({"input": 3, "output": 1, "cacheRead": 0, "cacheWrite": 9})
        aborted = pi_answer({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0})
        rows = [PI, lines["high"], used, *(lines[each] for each in between), aborted, used]
        first, *_, last = read_log([written(tmp_path / "a.jsonl", *rows)]).requests
        assert (first.events, set(last.events)) == ((), set(events))

    def test_broken_line_costs_one_record(self, tmp_path: Path) -> None:
        bad = pi_answer({"input": 1.5})
        log = read_log([written(tmp_path / "a.jsonl", PI, bad, '{"type":', pi_answer())])
        assert [line for line, _ in reasons(log)] == [1, 2, 3]
        assert [r.line for r in log.requests] == [4]


def sdk(number: int = 1, usage: Any = None, parent: str | None = None) -> dict[str, Any]:
    message = {"id": f"msg_{number}", "model": "m", "usage": usage or counted()}
    return {
        "type": "assistant",
        "message": message,
        "parent_tool_use_id": parent,
        "session_id": "a",
    }


def event(**said: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": said, "parent_tool_use_id": None, "session_id": "a"}


RESULT = {"type": "result", "subtype": "success", "session_id": "a", "total_cost_usd": 1}


class TestAgentSdk:
    """Messages of the Agent SDK."""

    def test_sample(self) -> None:
        log = read_log([str(SAMPLES / "agent_sdk" / "sample.jsonl")])
        (request,) = log.requests
        assert (log.formats, log.traits) == (("agent_sdk",), {Trait.USAGE, Trait.SESSION})
        assert request.usage == Usage(
            uncached=3, cache_read=17_000, cache_write_5m=100, cache_write_1h=0, output=1
        )
        assert reasons(log) == [(1, "no answer of a model"), (3, "sums of a whole run")]

    @pytest.mark.parametrize("form", ["lines", "array", "object", "pretty", "yaml"])
    def test_ways_to_write_it_down(self, tmp_path: Path, form: str) -> None:
        rows = [sdk(1), sdk(1), sdk(2), RESULT]
        text = {
            "lines": "\n".join(map(json.dumps, rows)),
            "array": json.dumps(rows),
            "object": json.dumps({"messages": rows}),
            "pretty": json.dumps({"messages": rows}, indent=1),
            "yaml": "messages:\n" + "".join(f"- {_block(row)}\n" for row in rows),
        }[form]
        log = read_log([written(tmp_path / "a", text)])
        assert log.formats == ("agent_sdk",)
        assert [r.id for r in log.requests] == ["msg_1", "msg_2"]
        assert [reason for _, reason in reasons(log)] == ["sums of a whole run"]
        if form != "yaml":
            assert [r.line for r in log.requests] == [1, 3]

    def test_sub_agent_has_a_session_of_its_own(self, tmp_path: Path) -> None:
        log = read_log([written(tmp_path / "a", sdk(1), sdk(2, parent="toolu_9"), sdk(3))])
        assert [r.session for r in log.requests] == ["a", "a/toolu_9", "a"]

    @pytest.mark.parametrize(
        ("row", "events"),
        [
            ({"type": "user", "message": {"content": "go"}}, (Event.USER_TURN,)),
            ({"type": "user", "message": {"content": [{"type": "tool_result"}]}}, ()),
            ({"type": "system", "subtype": "compact_boundary"}, (Event.COMPACTION,)),
            ({"type": "system", "subtype": "init", "tools": ["a", "b"]}, ()),
            ({"type": "system", "subtype": "init", "tools": ["a"]}, (Event.TOOLS,)),
            (
                {
                    "type": "system",
                    "subtype": "init",
                    "tools": ["a", "b"],
                    "mcp_servers": [{"name": "m"}],
                },
                (Event.TOOLS,),
            ),
            ({"type": "system", "subtype": "init", "tools": 7, "mcp_servers": "m"}, (Event.TOOLS,)),
        ],
    )
    def test_what_is_noted_between_two_answers(
        self, tmp_path: Path, row: dict[str, Any], events: tuple[Event, ...]
    ) -> None:
        begun = {"type": "system", "subtype": "init", "session_id": "a", "tools": ["a", "b"]}
        row = {**row, "session_id": "a", "parent_tool_use_id": None}
        _, found = read_log([written(tmp_path / "a", sdk(1), begun, row, sdk(2))]).requests
        assert found.events == events

    def test_partial_messages_bring_the_final_output(self, tmp_path: Path) -> None:
        split = {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 5}
        first = counted(output_tokens=1, cache_creation_input_tokens=7, cache_creation=split)
        rows = [
            event(type="message_start", message={"id": "msg_1", "model": "m", "usage": first}),
            sdk(1, first),
            event(type="message_delta", usage={"output_tokens": 80, "input_tokens": None}),
            event(type="message_stop"),
        ]
        (request,) = read_log([written(tmp_path / "a", *rows)]).requests
        assert request.usage == Usage(
            uncached=4, cache_read=100, cache_write_5m=2, cache_write_1h=5, output=80
        )

    def test_one_broken_message_of_a_document(self, tmp_path: Path) -> None:
        rows = [sdk(1), {"type": "assistant", "message": 7}, sdk(2)]
        log = read_log([written(tmp_path / "a", {"messages": rows})])
        assert ([r.id for r in log.requests], [n for n, _ in reasons(log)]) == (
            ["msg_1", "msg_2"],
            [2],
        )


def _block(row: dict[str, Any]) -> str:
    return "\n  ".join(f"{name}: {json.dumps(value)}" for name, value in row.items())


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_lines_as_long_as_a_piece_of_the_file(off: int) -> None:
    """The head, one line of about a piece, and a last one stay three lines."""
    lines = [b"a" * (HEAD - 1) + b"\n", b"b" * (PIECE - 1 + off) + b"\n", b"c\n"]
    assert [line for _, line in Source("x", io.BytesIO(b"".join(lines))).lines()] == lines
