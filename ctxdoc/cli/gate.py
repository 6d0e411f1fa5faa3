"""`ctxdoc gate`: a stable prefix as a check in CI."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from ctxdoc.cli.command import Command
from ctxdoc.cli.options import (
    DebugOption,
    ExcerptsOption,
    ModelOption,
    NoColorOption,
    OutputOption,
    QuietOption,
    StrictOption,
    check_model,
    refuse_inputs,
    skipped_lines,
    warn,
    with_model,
    write_bytes,
    write_report,
)
from ctxdoc.cli.progress import shown_progress
from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.errors import InputError
from ctxdoc.gate.baseline import Lock
from ctxdoc.gate.checks import GateOutcome
from ctxdoc.gate.run import baseline_of, gate_builder, gate_log, shareable, updated
from ctxdoc.gate.settings import GateSettings, read_settings, settings_of
from ctxdoc.outputs import OUTPUTS, Style, Takes, names_that_take
from ctxdoc.outputs.report import Report
from ctxdoc.reading.files import size_of
from ctxdoc.reading.load import read_log
from ctxdoc.registry import any_of
from ctxdoc.reports.gate import gate_report
from ctxdoc.request.log import Log

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


def _complete_cause() -> list[str]:
    return list(CAUSES.names)


def _complete_format() -> list[str]:
    return names_that_take(Takes.ALL, Takes.CHECKS)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def gate(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOG...]",
            help="Recorded requests of any known format. '-' is standard input.",
            show_default=False,
        ),
    ] = None,
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
            autocompletion=_complete_cause,
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on",
            metavar="CAUSE",
            help="Break on this cause too.",
            autocompletion=_complete_cause,
            show_default=False,
        ),
    ] = None,
    skip: Annotated[
        list[str] | None,
        typer.Option(
            "--skip",
            metavar="SURROUNDING",
            help="Do not run the builder in this one: home, working_folder, locale, time_zone …",
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
            help=f"{any_of(_complete_format())}; several with a file each.",
            autocompletion=_complete_format,
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
    around it changes: hash seed, folder, HOME, time zone, language, clock. Settings stand in
    [tool.ctxdoc.gate] of pyproject.toml as well.

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
    writers = _writers(form or ["text"], output)
    check_model(model)
    for name, target in writers:
        refuse_inputs(logs or (), {f"--format {name}": target})
    numbers = {
        "min-hit-ratio": _ratio(min_hit_ratio),
        "max-lost-cost": max_lost_cost,
        "max-lost-tokens": max_lost_tokens.replace("_", ""),
        "max-prefix-tokens": max_prefix_tokens.replace("_", ""),
        "max-growth-per-turn": max_growth_per_turn.replace("_", ""),
        "timeout": timeout,
        "baseline": baseline,
    }
    lists = {"allow": allow or [], "fail-on": fail_on or [], "skip": skip or []}
    settings, home = _settings(numbers, lists, {"command": command, "import": import_}, logs)
    lock_path = Path(settings.baseline) if settings.baseline else None
    if update and lock_path is None:
        raise InputError("--update writes a baseline", "name it with --baseline FILE")
    lock = baseline_of(settings, Path.cwd(), update=update)
    if settings.command is not None or settings.import_ is not None:
        gated = gate_builder(settings, home, lock)
    else:
        gated = _of_log(settings, model, lock, strict=strict, quiet=quiet)
    if update and lock_path is not None:
        path = lock_path
        gated = updated(gated, lambda data: write_bytes(path, data, "--baseline"))
        shareable(path)
    settings_file = _place_of(settings, home)
    report = gate_report(gated, excerpts=not no_excerpts, settings_file=settings_file)
    for name, target in writers:
        write_report(report, name, target, no_color=no_color)
        if name == "github":
            _summarize(report)
    if gated.exit_code:
        raise typer.Exit(gated.exit_code)


def _writers(forms: Sequence[str], output: str) -> list[tuple[str, str]]:
    """The formats, each with its file; the first without one goes to --output or standard output.

    Raises InputError for two that would go to standard output.
    """
    found = []
    for text in forms:
        name, _, target = text.partition("=")
        OUTPUTS[name]
        found.append((name, target or output))
    targets = [target for _, target in found]
    if len(set(targets)) < len(targets):
        raise InputError(
            "two formats go to the same place", "give each a file, as in --format sarif=gate.sarif"
        )
    if output and output not in targets:
        raise InputError("--output has no format left", "leave out the file of one --format")
    if any(name == "csv" for name, _ in found):
        raise InputError("the gate has no table for csv", "json, sarif and junit are for programs")
    return found


def _ratio(text: str) -> str:
    if not text.endswith("%"):
        return text
    try:
        return str(float(text[:-1]) / 100)
    except ValueError:
        return text


def _settings(
    numbers: Mapping[str, str],
    lists: Mapping[str, Sequence[str]],
    sources: Mapping[str, str],
    logs: Sequence[str] | None,
) -> tuple[GateSettings, Path]:
    """The options over the table of pyproject.toml, and the folder that its paths start from."""
    folder = Path.cwd()
    table, path = read_settings(folder)
    found = settings_of(table, f"{path}, [tool.ctxdoc.gate]") if table else GateSettings()
    own = settings_of({name: value for name, value in numbers.items() if value}, "options")
    given = {name: value for name, value in sources.items() if value}
    if len(given) + bool(logs) > 1:
        raise InputError("more than one source of requests", "name a log, --command or --import")
    changed = {
        field: getattr(own, field)
        for field in own.__struct_fields__
        if getattr(own, field) != getattr(GateSettings(), field)
    }
    home = path.parent if table and path is not None else folder
    if found.baseline is not None and home != folder:
        # Paths of the file start from its folder, those of the command line from here.
        found = replace(found, baseline=os.path.relpath(home / found.baseline, folder))
    if logs and not found.logs:
        # The baseline of a builder is none of a log that is named here.
        found = replace(found, baseline=None)
    joined = {
        "allow": (*found.allow, *lists["allow"]),
        "fail_on": (*found.fail_on, *lists["fail-on"]),
        "skip": (*found.skip, *lists["skip"]),
    }
    found = replace(found, **changed, **joined)
    for cause in (*found.allow, *found.fail_on):
        CAUSES[cause]
    if given or logs:
        found = replace(
            found,
            logs=tuple(logs or ()),
            command=given.get("command"),
            import_=given.get("import"),
        )
        home = folder
    count = (found.command is not None) + (found.import_ is not None) + bool(found.logs)
    if count != 1:
        raise InputError(
            "more than one source in pyproject.toml" if count else "there are no requests to check",
            "name a log, or give --command or --import",
        )
    if found.logs and lists["skip"]:
        raise InputError("--skip goes with --command and --import", "a log has no surroundings")
    return found, home


def _of_log(
    settings: GateSettings, model: str, lock: Lock | None, *, strict: bool, quiet: bool
) -> GateOutcome:
    # As in a replay: nothing here refers to itself in circles.
    gc.disable()
    logs = list(settings.logs)
    size = size_of(logs) if not quiet else 0
    with shown_progress(size, quiet=quiet) as begin:
        reading = begin("reading", size) if begin else None

        def read() -> Log:
            return with_model(read_log(logs, strict=strict, condense=True, progress=reading), model)

        def replaying(count: int) -> Callable[[int], None]:
            assert begin is not None
            return begin("replaying", count)

        gated, log = gate_log(read, settings, lock, replaying if begin else None)
    for line in skipped_lines(log):
        warn(line, quiet=quiet)
    return gated


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


def _place_of(settings: GateSettings, home: Path) -> str:
    """The file that a finding without a log belongs to: the builder's own, else the settings; code
    scanning wants one."""
    names = []
    if settings.import_ is not None:
        names.append(settings.import_.partition(":")[0].replace(".", "/") + ".py")
    names += (settings.command or "").split()
    for name in (*names, "pyproject.toml"):
        path = home / name
        if path.is_file() and path.suffix in (".py", ".toml", ".js", ".ts", ".mjs", ".sh"):
            with suppress(ValueError):
                return str(path.relative_to(Path.cwd()))
    return ""
