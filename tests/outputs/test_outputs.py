"""How a replay is written: rows, page and picture."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import re
import shutil
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image, ImageStat

from ctxdoc.cli import progress
from ctxdoc.ledger.ledger import replay
from ctxdoc.outputs import OUTPUTS, Style
from ctxdoc.outputs.plot import MOST_CAUSES, write_picture
from ctxdoc.outputs.report import Bar, Chart, Line, Report
from ctxdoc.reading.load import read_log
from ctxdoc.reports.chart import MOST_BARS, chart_of
from ctxdoc.reports.replay import replay_report
from tests.cli.test_cli import run
from tests.support.sessions import SESSION, lines, session

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--hide-scrollbars", "--window-size=900,1400",
)  # fmt: skip


@pytest.fixture(scope="module")
def report() -> Report:
    return replay_report(replay(read_log([str(SESSION)])))


def written(report: Report, form: str) -> str:
    return OUTPUTS[form].write(report, Style())


def test_csv_has_a_row_for_each_request_with_bare_numbers(report: Report) -> None:
    rows = list(csv.DictReader(io.StringIO(written(report, "csv"))))
    assert [row["number"] for row in rows] == [str(n) for n in range(1, 13)]
    assert rows[4]["cause"] == "timestamp_in_prefix"
    requests = report.data["requests"]
    assert isinstance(requests, list)
    for row, request in zip(rows, requests, strict=True):
        assert isinstance(request, dict)
        for origin in ("reported", "simulated"):
            counters = request[origin]
            assert isinstance(counters, dict)
            assert int(row[f"{origin}_cache_read"]) == counters["cache_read"]
        assert row["cost"] == request["cost"]


def test_csv_runs_no_formula_of_a_log(tmp_path: Path) -> None:
    """A model named like a formula is text for a spreadsheet."""
    row = session({}, turns=1)[0]
    row["session_id"] = "=1+1"
    (tmp_path / "a.jsonl").write_text(lines([row]))
    found = replay_report(replay(read_log([str(tmp_path / "a.jsonl")])))
    assert next(csv.DictReader(io.StringIO(written(found, "csv"))))["session"] == "'=1+1"


def test_csv_of_what_has_no_rows_says_what_to_use() -> None:
    ended = run("formats", "--format", "csv")
    assert (ended.returncode, b"--format json" in ended.stderr) == (2, True)


def test_the_page_needs_nothing_from_outside(report: Report) -> None:
    page = written(report, "html")
    assert not re.search(r"<(?:script|link|iframe|img|object)\b", page)
    outside = set(re.findall(r"(?:https?:)?//[\w./#-]+", page))
    # Names of XML vocabularies, which nothing fetches.
    assert {url for url in outside if "//www.w3.org/" not in url} == set()
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page


def test_the_page_shows_text_of_a_log_as_text(tmp_path: Path) -> None:
    row = session({}, turns=1)[0]
    row["request"]["messages"][0]["content"][0]["text"] = "<script>alert(1)</script> & so on"
    (tmp_path / "a.jsonl").write_text(lines([row]))
    page = written(replay_report(replay(read_log([str(tmp_path / "a.jsonl")]))), "html")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page


def brightness(picture: Path) -> float:
    with Image.open(picture) as image:
        return float(ImageStat.Stat(image.convert("L")).mean[0])


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
def test_a_browser_opens_the_page_from_disk_in_light_and_dark(
    report: Report, tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    page.write_text(written(report, "html"), encoding="utf-8")
    shots = {}
    for scheme, flag in (("light", "1"), ("dark", "0")):
        shots[scheme] = tmp_path / f"{scheme}.png"
        profile = f"--user-data-dir={tmp_path / scheme}"
        scheme_flag = f"--blink-settings=preferredColorScheme={flag}"
        shot = f"--screenshot={shots[scheme]}"
        command = [BROWSER, *FLAGS, profile, scheme_flag, shot, page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=90)
    assert brightness(shots["light"]) > 200
    assert brightness(shots["dark"]) < 80
    profile = f"--user-data-dir={tmp_path / 'dom'}"
    command = [BROWSER, *FLAGS, profile, "--dump-dom", page.as_uri()]
    dom = subprocess.run(command, check=True, capture_output=True, timeout=90).stdout.decode()
    assert "<svg" in dom
    assert "timestamp_in_prefix" in dom


def test_the_chart_has_a_bar_for_each_request_and_sums_that_grow(report: Report) -> None:
    found = replay(read_log([str(SESSION)]))
    chart = chart_of(found)
    assert chart is not None
    assert [bar.at for bar in chart.bars] == list(range(1, 13))
    assert [bar.mark for bar in chart.bars if bar.mark] == [
        "timestamp_in_prefix", "ttl_expired", "tool_order",
    ]  # fmt: skip
    for bar, row in zip(chart.bars, found.rows, strict=True):
        assert row.reported is not None
        assert bar.read + bar.written + bar.uncached == row.reported.input
    sums = {line.label: line.values[-1] for line in chart.lines}
    assert sums["oracle (bound)"] <= sums["paid"] <= sums["no cache"]
    assert sums["paid"] == pytest.approx(float(sum(row.cost or 0 for row in found.rows)))
    assert chart in report.parts


def test_a_long_log_has_bars_that_can_be_told_apart(tmp_path: Path) -> None:
    """Four requests a bar where 1,601 would be drawn."""
    row = json.dumps(
        {"model": "claude-sonnet-4-5", "usage": {"input_tokens": 7, "output_tokens": 1}}
    )
    (tmp_path / "a.jsonl").write_text(f"{row}\n" * (4 * MOST_BARS + 1))
    chart = chart_of(replay(read_log([str(tmp_path / "a.jsonl")])))
    assert chart is not None
    assert (chart.each, len(chart.bars)) == (5, 321)
    assert {bar.uncached for bar in chart.bars} == {7}


@pytest.mark.parametrize("kind", ["png", "svg"])
@pytest.mark.parametrize("bars", [0, 1, 400])
def test_any_chart_can_be_drawn_and_is_the_same_each_time(kind: str, bars: int) -> None:
    chart = Chart(
        title="<title> & more",
        bars=tuple(
            Bar(
                at=n,
                read=n,
                written=1,
                uncached=0,
                law=n if n % 3 else None,
                stretch=1,
                mark="x" * (n % 2),
            )
            for n in range(1, bars + 1)
        ),
        lines=(Line(label="paid", values=tuple(float(n) for n in range(bars))),) if bars else (),
    )
    one = write_picture(chart, kind)
    assert one == write_picture(chart, kind)
    if kind == "png":
        assert struct.unpack(">II", one[16:24]) == (800, 600)
    else:
        assert b"&lt;title&gt; &amp; more" in one


def test_a_picture_is_written_whole_and_for_its_owner_only(tmp_path: Path) -> None:
    for name in ("context.png", "context.SVG"):
        path = tmp_path / name
        ended = run("replay", str(SESSION), "--plot", str(path))
        assert (ended.returncode, ended.stderr) == (0, b"")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert (tmp_path / "context.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (tmp_path / "context.SVG").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["--plot", "context.pdf"], b"context.png"),
        (["--plot", "no/such/folder/x.png"], b"choose another --plot"),
        (["--session", "nobody"], b"lists all sessions"),
        (["--format", "hmtl"], b"did you mean html?"),
        (["--model", "claude-sonet-4-5"], b"did you mean claude-sonnet-4-5"),
    ],
)
def test_a_wrong_option_of_replay_ends_with_two_and_a_hint(
    arguments: list[str], hint: bytes
) -> None:
    ended = run("replay", str(SESSION), *arguments)
    assert ended.returncode == 2
    assert hint in ended.stderr
    assert ended.stdout == b""


def test_no_text_of_a_request_stays_where_excerpts_are_off() -> None:
    for form in ("text", "json", "markdown", "html", "csv"):
        shown = run("replay", str(SESSION), "--no-excerpts", "--format", form).stdout.decode()
        for secret in ("Today is", "You mend programs", "09:07"):
            assert secret not in shown, form


def on_a_terminal(command: list[str]) -> bytes:
    """What a command writes to a terminal that is its standard error."""
    ours, theirs = pty.openpty()
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        child = subprocess.Popen(
            command, stdout=nowhere, stderr=theirs, env={**os.environ, "TERM": "xterm"}
        )
    os.close(theirs)
    seen = b""
    try:
        while piece := os.read(ours, 65536):
            seen += piece
    except OSError:
        pass
    os.close(ours)
    assert child.wait(timeout=60) == 0
    return seen


def test_a_large_log_shows_its_progress_on_a_terminal_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "large.jsonl"
    text = lines(session({}, turns=12))
    path.write_text(text * (progress.LARGE // len(text) + 1))
    command = [sys.executable, "-m", "ctxdoc", "replay", str(path)]
    assert b"reading" in on_a_terminal(command)
    assert on_a_terminal([*command, "--quiet"]) == b""
    assert run("replay", str(path)).stderr == b""


def test_a_small_log_shows_no_progress() -> None:
    assert on_a_terminal([sys.executable, "-m", "ctxdoc", "replay", str(SESSION)]) == b""


def test_a_command_can_be_pasted_whatever_the_log_is_called(tmp_path: Path) -> None:
    path = tmp_path / "my log; echo PWNED.jsonl"
    path.write_bytes(SESSION.read_bytes())
    for form in ("text", "markdown"):
        shown = run("replay", str(path), "--format", form, COLUMNS="40").stdout.decode()
        assert f"ctxdoc diagnose '{path}' --pair 9,10" in shown


def test_many_causes_share_the_last_marker() -> None:
    bars = tuple(
        Bar(at=n, read=1, written=1, uncached=0, mark=f"cause_{n % 12}") for n in range(1, 40)
    )
    drawn = write_picture(Chart(title="t", bars=bars, lines=()), "svg").decode()
    assert drawn.count("miss: cause_") == MOST_CAUSES - 1
    assert "miss: other causes" in drawn
