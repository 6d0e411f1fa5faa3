"""`ctxdoc diagnose`: two requests, or one log."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Annotated

import typer
from msgspec.structs import replace

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
    refuse_inputs,
    skipped_lines,
    warn,
    with_api_counts,
    with_model,
    write_report,
)
from ctxdoc.diagnosis.diagnose import Diagnosis, State, diagnose_log, diagnose_pair
from ctxdoc.errors import InputError
from ctxdoc.outputs import OUTPUTS
from ctxdoc.reading.load import read_log
from ctxdoc.reports.diagnose import diagnosis_report
from ctxdoc.request.log import Log

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
    check_model(model)
    refuse_inputs(inputs, {"--output": output})
    found, skipped = _diagnose(
        inputs,
        pair,
        diff,
        lambda path: with_api_counts(
            with_model(read_log([path], strict=strict), model), count_tokens, quiet=quiet
        ),
    )
    for line in skipped:
        warn(line, quiet=quiet)
    if live:
        found = _sent_live(found, yes=yes, diagnostics=diagnostics)
    write_report(diagnosis_report(found, excerpts=not no_excerpts), form, output, no_color=no_color)
    if exit_code and found.state is not State.ALIVE:
        raise typer.Exit(1)


def _diagnose(
    inputs: list[str], pair: str, diff: bool, read: Callable[[str], Log]
) -> tuple[Diagnosis, list[str]]:
    match inputs:
        case [path]:
            log = read(path)
            numbers = _read_pair(pair, len(log.requests))
            return diagnose_log(log, numbers, always_diff=diff), skipped_lines(log)
        case [one, two]:
            if pair:
                raise InputError("--pair goes with one log", "give one file, or leave out --pair")
            if one == two == "-":
                raise InputError("standard input cannot be both requests", "name one of the files")
            logs = [read(path) for path in (one, two)]
            before, after = (log.requests[-1] for log in logs)
            found = diagnose_pair(before, after, always_diff=diff)
            return found, [*_several(logs), *(line for log in logs for line in skipped_lines(log))]
        case _:
            raise InputError(
                f"diagnose takes two requests or one log, not {len(inputs)} files",
                "for many files, join them: cat *.jsonl | ctxdoc diagnose -",
            )


def _sent_live(found: Diagnosis, *, yes: bool, diagnostics: bool) -> Diagnosis:
    """The diagnosis with step 1 done at the API; shows what it will send and its price, and asks."""
    from ctxdoc.live.double_send import plan_of, send_twice
    from ctxdoc.outputs.numbers import money_text

    plan = plan_of(found.case, diagnostics=diagnostics)
    request = found.case.after.request
    price = f"at most {money_text(plan.most)}" if plan.most is not None else "at no known price"
    about = (
        f"--live sends {request.source}:{request.line} to {plan.body['model']}, about {plan.tokens:,} tokens "
        f"and an answer of {plan.longest:,} at most, twice or up to {plan.count} times, {price}"
    )
    if not yes:
        if not sys.stdin.isatty():
            raise InputError(about, "say --yes where nobody can be asked")
        typer.confirm(f"{about}. Send it?", abort=True, err=True)
    else:
        warn(about, quiet=False)
    import anthropic

    try:
        client = anthropic.Anthropic(max_retries=0)
    except anthropic.AnthropicError as error:
        raise InputError("--live: there is no key", "set ANTHROPIC_API_KEY") from error
    with client:
        return replace(found, double_send=send_twice(plan, found.case, client))


def _read_pair(pair: str, count: int) -> tuple[int, int] | None:
    if not pair:
        return None
    found = re.fullmatch(r"\s*(\d{1,9})\s*[,:-]\s*(\d{1,9})\s*", pair)
    numbers = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= numbers[0] < numbers[1] <= count:
        raise InputError(
            f"--pair '{pair}' does not name two of the {count} requests",
            f"write the earlier one first, from 1 to {count}, as in --pair 1,2",
        )
    return numbers


def _several(logs: list[Log]) -> list[str]:
    return [
        f"{log.requests[0].source} holds {len(log.requests)} requests; the last one is taken"
        for log in logs
        if len(log.requests) > 1
    ]
