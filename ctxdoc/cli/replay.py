"""`ctxdoc replay`: what a log cost, how it grows, what was missed, and what to do."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Annotated

import typer

from ctxdoc.cli.command import Command
from ctxdoc.cli.options import (
    CountOption,
    DebugOption,
    ExcerptsOption,
    FormatOption,
    ModelOption,
    NoColorOption,
    OutputOption,
    QuietOption,
    StrictOption,
    check_model,
    check_plot,
    refuse_inputs,
    skipped_lines,
    warn,
    with_api_counts,
    with_model,
    write_bytes,
    write_report,
)
from ctxdoc.cli.progress import shown_progress
from ctxdoc.errors import InputError, NoRequestError
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.ledger import replay as replay_log
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.outputs import OUTPUTS
from ctxdoc.reading.files import size_of
from ctxdoc.reading.load import read_log
from ctxdoc.reports.chart import chart_of
from ctxdoc.reports.replay import replay_report

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def replay(
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG...",
            help="Files, folders or archives of any known format. '-' is standard input.",
            show_default=False,
        ),
    ],
    session: Annotated[
        str,
        typer.Option(
            "--session", metavar="ID", help="Report one session; the beginning of its name will do."
        ),
    ] = "",
    plot: Annotated[
        str,
        typer.Option(
            "--plot", metavar="FILE", help="Draw context and cost by request: a .png or .svg file."
        ),
    ] = "",
    form: FormatOption = "text",
    output: OutputOption = "",
    model: ModelOption = "",
    count_tokens: CountOption = False,
    no_excerpts: ExcerptsOption = False,
    strict: StrictOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
    debug: DebugOption = False,
) -> None:
    """Replay logs through the cache: what they cost, how the context grows, what was missed and why,
    which blocks are dear, and what to do.

    Formats are found by content; files, folders and archives can be mixed.
    Exit codes: 0 done; 2 wrong arguments or unreadable input; 3 nothing was analysed.

    \b
    Examples:
      ctxdoc replay agent.jsonl
      ctxdoc replay agent.jsonl --plot context.png
      ctxdoc replay ~/.claude/projects --format html --output report.html
      ctxdoc replay cassettes/ --format csv > requests.csv
    """
    del debug
    OUTPUTS[form]
    check_model(model)
    check_plot(plot)
    refuse_inputs(logs, {"--plot": plot, "--output": output})
    found = _replayed(logs, session, model, strict=strict, quiet=quiet, count=count_tokens)
    for line in skipped_lines(found.log):
        warn(line, quiet=quiet)
    report = replay_report(found, excerpts=not no_excerpts, logs=logs)
    if plot:
        _draw(found, plot)
    write_report(report, form, output, no_color=no_color)
    if not any(row.judged or row.counters for row in found.rows):
        raise NoRequestError("no request of the log has counters, or a body that is understood")


def _replayed(
    logs: list[str], session: str, model: str, *, strict: bool, quiet: bool, count: bool
) -> Ledger:
    # Nothing here refers to itself in circles; on a log of a gigabyte the collector would take a
    # third of the time looking for what does.
    gc.disable()
    size = size_of(logs) if not quiet else 0
    with shown_progress(size, quiet=quiet) as begin:
        reading = begin("reading", size) if begin else None
        read = [with_model(read_log(logs, strict=strict, condense=True, progress=reading), model)]
        read[0] = with_api_counts(read[0], count, quiet=quiet)
        replaying = begin("replaying", len(read[0].requests)) if begin else None
        # Nobody but the replay holds the log, so that it can let go of bodies on the way.
        found = replay_log(read.pop(), only=session, progress=replaying)
    if not any(map(_tells_something, found.rows)):
        reasons = dict.fromkeys(row.reason for row in found.rows if row.reason)
        why = f": {next(iter(reasons))}" if reasons else ""
        raise NoRequestError(f"no request can be replayed{why}", SEE_FORMATS)
    return found


SEE_FORMATS = "'ctxdoc formats' lists what can be read"


def _tells_something(row: RequestCost) -> bool:
    """Whether anything is known of a request but that there was one."""
    return bool(row.counters or row.miss or row.waste or row.request.refused)


def _draw(found: Ledger, plot: str) -> None:
    chart = chart_of(found)
    if chart is None:
        raise InputError("there is nothing to draw: no request has counters or a body")
    from ctxdoc.outputs.plot import write_picture

    path = Path(plot)
    write_bytes(path, write_picture(chart, path.suffix.lower().removeprefix(".")), "--plot")
