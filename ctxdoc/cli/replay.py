"""`ctxdoc replay`: what a log holds."""

from __future__ import annotations

from typing import Annotated

import typer

from ctxdoc.cli.command import Command
from ctxdoc.cli.options import (
    DebugOption,
    FormatOption,
    NoColorOption,
    OutputOption,
    QuietOption,
    StrictOption,
    write_report,
)
from ctxdoc.load import read_log
from ctxdoc.outputs import OUTPUTS
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
    form: FormatOption = "text",
    output: OutputOption = "",
    strict: StrictOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
    debug: DebugOption = False,
) -> None:
    """Read logs of any known format: requests, sessions, tokens, money, and what was skipped.

    \b
    Examples:
      ctxdoc replay agent.jsonl
      ctxdoc replay ~/.claude/projects
      ctxdoc replay cassettes/ --format json
    """
    del debug, quiet
    OUTPUTS[form]
    write_report(replay_report(read_log(logs, strict=strict)), form, output, no_color=no_color)
