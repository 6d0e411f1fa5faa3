"""Claude Code's raw bodies, Bedrock's invocation log, and message threads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ctxdoc.errors import NoRequestError
from ctxdoc.prompt.render import render
from ctxdoc.reading import message_threads as threads
from ctxdoc.reading.formats.shared.answer import read_answer
from ctxdoc.reading.load import read_log
from ctxdoc.reading.message_threads import stitched
from ctxdoc.replay import sessions
from ctxdoc.request.log import Log, Skipped
from ctxdoc.request.request import Body, Request
from ctxdoc.request.response import NULL, Response
from ctxdoc.request.usage import Usage

FIXTURES = Path(__file__).parents[3] / "fixtures" / "formats"
MODEL = "claude-sonnet-5"
USAGE = {"input_tokens": 4, "cache_read_input_tokens": 30, "output_tokens": 7}
READ = Usage(uncached=4, cache_read=30, cache_write_5m=0, cache_write_1h=0, output=7)


def body(*texts: str, **more: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": text} for text in texts]
    return {"model": MODEL, "max_tokens": 9, "messages": turns, **more}


def answer(name: str = "msg_1", **usage: int) -> dict[str, Any]:
    return {
        "id": name,
        "type": "message",
        "model": MODEL,
        "content": [{"type": "text", "text": "so"}],
        "usage": {**USAGE, **usage},
    }


def event(name: str, second: int, **attributes: Any) -> dict[str, Any]:
    """One event a line; a double underscore stands for a dot."""
    shared = {"session.id": "s", "query_source": "repl_main_thread", "model": MODEL}
    own = {key.replace("__", "."): value for key, value in attributes.items()}
    at = f"2026-11-01T10:00:{second:02d}.000Z"
    inner = {"event.name": name, "event.timestamp": at, **shared, **own}
    return {"body": f"claude_code.{name}", "attributes": inner}


def asked(second: int, text: str = "hi", **more: Any) -> dict[str, Any]:
    return event("api_request_body", second, **{"body": json.dumps(body(text)), **more})


def said(second: int, name: str = "msg_1", **more: Any) -> dict[str, Any]:
    return event("api_response_body", second, **{"body": json.dumps(answer(name)), **more})


def counted(second: int, **more: Any) -> dict[str, Any]:
    counters = {"input_tokens": 4, "output_tokens": 7, "cache_read_tokens": 30}
    return event("api_request", second, **{**counters, "cache_creation_tokens": 0, **more})


def write(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def log_of(tmp_path: Path, *rows: Any) -> Log:
    return read_log([str(write(tmp_path / "events.jsonl", rows))])


def texts_of(found: Body | None) -> list[Any]:
    assert found is not None
    return [msgspec.json.decode(message)["content"] for message in found.messages]


# Claude Code


def test_the_events_of_a_call_are_one_request(tmp_path: Path) -> None:
    cost = counted(3, request_id="req_1", cost_usd=0.25, duration_ms=2000)
    (request,) = log_of(tmp_path, asked(0), said(2, request_id="req_1"), cost).requests
    assert request.usage == READ
    assert request.at == datetime(2026, 11, 1, 10, tzinfo=UTC)
    assert (request.duration, request.cost_reported) == (2.0, Decimal("0.25"))
    assert (request.session, request.headers) == ("s", {"request-id": "req_1"})
    assert (request.id, request.line, request.notes) == ("msg_1", 1, ())


def test_otlp_and_flat_events_give_the_same(tmp_path: Path) -> None:
    """64-bit numbers are text in OTLP JSON."""
    rows = [asked(0), said(1, request_id="r"), counted(2, request_id="r", duration_ms=1000)]

    def value(plain: Any) -> dict[str, Any]:
        return {"intValue": str(plain)} if isinstance(plain, int) else {"stringValue": plain}

    records = [
        {
            "body": {"stringValue": row["body"]},
            "attributes": [{"key": k, "value": value(v)} for k, v in row["attributes"].items()],
        }
        for row in rows
    ]
    otlp = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    (flat,) = log_of(tmp_path, *rows).requests
    (nested,) = log_of(tmp_path, otlp).requests
    assert (nested.body, nested.response, nested.at, nested.duration, nested.session) == (
        flat.body,
        flat.response,
        flat.at,
        flat.duration,
        flat.session,
    )


def test_attributes_may_stand_at_the_top_of_the_event(tmp_path: Path) -> None:
    rows = [row["attributes"] for row in (asked(0), said(1))]
    (request,) = log_of(tmp_path, *rows).requests
    assert request.usage == READ


def test_a_request_body_id_pairs_what_the_order_would_not(tmp_path: Path) -> None:
    rows = [
        asked(0, "first", request_body_id="a"),
        asked(1, "second", request_body_id="b"),
        said(2, "msg_a", request_body_id="a"),
        said(3, "msg_b", request_body_id="b"),
    ]
    one, two = log_of(tmp_path, *rows).requests
    assert (texts_of(one.body), one.id) == (["first"], "msg_a")
    assert (texts_of(two.body), two.id) == (["second"], "msg_b")
    assert one.notes == two.notes == ()


def test_without_an_id_the_last_attempt_gets_the_response(tmp_path: Path) -> None:
    failed, sent = log_of(tmp_path, asked(0, "again"), asked(1, "again"), said(2)).requests
    assert (failed.response, sent.id) == (None, "msg_1")
    assert failed.notes == ("no response in the log: an attempt that failed, or the log ends here",)
    assert sent.notes == (
        "paired with its response by their order alone, other requests were open",
    )


def test_a_sub_agent_that_interleaves_has_its_own_pairs_and_session(tmp_path: Path) -> None:
    agent = {"query_source": "agent:finder"}
    rows = [asked(0, "main"), asked(1, "sub", **agent), said(2, "m"), said(3, "a", **agent)]
    main, sub = log_of(tmp_path, *rows).requests
    assert (main.id, main.session, sub.id, sub.session) == ("m", "s", "a", "s/agent:finder")


def test_events_are_taken_in_the_order_of_their_time(tmp_path: Path) -> None:
    one, two = log_of(
        tmp_path, said(3, "b"), asked(0, "one"), asked(2, "two"), said(1, "a")
    ).requests
    assert (one.id, two.id) == ("a", "b")


def test_a_cut_body_leaves_the_counters(tmp_path: Path) -> None:
    cut = {"body": '{"model":"claude', "body_truncated": "true", "body_length": 90000}
    rows = [asked(0, **cut), said(1, **cut, request_id="r"), counted(2, request_id="r")]
    (request,) = log_of(tmp_path, *rows).requests
    assert (request.body, request.usage, request.model) == (
        None,
        READ,
        MODEL,
    )
    assert request.notes == (
        "the recorder cut the request body of 90,000 characters",
        "the recorder cut the response body of 90,000 characters",
    )


def test_a_cut_body_without_counters_is_skipped(tmp_path: Path) -> None:
    with pytest.raises(NoRequestError, match="the recorder cut the request body"):
        log_of(tmp_path, asked(0, body='{"mo', body_truncated=True))


def test_a_body_that_a_backend_cut_without_a_word_is_noted(tmp_path: Path) -> None:
    (request,) = log_of(tmp_path, asked(0, body='{"messages": [{"ro'), said(1)).requests
    assert request.body is None
    assert request.notes[0].startswith("body not used: not JSON: the text ends too early")


def test_counters_alone_are_a_request_that_began_before_the_event(tmp_path: Path) -> None:
    (request,) = log_of(tmp_path, counted(5, duration_ms=2000, input_tokens="4")).requests
    assert (request.body, request.usage) == (None, READ)
    assert request.at == datetime(2026, 11, 1, 10, 0, 3, tzinfo=UTC)


def test_writes_without_the_response_have_no_known_lifetime(tmp_path: Path) -> None:
    (request,) = log_of(tmp_path, counted(1, cache_creation_tokens=50)).requests
    assert request.usage is not None
    assert (request.usage.cache_write_5m, request.usage.split_known) == (50, False)


def test_counters_that_differ_are_noted_and_those_of_the_response_used(tmp_path: Path) -> None:
    (request,) = log_of(tmp_path, asked(0), said(1), counted(2, input_tokens=5)).requests
    assert request.usage == READ
    assert request.notes == (
        "the event's counters differ from those of the response, which are used",
    )


@pytest.mark.parametrize("counter", [-1, "x", 1.5, True, []])
def test_a_counter_that_is_none_is_not_used(tmp_path: Path, counter: Any) -> None:
    (request,) = log_of(tmp_path, asked(0), counted(2, input_tokens=counter)).requests
    assert request.usage is None
    assert "input_tokens" in request.notes[0]


def test_an_error_event_refuses_its_request(tmp_path: Path) -> None:
    error = event("api_error", 1, error="overloaded", status_code=529)
    (request,) = log_of(tmp_path, asked(0), error).requests
    assert request.refused == "overloaded"


def test_other_events_are_skipped_by_name(tmp_path: Path) -> None:
    found = log_of(tmp_path, event("user_prompt", 0), asked(1), said(2))
    assert [(row.line, row.reason) for row in found.skipped] == [(1, "no model call: user_prompt")]


def test_a_broken_line_costs_one_line(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl", [asked(0), said(1)])
    path.write_text(path.read_text() + '{"resourceLogs": [{"scopeLogs": [7]}]}\n{"a\n')
    found = read_log([str(path)])
    assert len(found.requests) == 1
    assert [row.line for row in found.skipped] == [3, 4]


def bodies(folder: Path) -> None:
    (folder / "u1.request.json").write_text(json.dumps(body("hi")))
    (folder / "req_1.response.json").write_text(json.dumps(answer()))


def referring(folder: str) -> list[dict[str, Any]]:
    """Events in file mode: `body_ref` is the path on the machine that recorded."""
    sent = event("api_request_body", 0, body_ref=f"{folder}u1.request.json", body_length=9)
    ref = f"{folder}req_1.response.json"
    return [sent, event("api_response_body", 1, body_ref=ref, request_id="req_1")]


@pytest.mark.parametrize("recorded_in", ["", "/home/someone/bodies/", "C:\\bodies\\"])
def test_body_files_are_found_beside_the_log(tmp_path: Path, recorded_in: str) -> None:
    bodies(tmp_path)
    found = read_log([str(write(tmp_path / "log.jsonl", referring(recorded_in)))])
    (request,) = found.requests
    assert (texts_of(request.body), request.usage) == (["hi"], READ)


def test_a_folder_is_read_once_through_its_event_log(tmp_path: Path) -> None:
    """The body files are no requests of their own then."""
    bodies(tmp_path)
    write(tmp_path / "log.jsonl", referring("/x/"))
    found = read_log([str(tmp_path)])
    assert (len(found.requests), found.skipped) == (1, ())


def index_row() -> dict[str, Any]:
    return {
        "timestamp": "2026-11-01T10:00:00Z",
        "session_id": "s",
        "query_source": "repl_main_thread",
        "model": MODEL,
        "request_id": "req_1",
        "message_id": "msg_1",
        "message_uuid": "u",
        "request_file": "u1.request.json",
        "response_file": "req_1.response.json",
    }


def test_a_folder_is_read_through_its_index(tmp_path: Path) -> None:
    bodies(tmp_path)
    write(tmp_path / "index.jsonl", [index_row()])
    (tmp_path / "u2.request.json").write_text(json.dumps(body("failed")))
    found = read_log([str(tmp_path)])
    (request,) = found.requests
    assert (texts_of(request.body), request.id, request.session) == (["hi"], "msg_1", "s")
    (skipped,) = found.skipped
    assert skipped.reason.startswith("'u2.request.json' is not in the index")


def test_index_and_event_log_together_count_a_call_once(tmp_path: Path) -> None:
    bodies(tmp_path)
    write(tmp_path / "index.jsonl", [index_row()])
    write(tmp_path / "events.jsonl", referring(""))
    assert len(read_log([str(tmp_path)]).requests) == 1


def test_a_response_file_alone_asks_for_the_log(tmp_path: Path) -> None:
    bodies(tmp_path)
    found = read_log([str(tmp_path)])
    assert [texts_of(request.body) for request in found.requests] == [["hi"]]
    assert [row.reason for row in found.skipped] == [
        "a response without its request: give the event log or index.jsonl of the folder"
    ]


def test_a_request_file_that_is_named_itself_is_a_body(tmp_path: Path) -> None:
    bodies(tmp_path)
    write(tmp_path / "index.jsonl", [index_row()])
    assert read_log([str(tmp_path / "u1.request.json")]).formats == ("body",)


@pytest.mark.parametrize(
    "named", ["../u1.request.json", "/a/../u1.request.json", "..\\u1.request.json", "/etc/passwd"]
)
def test_no_file_outside_of_the_folder_is_opened(tmp_path: Path, named: str) -> None:
    bodies(tmp_path)
    inner = tmp_path / "inner"
    inner.mkdir()
    row = event("api_request_body", 0, body_ref=named)
    (request,) = read_log([str(write(inner / "log.jsonl", [row, said(1)]))]).requests
    assert request.body is None
    assert request.notes[0].startswith("not a body file of the log's folder")


def test_a_link_to_the_outside_is_not_followed(tmp_path: Path) -> None:
    bodies(tmp_path)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "u1.request.json").symlink_to(tmp_path / "u1.request.json")
    (request,) = read_log([str(write(inner / "log.jsonl", [*referring("")[:1], said(1)]))]).requests
    assert (request.body, request.notes) == (None, ("not beside the log: u1.request.json",))


# Bedrock


def invocation(sent: Any, received: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "schemaType": "ModelInvocationLog",
        "timestamp": "2026-11-01T10:00:00Z",
        "accountId": "0",
        "region": "eu-west-1",
        "requestId": "r",
        "operation": "InvokeModel",
        "modelId": "eu.anthropic.claude-sonnet-5",
        "input": {"inputBodyJson": sent},
        "output": {"outputBodyJson": received},
        **more,
    }


INVOKED = {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 9, "messages": []}


def conversed(sent: Any, **more: Any) -> dict[str, Any]:
    return invocation(sent, None, operation="Converse", **more)


def test_invoke_model_has_the_messages_body_and_its_own_model_name(tmp_path: Path) -> None:
    (request,) = log_of(tmp_path, invocation({**INVOKED, **body("hi")}, answer())).requests
    assert (texts_of(request.body), request.usage) == (["hi"], READ)
    assert request.model == "eu.anthropic.claude-sonnet-5"
    assert request.headers == {"x-account": "0", "x-upstream": "eu-west-1", "request-id": "r"}


def test_a_stream_is_logged_as_its_events(tmp_path: Path) -> None:
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": {**USAGE, "output_tokens": 1}}},
        {"type": "message_delta", "delta": {}, "usage": {"output_tokens": 7}},
        {
            "type": "message_stop",
            "amazon-bedrock-invocationMetrics": {"inputTokenCount": 4, "outputTokenCount": 7},
        },
    ]
    row = invocation(INVOKED, events, operation="InvokeModelWithResponseStream")
    (request,) = log_of(tmp_path, row).requests
    assert (request.id, request.usage) == ("m", READ)


def test_a_body_in_s3_leaves_the_counters_beside_it(tmp_path: Path) -> None:
    sent = {
        "inputBodyS3Path": "s3://b/k",
        "inputTokenCount": 4,
        "cacheReadInputTokenCount": 30,
        "cacheWriteInputTokenCount": 0,
    }
    row = invocation(None, input=sent, output={"outputTokenCount": 7})
    (request,) = log_of(tmp_path, row).requests
    assert (request.body, request.usage) == (None, READ)
    assert request.notes == ("the body is a file of its own in S3 (inputBodyS3Path)",)


def test_a_cross_region_call_is_served_by_the_inference_region(tmp_path: Path) -> None:
    row = invocation(INVOKED, answer(), inferenceRegion="eu-north-1")
    (request,) = log_of(tmp_path, row).requests
    assert request.headers["x-upstream"] == "eu-north-1"


def test_an_error_code_refuses_the_request(tmp_path: Path) -> None:
    (request,) = log_of(tmp_path, invocation(INVOKED, errorCode="ThrottlingException")).requests
    assert request.refused == "ThrottlingException"


def test_an_embedding_is_skipped(tmp_path: Path) -> None:
    found = log_of(tmp_path, invocation(INVOKED, answer()), invocation({"inputText": "x"}))
    (skipped,) = found.skipped
    assert (skipped.line, skipped.reason) == (2, "body not used: it is none of the Messages API")


def test_a_compressed_log_and_a_cloudwatch_export_are_read(tmp_path: Path) -> None:
    row = json.dumps(invocation(INVOKED, answer()))
    packed = tmp_path / "log.json.gz"
    packed.write_bytes(gzip.compress(row.encode()))
    exported = tmp_path / "export.json"
    events = [{"timestamp": 1, "message": row}, {"timestamp": 2, "message": "no json"}]
    exported.write_text(json.dumps({"events": events, "searchedLogStreams": []}, indent=2))
    assert len(read_log([str(packed)]).requests) == 1
    found = read_log([str(exported)])
    assert [request.line for request in found.requests] == [1]
    assert [row.line for row in found.skipped] == [2]


def test_a_converse_body_renders_like_the_messages_body_it_stands_for(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "number", "default": 1.0}}}
    converse = {
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "t", "description": "d", "inputSchema": {"json": schema}}},
                {"cachePoint": {"type": "default", "ttl": "1h"}},
            ],
            "toolChoice": {"any": {}},
        },
        "messages": [
            {"role": "user", "content": [{"text": "go"}]},
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "x"}}},
                    {"toolUse": {"toolUseId": "i", "name": "t", "input": {"n": 2.50}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "i",
                            "content": [{"text": "2"}],
                            "status": "error",
                        }
                    },
                    {"image": {"format": "png", "source": {"bytes": "AAAA"}}},
                    {"cachePoint": {"type": "default"}},
                ],
            },
        ],
    }
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    image = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    messages = {
        **INVOKED,
        "system": [{"type": "text", "text": "Be brief.", **mark}],
        "tools": [{"name": "t", "description": "d", "input_schema": schema, **mark}],
        "tool_choice": {"type": "any"},
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "x"},
                    {"type": "tool_use", "id": "i", "name": "t", "input": {"n": 2.50}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "i",
                        "content": [{"type": "text", "text": "2"}],
                        "is_error": True,
                    },
                    {"type": "image", "source": image, "cache_control": {"type": "ephemeral"}},
                ],
            },
        ],
    }
    one, two = log_of(tmp_path, conversed(converse), invocation(messages)).requests
    assert render(one).data == render(two).data
    assert render(one).breakpoints == render(two).breakpoints != ()


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"messages": [{"role": "user", "content": [{"document": {}}]}]}, "a block 'document'"),
        ({"messages": [], "system": [{"guardContent": {}}]}, "a block 'guardContent'"),
        ({"messages": [], "system": [{"cachePoint": {"type": "default"}}]}, "without a block"),
        ({"messages": [], "additionalModelRequestFields": {"x": 1}}, "the field 'x'"),
        ({"messages": [], "promptVariables": {}}, "the field 'promptVariables'"),
        ({"messages": [], "toolConfig": {"tools": [{"systemTool": {}}]}}, "a tool 'systemTool'"),
    ],
)
def test_what_has_no_counterpart_leaves_no_body(tmp_path: Path, sent: Any, reason: str) -> None:
    counters = {"inputBodyJson": sent, "inputTokenCount": 4}
    (request,) = log_of(tmp_path, conversed(sent, input=counters)).requests
    assert request.body is None
    assert reason in request.notes[0]


def test_a_converse_body_of_another_model_is_not_converted(tmp_path: Path) -> None:
    sent = {"inputBodyJson": {"messages": []}, "inputTokenCount": 4}
    (request,) = log_of(tmp_path, conversed(None, input=sent, modelId="amazon.nova-pro")).requests
    assert request.body is None


# Threads


def turn(
    name: str,
    *texts: str,
    after: str | None = None,
    reply: str | None = "so",
    marked: bool = False,
    **more: Any,
) -> Request:
    thread = {"type": "continue", "previous_message_id": after} if after else {"type": "create"}
    blocks = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": text, **({"cache_control": EPHEMERAL} if marked else {})}
            ],
        }
        for text in texts
    ]
    sent = {**body(), "messages": blocks, "thread": thread, **more}
    content = NULL if reply is None else Raw(json.dumps([{"type": "text", "text": reply}]).encode())
    return Request(
        source="x",
        line=1,
        model=MODEL,
        body=msgspec.json.decode(json.dumps(sent).encode(), type=Body),
        response=Response(id=name, content=content),
    )


EPHEMERAL = {"type": "ephemeral"}
TOOLS = [{"name": "t", "input_schema": {}}]


def flat(request: Request) -> list[str]:
    return [block["text"] for blocks in texts_of(request.body) for block in blocks]


def test_a_continued_request_gets_what_the_api_holds() -> None:
    first = turn("m1", "one", system="S", tools=TOOLS)
    second = turn("m2", "two", after="m1", reply="then")
    third = turn("m3", "three", after="m2", system=[{"type": "text", "text": "fragment"}])
    *_, last = stitched([first, second, third])
    assert flat(last) == ["one", "so", "two", "then", "three"]
    assert last.body is not None
    assert first.body is not None
    assert (last.body.system, last.body.tools) == (first.body.system, first.body.tools)
    assert (last.notes, threads.has_thread(last)) == ((), False)


def test_a_stitched_request_starts_with_its_predecessor_as_rendered() -> None:
    one, two = stitched([turn("m1", "one", system="S"), turn("m2", "two", after="m1")])
    assert render(two).data.startswith(render(one).data)


def test_a_thread_forks_from_any_of_its_responses() -> None:
    rows = [turn("m1", "one"), turn("m2", "left", after="m1"), turn("m3", "right", after="m1")]
    rows += [turn("m4", "l", after="m2"), turn("m5", "r", after="m3")]
    *_, fork, left, right = stitched(rows)
    assert flat(fork) == ["one", "so", "right"]
    assert flat(left) == ["one", "so", "left", "so", "l"]
    assert flat(right) == ["one", "so", "right", "so", "r"]


def test_what_is_not_in_the_log_stays_as_it_was_sent_with_a_note() -> None:
    sent = turn("m9", "nine", after="lost")
    kept, later = stitched([sent, turn("m10", "ten", after="m9")])
    assert (kept.body, kept.notes) == (sent.body, (threads.NOT_IN_LOG,))
    assert (flat(later), later.notes) == (["ten"], (threads.NOT_IN_LOG,))


def test_a_missing_response_leaves_a_gap_that_all_later_requests_name() -> None:
    rows = [
        turn("m1", "one", reply=None),
        turn("m2", "two", after="m1"),
        turn("m3", "x", after="m2"),
    ]
    _, second, third = stitched(rows)
    assert (flat(second), second.notes) == (["one", "two"], (threads.NO_RESPONSE,))
    assert (flat(third), third.notes) == (["one", "two", "so", "x"], (threads.NO_RESPONSE,))


def test_breakpoints_of_held_messages_are_gone_and_of_the_held_system_prompt_stay() -> None:
    system = [{"type": "text", "text": "S", "cache_control": EPHEMERAL}]
    rows = [turn("m0", "a", system=system, marked=True)]
    rows += [turn(f"m{n}", "b", after=f"m{n - 1}", marked=True) for n in range(1, 8)]
    *_, last = stitched(rows)
    prefix = render(last)
    assert [prefix.segments[mark].pointer for mark in prefix.breakpoints] == [
        "$.system[0]",
        "$.messages[14].content[0]",
    ]


def test_a_thread_of_marked_messages_is_read_condensed_as_it_is_read_whole(tmp_path: Path) -> None:
    """Each message carries a breakpoint, one of them two; the held ones lose theirs either way."""
    two = [{"type": "text", "text": t, "cache_control": EPHEMERAL} for t in ("a", "b")]
    rows = []
    for number in range(4):
        thread: Any = {"type": "create"}
        if number:
            thread = {"type": "continue", "previous_message_id": f"msg_{number - 1}"}
        sent = {**body(), "messages": [{"role": "user", "content": two}], "thread": thread}
        said = {"id": f"msg_{number}", "content": [{"type": "text", "text": "so"}], "usage": USAGE}
        rows.append(json.dumps({"request": sent, "response": said}))
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(rows))
    whole = read_log([str(path)]).requests
    condensed = read_log([str(path)], condense=True).requests
    assert [render(r).data for r in whole] == [render(r).data for r in condensed]
    # 3 turns of a question and an answer, and the last question with its two breakpoints
    assert [len(r.body.messages) for r in condensed if r.body] == [1, 3, 5, 7]
    assert render(condensed[-1]).breakpoints == render(whole[-1]).breakpoints
    assert len(render(condensed[-1]).breakpoints) == 2


SERVER_BLOCKS = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "n", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
    {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_1", "content": {}},
    {"type": "code_execution_tool_result", "tool_use_id": "srvtoolu_1", "content": {}},
    {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "content": []},
    {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": {}},
    {"type": "compaction", "content": "so far"},
]


@pytest.mark.parametrize("block", SERVER_BLOCKS, ids=lambda block: block["type"])
@pytest.mark.parametrize("condense", [False, True])
def test_the_blocks_of_the_api_itself_are_held_beside_the_request(
    tmp_path: Path, block: dict[str, Any], condense: bool
) -> None:
    content = [{"type": "text", "text": "so"}, block]
    path = tmp_path / "a.jsonl"
    said = {"id": "msg_1", "content": content, "usage": USAGE}
    path.write_text(json.dumps({"request": body(), "response": said}))
    (request,) = read_log([str(path)], condense=condense).requests
    assert request.response is not None
    assert json.loads(bytes(request.response.content)) == content


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": 'a "server_tool_use" and a "compaction"'},
        {"type": "tool_use", "id": "i", "name": "web_search_tool_result", "input": {}},
        {"type": "tool_use", "id": "i", "name": "n", "input": {"type": "compaction"}},
    ],
)
def test_an_answer_that_only_talks_of_such_blocks_is_let_go(
    tmp_path: Path, block: dict[str, Any]
) -> None:
    path = tmp_path / "a.jsonl"
    said = {"id": "msg_1", "content": [block], "usage": USAGE}
    path.write_text(json.dumps({"request": body(), "response": said}))
    (request,) = read_log([str(path)]).requests
    assert request.response is not None
    assert request.response.content is NULL


def test_a_streamed_compaction_is_held_with_its_state() -> None:
    events = [
        {"type": "message_start", "message": {"id": "m", "usage": USAGE}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "compaction", "content": None},
        },
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "compaction_delta", "content": "so far", "encrypted_content": "E"},
        },
    ]
    response = read_answer("".join(f"data: {json.dumps(row)}\n\n" for row in events))
    assert response is not None
    assert response.compacted
    assert json.loads(bytes(response.content)) == [
        {"type": "compaction", "content": "so far", "encrypted_content": "E"}
    ]


def test_number_spelling_survives_the_removal_of_a_breakpoint() -> None:
    use = '{"type":"tool_use","id":"i","name":"n","input":{"x":1e5},"cache_control":{}}'
    raw = f'{{"role":"assistant","content":[{use}]}}'.encode()
    assert b'"input":{"x":1e5}}' in bytes(threads._unmarked(Raw(raw)))


@pytest.mark.parametrize("thread", ["x", 5, [], {"type": "continue"}, {"type": 7}, {"type": "?"}])
def test_an_odd_thread_member_changes_nothing_but_a_note(thread: Any) -> None:
    request = turn("m1", "one", thread=thread)
    (found,) = stitched([request])
    assert found.body == request.body


def test_a_long_chain_ends_with_a_note_not_with_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "MAX_MESSAGES", 1000)
    rows = [turn("m0", "a")] + [turn(f"m{n}", "b", after=f"m{n - 1}") for n in range(1, 200)]
    found = list(stitched(rows))
    held = sum(len(request.body.messages) for request in found if request.body)
    assert held < 1000 + len(rows)
    assert found[-1].notes == (threads.TOO_LONG,)


def test_threads_are_put_together_while_reading_and_contents_are_dropped(tmp_path: Path) -> None:
    following = {"type": "continue", "previous_message_id": "msg_1"}
    rows = [
        asked(0, body=json.dumps(body("hi", system="S", thread={"type": "create"}))),
        said(1),
        asked(2, body=json.dumps(body("more", thread=following))),
        said(3, "msg_2"),
    ]
    one, two = log_of(tmp_path, *rows).requests
    assert texts_of(two.body) == ["hi", [{"type": "text", "text": "so"}], "more"]
    assert [r.response.content for r in (one, two) if r.response] == [NULL, NULL]


def test_a_streamed_answer_keeps_its_blocks() -> None:
    def delta(index: int, **member: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": member}

    def start(index: int, **member: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": member}

    events = [
        {"type": "message_start", "message": {"id": "m", "usage": USAGE}},
        start(0, type="thinking", thinking="", signature=""),
        delta(0, type="thinking_delta", thinking="hm"),
        delta(0, type="signature_delta", signature="sig"),
        start(1, type="text", text=""),
        delta(1, type="text_delta", text="a"),
        delta(1, type="text_delta", text="b"),
        start(2, type="tool_use", id="i", name="n", input={}),
        delta(2, type="input_json_delta", partial_json='{"z": 1.0,'),
        delta(2, type="input_json_delta", partial_json=' "a": 1e5}'),
        {"type": "content_block_stop", "index": 2},
    ]
    text = "".join(f"event: x\ndata: {json.dumps(row)}\n\n" for row in events)
    response = read_answer(text)
    assert response is not None
    assert json.loads(bytes(response.content)) == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "text", "text": "ab"},
        {"type": "tool_use", "id": "i", "name": "n", "input": {"z": 1.0, "a": 100000.0}},
    ]
    assert b'{"z": 1.0, "a": 1e5}' in bytes(response.content)


@pytest.mark.parametrize("name", ["claude_code_otel", "bedrock_log"])
def test_the_sample_of_a_format_is_read_whole(name: str) -> None:
    found = read_log([str(FIXTURES / name / "sample.jsonl")])
    assert (found.formats, found.skipped) == ((name,), ())
    assert all(r.body is not None and r.usage is not None and r.at for r in found.requests)


def test_a_body_that_talks_about_these_logs_is_none(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(body("claude_code.api_request_body ModelInvocationLog schemaType")))
    assert read_log([str(path)]).formats == ("body",)


def test_skipped_is_what_a_reader_gives_for_a_record_of_another_type(tmp_path: Path) -> None:
    found = log_of(tmp_path, invocation(INVOKED, answer()), {"schemaType": "Other", "modelId": "x"})
    assert found.skipped == (
        Skipped(
            str(tmp_path / "events.jsonl"), 2, "calls no model: no ModelInvocationLog", other=True
        ),
    )


def test_the_thread_of_the_fixture_is_put_together() -> None:
    """The second request sends one message; its prompt has three, the tool and the system text."""
    log = read_log([str(FIXTURES.parent / "threads" / "thread.jsonl")])
    first, second = (request.body for request in log.requests)
    assert first is not None
    assert second is not None
    assert (len(first.messages), len(second.messages)) == (1, 3)
    assert (second.system, second.tools) == (first.system, first.tools)
    assert len(sessions.part(log.requests)) == 1
