"""Speed and memory as ratios against a reference in the same run: `make bench`.

Machines are noisy: each figure is the best of several runs, and what counts is the ratio.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from tests.support.sessions import START, first_body, lines, marked, prose, record, turn

RUNS = 7


def pair(folder: Path, size: int, *, dead: bool) -> list[str]:
    """Two records of about that many bytes; a dead one has a clock that went on."""
    rng = random.Random(size)
    body = first_body(rng)
    pool = [turn(rng, number, result=1600) for number in range(40)]
    length, number = 0, 0
    while length < size - 12_000:
        step = json.loads(json.dumps(pool[number % 40]).replace("toolu_", f"toolu_{number}_"))
        body["messages"] += step
        length += len(json.dumps(step))
        number += 1
    names = []
    for letter, seconds in (("a", 0), ("b", 20)):
        if letter == "b":
            body["messages"] += turn(rng, 9999)
            if dead:
                body["system"][1]["text"] = "Today is 2026-11-02, 09:07."
        row = record(marked(body), START + timedelta(seconds=seconds), None, 1)
        path = folder / f"{size}-{dead}-{letter}.json"
        path.write_text(lines([row]), encoding="utf-8")
        names.append(str(path))
    return names


def measured(command: list[str], runs: int = RUNS) -> tuple[float, float]:
    """Best seconds and peak megabytes of a process."""
    best, peak = float("inf"), 0.0
    for _ in range(runs):
        start = time.perf_counter()
        child = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
        )
        _, status, usage = os.wait4(child, 0)
        best = min(best, time.perf_counter() - start)
        peak = max(peak, usage.ru_maxrss / 1024)
        if status:
            raise SystemExit(f"{' '.join(command)} ended with {status}")
    return best, peak


TIMED = """
import resource, sys, time
{imports}
start = time.perf_counter()
{work}
seconds = time.perf_counter() - start
print(seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
REPLAY = TIMED.format(
    imports="""
import gc
from ctxdoc.reading.load import read_log
from ctxdoc.ledger.ledger import replay
from ctxdoc.reports.replay import replay_report
gc.disable()
""",
    work="replay_report(replay(read_log([sys.argv[1]], condense=True)))",
)
CONDENSE = TIMED.format(
    imports="from ctxdoc.reading.load import read_log",
    work="read_log([sys.argv[1]], condense=True)",
)
READ = TIMED.format(
    imports="from ctxdoc.reading.load import read_log", work="read_log([sys.argv[1]])"
)
ORJSON = TIMED.format(
    imports="import orjson", work="for line in open(sys.argv[1], 'rb'): orjson.loads(line)"
)
MEGABYTES = 100


def transcript(path: Path, size: int) -> None:
    """A Claude Code session of about that many bytes: two records a response, and tool results."""
    rng = random.Random(5)
    texts = [prose(rng, 3000) for _ in range(40)]
    with path.open("w", encoding="utf-8") as stream:
        number = 0
        while stream.tell() < size:
            number += 1
            at = (START + timedelta(seconds=20 * number)).isoformat()
            common = {
                "sessionId": "bench",
                "timestamp": at,
                "isSidechain": False,
                "parentUuid": f"u{number - 1}",
                "uuid": f"u{number}",
                "version": "2.1.290",
            }
            usage = {
                "input_tokens": 4,
                "cache_creation_input_tokens": 900,
                "cache_read_input_tokens": 900 * number,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 0,
                    "ephemeral_1h_input_tokens": 900,
                },
                "output_tokens": 200,
            }
            call = {
                "type": "tool_use",
                "id": f"t{number}",
                "name": "Read",
                "input": {"path": "a.py"},
            }
            for part in ({"type": "text", "text": texts[number % 40][:400]}, call):
                message = {
                    "id": f"msg_{number}", "type": "message", "role": "assistant",
                    "model": "claude-sonnet-4-5", "content": [part], "usage": usage,
                }  # fmt: skip
                row = {
                    "type": "assistant",
                    "requestId": f"req_{number}",
                    "message": message,
                    **common,
                }
                stream.write(json.dumps(row, separators=(",", ":")) + "\n")
            result = {
                "type": "tool_result",
                "tool_use_id": f"t{number}",
                "content": texts[number % 40],
            }
            row = {"type": "user", "message": {"role": "user", "content": [result]}, **common}
            stream.write(json.dumps(row, separators=(",", ":")) + "\n")


def bodies(path: Path, size: int) -> None:
    """A request log of about that many bytes: conversations of thirty requests, of which one in
    twenty-five has another clock in its system prompt and one in thirty comes after a pause."""
    at, pool = START, [turn(random.Random(7), number, result=1600) for number in range(64)]
    with path.open("w", encoding="utf-8") as stream:
        number = 0
        while stream.tell() < size:
            number += 1
            body = first_body(random.Random(1))
            body["system"][0]["text"] = prose(random.Random(number % 5), 12_000)
            body["messages"][0]["content"][0]["text"] = f"Conversation {number}. Mend it, please."
            at, length = at + timedelta(seconds=900), 0
            for step in range(30):
                event = (31 * number + step) % 75
                at += timedelta(seconds=420 if event % 30 == 29 else 20)
                if event % 25 == 24:
                    body["system"][1]["text"] = f"Now it is {at:%Y-%m-%d %H:%M:%S}."
                sent = marked(body)
                whole = len(json.dumps(sent)) // 4
                cold = not length or event % 25 == 24 or event % 30 == 29
                usage = {
                    "input_tokens": 0,
                    "cache_creation_input_tokens": whole if cold else whole - length,
                    "cache_read_input_tokens": 0 if cold else length,
                    "output_tokens": 120,
                }
                row = record(sent, at, usage, step)
                row["response"]["id"] = f"msg_{number}_{step}"
                stream.write(lines([{**row, "session_id": f"c{number:05d}"}]))
                length = whole
                names = f"toolu_{number}_{step}_"
                body["messages"] += json.loads(
                    json.dumps(pool[(number + step) % 64]).replace("toolu_", names)
                )


def timed(code: str, path: Path) -> tuple[float, float]:
    """Best seconds and peak megabytes of what a process says that it took, without its start."""
    figures = [
        subprocess.run(
            [sys.executable, "-c", code, str(path)], check=True, capture_output=True, text=True
        ).stdout.split()
        for _ in range(3)
    ]
    return min(float(row[0]) for row in figures), max(float(row[1]) for row in figures)


def reading(folder: Path) -> Iterator[tuple[str, float, float, str]]:
    """Reading alone: transcripts in megabytes a second, request logs against orjson."""
    for name, make in (("transcripts", transcript), ("request log", bodies)):
        path = folder / f"{name}.jsonl"
        make(path, MEGABYTES * 1_000_000)
        size = path.stat().st_size / 1e6
        (reference, _), (seconds, peak) = timed(ORJSON, path), timed(READ, path)
        limit = (
            "at least 200 MB/s, at most 80 MB" if name == "transcripts" else "at least 0.5 x orjson"
        )
        figures = f"{size / seconds:.0f} MB/s, {reference / seconds:.2f} x orjson"
        yield f"read {size:.0f} MB of {name}", seconds, peak, f"{figures} ({limit})"


def replaying(folder: Path) -> Iterator[tuple[str, float, float, str]]:
    """The whole replay with its causes and the report, against orjson on the same file."""
    for megabytes, most in ((10, 120), (100, 120), (1000, 220)):
        path = folder / f"replay-{megabytes}.jsonl"
        bodies(path, megabytes * 1_000_000)
        size = path.stat().st_size / 1e6
        (reference, _), (seconds, peak) = timed(ORJSON, path), timed(REPLAY, path)
        figures = f"{size / seconds:.0f} MB/s, {seconds / reference:.1f} x orjson"
        limit = f"at most 2.5 x orjson and {most} MB"
        yield f"replay {size:.0f} MB of a request log", seconds, peak, f"{figures} ({limit})"
        path.unlink()


SIMULATE = TIMED.format(
    imports="""
import gc
from ctxdoc.reading.load import read_log
from ctxdoc.reports.simulate import simulate_report
from ctxdoc.simulation.compare import compare
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs
names = ("trim", "window", "clear", "clear:mode=rolling", "compact", "offload", "last_messages")
gc.disable()
""",
    work="""
log = read_log([sys.argv[1]], condense=True)
marks = {"trim": "high=14k,low=9k", "window": "max_tokens=10k", "compact": "trigger=14k"}
marks |= {"clear": "trigger=12k", "clear:mode=rolling": "trigger=12k", "offload": "over=200"}
texts = [n + (":" if ":" not in n else ",") + marks[n] if n in marks else n for n in names]
simulate_report(compare(Simulation(recorded_session(log)), [parse_specs(t) for t in texts]))
""",
)


def simulating(folder: Path) -> Iterator[tuple[str, float, float, str]]:
    """Eight strategies over a log, against reading it."""
    path = folder / "simulate.jsonl"
    bodies(path, 60_000_000)
    size = path.stat().st_size / 1e6
    (reading_seconds, _), (seconds, peak) = timed(CONDENSE, path), timed(SIMULATE, path)
    figures = f"{seconds / reading_seconds:.1f} x reading (at most 20 x)"
    yield f"simulate {size:.0f} MB, 8 strategies", seconds, peak, figures


def processor(command: list[str], runs: int = RUNS) -> float:
    """Least seconds of a processor that a process takes, its start included: others that run beside it
    count for less than in the time that passes."""
    best = float("inf")
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = min(best, spent)
    return best


READ_LINES = "import orjson, sys\nfor line in open(sys.argv[1], 'rb'): orjson.loads(line)"


def processes(folder: Path) -> Iterator[tuple[str, float, float, str]]:
    """Whole processes: one pair of requests, and transcripts against orjson reading the same lines."""
    python = sys.executable
    ctxdoc = [python, "-m", "ctxdoc"]
    command = [*ctxdoc, "diagnose", *pair(folder, 20_000, dead=True)]
    _, peak = measured(command)
    yield "one pair, processor", processor(command), peak, "at most 0.15 s"
    path = folder / "whole.jsonl"
    transcript(path, 20_000_000)
    command = [*ctxdoc, "replay", str(path), "--format", "json"]
    _, peak = measured(command, 3)
    seconds = processor(command)
    ratio = seconds / processor([python, "-c", READ_LINES, str(path)])
    yield (
        "transcripts of 20 MB, processor",
        seconds,
        peak,
        f"{ratio:.1f} x orjson (at most 2.0, 30 MB)",
    )


LONG = TIMED.format(
    imports="""
from ctxdoc.simulation.history.from_numbers import Shape, made_session
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs
simulation = Simulation(made_session(Shape(prefix=3_000, per_turn=25, turns=5_000)))
""",
    work='simulation.rows(parse_specs(sys.argv[1]), [PLACEMENTS["rolling"]])',
)
"""One conversation of 5,000 requests, each of 25 tokens more: two messages of three blocks."""


def long_conversations() -> Iterator[tuple[str, float, float, str]]:
    """What each request has in common with the one before it has to cost next to nothing."""
    for name in ("keep", "window", "budget_window"):
        seconds, peak = timed(LONG, Path(name))
        yield f"simulate 5,000 requests, {name}", seconds, peak, "at most 5 s"


def rows(folder: Path) -> Iterator[tuple[str, float, float, str]]:
    """Name, seconds, megabytes, and the limit that the row is held against."""
    python = sys.executable
    ctxdoc = [python, "-m", "ctxdoc", "diagnose"]
    reference, peak = measured([python, "-c", "import typer"])
    yield "import typer (reference)", reference, peak, ""
    for size, runs in ((250_000, RUNS), (10_000_000, 3)):
        for dead in (False, True):
            seconds, peak = measured([*ctxdoc, *pair(folder, size, dead=dead)], runs)
            limit = "under 2 s and 200 MB"
            if size < 1_000_000:
                limit = "under 0.6 s" if dead else f"under 3 x reference = {3 * reference:.2f} s"
            what = "with the diff" if dead else "nothing to diff"
            yield f"pair of {size / 1e6:g} MB, {what}", seconds, peak, limit
    help_seconds, peak = measured([python, "-m", "ctxdoc", "--help"])
    yield "ctxdoc --help", help_seconds, peak, f"under 2 x reference = {2 * reference:.2f} s"
    yield from processes(folder)
    yield from reading(folder)
    yield from simulating(folder)
    yield from long_conversations()
    yield from replaying(folder)


def main() -> None:
    """Prints the table."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    subprocess.run([sys.executable, "-m", "compileall", "-q", "ctxdoc"], check=True)
    with tempfile.TemporaryDirectory() as folder:
        print(f"{'':<36} {'s':>6} {'ratio':>6} {'MB':>5}")  # noqa: T201
        reference = 0.0
        for name, seconds, peak, limit in rows(Path(folder)):
            reference = reference or seconds
            ratio = seconds / reference
            print(f"{name:<36} {seconds:6.2f} {ratio:6.1f} {peak:5.0f}  {limit}")  # noqa: T201


if __name__ == "__main__":
    main()
