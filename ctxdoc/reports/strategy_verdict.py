"""The verdict of a simulation: which strategy is cheapest, and what it takes from the model."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from decimal import Decimal

from ctxdoc.outputs.numbers import (
    change_text,
    counted,
    money_text,
    share_text,
)
from ctxdoc.outputs.report import Headline
from ctxdoc.outputs.report import Row as Line
from ctxdoc.reports.strategy_label import label_of, named
from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.result import Result


def simulate_headline(comparison: Comparison) -> Headline:
    """The headline of a simulation: what was paid, and the two ways to pay less."""
    text = f"{counted(comparison.keep.requests, 'request')}{_choice_text(comparison)}"
    under = f"under {comparison.placement.id} breakpoints ({comparison.placement.title})"
    return Headline("SIMULATED", "plain", text, under)


def _choice_text(comparison: Comparison) -> str:
    sent, whole, within = comparison.sent, comparison.best_whole, comparison.best_within
    if sent.cost is None:
        return "; the model has no price"
    if comparison.best is None:
        return "; no prompt fits the window"
    how = "as sent" if comparison.recorded is not None else "with everything kept"
    text = f", {money_text(sent.cost)} {how}"
    if whole is None:
        text += "; no way that shows the model everything fits the window"
    else:
        text += f"; with nothing hidden {_priced_text(whole, comparison)}"
    if within is not None and within is not whole:
        limit = share_text(comparison.max_unseen, 1)
        text += f"; hiding at most {limit}, {_priced_text(within, comparison)}"
    return text


def _priced_text(row: Result, comparison: Comparison) -> str:
    """A way, what it costs, and how that differs from what was sent."""
    sent = comparison.sent
    if row.cost is None or sent.cost is None or _is_as_good(row, sent):
        return "that is the cheapest"
    change = _change(row.cost, sent.cost)
    return f"{named(row, comparison)} {money_text(row.cost)} ({change})"


def _is_as_good(row: Result, sent: Result) -> bool:
    """Whether a way saves nothing that is worth a word."""
    if row is sent or row.cost is None or sent.cost is None:
        return True
    return row.name == "keep" and abs(row.cost - sent.cost) <= WORTH_SAYING * sent.cost


WORTH_SAYING = Decimal("0.005")
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
    """Lines on what was sent, on the cheapest ways, and on what is no choice."""
    yield from _sent_rows(comparison)
    yield from _cheapest_rows(comparison, logs)
    for row in comparison.cheaper_as_written:
        why = "; ".join(row.warnings) or "the API may refuse it"
        yield Line("", f"{label_of(row)} costs {money_text(row.cost)} and is no choice: {why}")
    if not comparison.keep.fits:
        yield Line(
            "Window", "keeping everything exceeds the model's window, and is no choice: see below"
        )
    yield from _growth_rows(comparison)


def _sent_rows(comparison: Comparison) -> Iterator[Line]:
    baseline = comparison.baseline
    if baseline is None:
        return
    text = f"{money_text(baseline.row.cost)} simulated as sent"
    if baseline.billed is None:
        text += "; not every request has counters, so that there is no bill to hold it against"
    else:
        text += f", {money_text(baseline.billed)} billed"
        if baseline.reasons:
            text += f" ({change_text(baseline.row.cost, baseline.billed)})"
    yield Line("Sent", text)
    for reason in baseline.reasons[:SHOWN_REASONS]:
        more = "more" if reason.cost > 0 else "less"
        yield Line(
            "",
            f"{money_text(abs(reason.cost))} {more} was billed for {counted(reason.requests, 'request')}: "
            f"{reason.text}",
        )
    for row in comparison.as_sent:
        if row is not baseline.row and row.cost is not None and baseline.row.cost is not None:
            change = _change(row.cost, baseline.row.cost)
            if row.cost < baseline.row.cost:
                yield Line(
                    "Lifetime",
                    f"{row.placement.title}: {money_text(row.cost)} ({change}), and nothing else is changed",
                )


SHOWN_REASONS = 3


def _cheapest_rows(comparison: Comparison, logs: Sequence[str]) -> Iterator[Line]:
    whole, within, best = comparison.best_whole, comparison.best_within, comparison.best
    if whole is not None:
        yield Line("Complete", f"nothing is taken from the model: {_way_text(whole, comparison)}")
    limit = share_text(comparison.max_unseen, 1)
    if within is not None and within is not whole:
        yield Line("Choice", f"hides at most {limit}: {_way_text(within, comparison)}", strong=True)
        yield from _command_rows(within, comparison, logs)
    elif comparison.max_unseen:
        yield Line(
            "Choice", f"nothing that hides at most {limit} of the history costs less than that"
        )
    if best is not None and best is not within and best is not whole:
        yield Line("Beyond", f"the lowest number: {_way_text(best, comparison)}")
        yield from _command_rows(best, comparison, logs)


def _way_text(row: Result, comparison: Comparison) -> str:
    sent = comparison.sent
    text = f"{named(row, comparison)}, {money_text(row.cost)}"
    if row is not sent and row.cost is not None and sent.cost is not None:
        text += f" ({_change(row.cost, sent.cost)})"
    return text + _unseen_text(row, comparison) + _reread_text(row, comparison)


def _reread_text(row: Result, comparison: Comparison) -> str:
    """Up to which share of rereads it pays."""
    found = comparison.break_even(row)
    if found is None or found.share == 0:
        return ""
    if found.share is None:
        return "; pays even if all of it is read again"
    return f"; pays while less than {share_text(found.share, 1)} is read again"


def _command_rows(row: Result, comparison: Comparison, logs: Sequence[str]) -> Iterator[Line]:
    """How to see what a way hides."""
    # Standard input cannot be read again, and --verbose lists the usual placement only.
    if row.lost and logs and "-" not in logs and row.placement is comparison.placement:
        chosen = shlex.join([*logs, "--strategy", row.text])
        yield Line("", f"ctxdoc simulate {chosen} --verbose", is_command=True)


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
    share = (
        f"{share_text(row.lost_tokens, comparison.history_tokens)} of the history "
        f"({row.lost_tokens:,} tokens)"
    )
    edits = [spec.definition.edits for spec in row.specs]
    if not any(edits):
        return f"; {share} is never shown to the model"
    later = "is taken from the model later" if all(edits) else "is never shown, or taken later"
    return f"; {share} {later}"
