"""Credentials of tool servers: no part of a body as read, nowhere printed, nowhere written."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from ctxdoc.cli.app import main
from ctxdoc.prompt.diff import body_difference
from ctxdoc.reading.formats.base import read_body
from ctxdoc.reading.load import read_log
from ctxdoc.record.lines import Seen, line_of
from ctxdoc.record.redaction import Redactor
from ctxdoc.request.credentials import without_credentials

TOKEN, OTHER = "tok-never-to-be-seen-000", "tok-never-to-be-seen-111"
TEXT = "word " * 3_000
FORMS = ("text", "json", "markdown", "csv", "html", "github", "sarif", "junit")


def body(token: str = TOKEN, question: str = "hi") -> dict[str, Any]:
    """A body that opens a server, calls a tool of another one, and quotes both in its text."""
    server = {
        "type": "url",
        "url": "https://files.example.com",
        "name": "files",
        "authorization_token": token,
        "tool_configuration": {"enabled": True},
    }
    tool = {
        "type": "mcp",
        "server_label": "mail",
        "authorization": token,
        "headers": {"Authorization": f"Bearer {token}"},
    }
    system = [{"type": "text", "text": TEXT, "cache_control": {"type": "ephemeral"}}]
    return {
        "model": "claude-sonnet-5",
        "max_tokens": 9,
        "mcp_servers": [server],
        "tools": [{"name": "t", "input_schema": {"type": "object"}}, tool],
        "system": system,
        "messages": [{"role": "user", "content": f'"mcp_servers": {question}'}],
        "extra_headers": {"x-api-key": token},
    }


def logged(path: Path, *bodies: dict[str, Any]) -> str:
    rows = [
        {
            "timestamp": f"2026-11-20T09:00:{20 * n:02}Z",
            "request": each,
            "response": {
                "id": f"m{n}",
                "usage": {
                    "input_tokens": 9,
                    "cache_creation_input_tokens": 3_000,
                    "output_tokens": 1,
                },
            },
        }
        for n, each in enumerate(bodies)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


@pytest.mark.parametrize("condense", [False, True])
def test_a_body_as_read_has_none(tmp_path: Path, condense: bool) -> None:
    log = logged(tmp_path / "a.jsonl", body(), body(OTHER), body(question="more"))
    for request in read_log([log], condense=condense).requests:
        assert request.body is not None
        assert TOKEN.encode() not in bytes(request.body.mcp_servers)
        assert json.loads(bytes(request.body.mcp_servers)) == [
            {
                "type": "url",
                "url": "https://files.example.com",
                "name": "files",
                "tool_configuration": {"enabled": True},
            }
        ]
        assert [json.loads(bytes(tool)) for tool in request.body.tools or ()][1] == {
            "type": "mcp",
            "server_label": "mail",
        }
        assert request.body.others == ()


def test_a_token_that_was_renewed_changes_no_prompt() -> None:
    one, two = (json.dumps(body(token)).encode() for token in (TOKEN, OTHER))
    assert [bytes(tool) for tool in read_body(one).tools or ()] == [
        bytes(tool) for tool in read_body(two).tools or ()
    ]
    assert body_difference(Raw(one), Raw(two)) is None


@pytest.mark.parametrize(
    "command",
    [
        ("replay",),
        ("diagnose", "--pair", "1,2"),
        ("gate",),
        ("simulate", "--strategy", "keep"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("form", FORMS)
def test_no_report_prints_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], form: str
) -> None:
    log = logged(tmp_path / "a.jsonl", body(), body(OTHER, "more"))
    with pytest.raises(SystemExit):
        main([command[0], log, *command[1:], "--format", form])
    said = capsys.readouterr()
    assert "tok-never" not in said.out + said.err


def test_an_emitted_log_holds_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, out = logged(tmp_path / "a.jsonl", body(), body(OTHER, "more")), tmp_path / "b.jsonl"
    with pytest.raises(SystemExit):
        main(["simulate", log, "--strategy", "keep", "--emit", str(out)])
    assert not out.exists() or "tok-never" not in out.read_text()
    assert "Traceback" not in capsys.readouterr().err


def seen(data: bytes) -> Seen:
    return Seen(
        method="POST",
        path="/v1/messages",
        headers=[],
        body=data,
        at=datetime(2026, 11, 20, 9, tzinfo=UTC),
    )


def test_record_writes_a_placeholder_and_all_else_as_it_was_sent() -> None:
    found = json.loads(line_of(seen(json.dumps(body()).encode())))["request"]
    wanted = body("[removed]")
    wanted["tools"][1]["headers"] = wanted["extra_headers"] = "[removed]"
    assert found == wanted


def test_record_writes_none_where_texts_are_hashed() -> None:
    assert TOKEN.encode() not in line_of(seen(json.dumps(body()).encode()), Redactor())


def test_what_was_recorded_is_read_as_what_was_sent() -> None:
    sent = json.dumps(body()).encode()
    one, two = read_body(sent), read_body(without_credentials(sent))
    assert one.messages == two.messages
    assert list(map(bytes, one.tools or ())) == list(map(bytes, two.tools or ()))
    assert (bytes(one.mcp_servers), one.others) == (bytes(two.mcp_servers), two.others)


@pytest.mark.parametrize(
    "data",
    [
        # no credential: not a byte is another one
        b'{"messages": [], "mcp_servers": [ {"name": "files"} ]}',
        b'{"messages": [], "tools": [{"name": "mcp", "headers": "h", "authorization": 1}]}',
        b'{"messages": [{"role": "user", "content": "\\"authorization_token\\": \\"x\\""}]}',
        b'{"messages": [{"role": "assistant", "content": [{"type": "tool_use", "input": '
        b'{"mcp_servers": [{"authorization_token": "x"}]}}]}]}',
        b'{"mcp_servers": [{"authorization_token": null}], "messages": []}',
        # no body
        b"mcp",
        b'["mcp"]',
        b'{"mcp_servers": 5, "tools": {"type": "mcp"}}',
        b'{"mcp_servers": ["x"], "tools": ["mcp", null]}',
    ],
)
def test_what_holds_none_stays_to_the_byte(data: bytes) -> None:
    found = without_credentials(data)
    assert json.loads(found) == json.loads(data) if data[:1] == b"{" else found == data


def test_spellings_of_the_other_values_stay() -> None:
    data = b'{"mcp_servers":[{"authorization_token":"t"}],"a":1.0,"b":1e5,"c":"\\u00e9"}'
    assert without_credentials(data) == (
        b'{"mcp_servers":[{"authorization_token":"[removed]"}],"a":1.0,"b":1e5,"c":"\\u00e9"}'
    )
