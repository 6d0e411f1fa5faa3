"""`ctxdoc gate`: a stable prefix as a check in CI."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ctxdoc.api import gate as api
from ctxdoc.cli import names
from ctxdoc.cli.command import Command
from ctxdoc.cli.options import (
    DebugOption,
    ExcerptsOption,
    ModelOption,
    NoColorOption,
    OptionalLogsArgument,
    OutputOption,
    QuietOption,
    StrictOption,
    typed,
)
from ctxdoc.cli.progress import shown_progress
from ctxdoc.cli.settings import chosen_settings, options_of
from ctxdoc.cli.writing import refuse_inputs, warn, warn_all, write_bytes, write_report
from ctxdoc.errors import InputError
from ctxdoc.gate.run import shareable
from ctxdoc.gate.settings import GateSettings
from ctxdoc.outputs import OUTPUTS, Style
from ctxdoc.outputs.report import Report

USUAL = ("text",)
"""How the report is written where nothing else is said."""
BUILDERS = (".py", ".toml", ".js", ".ts", ".mjs", ".sh")
"""Ends of the names of files that a builder, or the settings, can stand in."""

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def gate(
    ctx: typer.Context,
    logs: OptionalLogsArgument = None,
    command: Annotated[
        str,
        typer.Option(
            "--command",
            metavar="CMD",
            help="A program that prints a request body, or several, a line each.",
        ),
    ] = "",
    import_: Annotated[
        str,
        typer.Option(
            "--import",
            metavar="PKG.MOD:FUNCTION",
            help="A Python function that returns a request body, or several.",
        ),
    ] = "",
    baseline: Annotated[
        str,
        typer.Option(
            "--baseline",
            metavar="FILE",
            help="The lock file that the stable prefix is held against.",
        ),
    ] = "",
    update: Annotated[
        bool, typer.Option("--update", help="Write the baseline as the prefix is now.")
    ] = False,
    min_hit_ratio: Annotated[
        str,
        typer.Option("--min-hit-ratio", metavar="R", help="Share of input read, as 0.8 or 80%."),
    ] = "",
    max_lost_cost: Annotated[
        str,
        typer.Option("--max-lost-cost", metavar="USD", help="Money lost by avoidable misses."),
    ] = "",
    max_lost_tokens: Annotated[
        str,
        typer.Option("--max-lost-tokens", metavar="N", help="Tokens lost by avoidable misses."),
    ] = "",
    max_prefix_tokens: Annotated[
        str, typer.Option("--max-prefix-tokens", metavar="N", help="Tokens of the fixed prefix.")
    ] = "",
    max_growth_per_turn: Annotated[
        str, typer.Option("--max-growth-per-turn", metavar="N", help="Tokens that a turn adds.")
    ] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="CAUSE",
            help="Do not break on this cause.",
            autocompletion=names.causes,
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="CAUSE",
            help="Break on this cause too.",
            autocompletion=names.causes,
            show_default=False,
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            "--skip",
            metavar="SURROUNDING",
            help="Do not run the builder in this one: {surroundings}.",
            autocompletion=names.surroundings,
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="SECONDS", help="For one run of the builder; 60.")
    ] = "",
    form: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="NAME[=FILE]",
            help="How to write the report: {outputs_of_checks}; several with a file each.",
            autocompletion=names.outputs_of_checks,
            show_default=False,
        ),
    ] = None,
    output: OutputOption = "",
    model: ModelOption = "",
    no_excerpts: ExcerptsOption = False,
    strict: StrictOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
    debug: DebugOption = False,
) -> None:
    """Hold the prefix of recorded or built requests stable, and other limits of a log: a check for CI.

    A log breaks the gate when a prefix that should have stayed the same was lost; moved breakpoints,
    appended turns and other sampling settings never do. A builder is run again and again while all
    around it changes, be it {surroundings}. Settings stand in [tool.ctxdoc.gate] of pyproject.toml as well.

    \b
    Examples:
      ctxdoc gate agent.jsonl
      ctxdoc gate agent.jsonl --min-hit-ratio 0.8 --fail-on history_rewritten
      ctxdoc gate --command 'python build_request.py'
      ctxdoc gate --import myagent.prompts:build --baseline prefix.lock.json
      ctxdoc gate --import myagent.prompts:build --baseline prefix.lock.json --update
      ctxdoc gate agent.jsonl --format github --format sarif=gate.sarif --format junit=gate.xml

    Exit codes: 0 every limit held; 1 a limit is broken; 2 wrong arguments or unreadable input; 3 what was
    asked for could not be checked.
    """
    del debug
    writers = _writers(typed(form) or USUAL, output)
    refuse_inputs(typed(logs), {f"--format {name}": target for name, target in writers})
    settings, home = chosen_settings(options_of(ctx.params))
    # The process ends soon: nothing that refers to itself in circles has to be found before.
    gc.disable()
    with shown_progress(settings.logs, quiet=quiet) as progress:
        found = api.gate(
            *settings.logs,
            **_without_logs(settings),
            folder=home,
            update=update,
            model=model,
            strict=strict,
            progress=progress,
        )
    warn_all(found.warnings, quiet=quiet)
    if update and settings.baseline:
        found = _updated(found, Path(settings.baseline))
    report = found.report(excerpts=not no_excerpts, settings_file=_home_of(settings, home))
    _write(report, writers, no_color=no_color)
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _writers(forms: Sequence[str], output: str) -> list[tuple[str, str]]:
    """The formats, each with its file; the first without one goes to --output or standard output.

    Raises InputError for two that would go to standard output.
    """
    found = []
    for text in forms:
        name, _, target = text.partition("=")
        found.append((OUTPUTS[name].id, target or output))
    targets = [target for _, target in found]
    if len(set(targets)) < len(targets):
        raise InputError(
            "two formats go to the same place", "give each a file, as in --format sarif=gate.sarif"
        )
    if output and output not in targets:
        raise InputError("--output has no format left", "leave out the file of one --format")
    if "csv" in dict(found):
        raise InputError("the gate has no table for csv", "json, sarif and junit are for programs")
    return found


def _write(report: Report, writers: Sequence[tuple[str, str]], *, no_color: bool) -> None:
    # In the order of the options; a step summary belongs to the annotations of the same workflow.
    for name, target in writers:
        write_report(report, name, target, no_color=no_color)
        if name == "github":
            _summarize(report)


def _without_logs(settings: GateSettings) -> dict[str, Any]:
    fields = (name for name in settings.__struct_fields__ if name != "logs")
    return {name: getattr(settings, name) for name in fields}


def _updated(found: api.GateVerdict, path: Path) -> api.GateVerdict:
    """The gate with its baseline written."""
    # Whole or not at all: half a lock file would break the next run.
    found = found.accept(lambda data: write_bytes(path, data, "--baseline"))
    shareable(path)
    return found


def _summarize(report: Report) -> None:
    """Adds the report to the step summary of a GitHub workflow."""
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    text = OUTPUTS["markdown"].write(report, Style())
    try:
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(text + "\n")
    except OSError as error:
        warn(f"cannot write the step summary: {error.strerror or error}", quiet=False)


def _home_of(settings: GateSettings, home: Path) -> str:
    """The file that a finding without a log belongs to, by its path from here: the builder's own, else the
    settings; code scanning wants one."""
    for name in (*_builder_files(settings), "pyproject.toml"):
        path = home / name
        if path.is_file() and path.suffix in BUILDERS:
            with suppress(ValueError):
                return str(path.relative_to(Path.cwd()))
    return ""


def _builder_files(settings: GateSettings) -> Iterator[str]:
    """What may be the name of a builder's file: its module, and every word of a command."""
    if settings.import_ is not None:
        yield settings.import_.partition(":")[0].replace(".", "/") + ".py"
    yield from (settings.command or "").split()
