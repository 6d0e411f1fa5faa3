"""`ctxdoc simulate`: what trim, clear, compact and offload would cost on the same session."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ctxdoc.bodies import iter_lines
from ctxdoc.cli.command import Command
from ctxdoc.cli.options import (
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
    skipped_lines,
    warn,
    with_model,
    write_bytes,
    write_report,
)
from ctxdoc.cli.progress import shown_progress
from ctxdoc.comparison import Comparison, compare
from ctxdoc.containers import size_of
from ctxdoc.errors import InputError
from ctxdoc.history import Session
from ctxdoc.load import read_log
from ctxdoc.made_up import MODEL, Shape, made_session
from ctxdoc.outputs import OUTPUTS
from ctxdoc.placements import PLACEMENTS, Placement
from ctxdoc.recorded import recorded_session
from ctxdoc.reports.simulate import pictures_of, simulate_report
from ctxdoc.search import Found, Sweep, Target, base_of, optimum, parse_optimum, parse_sweep, sweep
from ctxdoc.simulate import Simulation, parse_specs
from ctxdoc.strategies import STRATEGIES, Spec

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


def _complete_strategy() -> list[str]:
    return list(STRATEGIES.names)


def _complete_placement() -> list[str]:
    return list(PLACEMENTS.names)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def simulate(
    logs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[LOG...]",
            help="Files, folders or archives of any known format. '-' is standard input.",
            show_default=False,
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            metavar="NAME[:KEY=VALUE,...]",
            help="A strategy to compare, several joined by +; without one the usual ones.",
            autocompletion=_complete_strategy,
            show_default=False,
        ),
    ] = None,
    placement: Annotated[
        list[str] | None,
        typer.Option(
            "--placement",
            metavar="NAME",
            help="Where breakpoints stand: recorded, none, rolling, rolling_1h, automatic, oracle.",
            autocompletion=_complete_placement,
            show_default=False,
        ),
    ] = None,
    sweeps: Annotated[
        list[str] | None,
        typer.Option(
            "--sweep",
            metavar="STRATEGY.KEY=A,B,C",
            help="Try these values; several sweeps make a grid.",
            show_default=False,
        ),
    ] = None,
    optimize: Annotated[
        list[str] | None,
        typer.Option(
            "--optimize",
            metavar="STRATEGY.KEY[=LOW..HIGH]",
            help="Find the cheapest value.",
            show_default=False,
        ),
    ] = None,
    prefix: Annotated[
        int | None, typer.Option("--prefix", metavar="P", help="Tokens of tools and system prompt.")
    ] = None,
    per_turn: Annotated[
        int | None, typer.Option("--per-turn", metavar="A", help="Tokens that each turn adds.")
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--turns", metavar="N", help="Requests of a made-up session.")
    ] = None,
    tool_share: Annotated[
        float, typer.Option("--tool-share", help="Share of A that is tool results.")
    ] = 0.8,
    payload: Annotated[
        int, typer.Option("--payload", metavar="X", help="A tool result of X tokens at the start.")
    ] = 0,
    gap: Annotated[
        float, typer.Option("--gap", metavar="SECONDS", help="From one request to the next.")
    ] = 20.0,
    output_tokens: Annotated[
        int | None,
        typer.Option(
            "--output-tokens", metavar="O", help="Of each answer; a fifth of A without it."
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Let A and the gaps vary by half.")
    ] = None,
    session: Annotated[
        str,
        typer.Option(
            "--session", metavar="ID", help="Take one session; the beginning of its name will do."
        ),
    ] = "",
    plot: Annotated[
        str,
        typer.Option("--plot", metavar="FILE", help="Draw cost and prompts: a .png or .svg file."),
    ] = "",
    emit: Annotated[
        str,
        typer.Option("--emit", metavar="FILE", help="Write the requests of one strategy as a log."),
    ] = "",
    verbose: Annotated[
        bool, typer.Option("--verbose", help="List what the model would not see.")
    ] = False,
    form: FormatOption = "text",
    output: OutputOption = "",
    model: ModelOption = "",
    no_excerpts: ExcerptsOption = False,
    strict: StrictOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
    debug: DebugOption = False,
) -> None:
    """Simulate trim, window, clear, compact and offload on a session, under caching and without.

    A recorded log, or a made-up session: turn k sends P + A·k tokens. Each strategy is replayed through
    the same cache and priced alike; what the model would no longer see is counted and not priced.

    \b
    Examples:
      ctxdoc simulate agent.jsonl
      ctxdoc simulate agent.jsonl --strategy clear:trigger=60k,keep=3 --strategy offload+compact
      ctxdoc simulate agent.jsonl --sweep clear.trigger=40k,80k --sweep clear.keep=1,3,5
      ctxdoc simulate agent.jsonl --optimize compact.trigger --plot curve.png
      ctxdoc simulate agent.jsonl --strategy offload --emit offloaded.jsonl
      ctxdoc simulate --prefix 8000 --per-turn 1500 --turns 60
    """
    del debug
    OUTPUTS[form]
    check_model(model)
    check_plot(plot)
    chosen = [parse_specs(text) for text in strategy or ()]
    places = [PLACEMENTS[name] for name in placement or ("rolling",)]
    wanted = [parse_sweep(text) for text in sweeps or ()]
    best = [parse_optimum(text) for text in optimize or ()]
    _check_emit(emit, chosen, places[0])
    is_made_up = any(number is not None for number in (prefix, per_turn, turns))
    _check_source(logs, is_made_up)
    # Nothing here refers to itself in circles.
    gc.disable()
    if is_made_up:
        shape = Shape(
            prefix=prefix or 0,
            per_turn=per_turn or 0,
            turns=20 if turns is None else turns,
            tool_share=tool_share,
            payload=payload,
            gap=gap,
            output=output_tokens,
            seed=seed,
            model=model or MODEL,
        )
        simulation = Simulation(made_session(shape))
    else:
        found = _recorded(logs or [], session, model, strict=strict, quiet=quiet)
        simulation = Simulation(found)
    searches = _searched(simulation, chosen, wanted, best, places[0])
    comparison = compare(simulation, chosen or _named(searches), places, searches)
    if plot:
        _draw(comparison, plot)
    if emit:
        written = b"".join(iter_lines(simulation, chosen[0], places[0]))
        write_bytes(Path(emit), written, "--emit")
    report = simulate_report(comparison, verbose=verbose, excerpts=not no_excerpts)
    write_report(report, form, output, no_color=no_color)


def _check_source(logs: list[str] | None, is_made_up: bool) -> None:
    if is_made_up and logs:
        raise InputError("a log and a made-up session at once", "leave out LOG, or --prefix")
    if not is_made_up and not logs:
        raise InputError(
            "there is neither a log nor a made-up session",
            "name a log, or give --prefix, --per-turn and --turns",
        )


def _check_emit(emit: str, chosen: Sequence[tuple[Spec, ...]], place: Placement) -> None:
    if emit and len(chosen) != 1:
        raise InputError("--emit writes one strategy", "name it with --strategy")
    if emit and place.bound:
        raise InputError("the oracle is a bound and places no breakpoints", "choose another")


def _recorded(logs: list[str], session: str, model: str, *, strict: bool, quiet: bool) -> Session:
    size = size_of(logs) if not quiet else 0
    with shown_progress(size, quiet=quiet) as begin:
        reading = begin("reading", size) if begin else None
        log = with_model(read_log(logs, strict=strict, condense=True, progress=reading), model)
        for line in skipped_lines(log):
            warn(line, quiet=quiet)
        return recorded_session(log, only=session)


def _searched(
    simulation: Simulation,
    chosen: Sequence[tuple[Spec, ...]],
    sweeps: Sequence[Sweep],
    best: Sequence[tuple[Target, tuple[int, int] | None]],
    place: Placement,
) -> list[Found]:
    """The sweep, all of them as one grid, and each optimum."""
    found = []
    if sweeps:
        base = base_of(chosen, [each.target for each in sweeps])
        found.append(sweep(simulation, base, sweeps, place))
    for target, ends in best:
        found.append(optimum(simulation, base_of(chosen, [target]), target, ends, place))
    return found


def _named(searches: Sequence[Found]) -> list[tuple[Spec, ...]]:
    """The cheapest of each search, to stand beside keeping everything."""
    return [found.best.row.specs for found in searches if found.best is not None]


def _draw(comparison: Comparison, plot: str) -> None:
    picture = next(iter(pictures_of(comparison)), None)
    if picture is None:
        raise InputError("there is nothing to draw", "a curve needs one parameter, a grid two")
    from ctxdoc.outputs.plot import write_picture

    path = Path(plot)
    write_bytes(path, write_picture(picture, path.suffix.lower().removeprefix(".")), "--plot")
