"""`ctxdoc diagnose`: two requests, or one log."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ctxdoc.api import diagnose as api
from ctxdoc.cli.command import Command
from ctxdoc.cli.counting import counting, tell_prompts
from ctxdoc.cli.options import (
    CountOption,
    DebugOption,
    ExcerptsOption,
    FormatOption,
    ModelOption,
    NoColorOption,
    OutputOption,
    QuietOption,
    SchemaOption,
    StrictOption,
)
from ctxdoc.cli.writing import check_schema, refuse_inputs, warn, warn_all, write_report
from ctxdoc.errors import InputError
from ctxdoc.outputs import OUTPUTS
from ctxdoc.pricing.cost import usd_text

if TYPE_CHECKING:
    from ctxdoc.live.double_send import Plan

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def diagnose(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="BEFORE AFTER | LOG",
            help="Two files with one request each, or one log. '-' is standard input.",
            show_default=False,
        ),
    ],
    pair: Annotated[
        str, typer.Option("--pair", metavar="N,M", help="Which two requests of a log, from 1.")
    ] = "",
    diff: Annotated[
        bool, typer.Option("--diff", help="Run the diff even when it is not needed.")
    ] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 when the cache is not alive.")
    ] = False,
    live: Annotated[
        bool,
        typer.Option(
            "--live", help="Send the later request twice and read both counters: costs money."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --live: do not ask.")] = False,
    diagnostics: Annotated[
        bool,
        typer.Option("--diagnostics", help="With --live: ask for the API's own word on a miss."),
    ] = False,
    form: FormatOption = "text",
    output: OutputOption = "",
    schema: SchemaOption = "1",
    model: ModelOption = "",
    count_tokens: CountOption = False,
    strict: StrictOption = False,
    no_excerpts: ExcerptsOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
    debug: DebugOption = False,
) -> None:
    """Say why the cache was not read, to the byte, with the price and the fix.

    Three steps, cheapest first: was the same request sent twice; what do both read counters say;
    and, only when needed, where is the first differing byte.

    \b
    Examples:
      ctxdoc diagnose before.json after.json
      ctxdoc diagnose agent.jsonl                   the costliest miss
      ctxdoc diagnose agent.jsonl --pair 7,8
      ctxdoc diagnose a.json b.json --format json --exit-code
      ctxdoc diagnose agent.jsonl --pair 7,8 --live
    """
    del debug
    OUTPUTS[form]
    check_schema(schema)
    refuse_inputs(inputs, {"--output": output})
    with counting(count_tokens, partial(tell_prompts, quiet=quiet)) as counter:
        found = api.diagnose(
            *inputs, pair=pair, diff=diff, model=model, strict=strict, count_tokens=counter
        )
    warn_all(found.warnings, quiet=quiet)
    if live:
        # Asked with the price in sight: the sending costs money, and the plan says how much at most.
        plan = found.plan_live(diagnostics=diagnostics)
        _agree(found, plan, yes=yes)
        found = found.send_live(plan)
    write_report(
        found.report(excerpts=not no_excerpts), form, output, no_color=no_color, schema=schema
    )
    if exit_code and found.state != "alive":
        raise typer.Exit(1)


def _agree(found: api.DiagnosisOutcome, plan: Plan, *, yes: bool) -> None:
    """Says what will be sent and its price, and asks; ends the program where the answer is no.

    Raises InputError where nobody can be asked.
    """
    request = found.diagnosis.case.after.request
    price = f"at most {usd_text(plan.most)}" if plan.most is not None else "at no known price"
    about = (
        f"--live sends {request.source}:{request.line} to {plan.body['model']}, about {plan.tokens:,} tokens "
        f"and an answer of {plan.longest:,} at most, twice or up to {plan.count} times, {price}"
    )
    if yes:
        # What costs money is told even to those who want no warnings.
        warn(about, quiet=False)
    elif not sys.stdin.isatty():
        raise InputError(about, "say --yes where nobody can be asked")
    else:
        typer.confirm(f"{about}. Send it?", abort=True, err=True)
