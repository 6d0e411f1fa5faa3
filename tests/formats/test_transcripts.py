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

from ctxdoc.formats.answer import response_of
from ctxdoc.formats.source import HEAD, PIECE, Source
from ctxdoc.formats.transcript import Message, read_response
from ctxdoc.load import read_log
from ctxdoc.model import Log, Trait, Usage

SAMPLES = Path(__file__).parents[2] / "fixtures" / "formats"
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
