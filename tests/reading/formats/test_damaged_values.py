"""Values of an odd type in a record: named and counted; a reader's own fault is never taken for one."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from ctxdoc.cli.app import FAULT, main
from ctxdoc.errors import CtxdocError
from ctxdoc.reading.deduplicate import Folder
from ctxdoc.reading.formats import FORMATS, native
from ctxdoc.reading.formats.base import UNREADABLE
from ctxdoc.reading.formats.shared.members import (
    OddValueError,
    members_of,
    required,
)
from ctxdoc.reading.load import read_log
from ctxdoc.reading.source import Source, reason_of
from ctxdoc.request.log import Skipped
from ctxdoc.request.request import Request
from tests.support.mutations import mutations
from tests.support.records import ANSWER, BODY, CASSETTES, DOCUMENTS, rich_files

SAMPLES = Path(__file__).parents[3] / "fixtures" / "formats"
RUNS = 24
"""Damaged copies of each file; tens of thousands were tried."""
FILES = [
    *((path.parent.name, path.read_bytes()) for path in sorted(SAMPLES.glob("*/sample*"))),
    *rich_files(),
]
NAMES = [f"{name}-{index}" for index, (name, _) in enumerate(FILES)]


def read(name: str, data: bytes, *, folded: bool = False) -> list[Request | Skipped]:
    source = Source("x", io.BytesIO(data))
    source.folding = Folder() if folded else None
    return list(FORMATS[name].read(source))


@pytest.mark.parametrize(("name", "data"), FILES, ids=NAMES)
def test_a_damaged_file_is_read_or_named(name: str, data: bytes) -> None:
    for index, damaged in enumerate(mutations(data, len(data), RUNS)):
        source = Source("x", io.BytesIO(damaged))
        for form in FORMATS:
            form.matches(source)
        for item in read(name, damaged, folded=bool(index % 2)):
            assert isinstance(item, Request) or item.reason


@pytest.mark.parametrize(("name", "data"), FILES, ids=NAMES)
def test_what_is_left_out_of_a_damaged_file_is_counted(
    name: str, data: bytes, tmp_path: Path
) -> None:
    """Whatever format it is taken for then."""
    path = tmp_path / name
    for index, damaged in enumerate(mutations(data, -len(data), RUNS // 6)):
        path.write_bytes(damaged)
        try:
            log = read_log([str(path)], condense=bool(index % 2))
        except CtxdocError:
            continue
        assert log.records == sum(each.records for each in log.requests) + len(log.skipped)


ODD: tuple[Any, ...] = (None, False, 0, -1, 10**400, 2.5, "", "x", [], [None], [[]], {}, {"a": []})
ONE_A_LINE = (
    "native", "claude_trace", "test_agent", "req_llm", "litellm", "flat", "openai_chat", "body",
)  # fmt: skip
"""Formats in which a line is a request or a skipped record, whatever stands in it."""


@pytest.mark.parametrize("name", ONE_A_LINE)
def test_a_damaged_line_is_one_record_and_takes_no_other_with_it(name: str) -> None:
    """Each member of a line, and of the objects in it, by each value; the line behind it is read."""
    line = DOCUMENTS[name][0][0]
    whole = json.dumps(line).encode()
    for damaged in variants(line):
        items = read(name, json.dumps(damaged).encode() + b"\n" + whole)
        assert len(items) == 2
        assert isinstance(items[1], Request)
        assert isinstance(items[0], Request) or items[0].line == 1


def variants(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The line with one member of it, or of an object in it, as each odd value, and without it."""
    for name, value in line.items():
        yield {other: line[other] for other in line if other != name}
        yield from ({**line, name: odd} for odd in ODD)
        if isinstance(value, dict):
            yield from ({**line, name: inner} for inner in variants(value))


@pytest.mark.parametrize(
    ("name", "path", "value", "reason"),
    [
        ("httpmock", ("when",), "x", "Expected 'object', got 'str' - at '$.when'"),
        ("httpmock", ("then",), [1], "Expected 'object', got 'array' - at '$.then'"),
        ("httpmock", ("when",), ..., "no 'when'"),
        ("go_vcr", ("interactions", 0, "response"), 5, "Expected 'object', got 'int' - at '$.response'"),
        ("go_vcr", ("interactions", 0, "request"), ..., "no 'request'"),
        ("vcrpy_parsed", ("interactions", 0, "request"), ..., "no 'request'"),
        ("ruby_vcr", ("http_interactions", 0, "request"), ..., "no 'request'"),
    ],
)  # fmt: skip
def test_an_odd_value_of_a_cassette_is_named_with_its_path(
    name: str, path: tuple[Any, ...], value: Any, reason: str
) -> None:
    whole = changed(CASSETTES[name], path, value)
    first = read(name, yaml.safe_dump(whole, sort_keys=False).encode())[0]
    assert isinstance(first, Skipped)
    assert first.reason == f"no interaction: {reason}"


def changed(whole: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with another value at the path; without the member for `...`."""
    if not path:
        return value
    copy = whole.copy()
    copy[path[0]] = changed(whole[path[0]], path[1:], value)
    if copy[path[0]] is ...:
        del copy[path[0]]
    return copy


@pytest.mark.parametrize(
    ("path", "got"),
    [
        ((0,), "[0]"),
        ((0, "scopeLogs"), "[0].scopeLogs"),
        ((0, "scopeLogs", 0, "logRecords", 2), "[0].scopeLogs[0].logRecords[2]"),
    ],
)  # fmt: skip
def test_an_odd_value_of_an_export_is_named_with_its_path(path: tuple[Any, ...], got: str) -> None:
    whole = changed(DOCUMENTS["claude_code_otel"][0][0], ("resourceLogs", *path), "x")
    (item,) = read("claude_code_otel", json.dumps(whole).encode())
    assert isinstance(item, Skipped)
    assert item.reason.startswith("Expected ")
    assert item.reason.endswith(f"got 'str' - at '$.resourceLogs{got}'")


@pytest.mark.parametrize("value", [[], {}, ["error"], 5, None])
def test_a_stop_reason_that_is_no_text_is_no_fault_of_ours(value: object) -> None:
    """A list or a map cannot be looked up in a set."""
    sample = SAMPLES / "pi_session" / "sample.jsonl"
    rows = [json.loads(line) for line in sample.read_text().splitlines()]
    answers = [row for row in rows if row.get("message", {}).get("role") == "assistant"]
    assert answers
    for row in answers:
        row["message"]["stopReason"] = value
        row["message"]["usage"] = {}
    found = read("pi_session", "".join(json.dumps(row) + "\n" for row in rows).encode())
    assert found


@pytest.mark.parametrize("side", ["request", "response"])
@pytest.mark.parametrize("value", [5, 2.5, True])
def test_a_body_of_an_odd_type_is_left_out_with_its_path(side: str, value: Any) -> None:
    """The other side of the exchange is used all the same."""
    line = DOCUMENTS["test_agent"][0][0]
    whole = changed(line, (side, "body"), value)
    (item,) = read("test_agent", json.dumps(whole).encode())
    assert isinstance(item, Request)
    assert (item.body is None, item.usage is None) == (side == "request", side == "response")
    kind = type(value).__name__
    assert item.notes == (
        f"{side} not used: Expected 'str', got '{kind}' - at '$.{side}.body'",
    )  # fmt: skip


class TestMembers:
    """The typed ways into a foreign object."""

    def test_a_null_is_an_empty_object(self) -> None:
        assert members_of(None, "$.a") == {}

    @pytest.mark.parametrize(
        ("value", "kind"),
        [(1, "int"), (2.5, "float"), (True, "bool"), (b"", "bytes"), ([], "array"), ("", "str")],
    )
    def test_another_type_is_refused_by_its_name_in_json(self, value: Any, kind: str) -> None:
        with pytest.raises(OddValueError) as error:
            members_of(value, "$.a")
        assert str(error.value) == f"Expected 'object', got '{kind}' - at '$.a'"
        assert error.value.path == "$.a"
        with pytest.raises(msgspec.ValidationError) as own:
            msgspec.convert(value, dict)
        assert reason_of(own.value) == f"Expected 'object', got '{kind}'"

    def test_a_member_is_required_and_may_be_null(self) -> None:
        assert required({"a": None}, "a") is None
        with pytest.raises(OddValueError, match="no 'b'"):
            required({"a": None}, "b")


@pytest.mark.parametrize("fault", [AttributeError, TypeError, KeyError, IndexError, AssertionError])
def test_a_fault_of_our_own_is_no_bad_record(
    fault: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes out of the reader as it is."""

    def broken(_: Any) -> Any:
        raise fault("a slip")

    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"request": BODY, "response": ANSWER}))
    monkeypatch.setattr(native, "response_of", broken)
    with pytest.raises(fault, match="a slip"):
        read_log([str(path)])
    assert not issubclass(fault, UNREADABLE)


def test_a_fault_of_our_own_ends_the_command_with_70(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps({"request": BODY, "response": ANSWER}))
    monkeypatch.delattr(native, "response_of")
    with pytest.raises(SystemExit) as end:
        main(["replay", str(path)])
    assert end.value.code == FAULT == 70
    assert "a fault in ctxdoc itself (NameError)" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", '{"a"', "\xff"])
def test_a_text_that_is_none_is_unreadable(text: str) -> None:
    """What reading raises, of each kind: msgspec's errors, and those of numbers, times and bytes."""
    with pytest.raises(UNREADABLE):
        msgspec.json.decode(text.encode("latin-1"))
    with pytest.raises(UNREADABLE):
        int(f"{text}x")
    with pytest.raises(UNREADABLE):
        datetime.fromisoformat(text)
    with pytest.raises(UNREADABLE):
        b"\xff".decode()
