"""`ctxdoc replay`: what a log cost, how it grows, what was missed, and what to do."""

from __future__ import annotations

import gc
from functools import partial
from typing import Annotated

import typer

from ctxdoc.api import replay as api
from ctxdoc.cli.command import Command
from ctxdoc.cli.counting import counting, tell_prompts
from ctxdoc.cli.options import (
    CountOption,
    DebugOption,
    ExcerptsOption,
    LogsArgument,
    ModelOption,
    NoColorOption,
    OutputOption,
    QuietOption,
    SchemaOption,
    SessionOption,
    StrictOption,
    TableFormatOption,
)
from ctxdoc.cli.progress import shown_progress
from ctxdoc.cli.writing import (
    check_plot,
    check_schema,
    refuse_inputs,
    warn_all,
    write_plot,
    write_report,
)
from ctxdoc.errors import NoRequestError
from ctxdoc.outputs import OUTPUTS

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def replay(
    logs: LogsArgument,
    session: SessionOption = "",
    plot: Annotated[
        str,
        typer.Option(
            "--plot", metavar="FILE", help="Draw context and cost by request: a {pictures} file."
        ),
    ] = "",
    form: TableFormatOption = "text",
    output: OutputOption = "",
    schema: SchemaOption = "1",
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
    check_schema(schema)
    check_plot(plot)
    refuse_inputs(logs, {"--plot": plot, "--output": output})
    # The process ends soon: nothing that refers to itself in circles has to be found before.
    gc.disable()
    with (
        counting(count_tokens, partial(tell_prompts, quiet=quiet)) as counter,
        shown_progress(logs, quiet=quiet) as progress,
    ):
        found = api.replay(
            *logs,
            session=session,
            model=model,
            strict=strict,
            count_tokens=counter,
            progress=progress,
        )
    warn_all(found.warnings, quiet=quiet)
    report = found.report(excerpts=not no_excerpts)
    write_plot(plot, found.plot)
    write_report(report, form, output, no_color=no_color, schema=schema)
    if not found.is_understood:
        # The report says what each request lacks, so it is written all the same.
        raise NoRequestError("no request of the log has counters, or a body that is understood")
