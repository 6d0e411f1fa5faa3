"""Logs of exchanges on the wire: proxies, HAR and the cassettes that are JSON or raw HTTP."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import suppress
from datetime import UTC, datetime
from gzip import compress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxdoc.errors import CtxdocError
from ctxdoc.reading.formats import FORMATS
from ctxdoc.reading.formats.claude_tap import BLOB, COMPACT, MAX_RECORD
from ctxdoc.reading.formats.httprr import MAX_RECORDS
from ctxdoc.reading.load import read_log
from ctxdoc.request.log import Log, Trait
from ctxdoc.request.usage import Usage

FIXTURES = Path(__file__).parents[3] / "fixtures" / "formats"
SAMPLES = {
    "claude_trace": "sample.jsonl",
    "claude_tap": "sample.jsonl",
    "har": "sample.har",
    "httprr": "sample.httprr",
    "test_agent": "sample.json",
    "req_llm": "sample.json",
    "http_recorder": "sample.json",
}
URL = "https://api.anthropic.com/v1/messages"
BODY = {"model": "claude-sonnet-5", "messages": [{"role": "user", "content": "Hi"}]}
ANSWER = {"id": "m", "model": "claude-sonnet-5", "usage": {"input_tokens": 3, "output_tokens": 2}}
NINE = datetime(2026, 11, 2, 9, tzinfo=UTC)
EVENTS = [
    {"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3}}},
    {"type": "message_delta", "usage": {"output_tokens": 2}},
]
STREAM = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in EVENTS)
SMALL = Usage(uncached=3, cache_read=0, cache_write_5m=0, cache_write_1h=0, output=2)


def read(folder: Path, data: bytes | str | Any) -> Log:
    path = folder / "log"
    match data:
        case bytes():
            path.write_bytes(data)
        case str():
            path.write_text(data)
        case _:
            path.write_text(json.dumps(data))
    return read_log([str(path)])


def sample(name: str) -> bytes:
    return (FIXTURES / name / SAMPLES[name]).read_bytes()


def changed(name: str, *path: str | int, value: Any) -> Any:
    """The sample of a JSON format with one member set."""
    whole = json.loads(sample(name))
    at = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return whole


def base64(text: str | bytes) -> str:
    return b64encode(text.encode() if isinstance(text, str) else text).decode()


def har(*entries: Any) -> Any:
    return {"log": {"version": "1.2", "entries": list(entries)}}


def entry(url: str = URL, body: Any = BODY, content: Any = None) -> Any:
    return {
        "startedDateTime": "2026-11-02T10:00:00.000+01:00",
        "time": 1500,
        "request": {"method": "POST", "url": url, "postData": {"text": json.dumps(body)}},
        "response": {"status": 200, "content": content or {"text": json.dumps(ANSWER)}},
    }


def record(request: str, response: str) -> str:
    return f"{len(request)} {len(response)}\n{request}{response}"


def sent(body: str = "") -> str:
    body = body or json.dumps(BODY)
    return f"POST {URL} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}"


def got(body: str = "", head: str = "") -> str:
    body = body or json.dumps(ANSWER)
    return f"HTTP/2.0 200 OK\r\n{head}Content-Length: {len(body)}\r\n\r\n{body}"


def compact(*bodies: Any, blobs: dict[str, Any]) -> Any:
    records = [
        {"__claude_tap_compact_record__": {"version": 1}, "record": tapped(body)} for body in bodies
    ]
    return {COMPACT: {"version": 1}, "records": records, "blobs": blobs}


def tapped(body: Any) -> Any:
    return changed("claude_tap", "request", "body", value=body)


def reference(name: str) -> Any:
    return {BLOB: {"version": 1, "kind": "json", "hash": name}}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_is_read_by_its_format_alone(tmp_path: Path, name: str) -> None:
    log = read(tmp_path, sample(name))
    assert (log.formats, log.skipped) == ((name,), ())


@pytest.mark.parametrize("name", SAMPLES)
def test_counters_are_parts_that_do_not_overlap(tmp_path: Path, name: str) -> None:
    (request,) = read(tmp_path, sample(name)).requests
    assert request.usage == Usage(
        uncached=7, cache_read=1200, cache_write_5m=200, cache_write_1h=100, output=20
    )


@pytest.mark.parametrize("name", SAMPLES)
def test_no_secret_is_kept(tmp_path: Path, name: str) -> None:
    assert b"not-a-" in sample(name) or name == "http_recorder"
    (request,) = read(tmp_path, sample(name)).requests
    assert "not-a-" not in str(request)


@pytest.mark.parametrize("name", SAMPLES)
def test_exact_bytes_are_claimed_where_they_are_kept(tmp_path: Path, name: str) -> None:
    (request,) = read(tmp_path, sample(name)).requests
    assert (request.raw is not None) == (Trait.EXACT_BYTES in FORMATS[name].traits)
    assert request.body is not None


@pytest.mark.parametrize("name", SAMPLES)
def test_the_request_has_the_time_of_its_start(tmp_path: Path, name: str) -> None:
    (request,) = read(tmp_path, sample(name)).requests
    assert request.at is not None
    assert 0 <= (request.at - NINE).total_seconds() <= 2


@pytest.mark.parametrize("name", SAMPLES)
@given(data=st.data())
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_damaged_bytes_end_in_an_error_or_in_a_log(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    whole = bytearray(sample(name))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    with suppress(CtxdocError):
        read(tmp_path, bytes(whole))


ODD = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just([[]]) | st.just({})


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "httprr"])
@given(data=st.data())
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_odd_values_end_in_an_error_or_in_a_log(
    tmp_path: Path, name: str, data: st.DataObject
) -> None:
    whole = json.loads(sample(name))
    at: Any = whole
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = data.draw(st.sampled_from(keys))
        if not at[key] or not isinstance(at[key], dict | list) or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(ODD)
    with suppress(CtxdocError):
        read(tmp_path, whole)


# claude_trace


def test_a_stream_stands_beside_an_empty_body(tmp_path: Path) -> None:
    line = changed("claude_trace", "response", "body", value=None)
    line["response"]["body_raw"] = STREAM
    assert read(tmp_path, line).requests[0].usage == SMALL


def test_a_request_without_response_is_kept(tmp_path: Path) -> None:
    (request,) = read(tmp_path, changed("claude_trace", "response", value=None)).requests
    assert (request.response, request.duration) == (None, None)


def test_the_duration_is_from_request_to_response(tmp_path: Path) -> None:
    assert read(tmp_path, sample("claude_trace")).requests[0].duration == 1.5


def test_a_bad_line_is_skipped_with_its_number(tmp_path: Path) -> None:
    log = read(tmp_path, sample("claude_trace") + b'{"request": 5}\n' + sample("claude_trace"))
    assert [(s.line, s.reason) for s in log.skipped] == [
        (2, "Expected 'object', got 'int' - at '$.request'")
    ]
    assert len(log.requests) == 2


def test_a_count_of_tokens_is_no_model_call(tmp_path: Path) -> None:
    counted = changed("claude_trace", "request", "url", value=f"{URL}/count_tokens?beta=true")
    log = read(tmp_path, sample("claude_trace") + json.dumps(counted).encode())
    assert [s.reason for s in log.skipped] == ["calls no model: /v1/messages/count_tokens"]


@pytest.mark.parametrize(
    ("user", "session"),
    [
        ("user_1f_account_2e_session_3d", "3d"),
        ('{"device_id": "1f", "session_id": "3d"}', "3d"),
        ("0000", ""),
        ('{"session_id": 5}', ""),
    ],
)
def test_the_session_is_in_the_user_id(tmp_path: Path, user: str, session: str) -> None:
    body = {**BODY, "metadata": {"user_id": user}}
    line = changed("claude_trace", "request", "body", value=body)
    assert read(tmp_path, line).requests[0].session == session


def test_the_session_header_goes_before_the_user_id(tmp_path: Path) -> None:
    body = {**BODY, "metadata": {"user_id": "user_1f_session_3d"}}
    line = changed("claude_trace", "request", "body", value=body)
    line["request"]["headers"]["X-Claude-Code-Session-Id"] = "4c"
    assert read(tmp_path, line).requests[0].session == "4c"


def test_a_refusal_has_the_words_of_the_api(tmp_path: Path) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    line = changed("claude_trace", "response", "body", value=error)
    line["response"]["status_code"] = 529
    assert read(tmp_path, line).requests[0].refused == "Overloaded"


# claude_tap


def test_the_time_of_the_proxy_is_the_end(tmp_path: Path) -> None:
    (request,) = read(tmp_path, sample("claude_tap")).requests
    assert (request.at, request.duration) == (NINE, 2.0)


def test_the_host_is_the_upstream_and_not_the_proxy(tmp_path: Path) -> None:
    (request,) = read(tmp_path, sample("claude_tap")).requests
    assert request.headers["host"] == "api.anthropic.com"


def test_a_password_in_the_upstream_is_not_kept(tmp_path: Path) -> None:
    line = changed("claude_tap", "upstream_base_url", value="https://me:secret@proxy.example")
    (request,) = read(tmp_path, line).requests
    assert request.headers["host"] == "proxy.example"
    assert "secret" not in str(request)


def test_events_are_read_where_the_body_is_empty(tmp_path: Path) -> None:
    line = changed("claude_tap", "response", "body", value=None)
    line["response"]["sse_events"] = [{"event": e["type"], "data": e} for e in EVENTS]
    assert read(tmp_path, line).requests[0].usage == SMALL


def test_names_that_the_proxy_adds_do_not_count_twice(tmp_path: Path) -> None:
    """It copies OpenAI's counters, the cached part inside, to the names of Anthropic."""
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 60},
        "input_tokens": 100,
        "output_tokens": 5,
        "cache_read_input_tokens": 60,
    }
    line = changed("claude_tap", "response", "body", value={"id": "c", "usage": usage})
    line["request"]["path"] = "/v1/chat/completions"
    found = read(tmp_path, line).requests[0].usage
    assert found == Usage(uncached=40, cache_read=60, cache_write_5m=0, cache_write_1h=0, output=5)


def test_a_compact_trace_is_put_together(tmp_path: Path) -> None:
    message = {"role": "user", "content": "Hi"}
    body = {"model": "m", "messages": [reference("sha256:1"), message]}
    blobs = {"sha256:1": {"kind": "json", "bytes": 9, "payload": message}}
    (request,) = read(tmp_path, compact(body, blobs=blobs)).requests
    assert request.body is not None
    assert [json.loads(bytes(m)) for m in request.body.messages] == [message, message]


def test_a_part_that_is_missing_skips_its_record_alone(tmp_path: Path) -> None:
    log = read(tmp_path, compact({"messages": [reference("x")]}, BODY, blobs={}))
    assert [(s.line, s.reason) for s in log.skipped] == [(1, "the compact trace has no part x")]
    assert len(log.requests) == 1


def test_a_compact_trace_does_not_grow_without_bound(tmp_path: Path) -> None:
    blobs = {"x": {"kind": "json", "bytes": 1, "payload": "p" * (MAX_RECORD // 64)}}
    log = read(tmp_path, compact({"messages": [reference("x")] * 65}, BODY, blobs=blobs))
    assert [s.reason for s in log.skipped] == ["the record unpacks to more than a request can be"]
    assert len(log.requests) == 1


# har


def test_a_har_is_read_by_entry(tmp_path: Path) -> None:
    style = entry("https://a/style.css", content={"text": "a {}"})
    log = read(tmp_path, har(entry(), style, {"request": 5}, entry()))
    assert [request.line for request in log.requests] == [1, 4]
    assert [(s.line, s.reason) for s in log.skipped] == [
        (2, "calls no model: /style.css"),
        (3, "Expected 'object', got 'int' - at '$.request'"),
    ]


@pytest.mark.parametrize("path", ["/anthropic/messages", "/api/v2/chat", "/proxy"])
def test_a_prompt_that_was_answered_with_counters_is_a_call_wherever_it_went(
    tmp_path: Path, path: str
) -> None:
    (request,) = read(tmp_path, har(entry(f"https://a{path}"))).requests
    assert (request.body is not None, request.usage) == (True, SMALL)


@pytest.mark.parametrize(
    ("url", "body", "answer"),
    [
        # neither messages nor counters, or one of them alone
        ("https://a/x", {"input": ["a"]}, ANSWER),
        ("https://a/x", BODY, {"input_tokens": 3}),
        ("https://a/x", {"messages": ["Hi"]}, ANSWER),
        ("https://a/x", {"messages": []}, ANSWER),
        # paths that are known to call no model
        (f"{URL}/count_tokens", BODY, {"input_tokens": 3}),
        (f"{URL}/batches", {"requests": [{"params": BODY}]}, ANSWER),
        ("https://a/v1/embeddings", {"input": "a"}, {"usage": {"prompt_tokens": 3}}),
    ],
)
def test_an_exchange_without_prompt_or_counters_is_no_call(
    tmp_path: Path, url: str, body: Any, answer: Any
) -> None:
    content = {"text": json.dumps(answer)}
    log = read(tmp_path, har(entry(), entry(url, body, content)))
    assert (len(log.requests), [s.line for s in log.skipped]) == (1, [2])


def test_a_har_has_time_with_zone_and_milliseconds(tmp_path: Path) -> None:
    (request,) = read(tmp_path, har(entry())).requests
    assert (request.at, request.duration) == (NINE, 1.5)


@pytest.mark.parametrize(
    "content",
    [
        {"text": STREAM, "mimeType": "text/event-stream"},
        {"text": base64(STREAM), "encoding": "base64"},
        {"text": base64(compress(STREAM.encode())), "encoding": "base64"},
        {
            "text": base64(json.dumps([base64(compress(STREAM.encode())[:50]),
                                       base64(compress(STREAM.encode())[50:])])),
            "encoding": "base64",
        },
    ],
    ids=["text", "base64", "compressed", "pieces of Polly.JS"],
)  # fmt: skip
def test_content_of_a_har_is_unpacked(tmp_path: Path, content: Any) -> None:
    assert read(tmp_path, har(entry(content=content))).requests[0].usage == SMALL


def test_content_that_was_left_out_leaves_the_request(tmp_path: Path) -> None:
    (request,) = read(tmp_path, har(entry(content={"size": 0}))).requests
    assert (request.usage, request.model) == (None, "claude-sonnet-5")


def test_damaged_base64_skips_its_entry(tmp_path: Path) -> None:
    content = {"text": "a*b", "encoding": "base64"}
    log = read(tmp_path, har(entry(content=content), entry()))
    assert ([s.line for s in log.skipped], len(log.requests)) == ([1], 1)


def test_a_har_without_entries_is_named(tmp_path: Path) -> None:
    with pytest.raises(CtxdocError, match="no request in"):
        read(tmp_path, har())


# httprr


def test_the_next_record_follows_without_a_line_end(tmp_path: Path) -> None:
    log = read(tmp_path, "httprr trace v1\n" + record(sent(), got()) * 2)
    assert [request.usage for request in log.requests] == [SMALL, SMALL]


def test_a_record_is_named_by_the_line_of_its_lengths(tmp_path: Path) -> None:
    """That line begins with the end of the response before it."""
    log = read(tmp_path, "httprr trace v1\n" + record(sent(), got()) * 2)
    assert [request.line for request in log.requests] == [2, 10]


def test_the_body_of_raw_http_is_exact(tmp_path: Path) -> None:
    odd = '{"messages" :[], "max_tokens":1.0e1}'
    log = read(tmp_path, "httprr trace v1\n" + record(sent(odd), got()))
    raw = log.requests[0].raw
    assert raw is not None
    assert bytes(raw) == odd.encode()


def test_a_chunked_response_is_put_together(tmp_path: Path) -> None:
    middle = len(STREAM) // 2
    pieces = "".join(f"{len(p):x}\r\n{p}\r\n" for p in (STREAM[:middle], STREAM[middle:], ""))
    response = f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{pieces}"
    log = read(tmp_path, "httprr trace v1\n" + record(sent(), response))
    assert log.requests[0].usage == SMALL


def test_a_response_without_length_ends_with_the_record(tmp_path: Path) -> None:
    response = f"HTTP/2.0 200 OK\r\nX: y\r\n\r\n{STREAM}"
    log = read(tmp_path, "httprr trace v1\n" + record(sent(), response) * 2)
    assert [request.usage for request in log.requests] == [SMALL, SMALL]


@pytest.mark.parametrize(
    ("rest", "reason"),
    [
        ("5 5\nhello", "the text ends too early"),
        ("12 hello\n", "no line with the lengths of request and response"),
        ("-1 5\nhello", "no line with the lengths of request and response"),
        (record("hello", "world"), "not HTTP: "),
        (record(sent()[:-1], got()), "not HTTP: "),
        (record(sent(), ""), "not HTTP: "),
        (record(sent(), got(head="A: b\r\n" * 50_000)), "not HTTP: the headers do not end"),
    ],
)
def test_what_is_no_record_is_named(tmp_path: Path, rest: str, reason: str) -> None:
    log = read(tmp_path, "httprr trace v1\n" + record(sent(), got()) + rest)
    assert len(log.requests) == 1
    assert [(s.line, s.reason[: len(reason)]) for s in log.skipped] == [(10, reason)]


def test_the_number_of_records_is_bounded(tmp_path: Path) -> None:
    empty = "0 0\n" * MAX_RECORDS
    log = read(tmp_path, "httprr trace v1\n" + record(sent(), got()) + empty)
    assert len(log.skipped) == MAX_RECORDS
    assert log.skipped[-1].reason == "more than 100,000 records"


# test_agent


@pytest.mark.parametrize("status", [529, {"code": 529, "message": "Overloaded"}])
def test_the_status_is_a_number_or_holds_one(tmp_path: Path, status: Any) -> None:
    whole = changed("test_agent", "response", "status", value=status)
    whole["response"]["body"] = ""
    assert read(tmp_path, whole).requests[0].refused == "status 529"


def test_a_stream_may_be_the_text_of_the_body(tmp_path: Path) -> None:
    whole = changed("test_agent", "response", "body", value=STREAM)
    assert read(tmp_path, whole).requests[0].usage == SMALL


# req_llm


def test_the_sent_bytes_go_before_the_sorted_ones(tmp_path: Path) -> None:
    whole = changed("req_llm", "request", "canonical_json", value={"messages": []})
    raw = read(tmp_path, whole).requests[0].raw
    assert raw is not None
    assert base64(bytes(raw)) == whole["request"]["body"]["b64"]


def test_an_event_may_lie_in_two_pieces(tmp_path: Path) -> None:
    whole = changed("req_llm", "response", "body", value=None)
    pieces = (STREAM[:40], STREAM[40:90], STREAM[90:])
    whole["chunks"] = [{"b64": base64(piece), "decoded": "?"} for piece in pieces]
    assert read(tmp_path, whole).requests[0].usage == SMALL


def test_long_pieces_before_the_request_do_not_hide_the_format(tmp_path: Path) -> None:
    whole = json.loads(sample("req_llm"))
    long = [{"b64": base64(": pause\n" * 40_000)}, {"b64": base64(STREAM)}]
    late = {"captured_at": whole["captured_at"], "chunks": long, "request": whole["request"]}
    log = read(tmp_path, late)
    assert (log.formats, log.requests[0].usage) == (("req_llm",), SMALL)


def test_the_time_of_capture_stands_in_for_the_date(tmp_path: Path) -> None:
    whole = changed("req_llm", "response", "headers", value={})
    assert read(tmp_path, whole).requests[0].at == NINE.replace(second=2)


# http_recorder


def test_a_binary_response_is_in_base64(tmp_path: Path) -> None:
    whole = json.loads(sample("http_recorder"))
    packed = base64(compress(json.dumps(ANSWER).encode()))
    whole["interactions"][0]["response"].update(body=packed, bodyEncoding="base64")
    assert read(tmp_path, whole).requests[0].usage == SMALL


def test_the_time_of_a_recording_is_that_of_a_single_request_only(tmp_path: Path) -> None:
    whole = json.loads(sample("http_recorder"))
    assert read(tmp_path, whole).requests[0].at == NINE.replace(second=2)
    whole["interactions"] *= 2
    assert [request.at for request in read(tmp_path, whole).requests] == [None, None]


def test_a_websocket_is_skipped(tmp_path: Path) -> None:
    whole = json.loads(sample("http_recorder"))
    whole["interactions"].append({"transport": "websocket", "open": {}, "events": []})
    log = read(tmp_path, whole)
    assert [(s.line, s.reason) for s in log.skipped] == [(2, "no request over HTTP: websocket")]
