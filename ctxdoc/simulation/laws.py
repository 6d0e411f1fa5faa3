"""The closed forms that a simulation is put beside: of everything kept, of a strategy, of a search's best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from ctxdoc.replay.growth import Growth
from ctxdoc.simulation.closed_forms import (
    Factors,
    Figures,
    Law,
    bare,
    dead,
    factors_of,
    in_tokens,
    warm,
)
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.search import Optimum


class Form(Law, frozen=True, kw_only=True):
    """A closed form beside the simulated figure."""

    row: Result | None = None
    """The one that it is about, where several could be."""

    @property
    def difference(self) -> float | None:
        """Of the closed form from the simulated figure, as a share of it."""
        if self.value is None or not self.simulated:
            return None
        return self.value / self.simulated - 1


def forms_of_rows(
    session: Session, rows: Sequence[Result], keep: Result, growth: Growth
) -> Iterator[Form]:
    """The closed forms of a session that is one stretch: of everything kept, and of each strategy."""
    by = factors_of(session.calls[-1].tariff, keep.peak)
    if growth.per_turn is None or by is None:
        return
    yield from _forms_of_keep(keep, growth, by)
    if keep.rewrites or not _stays_warm(session):
        # The laws of the strategies are about a cache that is warm.
        return
    yield _warm_form(keep, growth, by)
    for row in rows:
        # What several joined strategies do has no closed form.
        if row.placement is keep.placement and len(row.specs) == 1:
            (spec,) = row.specs
            if spec.definition.law is not None:
                figures = _figures(session, row, keep, growth.per_turn, by)
                yield from _beside(row, spec.definition.law(spec.strategy, figures))


def forms_of_best(session: Session, found: Optimum, keep: Result, growth: Growth) -> Iterator[Form]:
    """The closed form of the best value of a parameter, where one was looked for."""
    by = factors_of(session.calls[-1].tariff, keep.peak)
    best = found.best
    if not growth.per_turn or by is None or best is None or len(found.targets) != 1:
        return
    (target,) = found.targets
    if [spec.definition.id for spec in best.row.specs] == [target.strategy]:
        (spec,) = best.row.specs
        law = spec.definition.best_laws.get(target.key)
        if law is not None:
            figures = _figures(session, best.row, keep, growth.per_turn, by)
            yield from _beside(best.row, law(spec.strategy, figures))


def _beside(row: Result, law: Law | None) -> Iterator[Form]:
    if law is not None:
        yield Form(row=row, **msgspec.structs.asdict(law))


def _forms_of_keep(keep: Result, growth: Growth, by: Factors) -> Iterator[Form]:
    prefix, per_turn, turns = growth.prefix, growth.per_turn or 0, growth.turns
    yield Form(
        name="keep, no cache",
        formula="n·P + a·n(n+1)/2",
        unit="tokens",
        value=bare(prefix, per_turn, turns),
        simulated=float(keep.usage.input),
    )
    if keep.rewrites >= turns - 1 > 0:
        yield Form(
            name="keep, always dead",
            formula="w·(n·P + a·n(n+1)/2)",
            unit="tokens",
            value=dead(prefix, per_turn, turns, by),
            simulated=in_tokens(keep.usage, by),
        )


def _warm_form(keep: Result, growth: Growth, by: Factors) -> Form:
    return Form(
        name="keep, always warm",
        formula="w·(P + a·n) + r·((n−1)·P + a·n(n−1)/2)",
        unit="tokens",
        value=warm(growth.prefix, growth.per_turn or 0, growth.turns, by),
        simulated=in_tokens(keep.usage, by),
    )


def _stays_warm(session: Session) -> bool:
    """Whether no pause is longer than an entry of the shortest lifetime lives."""
    starts = [call.at for call in session.calls if call.at is not None]
    lives = min(call.rule.rules.shortest for call in session.calls)
    return all((two - one).total_seconds() <= lives for one, two in pairwise(sorted(starts)))


def _figures(session: Session, row: Result, keep: Result, per_turn: float, by: Factors) -> Figures:
    """What the session came to under a strategy, everything kept beside it."""
    first = row.rewrote[0][0] if row.rewrote else None
    last = session.calls[-1]
    return Figures(
        by=by,
        requests=len(session.calls),
        per_turn=per_turn,
        head=last.head.size,
        peak=row.peak,
        rewrote=row.rewrote,
        removed=0 if first is None else keep.prompts[first] - row.prompts[first],
        extra_calls=row.extra_calls,
        lost=tuple((item.tokens, last.number - item.request) for item in row.lost),
        saved=in_tokens(keep.usage, by) - in_tokens(row.usage, by),
        paid_from=row.overtaken_at(keep),
        cheaper_from=_cheaper_from(row, keep, first or 0),
    )


def _cheaper_from(row: Result, keep: Result, first: int) -> int | None:
    """The first request, from 1, from which on each costs less than with everything kept."""
    since = None
    for number, (own, theirs) in enumerate(zip(row.costs, keep.costs, strict=True), start=1):
        if own is None or theirs is None:
            return None
        if number <= first:
            continue
        since = (since or number) if own < theirs else None
    return since
