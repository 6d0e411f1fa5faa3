"""Test cassettes of five recorders: what each writes in its own way, and hostile YAML."""

from __future__ import annotations

import gzip
import io
import json
import time
from base64 import b64encode
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctxdoc.reading.formats import FORMATS
from ctxdoc.reading.formats.base import Item
from ctxdoc.reading.formats.shared.yaml_text import documents, entries
from ctxdoc.reading.formats.shared.yaml_values import Entry
from ctxdoc.reading.load import read_log
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Skipped
from ctxdoc.request.request import Request

SAMPLES = Path(__file__).parents[3] / "fixtures" / "formats"
IDS = ("vcrpy_parsed", "vcrpy", "r_vcr", "ruby_vcr", "go_vcr", "httpmock")
URL = "https://api.anthropic.com/v1/messages"
SENT = '{"model": "claude-sonnet-4-5",  "messages": [{"role": "user", "content": "Hello"}]}'
ANSWER = json.dumps(
    {
        "id": "msg_1",
        "model": "claude-sonnet-4-5",
        "usage": {
            "input_tokens": 3,
            "cache_read_input_tokens": 5,
            "cache_creation_input_tokens": 7,
            "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 2},
            "output_tokens": 4,
        },
    }
)
STREAM = (
    'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1",'
    '"model":"claude-sonnet-4-5","usage":{"input_tokens":3,"cache_read_input_tokens":5,'
    '"cache_creation_input_tokens":7,"output_tokens":1}}}\n\n'
    'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":4}}\n\n'
)


def source(text: str | bytes) -> Source:
    data = text if isinstance(text, bytes) else text.encode()
    return Source("log.yaml", io.BytesIO(data))


def found(form: str, text: str | bytes) -> list[Item]:
    """What a format reads, after it recognized the text."""
    log = source(text)
    assert FORMATS[form].matches(log)
    return list(FORMATS[form].read(log))


def only(form: str, text: str | bytes) -> Request:
    [item] = found(form, text)
    assert isinstance(item, Request)
    return item


def vcrpy(
    body: Any = SENT, answer: Any = ANSWER, headers: Any = None, url: str = URL, code: int = 200
) -> str:
    request = {"body": body, "headers": {}, "method": "POST", "uri": url}
    response = {"body": {"string": answer}, "headers": headers or {}, "status": {"code": code}}
    return str(
        yaml.safe_dump({"interactions": [{"request": request, "response": response}], "version": 1})
    )


def counters(request: Request) -> tuple[int, int, int, int]:
    usage = request.usage
    assert usage is not None
    return usage.uncached, usage.cache_read, usage.cache_write, usage.output


@pytest.mark.parametrize("form", IDS)
class TestEveryRecorder:
    """What holds for all of them."""

    def test_its_sample_is_recognized_by_it_alone(self, form: str) -> None:
        [path] = (SAMPLES / form).glob("sample.*")
        log = source(path.read_bytes())
        assert [name for name in IDS if FORMATS[name].matches(log)] == [form]

    def test_its_sample_has_body_counters_and_model(self, form: str) -> None:
        [path] = (SAMPLES / form).glob("sample.*")
        for request in read_log([str(path)], strict=True).requests:
            assert request.body is not None
            assert request.usage is not None
            assert request.model == "claude-sonnet-4-5"

    def test_a_file_cut_anywhere_is_read_or_reported(self, form: str) -> None:
        [path] = (SAMPLES / form).glob("sample.*")
        data = path.read_bytes()
        for end in range(0, len(data), 7):
            for item in FORMATS[form].read(source(data[:end])):
                assert isinstance(item, Request | Skipped)

    def test_no_secret_is_kept(self, form: str) -> None:
        [path] = (SAMPLES / form).glob("sample.*")
        for request in read_log([str(path)]).requests:
            assert "x-api-key" not in request.headers


class TestVcrpy:
    """Bodies as text or bytes, two layouts, tags of Python objects."""

    def test_the_body_is_kept_byte_for_byte(self) -> None:
        assert bytes(only("vcrpy", vcrpy()).raw or b"") == SENT.encode()

    @pytest.mark.parametrize(
        "answer",
        [
            ANSWER,
            ANSWER.encode() + b"",
            gzip.compress(ANSWER.encode()),
            STREAM,
            STREAM.encode(),
            gzip.compress(STREAM.encode()),
        ],
        ids=["text", "bytes", "gzip", "stream", "stream bytes", "stream gzip"],
    )
    def test_answers_are_read_in_every_packing(self, answer: str | bytes) -> None:
        assert counters(only("vcrpy", vcrpy(answer=answer))) == (3, 5, 7, 4)

    @pytest.mark.parametrize("encoding", [{}, {"content-encoding": ["gzip"]}])
    def test_gzip_is_told_by_its_bytes_not_by_a_header(self, encoding: dict[str, Any]) -> None:
        text = vcrpy(answer=gzip.compress(ANSWER.encode()), headers=encoding)
        assert counters(only("vcrpy", text)) == (3, 5, 7, 4)

    def test_text_that_a_header_calls_packed_is_read_as_text(self) -> None:
        assert counters(only("vcrpy", vcrpy(headers={"content-encoding": ["gzip"]})))[0] == 3

    def test_header_names_under_python_tags_are_names(self) -> None:
        text = vcrpy().replace(
            "    headers: {}\n    method",
            "    headers:\n      ? !!python/object/apply:multidict._multidict.istr\n"
            "      - Anthropic-Version\n      : - '2023-06-01'\n    method",
        )
        assert only("vcrpy", text).headers == {"anthropic-version": "2023-06-01"}

    def test_binary_header_values_are_text(self) -> None:
        text = vcrpy(headers={"request-id": [b"req_1"]})
        assert only("vcrpy", text).headers == {"request-id": "req_1"}

    def test_a_stream_object_is_its_bytes(self) -> None:
        packed = b64encode(SENT.encode()).decode()
        text = vcrpy(body="BODY").replace(
            "body: BODY",
            "body: !!python/object/new:_io.BytesIO\n      state: !!python/tuple\n"
            f"      - !!binary {packed}\n      - 0\n      - null",
        )
        assert bytes(only("vcrpy", text).raw or b"") == SENT.encode()

    def test_python_tags_run_nothing(self, tmp_path: Path) -> None:
        target = tmp_path / "made"
        text = vcrpy(body="BODY").replace(
            "BODY", f"!!python/object/apply:os.system ['touch {target}']"
        )
        found("vcrpy", text)
        assert not target.exists()

    def test_lists_apart_are_paired_by_order(self, tmp_path: Path) -> None:
        request = {"body": SENT.encode(), "headers": {}, "method": "POST", "uri": URL}
        answers = [ANSWER, ANSWER.replace("msg_1", "msg_2")]
        lists = {
            "requests": [request, request],
            "responses": [{"body": {"string": a.encode()}, "headers": {}} for a in answers],
        }
        path = tmp_path / "calls.yaml.gz"
        path.write_bytes(gzip.compress(yaml.safe_dump(lists).encode()))
        assert [r.id for r in read_log([str(path)]).requests] == ["msg_1", "msg_2"]

    def test_a_response_too_many_is_skipped(self) -> None:
        request = {"body": SENT, "headers": {}, "method": "POST", "uri": URL}
        response = {"body": {"string": ANSWER}, "headers": {}}
        text = yaml.safe_dump({"requests": [request], "responses": [response, response]})
        items = found("vcrpy", text)
        assert isinstance(items[0], Request)
        assert isinstance(items[1], Skipped)
        assert items[1].reason == "a response without a request"

    def test_a_masked_url_is_no_reason_to_skip(self) -> None:
        assert counters(only("vcrpy", vcrpy(url="**REDACTED**"))) == (3, 5, 7, 4)

    def test_the_time_is_that_of_the_answer(self) -> None:
        text = vcrpy(headers={"Date": ["Fri, 02 Jan 2026 10:00:00 GMT"]})
        assert only("vcrpy", text).at == datetime(2026, 1, 2, 10, tzinfo=UTC)

    def test_a_masked_time_is_none(self) -> None:
        assert only("vcrpy", vcrpy(headers={"date": ["**REDACTED**"]})).at is None

    def test_a_version_in_front_makes_it_no_go_cassette(self) -> None:
        text = "version: 1\n" + vcrpy().replace("version: 1\n", "")
        assert not FORMATS["go_vcr"].matches(source(text))
        assert counters(only("vcrpy", text)) == (3, 5, 7, 4)

    def test_a_cassette_written_as_json_is_read(self) -> None:
        text = json.dumps(yaml.safe_load(vcrpy()))
        assert counters(only("vcrpy", text)) == (3, 5, 7, 4)

    def test_a_refused_request_is_kept_with_its_error(self) -> None:
        said = '{"type":"error","error":{"type":"not_found_error","message":"no such model"}}'
        assert only("vcrpy", vcrpy(answer=said, code=404)).refused == "no such model"

    def test_a_call_of_another_kind_is_skipped_with_its_line(self) -> None:
        [item] = found("vcrpy", vcrpy(url=URL + "/count_tokens"))
        assert item == Skipped(
            "log.yaml", 2, "calls no model: /v1/messages/count_tokens", other=True
        )

    def test_a_bedrock_profile_is_the_model(self) -> None:
        body = SENT.replace('"model": "claude-sonnet-4-5",', '"anthropic_version": "b",')
        url = "https://bedrock/model/arn%3Aaws%3Abedrock%3Aus%3A1%3Ap%2Fclaude-v1%3A0/invoke"
        assert only("vcrpy", vcrpy(body, url=url)).model == "arn:aws:bedrock:us:1:p/claude-v1:0"

    @pytest.mark.parametrize("entry", ["1", "null", "[a]", "{}", "{request: 3}", "{response: {}}"])
    def test_an_entry_that_is_none_is_skipped_and_the_next_read(self, entry: str) -> None:
        items = found("vcrpy", vcrpy().replace("interactions:\n", f"interactions:\n- {entry}\n"))
        assert isinstance(items[0], Skipped)
        assert items[0].line == 2
        assert isinstance(items[1], Request)

    def test_what_follows_a_fault_is_one_skip(self) -> None:
        items = found("vcrpy", vcrpy().replace("version: 1", "- request: 'open"))
        assert isinstance(items[0], Request)
        assert [type(item) for item in items[1:]] == [Skipped]

    def test_damaged_base64_is_skipped(self) -> None:
        [item] = found("vcrpy", vcrpy(body="BODY", answer="").replace("BODY", "!!binary a"))
        assert isinstance(item, Skipped)


class TestParsedBodies:
    """Bodies as YAML trees."""

    TEXT = (SAMPLES / "vcrpy_parsed" / "sample.yaml").read_text()

    def test_they_are_not_taken_for_the_bytes(self) -> None:
        request = only("vcrpy_parsed", self.TEXT)
        assert request.raw is None
        assert request.body is not None

    def test_quoted_numbers_stay_text(self) -> None:
        request = only("vcrpy_parsed", self.TEXT.replace("content: Hello", "content: '5'"))
        assert request.body is not None
        assert json.loads(bytes(request.body.messages[0])) == {"role": "user", "content": "5"}

    def test_a_streamed_answer_is_read_beside_a_parsed_request(self) -> None:
        log = yaml.safe_load(self.TEXT)
        response = log["interactions"][0]["response"]
        del response["parsed_body"]
        response["body"] = {"string": STREAM}
        assert counters(only("vcrpy_parsed", yaml.safe_dump(log))) == (3, 5, 7, 4)


class TestRubyAndR:
    """The same names, written by two recorders."""

    RUBY = (SAMPLES / "ruby_vcr" / "sample.yml").read_text()
    R = (SAMPLES / "r_vcr" / "sample.yml").read_text()

    def test_binary_with_one_exclamation_mark_is_bytes(self) -> None:
        assert "!binary |-" in self.RUBY
        assert counters(only("ruby_vcr", self.RUBY)) == (8, 0, 0, 4)

    def test_the_recorders_time_counts(self) -> None:
        assert only("ruby_vcr", self.RUBY).at == datetime(2026, 1, 2, 10, tzinfo=UTC)

    def test_a_time_without_quotes_or_zone_is_utc(self) -> None:
        assert only("r_vcr", self.R).at == datetime(2026, 1, 2, 10, 0, 1, tzinfo=UTC)

    def test_a_plain_status_is_the_status(self) -> None:
        text = self.R.replace("status: 200", "status: 529").replace('"usage"', '"u"')
        assert only("r_vcr", text).refused == "status 529"

    def test_base64_beside_an_encoding_is_bytes(self) -> None:
        log = yaml.safe_load(self.R)
        packed = {"encoding": "", "base64_string": b64encode(ANSWER.encode()).decode()}
        log["http_interactions"][0]["response"]["body"] = packed
        assert counters(only("r_vcr", yaml.safe_dump(log))) == (3, 5, 7, 4)


class TestGo:
    """The version in front, and spans of time."""

    TEXT = (SAMPLES / "go_vcr" / "sample.yaml").read_text()

    @pytest.mark.parametrize(
        ("written", "seconds"),
        [("1.25s", 1.25), ("850ms", 0.85), ("1m2.5s", 62.5), ("12µs", 0.000012), ("0s", 0.0)],
    )
    def test_spans_are_seconds(self, written: str, seconds: float) -> None:
        request = only("go_vcr", self.TEXT.replace("1.25s", written))
        assert request.duration == pytest.approx(seconds)

    @pytest.mark.parametrize("written", ["", "soon", "1.25", "-1s", "1s later", "99999h"])
    def test_what_is_no_span_is_none(self, written: str) -> None:
        assert only("go_vcr", self.TEXT.replace("1.25s", written)).duration is None

    def test_the_first_version_of_the_files_is_read(self) -> None:
        text = self.TEXT.replace("version: 2", "version: 1").replace("- id: 0\n  r", "- r")
        assert counters(only("go_vcr", text)) == (8, 0, 0, 4)


class TestHttpmock:
    """Several documents a file."""

    TEXT = (SAMPLES / "httpmock" / "sample.yaml").read_text()

    def test_every_document_is_a_call(self) -> None:
        items = found("httpmock", self.TEXT)
        assert [item.line for item in items] == [1, 16]

    def test_a_body_in_base64_is_read(self) -> None:
        items = found("httpmock", self.TEXT)
        assert isinstance(items[1], Request)
        assert counters(items[1]) == (9, 0, 0, 5)

    def test_a_fault_ends_one_document_only(self) -> None:
        items = found("httpmock", self.TEXT.replace("method: POST", "method: 'POST", 1))
        assert [type(item) for item in items] == [Skipped, Request]

    def test_the_model_of_a_path_is_unquoted(self) -> None:
        body = '{"messages":[{"role":"user","content":[{"text":"Hi"}]}]}'
        text = (
            f"when:\n  path: /model/nova-v1%3A0/converse\n  body: '{body}'\nthen:\n  status: 200\n"
        )
        assert only("httpmock", text).model == "nova-v1:0"


def listed(text: str | bytes) -> list[Entry | Skipped]:
    return list(entries(source(text), "a"))


class TestYaml:
    """What all of them share."""

    @pytest.mark.parametrize(
        ("written", "value"),
        [
            ("1", 1),
            ("-2.5", -2.5),
            ("1.0e-05", 1.0e-05),
            ("true", True),
            ("null", None),
            ("", None),
            ("no", "no"),
            ("010", "010"),
            ("1:30", "1:30"),
            ("1_000", "1_000"),
            ("2026-01-02", "2026-01-02"),
            ("'1'", "1"),
            ("!!str 1", "1"),
            ("!unknown 1", "1"),
            ("! 1", "1"),
            ("!!binary YQ==", b"a"),
            ("!binary YQ==", b"a"),
            ("!!python/tuple [1]", [1]),
            ("{<<: 1}", {"<<": 1}),
            ("{1: x}", {"1": "x"}),
        ],
    )
    def test_values_are_those_of_json(self, written: str, value: Any) -> None:
        assert listed(f"a:\n- {written}\n") == [Entry("a", 2, value)]

    def test_an_alias_repeats_its_value(self) -> None:
        assert [e.value for e in listed("a:\n- &x [1]\n- *x\n") if isinstance(e, Entry)] == [
            [1],
            [1],
        ]

    def test_a_number_too_long_to_compute_is_text(self) -> None:
        [entry] = listed("a:\n- " + "9" * 1_000_000)
        assert isinstance(entry, Entry)
        assert isinstance(entry.value, str)

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("a:\n- " + "[" * 100_000, "not YAML: exceeded maximum nesting depth"),
            ("a:\n- " + "{a: " * 100_000, "nested deeper than 200 levels"),
            ("a:\n  " + "- " * 100_000, "nested deeper than 200 levels"),
            ("a:\n- " + "? " * 100_000, "nested deeper than 200 levels"),
            ("a:\n- &x [*x]\n", "an alias of nothing, or of what it is part of"),
            ("a:\n- ? {b: c}\n  : d\n", "a key that is no text"),
            ("[a]", "no mapping at the top of the file"),
            ("a:\n- 'x", "not YAML: found unexpected end of stream"),
            ("a:\n- x\x01", "not YAML: control characters are not allowed"),
        ],
        ids=["flow", "flow map", "block", "keys", "self", "key", "list", "cut", "control"],
    )
    def test_hostile_text_is_one_skip(self, text: str, reason: str) -> None:
        started = time.monotonic()
        [item] = listed(text)
        assert isinstance(item, Skipped)
        assert item.reason == reason
        assert time.monotonic() - started < 5

    def test_a_bomb_of_aliases_is_refused(self) -> None:
        rows = ["  x0: &x0 lol"]
        rows += [f"  x{n + 1}: &x{n + 1} [{', '.join([f'*x{n}'] * 10)}]" for n in range(12)]
        [item] = listed("b:\n" + "\n".join(rows) + "\na: []\n")
        assert isinstance(item, Skipped)
        assert item.reason == "aliases repeat too much"

    def test_a_long_text_repeated_often_is_refused(self) -> None:
        items = listed("a:\n- &x '" + "x" * 100_000 + "'\n" + "- *x\n" * 1000)
        assert items[-1] == Skipped("log.yaml", len(items) + 1, "aliases repeat too much")

    def test_marks_of_documents_do_not_part_a_text(self) -> None:
        text = "a: |\n  ---\n  b\n---\nc\n"
        assert [e.value for e in documents(source(text)) if isinstance(e, Entry)] == [
            {"a": "---\nb\n"},
            "c",
        ]

    def test_seven_megabytes_take_seconds(self) -> None:
        item = vcrpy(body="word " * 50, answer=STREAM).split("\n", 1)[1].replace("version: 1\n", "")
        text = "interactions:\n" + item * (7_000_000 // len(item))
        started = time.monotonic()
        assert len(list(entries(source(text), "interactions"))) > 1000
        assert time.monotonic() - started < 15
