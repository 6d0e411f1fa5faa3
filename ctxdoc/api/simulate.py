"""`ctxdoc.simulate`: what other ways to manage the context would have cost."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ctxdoc.api.outcome import (
    Names,
    Outcome,
    collector_paused,
    drawn,
    noting,
    several,
    skipped_lines,
)
from ctxdoc.api.read import Progress, Source, check_model, names_of, read
from ctxdoc.api.rows import Row, rows_of, rows_of_records
from ctxdoc.errors import InputError
from ctxdoc.outputs.report import Report
from ctxdoc.reports.plan import plan_report
from ctxdoc.reports.simulate import simulate_report
from ctxdoc.reports.strategy_curves import pictures_of
from ctxdoc.request.log import Log
from ctxdoc.simulation.choice import MAX_UNSEEN
from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.defaults import fitted_all
from ctxdoc.simulation.emit import iter_lines
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.history.from_numbers import made_session
from ctxdoc.simulation.plan import Plan, plan_of
from ctxdoc.simulation.question import (
    Question,
    option_of,
    question_of,
    renews_shorter_of,
    shape_of,
    share_of,
)
from ctxdoc.simulation.repriced import as_batches, with_model_for
from ctxdoc.simulation.run import Simulation

if TYPE_CHECKING:
    from ctxdoc.live.count_tokens import TokenCounter


class SimulationTotals(Struct, frozen=True, kw_only=True):
    """A simulation in one line; USD."""

    requests: int
    billed: Decimal | None
    """By the reported counters; None where some are missing."""
    keep: Decimal | None
    """With everything kept."""
    best: str | None
    """The cheapest that can be done, as `strategy` takes it."""
    best_cost: Decimal | None


class SimulationOutcome(Outcome, frozen=True, kw_only=True, dict=True):
    """What each strategy would have cost, and what it hides from the model."""

    comparison: Comparison
    simulation: Simulation
    question: Question
    logs: tuple[str, ...]
    """As they were given, for the commands that the report shows."""
    verbose: bool = False
    """Whether report and document list what the model would not see."""
    only_plan: bool = False
    """Whether report and document are the plan alone."""

    @property
    def totals(self) -> SimulationTotals:
        """What was paid, and what is cheapest."""
        compared, best = self.comparison, self.comparison.best
        return SimulationTotals(
            requests=len(compared.session.calls),
            billed=compared.billed,
            keep=compared.keep.cost,
            best=best.text if best else None,
            best_cost=best.cost if best else None,
        )

    @cached_property
    def rows(self) -> list[Row]:
        """The strategies in the order in which they were compared, with the columns of `--format csv`."""
        return rows_of_records(self.report().records)

    @cached_property
    def findings(self) -> list[Row]:
        """What the API would refuse and what is not counted, by strategy."""
        found: Any = self.to_dict()
        return rows_of(
            {"strategy": row["strategy"], "placement": row["placement"], **warning}
            for row in found["rows"]
            for warning in row["warnings"]
        )

    @cached_property
    def plan(self) -> Plan:
        """The changes worth making, and what they save together; simulated when it is asked for."""
        return plan_of(self.simulation, self.comparison)

    def report(self, *, excerpts: bool = True) -> Report:
        """What all outputs write."""
        if self.only_plan:
            return plan_report(self.plan, self.logs)
        return simulate_report(
            self.comparison,
            verbose=self.verbose,
            excerpts=excerpts,
            logs=self.logs,
            # Who names strategies asks for those; a plan is made of all.
            make_plan=None if self.question.strategies or self.comparison.found else self._plan,
        )

    def _plan(self) -> Plan:
        return self.plan

    def plot(self, kind: str = "png") -> bytes:
        """Cost and prompts as a picture, png or svg; of a search its curve or field.

        Raises InputError where a search has nothing to draw.
        """
        picture = next(iter(pictures_of(self.comparison)), None)
        if picture is None:
            raise InputError("there is nothing to draw", "a curve needs one parameter, a grid two")
        return drawn(picture, kind)

    def emit(self) -> bytes:
        """The requests of the one strategy as a log, a line each.

        Raises InputError unless there is one, under a placement that a request can carry.
        """
        # With the marks of its row.
        (specs,) = fitted_all(self.comparison.session, [self.question.emitted()])
        return b"".join(iter_lines(self.simulation, specs, self.question.placement))


def simulate(
    *logs: Source,
    strategy: Names = (),
    placement: Names = (),
    sweep: Names = (),
    optimize: Names = (),
    max_unseen: float | str = MAX_UNSEEN,
    assume: str = "",
    batch: bool = False,
    model_for: str = "",
    prefix: int | None = None,
    per_turn: int | None = None,
    turns: int | None = None,
    tool_share: float | None = None,
    payload: int | None = None,
    gap: float | None = None,
    output_tokens: int | None = None,
    seed: int | None = None,
    plan: bool = False,
    verbose: bool = False,
    session: str = "",
    model: str = "",
    strict: bool = False,
    count_tokens: bool | TokenCounter = False,
    progress: Progress | None = None,
) -> SimulationOutcome:
    """What each way to manage the context would have cost on a session, under caching and without.

    Either logs, or a made-up session, of which turn k sends prefix + per_turn·k tokens: numbers are tokens,
    `gap` is seconds between two requests, `tool_share` runs from 0 to 1. `strategy`, `placement`, `sweep` and
    `optimize` are one text or several, as the options take them; without a strategy all that apply are
    compared. `max_unseen` is the share of the history that a way may hide and still be a choice, 0.1 or "10%".
    `assume` is shorter_entries_die or shorter_entries_live: whether entries of shorter prefixes live on when a
    longer one is read. `batch` prices all as message batches, `model_for` the requests of subagents by another
    model, as "subagents=NAME". With `plan` report and document are the plan alone. `verbose` lists what the
    model would not see in report and document.

    Raises InputError for what cannot be read or makes no session, UnknownNameError for a name that there is
    not, NoRequestError where no request can be simulated.

        found = ctxdoc.simulate("agent.jsonl", strategy=["clear:keep=3", "offload"])
        found.totals.best, found.totals.best_cost
    """
    check_model(model)
    # Before anything is read: a misspelled strategy is told at once, not after a gigabyte.
    question = question_of(
        several(strategy),
        several(placement),
        several(sweep),
        several(optimize),
        share_of(max_unseen, "--max-unseen"),
    )
    renews = renews_shorter_of(assume)
    numbers = {
        "prefix": prefix,
        "per_turn": per_turn,
        "turns": turns,
        "tool_share": tool_share,
        "payload": payload,
        "gap": gap,
        "output": output_tokens,
        "seed": seed,
    }
    given = {name: number for name, number in numbers.items() if number is not None}
    check_one_source(logs, given)
    warnings: tuple[str, ...] = ()
    with collector_paused():
        if given:
            simulation = Simulation(made_session(shape_of(given, model)), renews_shorter=renews)
        else:
            log = read(
                *logs,
                model=model,
                strict=strict,
                count_tokens=count_tokens,
                condense=True,
                progress=progress,
            )
            simulation = _recorded(log, session, renews_shorter=renews)
            warnings = skipped_lines(log)
            # The session has all that is needed; a log that was read here is gone.
            del log
        simulation = _repriced(simulation, batch=batch, model_for=model_for)
        comparison = question.answer(simulation)
    return SimulationOutcome(
        comparison=comparison,
        simulation=simulation,
        question=question,
        logs=names_of(logs),
        verbose=verbose,
        only_plan=plan,
        warnings=warnings,
    )


def _repriced(simulation: Simulation, *, batch: bool, model_for: str) -> Simulation:
    """The simulation of the session at other prices, where they are asked for."""
    session = simulation.session
    if model_for:
        session = with_model_for(session, model_for)
    if batch:
        session = as_batches(session)
    if session is simulation.session:
        return simulation
    return Simulation(session, renews_shorter=simulation.renews_shorter)


def _recorded(log: Log, session: str, *, renews_shorter: bool) -> Simulation:
    """The session of a log, ready to be run; an error names what was skipped before."""
    with noting(skipped_lines(log)):
        return Simulation(recorded_session(log, only=session), renews_shorter=renews_shorter)


def check_one_source(logs: tuple[Source, ...], given: dict[str, int | float]) -> None:
    """Raises InputError for a log and a made-up session at once, and for neither."""
    if given and logs:
        raise InputError(
            f"{option_of(next(iter(given)))} goes with a made-up session, and there is a log",
            "leave out one of them",
        )
    if not given and not logs:
        raise InputError(
            "there is neither a log nor a made-up session",
            "name a log, or give --prefix, --per-turn and --turns",
        )
