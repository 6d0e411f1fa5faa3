"""The options of `ctxdoc record` by what they change."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.support.api_server import ApiServer
from tests.support.options import (
    shows,
)
from tests.support.program import Ended, call
from tests.support.sessions import ROOT


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer().running() as server:
        yield server


SENDER = """
import json, os, urllib.request
body = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9,
                   "messages": [{"role": "user", "content": "a secret word"}]}).encode()
request = urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", body,
                                 {"content-type": "application/json", "x-api-key": "k"})
urllib.request.urlopen(request).read()
"""


def recorded(api: ApiServer, log: Path, *words: str) -> Ended:
    program = ("--", sys.executable, "-c", SENDER)
    return call("record", "--out", log, "--upstream", api.url, *words, *program)


@shows("--out", "record")
@shows("--upstream", "record")
@shows("--quiet", "record")
def test_what_a_program_sends_is_written_to_a_log(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "agent.jsonl"
    ended = recorded(api, log)
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == f"ctxdoc: 1 request recorded; ctxdoc replay {log}\n"
    assert (api.calls, len(log.read_text().splitlines())) == (1, 1)
    assert recorded(api, log, "--quiet").err == ""
    assert (api.calls, len(log.read_text().splitlines())) == (2, 2)


@shows("--redact", "record")
def test_redact_leaves_no_text(api: ApiServer, tmp_path: Path) -> None:
    for kind, is_there in (("none", True), ("text", False)):
        recorded(api, tmp_path / kind, "--redact", kind)
        assert ("a secret word" in (tmp_path / kind).read_text()) is is_there


@shows("--debug", "record")
def test_debug_shows_a_fault_of_the_recorder(api: ApiServer, tmp_path: Path) -> None:
    with mock.patch("ctxdoc.record.proxy.Proxy.running", side_effect=RuntimeError("at the door")):
        assert "at the door" not in recorded(api, tmp_path / "a").err
        ended = recorded(api, tmp_path / "a", "--debug")
    assert ended.code == 70
    assert "at the door" in ended.err


@shows("--listen", "record")
@shows("--port", "record")
def test_listen_waits_at_a_port_until_it_is_interrupted(api: ApiServer, tmp_path: Path) -> None:
    """The free port of a first listening is asked for by a second one."""
    words = (sys.executable, "-m", "ctxdoc", "record", "--listen", "--upstream", api.url)
    ports = []
    for port in ("0", None):
        asked = port or ports[0]
        with subprocess.Popen(
            (*words, "--out", str(tmp_path / "log"), "--port", asked),
            stderr=subprocess.PIPE,
            cwd=ROOT,
        ) as process:
            assert process.stderr is not None
            said = process.stderr.readline().decode()
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
        ports.append(said.strip().rpartition(":")[2])
    assert ports[0] == ports[1] != "0"
