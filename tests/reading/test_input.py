"""Broken and hostile input: a message with file and place, the right exit code, no traceback."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxdoc.cli.app import main
from ctxdoc.errors import InputError, NoRequestError
from ctxdoc.reading.formats.base import read_duration, read_time
from ctxdoc.reading.load import read_log, read_request
from ctxdoc.reading.source import MAX_DOCUMENT
from ctxdoc.reading.zstd_stream import PIECE, ZstdStream
from ctxdoc.request.log import Trait
from tests.support.sessions import first_body, lines, marked

GOOD = marked(first_body(random.Random(1)))


def deep(levels: int) -> bytes:
    """A body whose tool input is nested so deeply."""
    nested = b'{"a":' * levels + b"1" + b"}" * levels
    block = b'{"type":"tool_use","id":"i","name":"n","input":' + nested + b"}"
    return b'{"messages":[{"role":"assistant","content":[' + block + b"]}]}"


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert isinstance(end.value.code, int)
    return end.value.code


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the input is empty"),
        (b" \n\n", "the input is empty"),
        (b"[]", "the input is empty"),
        (b"hello", "line 1: not JSON"),
        (b'{"messages": [', "line 1: not JSON: the text ends too early"),
        (b'{"model": "claude-opus-5"}', "line 1: of no known log format"),
        (b'{"request": {"model": "x"}}', "line 1: no field 'messages'"),
        (b'{"messages": "hi"}', "line 1: Expected 'array', got 'str' - at '$.messages'"),
        (b'{"messages": {}}', "line 1: Expected 'array', got 'object' - at '$.messages'"),
        (b'{"messages": ["\xff"]}', "line 1: not JSON: invalid UTF-8"),
        (b'{"messages": ["\\ud800"]}', "half"),
        (b'[1, "two"]', "line 1: of no known log format"),
        (deep(100_000), "line 1: nested too deeply"),
        (b'{"messages": []} {"messages": []}', "Put one on a line"),
    ],
)
def test_what_is_no_request_is_named_with_its_place(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(NoRequestError) as error:
        read_log([str(path)])
    assert str(path) in error.value.message
    assert reason in error.value.message
    assert ended("diagnose", str(path)) == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (gzip.compress(b"{}" * 99, mtime=0)[:-9], "cannot read"),
        ("{}".encode("utf-16"), "is UTF-16"),
    ],
)
def test_a_container_that_cannot_be_opened_ends_with_2(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(content)
    with pytest.raises(InputError, match=reason):
        read_log([str(path)])
    assert ended("diagnose", str(path)) == 2


def test_a_broken_line_is_skipped_counted_and_named(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(lines([GOOD]) + '{"messages": [\n' + lines([GOOD]) + "[1]\n", encoding="utf-8")
    log = read_log([str(path)])
    assert len(log.requests) == 2
    assert [(s.line, s.reason.split(":")[0]) for s in log.skipped] == [
        (2, "not JSON"),
        (1, "Expected 'object', got 'int'"),
    ]
    with pytest.raises(InputError, match="line 2: not JSON"):
        read_log([str(path)], strict=True)


def test_a_log_may_begin_with_a_broken_line(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"messages": [\n' + lines([GOOD, GOOD]), encoding="utf-8")
    assert len(read_log([str(path)]).requests) == 2


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        json.dumps(GOOD, indent=2),
        json.dumps([GOOD], indent=2),
        json.dumps([GOOD]),
        "\ufeff" + json.dumps(GOOD),
        json.dumps(GOOD, indent=2).replace("\n", "\r\n"),
        json.dumps({"request": GOOD, "response": None}),
        json.dumps({"response": {}, "request": GOOD}, indent=1),
    ],
)
def test_one_request_may_be_written_in_many_ways(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    request, log = read_request(str(path))
    assert len(log.requests) == 1
    assert len(request.body.messages) == 1


def test_gzip_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(lines([GOOD, GOOD]).encode()))
    assert len(read_log([str(path)]).requests) == 2


def test_a_log_carries_what_all_its_formats_carry(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    paths[0].write_text(lines([GOOD]), encoding="utf-8")
    paths[1].write_text(lines([{"request": GOOD}]), encoding="utf-8")
    log = read_log([str(path) for path in paths])
    assert log.formats == ("body", "native")
    assert log.traits == {Trait.EXACT_BYTES}


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "b.jsonl").write_text(lines([GOOD]), encoding="utf-8")
    (tmp_path / "a.json").write_text(lines([GOOD]), encoding="utf-8")
    log = read_log([str(tmp_path)])
    assert [Path(r.source).name for r in log.requests] == ["a.json", "b.jsonl"]


def test_a_member_of_a_zip_is_named_behind_two_colons(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("day/one.jsonl", lines([GOOD]))
    assert read_log([str(path)]).requests[0].source == f"{path}::day/one.jsonl"


def test_zstd_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(zstandard.compress(lines([GOOD, GOOD]).encode()))
    assert len(read_log([str(path)]).requests) == 2


def test_a_line_over_the_limit_is_skipped_without_being_held(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with path.open("wb") as stream:
        stream.write(lines([GOOD]).encode())
        stream.write(b'"' + b"a" * (MAX_DOCUMENT + 10) + b'"\n')
    log = read_log([str(path)])
    assert (len(log.requests), [s.line for s in log.skipped]) == (1, [2])


SECRETS = {
    "authorization": "Bearer s3cr3t-value",
    "x-api-key": "s3cr3t-value",
    "Cookie": "s3cr3t-value",
}


def test_no_secret_of_a_header_outlives_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    row = {"request": GOOD, "headers": {**SECRETS, "X-Upstream": "cloud-a"}}
    path.write_text(lines([row]), encoding="utf-8")
    request, _ = read_request(str(path))
    assert dict(request.headers) == {"x-upstream": "cloud-a"}
    assert "s3cr3t" not in repr(request)


ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False)
    | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = (
    "model", "system", "tools", "messages", "tool_choice", "thinking", "output_config", "speed",
    "cache_control", "container", "mcp_servers", "max_tokens",
)  # fmt: skip
RECORD_FIELDS = (
    "timestamp",
    "headers",
    "response",
    "status",
    "duration_ms",
    "session_id",
    "cost_usd",
)


def _diagnosed(tmp_path: Path, row: dict[str, Any]) -> int:
    path = tmp_path / "odd.jsonl"
    path.write_text(lines([{"request": GOOD}, row]), encoding="utf-8")
    return ended("diagnose", str(path), "--output", str(tmp_path / "out"), "--diff", "--quiet")


BOUNDED = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])


@BOUNDED
@given(st.sampled_from(FIELDS), ODD)
def test_any_value_in_a_body_is_read_or_skipped(tmp_path: Path, name: str, value: Any) -> None:
    assert _diagnosed(tmp_path, {"request": {**GOOD, name: value}}) == 0


@BOUNDED
@given(st.sampled_from(RECORD_FIELDS), ODD)
def test_any_value_in_a_record_is_read_or_passed_over(
    tmp_path: Path, name: str, value: Any
) -> None:
    assert _diagnosed(tmp_path, {"request": GOOD, name: value}) == 0


@BOUNDED
@given(st.sampled_from(["content", "role", "text", "input", "type", "source", "citations"]), ODD)
def test_any_value_in_a_block_is_read(tmp_path: Path, name: str, value: Any) -> None:
    block = {"type": "text", "text": "x", name: value}
    message = {"role": "user", "content": [block]} | (
        {name: value} if name in ("content", "role") else {}
    )
    assert _diagnosed(tmp_path, {"request": {**GOOD, "messages": [message, block]}}) == 0


@BOUNDED
@given(
    st.sampled_from(["input_tokens", "cache_read_input_tokens", "cache_creation", "output_tokens"]),
    ODD,
)
def test_any_counter_is_read_or_passed_over(tmp_path: Path, name: str, value: Any) -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 4, name: value}
    assert _diagnosed(tmp_path, {"request": GOOD, "response": {"usage": usage}}) == 0


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_flipped_byte_or_a_cut_never_ends_in_a_fault(
    tmp_path: Path, place: int, value: int
) -> None:
    data = bytearray(
        json.dumps({"request": GOOD, "response": {"usage": {"input_tokens": 3}}}).encode()
    )
    place %= len(data)
    for broken in (data[:place], data[:place] + bytes([value]) + data[place + 1 :]):
        path = tmp_path / "x.json"
        path.write_bytes(broken)
        assert ended("diagnose", str(path), "--output", str(tmp_path / "out"), "--quiet") in (0, 3)


@pytest.mark.parametrize("levels", [100, 300, 1000])
def test_nesting_is_read_or_named(tmp_path: Path, levels: int) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(deep(levels))
    assert ended("diagnose", str(path), "--output", str(tmp_path / "out")) in (0, 3)


@pytest.mark.parametrize(
    ("number", "other"),
    [("123456789012345678901234567890", "123456789012345678901234567891"), ("1e400", "1e401")],
)
def test_numbers_beyond_64_bits_are_kept_as_they_are(
    tmp_path: Path, number: str, other: str
) -> None:
    """Two huge numbers that a float would make equal are two prompts."""
    paths = []
    for name, spelled in (("a", number), ("b", other)):
        body = json.dumps({**GOOD, "tools": [{"name": "t", "input_schema": {"maximum": "@"}}]})
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(body.replace('"@"', spelled), encoding="utf-8")
    out = tmp_path / "out.json"
    assert ended("diagnose", *map(str, paths), "--format", "json", "--output", str(out)) == 0
    found = json.loads(out.read_text("utf-8"))
    assert found["first_difference"]["json_path"] == "$.tools[0].input_schema.maximum"
    assert found["cause"]["id"] == "tool_definition_changed"


def test_a_refused_request_is_explained_and_no_dead_cache(tmp_path: Path) -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    path = tmp_path / "log.jsonl"
    path.write_text(
        lines([{"request": GOOD}, {"request": GOOD, "response": error}]), encoding="utf-8"
    )
    out = tmp_path / "out.json"
    assert (
        ended("diagnose", str(path), "--pair", "1,2", "--format", "json", "--output", str(out)) == 0
    )
    found = json.loads(out.read_text("utf-8"))
    assert (found["cache"], found["cause"]["id"]) == ("unknown", "request_failed")
    assert "Overloaded" in found["cause"]["explanation"]


STEERING = "\x1b[31m\x07\u202e\u009b\u200b"


@pytest.mark.parametrize("form", ["text", "json", "markdown"])
def test_nothing_in_a_log_steers_the_terminal(tmp_path: Path, form: str) -> None:
    one = json.loads(json.dumps(GOOD))
    one["model"] = f"claude{STEERING}"
    one["tools"][0]["name"] = f"tool{STEERING}"
    one["system"][0]["text"] = f"{STEERING} be kind"
    path, out = tmp_path / "log.jsonl", tmp_path / "out"
    path.write_text(lines([{"request": GOOD}, {"request": one}]), encoding="utf-8")
    assert (
        ended(
            "diagnose", str(path), "--pair", "1,2", "--diff", "--format", form, "--output", str(out)
        )
        == 0
    )
    assert not set(STEERING.replace("[31m", "")) & set(out.read_text("utf-8"))


@pytest.mark.parametrize(
    "value", [None, True, "soon", -1, 1e300, "9999-12-31T23:59:59-14:00", [], "0001-01-01"]
)
def test_a_time_that_cannot_be_is_unknown(value: Any) -> None:
    assert read_time(value) is None


@pytest.mark.parametrize("value", [None, True, "1", -1, 1e300, float("nan"), 10**18])
def test_a_duration_that_cannot_be_is_unknown(value: Any) -> None:
    assert read_duration(value) is None


def test_the_times_of_one_moment_are_equal() -> None:
    texts = [
        "2026-11-02T09:00:00Z",
        "2026-11-02T10:00:00+01:00",
        "2026-11-02 09:00:00",
        1793610000,
        1793610000000,
    ]
    assert len({read_time(text) for text in texts}) == 1


def test_strict_passes_over_what_was_never_a_model_call(tmp_path: Path) -> None:
    """A user's line of a transcript is in its place; a line that is cut is not."""
    line = '{{"parentUuid":null,"isSidechain":false,"sessionId":"s","type":"{}","message":{}}}\n'
    answer = '{"id":"m","model":"claude-sonnet-4-5","usage":{"input_tokens":1,"output_tokens":1}}'
    path = tmp_path / "a.jsonl"
    path.write_text(line.format("user", '{"role":"user"}') + line.format("assistant", answer))
    log = read_log([str(path)], strict=True)
    assert (len(log.requests), [item.other for item in log.skipped]) == (1, [True])
    path.write_text(path.read_text() + '{"type":"assistant"')
    assert [item.other for item in read_log([str(path)]).skipped] == [True, False]
    with pytest.raises(InputError, match="line 3"):
        read_log([str(path)], strict=True)


@pytest.mark.parametrize(
    ("name", "output", "requests"),
    [("msg_011CdeLUpakH", 5, 1), ("msg_011CdeLUpakH", 6, 1), ("msg_REDACTED_1", 5, 2)],
)
def test_two_logs_of_one_response_are_one_request(
    tmp_path: Path, name: str, output: int, requests: int
) -> None:
    """The one with more output is the whole one; a blotted id is the id of many responses."""
    for file, count in (("a", 5), ("b", output)):
        usage = {"input_tokens": 1, "output_tokens": count}
        row = {"request": first_body(random.Random(1)), "response": {"id": name, "usage": usage}}
        (tmp_path / f"{file}.jsonl").write_text(json.dumps(row))
    found = read_log([str(tmp_path)]).requests
    assert len(found) == requests
    assert max(r.usage.output for r in found if r.usage) == output


def test_a_log_that_was_cut_at_its_start_is_read(tmp_path: Path) -> None:
    """As `tail -c` leaves it: the first line is skipped and counted, the others are read."""
    path = tmp_path / "log.jsonl"
    whole = lines([GOOD, GOOD])
    for cut in ('{"timestamp": "2026-11-02T0', '{"request": {"model": "m", "mess', 'xt": "hi"}]}}'):
        path.write_text(cut + "\n" + whole)
        read = read_log([str(path)])
        assert (len(read.requests), len(read.skipped)) == (2, 1), cut


FOREIGN = {
    "a chat of the Gemini CLI": {
        "sessionId": "s",
        "projectHash": "0",
        "messages": [{"id": "m", "type": "user", "content": "hi"}],
    },
    "a task of Cline or Roo (ui_messages.json)": [
        {"ts": 1, "type": "say", "say": "task", "text": "hi"}
    ],
    "a task of Cline or Roo (api_conversation_history.json)": [
        {"role": "user", "content": "hi", "ts": 1}
    ],
    "a rollout of Codex": {"timestamp": "t", "type": "event_msg", "payload": {"type": "x"}},
    "a message of opencode": {"id": "m", "sessionID": "s", "role": "user", "tokens": {"input": 1}},
    "a session of opencode": {"info": {"id": "s"}, "messages": [{"info": {}, "parts": []}]},
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("indent", [None, 1])
def test_a_session_of_another_program_is_refused_by_its_name(
    tmp_path: Path, name: str, indent: int | None
) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(FOREIGN[name], indent=indent))
    with pytest.raises(NoRequestError, match="not read yet") as refused:
        read_log([str(path)])
    assert f"{path}, line 1: {name}" in refused.value.message
    assert ended("replay", str(path)) == 3


@pytest.mark.parametrize(
    "messages", [["hi"], [{"content": "hi"}], [{"role": None}], [{"role": "user"}, {"type": "x"}]]
)
def test_messages_without_roles_are_no_body(tmp_path: Path, messages: Any) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"model": "claude-opus-5", "messages": messages}))
    with pytest.raises(NoRequestError):
        read_log([str(path)])


@pytest.mark.parametrize("place", ["a.blobs", ".blobs", "sub/x.blobs"])
def test_what_another_log_keeps_beside_its_index_is_no_body(tmp_path: Path, place: str) -> None:
    (tmp_path / "a.json").write_bytes(json.dumps(GOOD).encode())
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "1.json").write_bytes(json.dumps(GOOD).encode())
    log = read_log([str(tmp_path)])
    assert (len(log.requests), [s.other for s in log.skipped]) == (1, [True])
    assert "index" in log.skipped[0].reason


@pytest.mark.parametrize("count", [-1, 10**11, 1.5, "7", True, None, [], {}])
@pytest.mark.parametrize("name", ["input_tokens", "cache_read_input_tokens"])
def test_an_absurd_pass_is_left_out_and_named(tmp_path: Path, name: str, count: Any) -> None:
    """The other passes stay; only a null is the same as no counter."""
    good = {"type": "message", "input_tokens": 3, "output_tokens": 1}
    usage = {**good, "iterations": [good, {**good, name: count}, good]}
    row = {"request": GOOD, "response": {"id": "m", "usage": usage}}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row))
    (request,) = read_log([str(path)]).requests
    assert request.response is not None
    assert len(request.response.prompt_passes) == (3 if count is None else 2)
    assert [name in note for note in request.notes] == ([] if count is None else [True])


@pytest.mark.parametrize("count", [-3, 10**11, 2.5, "x", [], None])
def test_an_absurd_edit_is_left_out_and_named(tmp_path: Path, count: Any) -> None:
    edits = [
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": count, "cleared_input_tokens": 1},
        {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 2, "cleared_input_tokens": -5},
        7,
    ]
    answer = {
        "id": "m",
        "usage": {"input_tokens": 3, "output_tokens": 1},
        "context_management": {"applied_edits": edits},
    }
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"request": GOOD, "response": answer}))
    (request,) = read_log([str(path)]).requests
    assert request.response is not None
    assert [(edit.count, edit.tokens) for edit in request.response.edits] == [(2, 0)]
    assert len(request.notes) == (count is not None)
    assert ended("replay", str(path), "--quiet") == 0


def test_a_log_of_which_nothing_can_be_replayed_ends_with_3(tmp_path: Path) -> None:
    """A body of another API without counters; one line with counters is enough to go on."""
    body = {"model": "gpt-5.4", "messages": [{"role": "system", "content": "x"}]}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(body) + "\n")
    assert ended("replay", str(path), "--quiet") == 3
    usage = {"prompt_tokens": 9, "completion_tokens": 1}
    path.write_text(json.dumps({"request": body, "response": {"choices": [], "usage": usage}}))
    assert ended("replay", str(path), "--quiet") == 0


PACKED = zstandard.compress(lines([GOOD] * 400).encode())
HALF = len(PACKED) // 2


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (PACKED[:HALF], "the zstd data is cut"),
        (PACKED + PACKED[:HALF], "the zstd data is cut"),
        (PACKED[:4], "the zstd data is cut"),
        (PACKED[:4] + b"\xff" * 30, "damaged zstd data"),
        (PACKED + b"no frame", "damaged zstd data"),
    ],
)
def test_a_zstd_file_that_is_cut_or_damaged_ends_with_2(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    path = tmp_path / "log.zst"
    path.write_bytes(data)
    with pytest.raises(InputError, match=reason) as error:
        read_log([str(path)])
    assert "zstd -t" in error.value.hint


@pytest.mark.parametrize("size", [1, PIECE - 1, PIECE, PIECE + 1, 1 << 20])
def test_zstd_frames_are_one_text_wherever_they_end(size: int) -> None:
    """Frames that are smaller and larger than the piece that is unpacked at once, one empty."""
    parts = [random.Random(size).randbytes(size), b"", b"y" * (3 << 20), b"z"]
    packed = b"".join(map(zstandard.compress, parts))
    with io.BufferedReader(ZstdStream(io.BytesIO(packed))) as stream:
        assert stream.read() == b"".join(parts)


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        # The flags and the method of a member, in its own header and in the directory.
        ((6, 8), b"\x01\x00", "password"),
        ((8, 10), b"\x63\x00", "compression method is not supported"),
    ],
)
def test_a_member_of_a_zip_that_cannot_be_opened_is_named(
    tmp_path: Path, at: tuple[int, int], value: bytes, reason: str
) -> None:
    path = tmp_path / "logs.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("one.jsonl", lines([GOOD]))
    data = bytearray(path.read_bytes())
    for start in (at[0], data.index(b"PK\x01\x02") + at[1]):
        data[start : start + 2] = value
    path.write_bytes(data)
    with pytest.raises(InputError, match=reason) as error:
        read_log([str(path)])
    assert f"{path}::one.jsonl" in error.value.message
