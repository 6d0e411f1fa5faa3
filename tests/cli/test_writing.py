"""How reports, files and warnings leave the program: pipes, widths, files that are whole or not at all."""

from __future__ import annotations

import os
import re
import stat
import threading
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.cli.writing import PIPE_WIDTH, check_plot, emit, refuse_inputs, warn, write_bytes
from ctxdoc.errors import InputError
from tests.support.program import call
from tests.support.sessions import ROOT, SESSION

CASES = ROOT / "fixtures" / "cases"
PAIR = [CASES / "clock-at-head-of-system" / f"{name}.json" for name in "ab"]
COMMANDS = ("ctxdoc ", "fixtures/", "/")
"""Beginnings of what is not broken: commands, and paths."""


def widest(text: str) -> int:
    """Columns of the widest line that could have been broken."""
    lines = (line for line in text.splitlines() if not any(c in line for c in COMMANDS))
    return max(map(len, lines))


@pytest.mark.parametrize(
    ("columns", "width"),
    [("40", 40), ("60", 60), ("70", 70), ("120", 120), ("200", 200), ("999", 999)],
)
def test_columns_from_40_to_999_are_obeyed(columns: str, width: int) -> None:
    text = call("diagnose", *PAIR, COLUMNS=columns).out
    assert widest(text) <= width
    if width <= PIPE_WIDTH:
        assert widest(text) > width - 20


@pytest.mark.parametrize(
    "columns", ["", "39", "0", "1000", "-80", "8.0", "²", "٨٠", " 80", "9" * 5000]
)
def test_another_columns_is_none(columns: str) -> None:
    assert call("diagnose", *PAIR, COLUMNS=columns).out == call("diagnose", *PAIR).out


@pytest.mark.parametrize(("size", "width"), [(20, 60), (60, 60), (90, 90), (120, 120), (500, 120)])
def test_a_terminal_is_filled_between_60_and_120(size: int, width: int) -> None:
    told = os.terminal_size((size, 24))
    with (
        mock.patch("tests.support.program.Piped.isatty", return_value=True),
        mock.patch("shutil.get_terminal_size", return_value=told),
    ):
        shown = call("diagnose", *PAIR, "--no-color").out
    assert shown == call("diagnose", *PAIR, COLUMNS=str(width)).out


def test_a_log_can_come_through_a_pipe() -> None:
    data = SESSION.read_bytes()
    for command in ("diagnose", "replay", "simulate", "gate", "image"):
        piped = call(command, "-", "--format", "json", stdin=data)
        named = call(command, SESSION, "--format", "json")
        assert piped.code == named.code
        assert re.sub('"-(?=[":])', f'"{SESSION}', piped.out) == named.out


def test_an_image_can_come_through_a_pipe() -> None:
    path = ROOT / "fixtures" / "plots" / "session.png"
    piped = call("image", "-", "--format", "json", stdin=path.read_bytes())
    assert piped.out == call("image", path, "--format", "json").out.replace(str(path), "-")


def test_an_empty_pipe_is_an_empty_log() -> None:
    ended = call("replay", "-")
    assert (ended.code, ended.out) == (3, "")
    assert "the input is empty" in ended.err


def test_a_closed_standard_output_says_what_to_do() -> None:
    with mock.patch("sys.stdout", None), pytest.raises(InputError) as caught:
        emit("text")
    assert caught.value.hint == "write the report with --output FILE"


def test_a_closed_standard_error_is_no_error() -> None:
    for stream in (None, mock.Mock(write=mock.Mock(side_effect=BrokenPipeError))):
        with mock.patch("sys.stderr", stream):
            warn("something", quiet=False)


def test_a_warning_cannot_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    warn("a\x1b[31mb", quiet=False)
    assert "\x1b" not in capsys.readouterr().err


@given(st.binary(max_size=200))
def test_what_is_written_is_what_is_there(data: bytes) -> None:
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"ctxdoc-test-{os.getpid()}"
    try:
        write_bytes(path, data, "--output")
        assert path.read_bytes() == data
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        path.unlink(missing_ok=True)


def test_a_failed_writing_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "report"
    path.write_text("old")
    full = OSError(28, "No space left on device")
    with (
        mock.patch("os.fsync", side_effect=full),
        pytest.raises(InputError, match="No space left") as caught,
    ):
        write_bytes(path, b"new", "--output")
    assert caught.value.hint == "choose another --output"
    assert [each.name for each in tmp_path.iterdir()] == ["report"]
    assert path.read_text() == "old"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("old")
    link.symlink_to(real)
    write_bytes(link, b"new", "--output")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot write"):
        write_bytes(tmp_path, b"new", "--output")
    assert list(tmp_path.iterdir()) == []


def test_a_named_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_bytes(pipe, b"data", "--output")
    reader.join(10)
    assert read == [b"data"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("plot", ["", "a.png", "a.PNG", "no/folder/b.svg"])
def test_a_picture_is_png_or_svg(plot: str) -> None:
    check_plot(plot)


@pytest.mark.parametrize("plot", ["a", "a.gif", "png", "a.svg.gz", "."])
def test_another_picture_is_none(plot: str) -> None:
    with pytest.raises(InputError, match=r"no \.png and no \.svg file"):
        check_plot(plot)


def test_what_is_read_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log, link = tmp_path / "log", tmp_path / "link"
    log.write_text("")
    link.symlink_to(log)
    for target in ("log", "./log", "../" + tmp_path.name + "/log", str(link)):
        with pytest.raises(InputError, match=r"--output .* would replace what is read"):
            refuse_inputs([str(log)], {"--output": target})
    refuse_inputs([str(log), "-"], {"--output": "-", "--plot": "", "--emit": "other"})
