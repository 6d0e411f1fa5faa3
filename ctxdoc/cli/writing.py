"""Writing: how a report, a file or a warning leaves the program."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from ctxdoc.api.outcome import PICTURES
from ctxdoc.errors import InputError
from ctxdoc.outputs import OUTPUTS, Style
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import Report
from ctxdoc.reports.json.second import second_of

PIPE_WIDTH = 100
"""Columns where the output is no terminal."""
LEAST_WIDTH, MOST_WIDTH = 60, 120
"""Columns of a terminal that a report is fitted to: below, tables fall apart; above, lines are hard to read."""
LEAST_COLUMNS = 40
"""From here on COLUMNS is obeyed to the letter."""


def write_report(
    report: Report, form: str, output: str, *, no_color: bool, schema: str = "1"
) -> None:
    """Writes a report to standard output or, whole or not at all, to a file."""
    if schema == "2":
        report = second_of(report)
    written = OUTPUTS[form].write(report, _style(output, no_color))
    if output and output != "-":
        write_bytes(Path(output), written.encode("utf-8", "backslashreplace"), "--output")
        return
    emit(written)


def emit(text: str) -> None:
    """Writes to standard output; a reader who is gone is no error, and changes no exit code.

    Raises InputError when standard output is closed or full.
    """
    if sys.stdout is None:
        raise InputError("standard output is closed", "write the report with --output FILE")
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go_of_stdout()
    except OSError as error:
        _let_go_of_stdout()
        reason = error.strerror or str(error)
        raise InputError(f"cannot write to standard output: {reason}") from error


def _let_go_of_stdout() -> None:
    # The interpreter flushes at exit, would fail again, and would end with a code of its own.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _style(output: str, no_color: bool) -> Style:
    terminal = not output and sys.stdout is not None and sys.stdout.isatty()
    return Style(width=_width(terminal), color=terminal and not no_color and _takes_color())


def _takes_color() -> bool:
    """Whether the environment says nothing against colour (no-color.org; a dumb terminal shows the codes)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width(terminal: bool) -> int:
    # Digits of other scripts are no number here, and one of thousands of digits takes too long to read.
    found = re.fullmatch("[0-9]{1,3}", os.environ.get("COLUMNS", ""))
    if found and int(found[0]) >= LEAST_COLUMNS:
        return int(found[0])
    if not terminal:
        return PIPE_WIDTH
    return max(LEAST_WIDTH, min(shutil.get_terminal_size().columns, MOST_WIDTH))


def write_bytes(path: Path, data: bytes, option: str) -> None:
    """A temporary file in the same folder, then a rename; reports hold parts of prompts: 0600.

    A pipe or a device is written as it is. Raises InputError, naming the option, for a place that cannot be
    written to.
    """
    try:
        path = path.resolve()
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
        else:
            _replace(path, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot write {path}: {reason}", f"choose another {option}") from error


def _replace(path: Path, data: bytes) -> None:
    from tempfile import mkstemp  # most reports go to standard output

    handle, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            # A rename may reach the disk before what it names: a power cut would leave an empty report.
            os.fsync(stream.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_plot(plot: str, draw: Callable[[str], bytes]) -> None:
    """Writes a picture of the kind that the file's name asks for; nothing without a name."""
    if plot:
        path = Path(plot)
        write_bytes(path, draw(_kind(path)), "--plot")


def _kind(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


SCHEMAS = ("1", "2")


def check_schema(schema: str) -> None:
    """Raises InputError for a schema that there is not."""
    if schema not in SCHEMAS:
        raise InputError(f"--schema '{schema}' is not known", "write --schema 1 or --schema 2")


def check_plot(plot: str) -> None:
    """Raises InputError for a picture of a kind that is not drawn."""
    if plot and _kind(Path(plot)) not in PICTURES:
        kinds = " and ".join(f"no .{kind}" for kind in PICTURES)
        raise InputError(f"--plot '{plot}' is {kinds} file", "name it context.png")


def refuse_inputs(inputs: Iterable[str], targets: Mapping[str, str]) -> None:
    """Raises InputError where a file that would be written is one that is read."""
    read = {Path(path).resolve() for path in inputs if path != "-"}
    for option, target in targets.items():
        if target and target != "-" and Path(target).resolve() in read:
            raise InputError(f"{option} {target} would replace what is read", "name another file")


def warn(text: str, *, quiet: bool) -> None:
    """One line on standard error."""
    if not quiet:
        # A closed or full standard error must not change what the program does.
        with suppress(OSError, AttributeError):
            sys.stderr.write(f"ctxdoc: {harmless(text)}\n")


def warn_all(lines: Iterable[str], *, quiet: bool) -> None:
    """Lines on standard error."""
    for line in lines:
        warn(line, quiet=quiet)
