"""Recording: real clients through the proxy, what survives, what is never written, the SDK's middleware."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx
import pytest

from ctxdoc.ledger.ledger import replay
from ctxdoc.reading.load import read_log
from ctxdoc.record import async_transport, recorder, transport
from ctxdoc.record.lines import Seen, line_of
from ctxdoc.record.proxy import Proxy
from ctxdoc.record.redaction import Redactor
from ctxdoc.record.writer import Recorder
from tests.cli.test_cli import ROOT
from tests.clients.common import MARK, MODEL, QUESTION, SYSTEM
from tests.support.api_server import ApiServer

KEY = "sk-ant-api03-never-to-be-written-000"
CLIENTS = (
    "sdk_sync", "sdk_async", "sdk_stream", "pydantic_agent", "langchain_agent", "litellm_calls",
)  # fmt: skip
Body = dict[str, Any]


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer().running() as server:
        yield server


def environment(url: str, **more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "HOME") or name.startswith("COVERAGE_PROCESS")
    }
    return {
        **kept,
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_URL": url,
        "ANTHROPIC_API_BASE": url,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "PYTHONWARNINGS": "ignore",
        **more,
    }


def recorded(
    api: ApiServer, log: Path, *command: str, options: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[bytes]:
    """A program behind the proxy."""
    words = ("record", "--out", str(log), "--upstream", api.url, *options, "--", *command)
    return subprocess.run(
        [sys.executable, "-m", "ctxdoc", *words],
        capture_output=True,
        cwd=ROOT,
        env=environment("http://127.0.0.1:9"),
        timeout=100,
        check=False,
    )


def lines_of(log: Path) -> list[Body]:
    return [json.loads(line) for line in log.read_text().splitlines()]


COUNTERS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
OWN = ("host", "connection")
"""Headers that belong to one connection (RFC 9110)."""


@pytest.mark.parametrize("client", CLIENTS)
def test_a_real_client_sends_the_same_through_the_proxy(client: str, tmp_path: Path) -> None:
    """What arrives is equal to the byte, and the log reproduces what was billed."""
    program = (sys.executable, "-m", f"tests.clients.{client}")
    with ApiServer().running() as direct:
        subprocess.run(
            program,
            check=True,
            cwd=ROOT,
            env=environment(direct.url),
            timeout=100,
            capture_output=True,
        )
    log = tmp_path / "log.jsonl"
    with ApiServer().running() as api:
        ended = recorded(api, log, *program)
        assert ended.returncode == 0, ended.stderr
        assert api.bodies == direct.bodies
        for one, two in zip(api.headers, direct.headers, strict=True):
            assert {k: v for k, v in one.items() if k not in OWN} == {
                k: v for k, v in two.items() if k not in OWN
            }
    rows = lines_of(log)
    assert [row["request"] for row in rows] == [json.loads(body) for body in api.bodies]
    usages = [row["response"]["usage"] for row in rows]
    assert [[usage[name] for name in COUNTERS] for usage in usages] == [
        [usage[name] for name in COUNTERS] for usage in api.usages
    ]
    found = replay(read_log([str(log)], condense=True))
    assert len(found.rows) == len(api.usages)
    for row, usage in zip(found.rows, api.usages, strict=True):
        assert row.reported is not None
        assert row.simulated is not None
        assert row.reported.cache_read == usage["cache_read_input_tokens"]
        assert abs(row.simulated.cache_read - row.reported.cache_read) <= max(
            20, 0.03 * row.reported.cache_read
        )
        # The stand-in writes 80 tokens of each answer.
        assert row.reported.output == 80
    assert KEY.encode() not in log.read_bytes() + ended.stdout + ended.stderr
    assert log.stat().st_mode & 0o777 == 0o600


def messages_body(text: str = "hi", **more: Any) -> Body:
    return {
        "model": MODEL,
        "max_tokens": 9,
        "messages": [{"role": "user", "content": text}],
        **more,
    }


def sender(*sent: Body, headers: str = "") -> tuple[str, ...]:
    """A program that sends some bodies by http.client, one after the other, and prints the statuses."""
    text = f"""
import http.client, json, os, sys
from urllib.parse import urlsplit
for sent in {[json.dumps(each) for each in sent]!r}:
    url = urlsplit(os.environ["ANTHROPIC_BASE_URL"])
    link = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    link.request("POST", "/v1/messages?beta=true", sent, {{"x-api-key": {KEY!r}, "cookie": {KEY!r},
        "authorization": "Bearer " + {KEY!r}, "anthropic-version": "2023-06-01", {headers}}})
    try:
        answer = link.getresponse()
        print(answer.status, len(answer.read()))
    except Exception as error:
        print(type(error).__name__)
"""
    return (sys.executable, "-c", text)


def test_what_comes_back_is_passed_on_and_written_as_what_it_was(
    api: ApiServer, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    api.plan = [
        {},
        {"status": 429, "type": "rate_limit_error", "headers": {"retry-after": "3"}},
        {"status": 529, "type": "overloaded_error"},
        {"gzip": True},
        {"cut": 3},
    ]
    bodies = [messages_body(str(n)) for n in range(4)] + [messages_body("cut", stream=True)]
    ended = recorded(api, log, *sender(*bodies))
    shown = ended.stdout.decode().split()
    assert [shown[at] for at in (0, 2, 4, 6)] == ["200", "429", "529", "200"]
    assert shown[8] == "IncompleteRead"
    rows = lines_of(log)
    assert [row["status"] for row in rows] == [200, 429, 529, 200, 200]
    assert rows[1]["response"]["error"]["type"] == "rate_limit_error"
    assert rows[3]["response"]["usage"]["output_tokens"] == 80
    assert rows[4]["cut"] is True
    assert rows[4]["response"]["usage"]["input_tokens"] == api.usages[-1]["input_tokens"]
    found = replay(read_log([str(log)]))
    assert [bool(row.request.refused) for row in found.rows] == [False, True, True, False, False]


def test_other_paths_and_bodies_that_are_no_json_pass(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    text = f"""
import http.client, os
from urllib.parse import urlsplit
url = urlsplit(os.environ["ANTHROPIC_BASE_URL"])
for method, path, body in (
    ("GET", "/v1/models?key={KEY}", None),
    ("POST", "/v1/messages", "no json"),
    ("DELETE", "/v1/files/f", None),
    ("POST", "/v1/messages", '{json.dumps(messages_body())}'),
):
    link = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
    link.request(method, path, body)
    answer = link.getresponse()
    print(answer.status, answer.read()[:20])
"""
    ended = recorded(api, log, sys.executable, "-c", text)
    assert [line[:3] for line in ended.stdout.decode().splitlines()] == ["404", "400", "404", "200"]
    rows = lines_of(log)
    assert [row.get("path") for row in rows] == ["/v1/models", None, "/v1/files", None]
    assert [row["status"] for row in rows] == [404, 400, 404, 200]
    assert rows[1]["request"] is None
    assert "no JSON" in rows[1]["notes"][0]
    assert KEY not in log.read_text()
    read = read_log([str(log)])
    assert len(read.requests) == 1
    assert sorted(item.other for item in read.skipped) == [False, True, True]


def test_a_body_over_several_lines_is_one_line_and_means_the_same() -> None:
    body = json.dumps(messages_body("two\nlines"), indent=2).replace("\n", "\r\n")
    seen = Seen(
        method="POST", path="/v1/messages", headers=[], body=body.encode(), at=datetime.now(UTC)
    )
    line = line_of(seen)
    assert line.count(b"\n") == 1
    assert json.loads(line)["request"] == json.loads(body)


def test_the_programs_exit_code_is_that_of_record(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for code in (0, 7):
        assert (
            recorded(api, log, sys.executable, "-c", f"raise SystemExit({code})").returncode == code
        )
    killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert recorded(api, log, sys.executable, "-c", killed).returncode == 128 + 9
    ended = recorded(api, log, "no-such-program")
    assert (ended.returncode, b"cannot start no-such-program" in ended.stderr) == (2, True)


def test_a_program_that_sends_nothing_is_told_and_leaves_no_log(
    api: ApiServer, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    ended = recorded(api, log, sys.executable, "-c", "pass")
    assert b"no request came through" in ended.stderr
    assert b"ANTHROPIC_BASE_URL" in ended.stderr
    assert not log.exists()
    log.write_text("mine\n")
    recorded(api, log, sys.executable, "-c", "pass")
    assert log.read_text() == "mine\n"


def test_a_log_is_added_to(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for _ in range(2):
        assert recorded(api, log, *sender(messages_body())).returncode == 0
    assert len(lines_of(log)) == 2


def test_an_upstream_that_is_not_there_is_an_error_of_the_api(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    nowhere = ApiServer()
    nowhere.url = "http://127.0.0.1:1"
    ended = recorded(nowhere, log, *sender(messages_body()))
    assert ended.stdout.startswith(b"502 ")
    (row,) = lines_of(log)
    assert row["status"] is None
    assert "not reached" in row["notes"][0]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), b"no program to run"),
        (("--upstream", "http://bob:hunter2@gw", "--", "true"), b"holds a name or a password"),
        (("--upstream", "http://h:99999", "--", "true"), b"is no URL"),
        (("--upstream", "http://h/?a=b", "--", "true"), b"a query or a fragment"),
        (
            ("--upstream", "http://127.0.0.1:8787", "--port", "8787", "--", "true"),
            b"the proxy itself",
        ),
        (("--out", ".", "--", "true"), b"it is no file"),
        (("--listen", "--", "true"), b"--listen runs without a program"),
        (("--upstream", "api", "--", "true"), b"is no URL"),
        (("--redact", "all", "--", "true"), b"known: none, text"),
        (("--out", "/no/such/folder/a.jsonl", "--", "true"), b"cannot write"),
        (("--port", "70000", "--", "true"), b"is over 65535"),
    ],
)
def test_a_mistake_is_named(words: tuple[str, ...], said: bytes, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "ctxdoc", "record", *words],
        capture_output=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert said in ended.stderr


def test_a_stream_is_passed_on_as_it_comes(api: ApiServer, tmp_path: Path) -> None:
    """The first event is there long before the last one is sent."""
    api.plan = [{"pause": 0.15}]

    async def run() -> list[float]:
        times = []
        proxy = Proxy(api.url, Recorder(tmp_path / "l.jsonl"))
        async with proxy.running() as port, httpx.AsyncClient(timeout=30) as client:
            started = time.monotonic()
            url = f"http://127.0.0.1:{port}/v1/messages"
            async with client.stream("POST", url, json=messages_body(stream=True)) as answer:
                async for _ in answer.aiter_raw():
                    times.append(time.monotonic() - started)
        return times

    times = asyncio.run(run())
    assert len(times) > 4
    assert times[0] < times[-1] - 0.4


def test_two_hundred_streams_at_once_and_none_is_lost_or_mixed(
    api: ApiServer, tmp_path: Path
) -> None:
    """2,000 exchanges, 200 at a time: each answer goes to who asked, each is written once."""
    log = tmp_path / "log.jsonl"

    async def run() -> None:
        writer = Recorder(log)
        async with Proxy(api.url, writer).running() as port:
            limits = httpx.Limits(max_connections=200)
            async with httpx.AsyncClient(timeout=90, limits=limits) as client:
                gate = asyncio.Semaphore(200)

                async def ask(number: int) -> None:
                    body = messages_body(f"question {number}", stream=number % 2 == 0)
                    async with gate:
                        url = f"http://127.0.0.1:{port}/v1/messages"
                        answer = await client.post(url, json=body)
                    assert answer.status_code == 200
                    assert b"Answer number" in answer.content

                await asyncio.gather(*(ask(number) for number in range(2_000)))
        writer.close()

    asyncio.run(run())
    rows = lines_of(log)
    asked = [row["request"]["messages"][0]["content"] for row in rows]
    assert sorted(asked) == sorted(f"question {number}" for number in range(2_000))
    by_body = {json.loads(body)["messages"][0]["content"]: n for n, body in enumerate(api.bodies)}
    assert len(by_body) == 2_000
    assert len({row["response"]["id"] for row in rows}) == 2_000
    assert all(row["response"]["usage"]["output_tokens"] == 80 for row in rows)


def wait_for(true: Callable[[], bool], seconds: float = 20) -> None:
    """Waits until something is so."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_after_a_kill_every_finished_exchange_is_there(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ("record", "--listen", "--out", str(log), "--upstream", api.url)
    child = subprocess.Popen(
        [sys.executable, "-m", "ctxdoc", *words],
        cwd=ROOT, env=environment("http://127.0.0.1:9"), stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert child.stderr is not None
        url = urlsplit(child.stderr.readline().decode().split("ANTHROPIC_BASE_URL=")[1].strip())
        done = 0
        for number in range(20):
            with closing(
                http.client.HTTPConnection(str(url.hostname), url.port, timeout=30)
            ) as link:
                link.request("POST", "/v1/messages", json.dumps(messages_body(str(number))))
                done += link.getresponse().read() != b""
        wait_for(lambda: log.read_bytes().count(b"\n") == 20)
        api.plan = [{"slow": 20}]
        with closing(http.client.HTTPConnection(str(url.hostname), url.port, timeout=30)) as link:
            link.request("POST", "/v1/messages", json.dumps(messages_body("in flight")))
            wait_for(lambda: len(api.bodies) == 21)
            child.send_signal(signal.SIGKILL)
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(20)
        child.stderr.close()  # type: ignore[union-attr]
    assert len(lines_of(log)) == done == 20
    # A line that was cut in the middle is skipped and counted.
    with log.open("a") as stream:
        stream.write('{"timestamp":"2026-11-30T07:00:00+00:00","request":{"model":"m","mess')
    read = read_log([str(log)])
    assert (len(read.requests), len(read.skipped)) == (20, 1)


def test_listening_ends_with_an_interrupt(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    words = ("record", "--listen", "--out", str(log), "--upstream", api.url)
    child = subprocess.Popen(
        [sys.executable, "-m", "ctxdoc", *words],
        cwd=ROOT, env=environment("http://127.0.0.1:9"), stderr=subprocess.PIPE,
    )  # fmt: skip
    assert child.stderr is not None
    assert b"ANTHROPIC_BASE_URL=http://127.0.0.1:" in child.stderr.readline()
    child.send_signal(signal.SIGINT)
    assert child.wait(20) == 0
    assert b"no request came through" in child.stderr.read()
    child.stderr.close()


def test_a_full_disk_stops_the_recording_and_no_request(tmp_path: Path) -> None:
    told: list[str] = []
    writer = Recorder("/dev/full", tell=told.append)
    seen = Seen(method="POST", path="/v1/messages", headers=[], body=b"{}", at=datetime.now(UTC))
    for _ in range(3):
        writer.add(seen)
    assert len(told) == 1
    assert "has stopped" in told[0]
    assert writer.messages == 0
    with ApiServer().running() as api:
        ended = recorded(api, Path("/dev/full"), *sender(messages_body(), messages_body()))
        assert ended.stdout.decode().split()[::2] == ["200", "200"]
        assert ended.stderr.count(b"has stopped") == 1
    del tmp_path


def test_lines_from_many_threads_are_whole(tmp_path: Path) -> None:
    writer = Recorder(tmp_path / "l.jsonl")
    body = json.dumps(messages_body("x" * 5_000)).encode()

    def add() -> None:
        for _ in range(50):
            writer.add(
                Seen(
                    method="POST", path="/v1/messages", headers=[], body=body, at=datetime.now(UTC)
                )
            )

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines_of(tmp_path / "l.jsonl")) == 400


def test_one_exchange_that_cannot_be_written_down_leaves_the_others(tmp_path: Path) -> None:
    writer = Recorder(tmp_path / "l.jsonl", redact="text")
    deep = b'{"messages":' + b"[" * 900 + b"]" * 900 + b"}"
    odd = [
        Seen(
            method="POST", path="/v1/messages", headers=headers, body=body, at=datetime.now(UTC),
            status=200, answer=answer, answer_headers=[("content-encoding", encoding)],
        )
        for headers, body, answer, encoding in (
            ([("anthropic-beta", "caf\udce9")], b"{}", b"{}", ""),
            ([], b"{}", b"no brotli", "br"),
            ([], b"{}", b"\x28\xb5\x2f\xfd damaged", "zstd"),
            ([], deep, b"{}", ""),
            ([], b"\xff\xfe", b"\x1f\x8b damaged", "gzip"),
        )
    ]  # fmt: skip
    for seen in odd:
        writer.add(seen)
    assert not writer.stopped
    assert len(lines_of(tmp_path / "l.jsonl")) == len(odd)


def test_half_a_line_is_taken_back_and_a_cut_one_is_ended(tmp_path: Path) -> None:
    log = tmp_path / "l.jsonl"
    log.write_text('{"timestamp": "cut by a kill')
    writer = Recorder(log)
    body = json.dumps(messages_body("x" * 50)).encode()
    seen = Seen(method="POST", path="/v1/messages", headers=[], body=body, at=datetime.now(UTC))
    writer.add(seen)
    assert len(read_log([str(log)]).requests) == 1
    size = log.stat().st_size
    command = (
        "import resource, sys; sys.path.insert(0, sys.argv[2])\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size} + 40, {size} + 40))\n"
        "from datetime import UTC, datetime\n"
        "from ctxdoc.record.lines import Seen\n"
        "from ctxdoc.record.writer import Recorder\n"
        "told = []\n"
        "w = Recorder(sys.argv[1], tell=told.append)\n"
        "w.add(Seen(method='POST', path='/v1/messages', headers=[], body=b'{}', at=datetime.now(UTC)))\n"
        "assert w.stopped and len(told) == 1\n"
    )
    subprocess.run(
        [sys.executable, "-c", command, str(log), str(ROOT)], check=True, timeout=30, cwd=ROOT
    )
    assert log.stat().st_size == size


def test_a_recorder_that_wrote_nothing_leaves_what_another_has_written(tmp_path: Path) -> None:
    log = tmp_path / "l.jsonl"
    idle, busy = Recorder(log), Recorder(log)
    seen = Seen(method="POST", path="/v1/messages", headers=[], body=b"{}", at=datetime.now(UTC))
    busy.add(seen)
    busy.close()
    idle.close()
    assert len(lines_of(log)) == 1


def test_the_proxy_adds_nothing_to_a_request(api: ApiServer, tmp_path: Path) -> None:
    """No cookie that an answer has set, no Expect that would wait, no port in the host that is written."""
    log = tmp_path / "l.jsonl"
    api.url = api.url.replace("127.0.0.1", "localhost")

    async def run() -> list[int]:
        writer = Recorder(log)
        async with Proxy(api.url, writer).running() as port:
            codes = []
            for _ in range(2):
                async with httpx.AsyncClient(timeout=20) as client:
                    url = f"http://127.0.0.1:{port}/v1/messages"
                    api.plan = [{"cookie": "secret=1"}]
                    headers = {"expect": "100-continue"}
                    codes.append(
                        (await client.post(url, json=messages_body(), headers=headers)).status_code
                    )
        writer.close()
        return codes

    assert asyncio.run(run()) == [200, 200]
    assert all("cookie" not in headers and "expect" not in headers for headers in api.headers)
    assert lines_of(log)[0]["headers"]["host"].startswith("localhost:")
    from ctxdoc.record.proxy import _to_upstream

    assert _to_upstream([], "https://api.anthropic.com") == [("host", "api.anthropic.com")]


def test_a_client_that_leaves_is_written_as_cut(api: ApiServer, tmp_path: Path) -> None:
    """The upstream has said nothing yet; the exchange is under way there, and is not lost here."""
    log = tmp_path / "l.jsonl"
    api.plan = [{"slow": 20}]

    async def run() -> None:
        async with Proxy(api.url, Recorder(log)).running() as port:
            url = f"http://127.0.0.1:{port}/v1/messages"
            async with httpx.AsyncClient(timeout=0.4) as client:
                with pytest.raises(httpx.ReadTimeout):
                    await client.post(url, json=messages_body("left"))
            for _ in range(50):
                if log.exists() and log.stat().st_size:
                    break
                await asyncio.sleep(0.1)

    asyncio.run(run())
    (row,) = lines_of(log)
    assert row["cut"] is True
    assert row["request"]["messages"][0]["content"] == "left"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"ANTHROPIC_API_BASE": "http://other.example"}, b"are set and differ"),
        ({}, b""),
    ],
)
def test_the_gateway_of_the_environment_is_the_upstream(
    api: ApiServer, tmp_path: Path, given: dict[str, str], said: bytes
) -> None:
    log = tmp_path / "log.jsonl"
    base = environment(api.url)
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"):
        if not given:
            del base[name]
    ended = subprocess.run(
        [sys.executable, "-m", "ctxdoc", "record", "--out", str(log), "--", *sender(messages_body())],
        capture_output=True, cwd=ROOT, env={**base, **given}, timeout=60, check=False,
    )  # fmt: skip
    if said:
        assert (ended.returncode, said in ended.stderr) == (2, True)
    else:
        assert len(api.bodies) == 1


@pytest.mark.parametrize(
    ("known", "both"),
    [
        ({}, "127.0.0.1"),
        ({"NO_PROXY": "corp.internal"}, "corp.internal,127.0.0.1"),
        ({"no_proxy": "a,b"}, "a,b,127.0.0.1"),
        ({"NO_PROXY": "*"}, "*"),
    ],
)
def test_what_is_reached_directly_stays_so(
    api: ApiServer, tmp_path: Path, known: dict[str, str], both: str
) -> None:
    text = "import os; print(os.environ['NO_PROXY'], os.environ['no_proxy'])"
    ended = subprocess.run(
        [
            sys.executable, "-m", "ctxdoc", "record", "--out", str(tmp_path / "l"), "--upstream", api.url,
            "--", sys.executable, "-c", text,
        ],
        capture_output=True, cwd=ROOT, env={**environment(api.url), **known}, timeout=60, check=True,
    )  # fmt: skip
    assert ended.stdout.decode().split() == [both, both]


# Redaction


def test_equal_stays_equal_and_the_text_is_gone(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    secret = "The password of the harbour master is swordfish."
    system = [{"type": "text", "text": SYSTEM, "cache_control": MARK}]
    changed = [
        {"type": "text", "text": SYSTEM.replace("berth 31", "berth 99"), "cache_control": MARK}
    ]
    bodies = [messages_body(secret, system=one) for one in (system, system, changed)]
    ended = recorded(api, log, *sender(*bodies), options=("--redact", "text"))
    assert ended.returncode == 0
    text = log.read_text()
    for word in ("swordfish", "harbour", "berth", "Answer number", KEY):
        assert word not in text
    first, second, third = lines_of(log)
    assert first["request"] == second["request"]
    assert first["request"]["system"] != third["request"]["system"]
    assert first["request"]["messages"] == third["request"]["messages"]
    assert len(first["request"]["system"][0]["text"]) == len(SYSTEM)
    assert first["response"]["usage"]["input_tokens"] == api.usages[0]["input_tokens"]
    shown = subprocess.run(
        [sys.executable, "-m", "ctxdoc", "diagnose", str(log), "--pair", "2,3", "--format", "json"],
        capture_output=True, check=True, timeout=60, cwd=ROOT,
    )  # fmt: skip
    found = json.loads(shown.stdout)
    assert found["cache"] == "dead"
    assert found["first_difference"]["json_path"].startswith("$.system[0]")


def test_hashes_differ_from_recording_to_recording() -> None:
    one, two = Redactor(), Redactor()
    assert one.text("a word") == one.text("a word")
    assert one.text("a word") != two.text("a word")
    assert one.text("") == ""
    assert len(one.text("x" * 5_000)) == 5_000
    assert one.text("a") != one.text("b")
    body = {
        "model": "m",
        "tools": [{"name": "look_up", "description": "Secret.", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "Secret.", "is_error": False}]}],
    }  # fmt: skip
    found = one.body(body)
    assert found["tools"][0]["name"] == "look_up"
    assert found["messages"][0]["content"][0]["tool_use_id"] == "toolu_1"
    assert "Secret" not in json.dumps(found)
    assert found["messages"][0]["content"][0]["content"] == found["tools"][0]["description"]


def test_nothing_but_what_is_named_is_kept() -> None:
    """Everything that a person or a tool could have said holds the word."""
    word = "swordfish"
    body = {
        "model": MODEL, "max_tokens": 5, "stop_sequences": [word], "metadata": {"user_id": word},
        "container": word, "context_management": {"edits": [{"type": "x", "instructions": word}]},
        "output_config": {"format": {"type": "json_schema", "schema": {"properties": {word: {}}}}},
        "mcp_servers": [{"type": "url", "url": word, "name": word}], word: {word: word},
        "tool_choice": {"type": "tool", "name": "look_up", "why": word},
        "system": word,
        "tools": [{"name": "look_up", "description": word, "type": "custom",
                   "input_schema": {"type": "object", "properties": {word: {"enum": [word, 5]}}}}],
        "messages": [
            {"role": "user", "content": word},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": word, "signature": word},
                {"type": "tool_use", "id": "toolu_1", "name": "look_up",
                 "input": {"name": word, "id": word, "type": word, word: 123456789}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": word, "content": [{"type": "text", "text": word}]},
                {"type": "image", "source": {"type": "url", "url": word}},
                {"type": "document", "title": word, "context": word,
                 "source": {"type": "text", "media_type": "text/plain", "data": word}},
                {"type": word + " here", "name": word + " x"}]},
        ],
    }  # fmt: skip
    redactor = Redactor()
    text = json.dumps(redactor.body(body))
    assert word not in text
    assert "123456789" not in text
    for kept in (MODEL, "look_up", "toolu_1", "tool_use", "tool_result", "input_schema"):
        assert kept in text
    answer = {
        "id": "msg_1", "type": "error", "error": {"type": "invalid_request_error", "message": word},
        "stop_sequence": word, "content": [{"type": "text", "text": word}], "output_text": word,
        "usage": {"input_tokens": 5},
    }  # fmt: skip
    found = redactor.answer(answer)
    assert word not in json.dumps(found)
    assert (found["usage"], found["error"]["type"]) == (
        {"input_tokens": 5},
        "invalid_request_error",
    )


def test_a_hash_has_the_script_of_its_text() -> None:
    """So that estimates of its tokens stay: characters inside and outside of ASCII weigh differently."""
    text = "漢字とcode: " * 40
    found = Redactor().text(text)
    assert len(found) == len(text)
    assert [c.isascii() for c in found] == [c.isascii() for c in text]


def test_an_image_keeps_its_size_and_loses_its_content() -> None:
    from ctxdoc.images.file import read_size
    from tests.images.test_images import picture

    data = picture(300, 200, seed=5)
    body = messages_body()
    body["messages"][0]["content"] = [
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    ]
    found = Redactor().body(body)["messages"][0]["content"][0]["source"]["data"]
    assert found != data
    assert read_size(found) == (300, 200)


def test_no_file_and_no_output_holds_the_key(tmp_path: Path) -> None:
    """Everything that is written, by every command that has a key, in its log, its cache and its home; when
    it works, when the API refuses, when nothing is there, with --debug."""
    home, log = tmp_path / "home", tmp_path / "log.jsonl"
    home.mkdir()
    shown = b""
    with ApiServer().running() as api:
        places = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        base = {**environment(api.url), **places}
        record = ("record", "--out", str(log), "--upstream", api.url, "--")
        body = messages_body(
            SYSTEM, system=[{"type": "text", "text": SYSTEM, "cache_control": MARK}]
        )
        live = ("diagnose", str(log), "--live", "--yes", "--debug")
        count = ("replay", str(log), "--count-tokens", "--debug")
        for words, plan, url in (
            ((*record, *sender(body, body)), [], api.url),
            ((*record, *sender(body)), [{"status": 401}], api.url),
            (("record", "--redact", "text", *record[1:], *sender(body)), [], api.url),
            (
                ("record", "--out", "/dev/full", "--upstream", api.url, "--", *sender(body)),
                [],
                api.url,
            ),
            (
                (
                    "record",
                    "--out",
                    str(log),
                    "--upstream",
                    "http://127.0.0.1:1",
                    "--",
                    *sender(body),
                ),
                [],
                "",
            ),
            (live, [], api.url),
            (live, [{"status": 401}], api.url),
            (live, [], "http://127.0.0.1:1"),
            (count, [], api.url),
            (count, [{"status": 401}], api.url),
            (count, [], "http://127.0.0.1:1"),
        ):
            api.plan = list(plan)
            ended = subprocess.run(
                [sys.executable, "-m", "ctxdoc", *words], capture_output=True, cwd=ROOT, timeout=60,
                env={**base, "ANTHROPIC_BASE_URL": url or api.url}, check=False,
            )  # fmt: skip
            shown += ended.stdout + ended.stderr
        assert any(headers["x-api-key"] == KEY for headers in api.headers)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"log.jsonl", "token_counts.sqlite"}
    for data in (shown, *(path.read_bytes() for path in files)):
        assert KEY.encode() not in data
        assert b"Traceback" not in data


# In a program


def sdk_client(api: ApiServer, log: Path, **more: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=api.url, api_key=KEY, max_retries=0, middleware=[recorder(log, **more)]
    )


def create(client: Any) -> Any:
    return client.messages.create(**messages_body(QUESTION))


def test_the_middleware_writes_what_the_proxy_writes(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with sdk_client(api, log) as client:
        create(client)
        with client.messages.stream(**messages_body(QUESTION)) as stream:
            text = "".join(stream.text_stream)
        api.plan = [{"status": 529, "type": "overloaded_error"}]
        with pytest.raises(anthropic.APIStatusError):
            create(client)
        for event in client.messages.create(**messages_body(QUESTION), stream=True):
            if event.type == "content_block_delta":
                break

    async def later() -> None:
        async with anthropic.AsyncAnthropic(
            base_url=api.url, api_key=KEY, max_retries=0, middleware=[recorder(log)]
        ) as client:
            await client.messages.create(**messages_body(QUESTION))
            async with client.messages.stream(**messages_body(QUESTION)) as stream:
                await stream.until_done()

    asyncio.run(later())
    rows = lines_of(log)
    assert [row["status"] for row in rows] == [200, 200, 529, 200, 200, 200]
    assert [row["request"] for row in rows] == [json.loads(body) for body in api.bodies]
    assert rows[1]["response"]["content"][0]["text"] == text
    assert [row["response"]["usage"]["output_tokens"] for row in (*rows[:2], *rows[4:])] == [80] * 4
    assert KEY not in log.read_text()


def test_the_middleware_breaks_no_request(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with ApiServer().running() as api:
        with sdk_client(api, Path("/dev/full")) as client:
            assert create(client).content
            assert create(client).content
        assert caplog.text.count("has stopped") == 1
        assert KEY not in caplog.text
        log = tmp_path / "log.jsonl"
        with sdk_client(api, log) as client:
            lost = client.with_options(base_url="http://127.0.0.1:1")
            with pytest.raises(anthropic.APIConnectionError):
                create(lost)


def test_transports_record_clients_without_the_hook(api: ApiServer, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"

    class Entered(httpx.HTTPTransport):
        """A transport that wants to be entered."""

        entered = False

        def __enter__(self) -> Any:
            self.entered = True
            return super().__enter__()

    inner = Entered()
    with httpx.Client(transport=transport(log, inner)) as client:
        assert inner.entered

        def failing() -> Iterator[bytes]:
            yield b"{"
            raise RuntimeError("mine")

        with pytest.raises(RuntimeError, match="mine"):
            client.post(f"{api.url}/v1/messages", content=failing())
        answer = client.post(
            f"{api.url}/v1/messages", json=messages_body(), headers={"x-api-key": KEY}
        )
        assert answer.json()["usage"]["output_tokens"] == 80
        with client.stream(
            "POST", f"{api.url}/v1/messages", json=messages_body(stream=True)
        ) as stream:
            assert b"message_stop" in stream.read()

    async def later() -> None:
        inner = httpx.AsyncHTTPTransport()
        async with httpx.AsyncClient(transport=async_transport(log, inner)) as client:
            await client.post(f"{api.url}/v1/messages", json=messages_body())

    asyncio.run(later())
    rows = lines_of(log)
    assert [row["response"]["usage"]["output_tokens"] for row in rows] == [80, 80, 80]
    assert [row["request"] for row in rows] == [json.loads(body) for body in api.bodies]
    assert KEY not in log.read_text()
