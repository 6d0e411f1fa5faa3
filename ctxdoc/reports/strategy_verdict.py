"""The verdict of a simulation: which strategy is cheapest, and what it takes from the model."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from decimal import Decimal

from ctxdoc.outputs.numbers import (
    change_text,
    counted,
    money_text,
)
from ctxdoc.outputs.report import Headline
from ctxdoc.outputs.report import Row as Line
from ctxdoc.reports.strategy_label import label_of, named
from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.result import Result


def simulate_headline(comparison: Comparison) -> Headline:
    """The headline of a simulation."""
    keep = comparison.keep
    text = f"{counted(keep.requests, 'request')}{_cheapest_text(comparison)}"
    under = f"under {comparison.placement.id} breakpoints ({comparison.placement.title})"
    return Headline("SIMULATED", "plain", text, under)


def _cheapest_text(comparison: Comparison) -> str:
    keep, best, recorded = comparison.keep, comparison.best, comparison.recorded
    if keep.cost is None:
        return "; the model has no price"
    if best is None or best.cost is None:
        return "; no prompt fits the window"
    paid = recorded.cost if recorded is not None else None
    # Other breakpoints alone may save more than any strategy: then that comes first.
    if paid is not None and abs(paid - keep.cost) > WORTH_SAYING * paid:
        text = _moved_text(comparison, paid, keep.cost, best.cost)
    elif best is not keep and best.cost < keep.cost:
        text = (
            f": {named(best, comparison)} is cheapest, {money_text(best.cost)} instead of "
            f"{money_text(keep.cost)} ({_change(best.cost, keep.cost)})"
        )
    else:
        text = f": keeping everything is cheapest, {money_text(keep.cost)}"
    return text + _dearer_text(comparison, keep.cost)


def _moved_text(comparison: Comparison, paid: Decimal, kept: Decimal, least: Decimal) -> str:
    """What other breakpoints save, and what a strategy saves with them."""
    keep, best = comparison.keep, comparison.best
    text = (
        f": {money_text(paid)} with the breakpoints as sent; {keep.placement.id} ones alone "
        f"{money_text(kept)} ({_change(kept, paid)})"
    )
    if best is None or best is keep or least >= kept:
        return text
    return text + f", with {label_of(best)} {money_text(least)} ({_change(least, paid)})"


def _dearer_text(comparison: Comparison, kept: Decimal) -> str:
    others = [row for row in comparison.own_rows if row is not comparison.keep and not row.is_idle]
    dearer = sum((row.cost or 0) > kept for row in others)
    return f"; {dearer} of {len(others)} cost more than keeping everything" if dearer else ""


WORTH_SAYING = Decimal("0.01")
"""Share of the cost from which on a difference is worth a word in the headline."""


def _change(value: Decimal, other: Decimal) -> str:
    text = change_text(value, other)
    return "under 1%" if text == "0%" and value != other else text


def first_rows(comparison: Comparison, logs: Sequence[str]) -> Iterator[Line]:
    """What is to be done before anything is chosen."""
    if not comparison.is_dead:
        return
    keep = comparison.keep
    yield Line(
        "First",
        f"mend the prefix: it breaks on {keep.rewrites:,} of {keep.requests:,} requests, and "
        f"{keep.rewritten_tokens:,} tokens are sent again behind a change, whatever is chosen below; "
        "this says why:",
        strong=True,
    )
    if logs and "-" not in logs:
        yield Line("", f"ctxdoc replay {shlex.join(logs)}", is_command=True)


def choice_rows(comparison: Comparison, logs: Sequence[str]) -> Iterator[Line]:
    """Lines on what was recorded, on the cheapest strategies, and on what is no choice."""
    yield from _recorded_rows(comparison)
    yield from _cheapest_rows(comparison, logs)
    for row in comparison.cheaper_as_written:
        why = "; ".join(row.warnings) or "the API may refuse it"
        yield Line("", f"{label_of(row)} costs {money_text(row.cost)} and is no choice: {why}")
    if not comparison.keep.fits:
        yield Line(
            "Window", "keeping everything exceeds the model's window, and is no choice: see below"
        )
    yield from _growth_rows(comparison)


def _recorded_rows(comparison: Comparison) -> Iterator[Line]:
    keep, recorded, billed = comparison.keep, comparison.recorded, comparison.billed
    if recorded is not None:
        yield Line(
            "Recorded",
            f"{money_text(recorded.cost)} with the breakpoints as sent{_billed_text(comparison)}; "
            f"{keep.placement.id} ones {money_text(keep.cost)} "
            f"({change_text(keep.cost, recorded.cost)})",
        )
    elif billed is not None:
        yield Line(
            "Recorded", f"{money_text(billed)} billed; where its breakpoints stood is not known"
        )


def _billed_text(comparison: Comparison) -> str:
    """The bill beside the simulated cost, so that a reader can check the one by the other."""
    if comparison.billed is None:
        return ""
    beside = ""
    if comparison.beside:
        what = f"{money_text(comparison.beside)} for compaction passes and searches"
        beside = f", of it {what}, which no row has"
    return f" (billed {money_text(comparison.billed)}{beside})"


def _cheapest_rows(comparison: Comparison, logs: Sequence[str]) -> Iterator[Line]:
    keep, best, whole = comparison.keep, comparison.best, comparison.best_whole
    if best is not None and best is not keep:
        unseen = _unseen_text(best, comparison)
        text = f"{named(best, comparison)}: {money_text(best.cost)}{unseen}"
        yield Line("Cheapest", text, strong=True)
        # Standard input cannot be read again, and --verbose lists the usual placement only.
        if logs and "-" not in logs and best.placement is comparison.placement:
            chosen = shlex.join([*logs, "--strategy", best.text])
            yield Line("", f"ctxdoc simulate {chosen} --verbose", is_command=True)
    if whole is not None and whole is not best:
        yield Line(
            "Complete",
            f"with nothing taken from the model: {named(whole, comparison)}, {money_text(whole.cost)}",
        )


def _growth_rows(comparison: Comparison) -> Iterator[Line]:
    growth = comparison.growth
    # A line through two points always fits.
    if growth is None or growth.turns <= 2:
        return
    r2 = "" if growth.r2 is None else f", R² {growth.r2:.3f}"
    turns = counted(growth.turns, "request")
    part = "" if comparison.whole else f" (the longest of several stretches, {turns})"
    yield Line(
        "Growth",
        f"P {growth.prefix:,.0f} + a {growth.per_turn or 0:,.0f} a turn{r2}{part}; n·P + a·n²/2 = "
        f"{growth.law:,.0f}, exactly {growth.exact:,.0f}, sent {growth.recorded:,}",
    )


def _unseen_text(row: Result, comparison: Comparison) -> str:
    """What of the history the model would not have."""
    if not row.lost:
        return ""
    share = f"{row.lost_tokens:,} of {comparison.history_tokens:,} tokens of history"
    edits = [spec.definition.edits for spec in row.specs]
    if not any(edits):
        return f"; {share} are never shown to the model, unless it reads them again"
    later = "are taken from the model later" if all(edits) else "are never shown, or taken later"
    return f"; {share} {later}"
