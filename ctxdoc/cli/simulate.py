"""`ctxdoc simulate`: what trim, clear, compact and offload would cost on the same session."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

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
    check_plot,
    refuse_inputs,
    skipped_lines,
    warn,
    with_api_counts,
    with_model,
    write_bytes,
    write_report,
)
from ctxdoc.cli.progress import shown_progress
from ctxdoc.errors import InputError
from ctxdoc.outputs import OUTPUTS
from ctxdoc.reading.files import size_of
from ctxdoc.reading.load import read_log
from ctxdoc.reports.simulate import simulate_report
from ctxdoc.reports.strategy_curves import pictures_of
from ctxdoc.simulation.compare import Comparison, compare
from ctxdoc.simulation.emit import iter_lines
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.history.from_numbers import MODEL, Shape, made_session
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.placements import PLACEMENTS, Placement
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.search import (
    Optimum,
    Sweep,
    Target,
    base_of,
    optimum,
    parse_optimum,
    parse_sweep,
    sweep,
)
from ctxdoc.simulation.strategies import STRATEGIES, Spec
from ctxdoc.simulation.strategies.spec import parse_specs

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


def _complete_strategy() -> list[str]:
    return list(STRATEGIES.names)


USUAL = "rolling"
"""The placement under which strategies are compared."""


def _complete_placement() -> list[str]:
    return list(PLACEMENTS.names)


def _other_placements() -> list[str]:
    return [name for name in PLACEMENTS.names if name != USUAL]


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
            help="A strategy to compare, several joined by +; without one, all that apply.",
            autocompletion=_complete_strategy,
            show_default=False,
        ),
    ] = None,
    placement: Annotated[
        list[str] | None,
        typer.Option(
            "--placement",
            metavar="NAME",
            help=f"Rows with other breakpoints beside the {USUAL} ones: {', '.join(_other_placements())}.",
            autocompletion=_complete_placement,
            show_default=False,
        ),
    ] = None,
    sweeps: Annotated[
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
    count_tokens: CountOption = False,
    no_excerpts: ExcerptsOption = False,
    strict: StrictOption = False,
    quiet: QuietOption = False,
    no_color: NoColorOption = False,
    debug: DebugOption = False,
) -> None:
    """Simulate trim, window, clear, compact and offload on a session, under caching and without.

    A recorded log, or a made-up session: turn k sends P + A·k tokens to claude-sonnet-5-5, or to --model.
    Each strategy is replayed through the same cache and priced alike; what the model would no longer see
    is counted and not priced.

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
    refuse_inputs(logs or (), {"--emit": emit, "--plot": plot, "--output": output})
    chosen = [parse_specs(text) for text in strategy or ()]
    places = [PLACEMENTS[name] for name in placement or ()]
    # What is searched and written stands under the placement that was asked for.
    place = places[0] if places else PLACEMENTS[USUAL]
    wanted = [parse_sweep(text) for text in sweeps or ()]
    best = [parse_optimum(text) for text in optimize or ()]
    _check_emit(emit, chosen, place)
    given = {
        "prefix": prefix,
        "per_turn": per_turn,
        "turns": turns,
        "tool_share": tool_share,
        "payload": payload,
        "gap": gap,
        "output": output_tokens,
        "seed": seed,
    }
    shape = _shape(logs, {name: value for name, value in given.items() if value is not None}, model)
    # Nothing here refers to itself in circles.
    gc.disable()
    if shape is not None:
        simulation = Simulation(made_session(shape))
    else:
        found = _recorded(
            logs or [], session, model, strict=strict, quiet=quiet, count=count_tokens
        )
        simulation = Simulation(found)
    comparison = compare(
        simulation, chosen, places, _searched(simulation, chosen, wanted, best, place)
    )
    if plot:
        _draw(comparison, plot)
    if emit:
        if not simulation.session.has_bodies:
            warn("--emit: there are no bodies; placeholders stand for their text", quiet=quiet)
        write_bytes(Path(emit), b"".join(iter_lines(simulation, chosen[0], place)), "--emit")
    report = simulate_report(comparison, verbose=verbose, excerpts=not no_excerpts, logs=logs or ())
    write_report(report, form, output, no_color=no_color)


def _shape(logs: list[str] | None, given: Mapping[str, int | float], model: str) -> Shape | None:
    """The made-up session that was asked for; None where a log was.

    Raises InputError for both, for neither, and for one without its growth.
    """
    if given and logs:
        raise InputError(
            f"{_option(next(iter(given)))} goes with a made-up session, and there is a log",
            "leave out one of them",
        )
    if logs:
        return None
    if not given:
        raise InputError(
            "there is neither a log nor a made-up session",
            "name a log, or give --prefix, --per-turn and --turns",
        )
    if "per_turn" not in given:
        raise InputError(
            "nothing says what a turn adds to the made-up session", "give --per-turn, as in 1500"
        )
    return msgspec.convert({"prefix": 0, "turns": TURNS, **given, "model": model or MODEL}, Shape)


def _option(name: str) -> str:
    return {"output": "--output-tokens"}.get(name, f"--{name.replace('_', '-')}")


TURNS = 20


def _check_emit(emit: str, chosen: Sequence[tuple[Spec, ...]], place: Placement) -> None:
    if not emit:
        return
    if len(chosen) != 1:
        raise InputError(
            f"--emit writes one strategy, and there are {len(chosen)}", "give one --strategy"
        )
    if emit == "-":
        raise InputError("--emit takes a file: the report goes to standard output", "name a file")
    if place.bound:
        raise InputError("the oracle is a bound and places no breakpoints", "choose another")


def _recorded(
    logs: list[str], session: str, model: str, *, strict: bool, quiet: bool, count: bool
) -> Session:
    size = size_of(logs) if not quiet else 0
    with shown_progress(size, quiet=quiet) as begin:
        reading = begin("reading", size) if begin else None
        log = with_model(read_log(logs, strict=strict, condense=True, progress=reading), model)
        for line in skipped_lines(log):
            warn(line, quiet=quiet)
        log = with_api_counts(log, count, quiet=quiet)
        return recorded_session(log, only=session)


def _searched(
    simulation: Simulation,
    chosen: Sequence[tuple[Spec, ...]],
    sweeps: Sequence[Sweep],
    best: Sequence[tuple[Target, tuple[int, int] | None]],
    place: Placement,
) -> list[Optimum]:
    """The sweep, all of them as one grid, and each optimum."""
    found = []
    if sweeps:
        base = base_of(chosen, [each.target for each in sweeps])
        found.append(sweep(simulation, base, sweeps, place))
    for target, ends in best:
        found.append(optimum(simulation, base_of(chosen, [target]), target, ends, place))
    return found


def _draw(comparison: Comparison, plot: str) -> None:
    picture = next(iter(pictures_of(comparison)), None)
    if picture is None:
        raise InputError("there is nothing to draw", "a curve needs one parameter, a grid two")
    from ctxdoc.outputs.plot import write_picture

    path = Path(plot)
    write_bytes(path, write_picture(picture, path.suffix.lower().removeprefix(".")), "--plot")
