"""The options that several commands share, and how a report leaves the program."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from ctxdoc.errors import InputError, UnknownNameError
from ctxdoc.outputs import OUTPUTS, Style, Takes, names_that_take
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import Report
from ctxdoc.providers import PROVIDERS, find_model
from ctxdoc.registry import any_of
from ctxdoc.request.log import Log
from ctxdoc.request.request import Request

if TYPE_CHECKING:
    from ctxdoc.live.count_tokens import TokenCounter

PIPE_WIDTH = 100
"""Columns where the output is no terminal."""


def _complete_format() -> list[str]:
    return list(OUTPUTS.names)


FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        help=f"How to write the report: {any_of(names_that_take(Takes.ALL))}; "
        f"{any_of(names_that_take(Takes.ROWS))} where it is a table.",
        autocompletion=_complete_format,
    ),
]
OutputOption = Annotated[
    str,
    typer.Option(
        "--output", metavar="FILE", help="Write the report to a file, whole or not at all."
    ),
]
ModelOption = Annotated[
    str, typer.Option("--model", help="Use this model's rules and prices instead of the log's.")
]
StrictOption = Annotated[
    bool, typer.Option("--strict", help="Fail on the first record that cannot be read.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", help="No warnings on standard error.")]
NoColorOption = Annotated[
    bool, typer.Option("--no-color", help="No colour (NO_COLOR does the same).")
]
ExcerptsOption = Annotated[
    bool, typer.Option("--no-excerpts", help="Leave text of the requests out of the report.")
]
DebugOption = Annotated[
    bool, typer.Option("--debug", help="Show a traceback when ctxdoc itself fails.")
]


def write_report(report: Report, form: str, output: str, *, no_color: bool) -> None:
    """Writes a report to standard output or, whole or not at all, to a file."""
    written = OUTPUTS[form].write(report, _style(output, no_color))
    if output and output != "-":
        _write_whole(Path(output), written)
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
        # A flush at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        reason = error.strerror or str(error)
        raise InputError(f"cannot write to standard output: {reason}") from error


def _style(output: str, no_color: bool) -> Style:
    terminal = not output and sys.stdout is not None and sys.stdout.isatty()
    color = terminal and not no_color and not os.environ.get("NO_COLOR")
    color = color and os.environ.get("TERM") != "dumb"
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal() and len(columns) <= 3 and int(columns) >= 40:
        return Style(width=int(columns), color=color)
    width = shutil.get_terminal_size().columns if terminal else PIPE_WIDTH
    return Style(width=max(60, min(width, 120)), color=color)


def _write_whole(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8", "backslashreplace"), "--output")


def write_bytes(path: Path, data: bytes, option: str) -> None:
    """A temporary file in the same folder, then a rename; reports hold parts of prompts: 0600.

    A pipe or a device is written as it is.
    """
    try:
        path = path.resolve()
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot write {path}: {reason}", f"choose another {option}") from error


CountOption = Annotated[
    bool,
    typer.Option(
        "--count-tokens",
        help="Let the API count prompts that have no counters: free, needs a key, kept on disk.",
    ),
]


def with_api_counts(log: Log, wanted: bool, *, quiet: bool) -> Log:
    """The log with prompts counted by the API, if that is wanted; says how many, and what was not possible.

    Raises InputError where there is no key.
    """
    if not wanted:
        return log
    from ctxdoc.live.count_tokens import with_counts

    with token_counter() as counter:
        log = with_counts(log, counter)
        if counter.stopped:
            text = f"--count-tokens stopped: {counter.stopped}; estimates stand for the rest"
            warn(text, quiet=False)
        warn(
            f"--count-tokens: {counter.asked:,} prompts asked, {counter.known:,} known from before"
            + (f", {counter.refused:,} not counted by the API" if counter.refused else ""),
            quiet=quiet,
        )
    return log


@contextmanager
def token_counter() -> Iterator[TokenCounter]:
    """A counter at the API.

    Raises InputError where there is no key.
    """
    import anthropic

    from ctxdoc.live.count_tokens import TokenCounter, cache_path

    try:
        client = anthropic.Anthropic(max_retries=0)
    except anthropic.AnthropicError as error:
        raise InputError("--count-tokens: there is no key", "set ANTHROPIC_API_KEY") from error
    with client, closing(TokenCounter(client, cache_path())) as counter:
        yield counter


def check_model(name: str) -> None:
    """Raises UnknownNameError for a model that has no rules."""
    if name and not find_model(name).known:
        every = [model for provider in PROVIDERS for model in provider.models]
        near = get_close_matches(name, every, n=3)
        raise UnknownNameError("model", name, near or every[:8], every)


def refuse_inputs(inputs: Iterable[str], targets: Mapping[str, str]) -> None:
    """Raises InputError where a file that would be written is one that is read."""
    read = {Path(path).resolve() for path in inputs if path != "-"}
    for option, target in targets.items():
        if target and target != "-" and Path(target).resolve() in read:
            raise InputError(f"{option} {target} would replace what is read", "name another file")


PICTURES = (".png", ".svg")


def check_plot(plot: str) -> None:
    """Raises InputError for a picture of a kind that is not drawn."""
    if plot and Path(plot).suffix.lower() not in PICTURES:
        raise InputError(f"--plot '{plot}' is no .png and no .svg file", "name it context.png")


def warn(text: str, *, quiet: bool) -> None:
    """One line on standard error."""
    if not quiet:
        with suppress(OSError, AttributeError):
            sys.stderr.write(f"ctxdoc: {harmless(text)}\n")


def with_model(log: Log, model: str) -> Log:
    """The log as if every request had been sent to that model; as it is without one."""
    if not model:
        return log
    return replace(log, requests=tuple(_of_model(request, model) for request in log.requests))


def _of_model(request: Request, model: str) -> Request:
    response = replace(request.response, model=model) if request.response else None
    return replace(request, model=model, response=response)


def skipped_lines(log: Log) -> list[str]:
    """What was passed over, in one line; nothing where nothing was."""
    skipped = [item for item in log.skipped if not item.other]
    if not skipped:
        return []
    first = skipped[0]
    records = "1 record" if len(skipped) == 1 else f"{len(skipped)} records"
    return [f"{records} skipped, the first: {first.source}, line {first.line}: {first.reason}"]
