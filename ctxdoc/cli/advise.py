"""`ctxdoc advise`: what to do with the session in hand."""

from __future__ import annotations

import gc
from functools import partial
from typing import Annotated

import typer

from ctxdoc.api import advise as api
from ctxdoc.cli.command import Command
from ctxdoc.cli.counting import counting, tell_prompts
from ctxdoc.cli.options import (
    CountOption,
    DebugOption,
    ModelOption,
    NoColorOption,
    OptionalLogsArgument,
    OutputOption,
    QuietOption,
    SchemaOption,
    SessionOption,
    StrictOption,
    TableFormatOption,
    asked_of,
    typed,
)
from ctxdoc.cli.progress import shown_progress
from ctxdoc.cli.writing import check_schema, refuse_inputs, warn_all, write_report
from ctxdoc.outputs import OUTPUTS

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def advise(
    ctx: typer.Context,
    logs: OptionalLogsArgument = None,
    session: SessionOption = "",
    now: Annotated[
        str,
        typer.Option(
            "--now",
            metavar="TIME",
            help="Take this as the time instead of the clock's: whether the cache is still warm.",
        ),
    ] = "",
    calls: Annotated[
        int | None,
        typer.Option(
            "--calls", metavar="N", help="Weigh over so many further calls; as many as there were."
        ),
    ] = None,
    summary: Annotated[
        int | None,
        typer.Option(
            "--summary",
            metavar="TOKENS",
            help="Of a summary; a tenth of the history, at most 3500.",
        ),
    ] = None,
    prefix: Annotated[
        int | None,
        typer.Option(
            "--prefix", metavar="P", help="Made-up session: tokens of tools and system prompt."
        ),
    ] = None,
    per_turn: Annotated[
        int | None,
        typer.Option("--per-turn", metavar="A", help="Made-up session: tokens each turn adds."),
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--turns", metavar="N", help="Made-up session: requests; 20.")
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option("--gap", metavar="SECONDS", help="Made-up session: between requests; 20."),
    ] = None,
    form: TableFormatOption = "text",
    output: OutputOption = "",
    schema: SchemaOption = "1",
    model: ModelOption = "",
    count_tokens: CountOption = False,
    strict: StrictOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
    debug: DebugOption = False,
) -> None:
    """Advise on the session that was worked on last: go on, compact now, hand off to a new session with a
    summary, or wait until the cache is cold, when shortening costs no rewrite.

    Each way is simulated over the calls to come: what it costs at once, the call from which on it pays, what
    the next call costs warm and after a pause.

    \b
    Examples:
      ctxdoc advise ~/.claude/projects/my-project
      ctxdoc advise agent.jsonl --calls 100
      ctxdoc advise agent.jsonl --now 2026-11-02T09:30:00Z --format json
      ctxdoc advise --prefix 20000 --per-turn 2500 --turns 60
    """
    del debug
    OUTPUTS[form]
    check_schema(schema)
    refuse_inputs(typed(logs), {"--output": output})
    # The process ends soon: nothing that refers to itself in circles has to be found before.
    gc.disable()
    with (
        counting(count_tokens, partial(tell_prompts, quiet=quiet)) as counter,
        shown_progress(typed(logs), quiet=quiet) as progress,
    ):
        asked = asked_of(ctx, api.advise)
        found = api.advise(*typed(logs), **asked, count_tokens=counter, progress=progress)
    warn_all(found.warnings, quiet=quiet)
    write_report(found.report(), form, output, no_color=no_color, schema=schema)
