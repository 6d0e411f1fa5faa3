"""The options and arguments that several commands share, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from ctxdoc.cli import names


def asked_of(ctx: typer.Context, function: Callable[..., object]) -> dict[str, Any]:
    """The options that are parameters of a function: both have the same names. What was not typed is left to
    the function; whether tokens are counted is a matter of who counts."""
    parameters = inspect.signature(function).parameters.values()
    names = {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} - {"count_tokens"}
    given = {name: value for name, value in ctx.params.items() if value is not None}
    return {name: given[name] for name in given if name in names}


def typed(values: list[str] | None) -> tuple[str, ...]:
    """What was typed for an option that may be given several times; nothing where it never was."""
    return tuple(values or ())


LogsArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG...",
        help="Files, folders or archives of any known format. '-' is standard input.",
        show_default=False,
    ),
]
OptionalLogsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[LOG...]",
        help="Files, folders or archives of any known format. '-' is standard input.",
        show_default=False,
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        help="How to write the report: {outputs}.",
        autocompletion=names.outputs,
    ),
]
TableFormatOption = Annotated[
    str,
    typer.Option(
        "--format",
        help="How to write the report: {outputs_of_rows}.",
        autocompletion=names.outputs_of_rows,
    ),
]
OutputOption = Annotated[
    str,
    typer.Option(
        "--output", metavar="FILE", help="Write the report to a file, whole or not at all."
    ),
]
SchemaOption = Annotated[
    str,
    typer.Option(
        "--schema",
        metavar="1|2",
        help="Of --format json: in 2, shares, ratios and percentages are numbers.",
    ),
]
ModelOption = Annotated[
    str, typer.Option("--model", help="Use this model's rules and prices instead of the log's.")
]
SessionOption = Annotated[
    str,
    typer.Option(
        "--session", metavar="ID", help="Take one session; the beginning of its name will do."
    ),
]
CountOption = Annotated[
    bool,
    typer.Option(
        "--count-tokens",
        help="Let the API count prompts that have no counters: free, needs a key, kept on disk.",
    ),
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
