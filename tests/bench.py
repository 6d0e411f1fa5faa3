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

from tests.sessions import START, first_body, lines, marked, record, turn

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
