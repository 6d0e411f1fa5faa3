"""`ctxdoc simulate`: what other ways to manage the context would have cost on the same session."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ctxdoc.api import simulate as api
from ctxdoc.cli import names
from ctxdoc.cli.command import Command
from ctxdoc.cli.counting import counting, tell_prompts
from ctxdoc.cli.options import (
    CountOption,
    DebugOption,
    ExcerptsOption,
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
from ctxdoc.cli.writing import (
    check_plot,
    check_schema,
    refuse_inputs,
    warn,
    warn_all,
    write_bytes,
    write_plot,
    write_report,
)
from ctxdoc.errors import InputError
from ctxdoc.outputs import OUTPUTS
from ctxdoc.simulation.question import question_of

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def simulate(
    ctx: typer.Context,
    logs: OptionalLogsArgument = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            metavar="NAME[:KEY=VALUE,...]",
            help="A strategy to compare, several joined by +; without one, all that apply.",
            autocompletion=names.strategies,
            show_default=False,
        ),
    ] = None,
    placement: Annotated[
        list[str] | None,
        typer.Option(
            "--placement",
            metavar="NAME",
            help="Rows with breakpoints placed in another way beside the usual one: {placements}.",
            autocompletion=names.placements,
            show_default=False,
        ),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="STRATEGY.KEY=A,B,C",
            help="Try these values; several sweeps make one grid.",
            show_default=False,
        ),
    ] = None,
    optimize: Annotated[
        list[str] | None,
        typer.Option(
            "--optimize",
            metavar="STRATEGY.KEY[=LOW..HIGH]",
            help="Find the cheapest value; several are each looked for alone.",
            show_default=False,
        ),
    ] = None,
    max_unseen: Annotated[
        str,
        typer.Option(
            "--max-unseen",
            metavar="SHARE",
            help="Hide at most this much of the history: 10%, or 0.1; 0 takes nothing from the model.",
        ),
    ] = "10%",
    assume: Annotated[
        str,
        typer.Option(
            "--assume",
            metavar="shorter_entries_die|shorter_entries_live",
            help="What is not documented: whether shorter entries live on when a longer one is read.",
            show_default=False,
        ),
    ] = "",
    batch: Annotated[
        bool, typer.Option("--batch", help="Price all as message batches: half of everything.")
    ] = False,
    model_for: Annotated[
        str,
        typer.Option(
            "--model-for",
            metavar="subagents=NAME",
            help="Send the requests of subagents to another model.",
        ),
    ] = "",
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
    tool_share: Annotated[
        float | None,
        typer.Option("--tool-share", help="Made-up session: share of A in tool results; 0.8."),
    ] = None,
    payload: Annotated[
        int | None,
        typer.Option(
            "--payload", metavar="X", help="Made-up session: a tool result of X tokens at first."
        ),
    ] = None,
    gap: Annotated[
        float | None,
        typer.Option("--gap", metavar="SECONDS", help="Made-up session: between requests; 20."),
    ] = None,
    output_tokens: Annotated[
        int | None,
        typer.Option(
            "--output-tokens", metavar="O", help="Made-up session: of each answer; a fifth of A."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option("--seed", help="Made-up session: let A and the gaps vary by half."),
    ] = None,
    session: SessionOption = "",
    plot: Annotated[
        str,
        typer.Option("--plot", metavar="FILE", help="Draw cost and prompts: a {pictures} file."),
    ] = "",
    emit: Annotated[
        str,
        typer.Option("--emit", metavar="FILE", help="Write the requests of one strategy as a log."),
    ] = "",
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="The changes worth making, what to write for each, and what they save."
        ),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List what the model would not see.")
    ] = False,
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
    """Simulate other ways to manage the context of a session, under caching and without: {strategies}.

    A recorded log, or a made-up session: turn k sends P + A·k tokens to claude-sonnet-5-5, or to --model.
    Each strategy is replayed through the same cache and priced alike; what the model would no longer see
    is counted and not priced.

    \b
    Examples:
      ctxdoc simulate agent.jsonl
      ctxdoc simulate agent.jsonl --strategy clear:trigger=60k,keep=3 --strategy offload+compact
      ctxdoc simulate agent.jsonl --sweep clear.trigger=40k,80k --sweep clear.keep=1,3,5
      ctxdoc simulate agent.jsonl --optimize compact.trigger --plot curve.png
      ctxdoc simulate agent.jsonl --plan --max-unseen 25%
      ctxdoc simulate agent.jsonl --model-for subagents=claude-haiku-4-5
      ctxdoc simulate agent.jsonl --strategy offload --emit offloaded.jsonl
      ctxdoc simulate --prefix 8000 --per-turn 1500 --turns 60
    """
    del debug
    OUTPUTS[form]
    check_schema(schema)
    check_plot(plot)
    refuse_inputs(typed(logs), {"--emit": emit, "--plot": plot, "--output": output})
    _check_emit(emit, typed(strategy), typed(placement))
    # The process ends soon: nothing that refers to itself in circles has to be found before.
    gc.disable()
    with (
        counting(count_tokens, partial(tell_prompts, quiet=quiet)) as counter,
        shown_progress(typed(logs), quiet=quiet) as progress,
    ):
        asked = asked_of(ctx, api.simulate)
        found = api.simulate(*typed(logs), **asked, count_tokens=counter, progress=progress)
    warn_all(found.warnings, quiet=quiet)
    write_plot(plot, found.plot)
    _emit(found, emit, quiet=quiet)
    report = found.report(excerpts=not no_excerpts)
    write_report(report, form, output, no_color=no_color, schema=schema)


def _check_emit(emit: str, strategy: Sequence[str], placement: Sequence[str]) -> None:
    """Raises InputError, before anything is simulated, for a log that could not be written."""
    if emit == "-":
        raise InputError("--emit takes a file: the report goes to standard output", "name a file")
    if emit:
        question_of(strategy, placement).emitted()


def _emit(found: api.SimulationOutcome, emit: str, *, quiet: bool) -> None:
    if emit:
        # Counters and numbers have no text: whoever reads the log should not take its words for recorded ones.
        if not found.simulation.session.has_bodies:
            warn("--emit: there are no bodies; placeholders stand for their text", quiet=quiet)
        write_bytes(Path(emit), found.emit(), "--emit")
