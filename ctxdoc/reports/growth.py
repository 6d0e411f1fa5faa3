"""How a session grows and goes on, in lines of a report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal

from ctxdoc.ledger.forecast import Forecast, falls_of, forecast
from ctxdoc.ledger.ledger import Grown, Ledger
from ctxdoc.outputs.numbers import counted, money_text, share_text
from ctxdoc.outputs.report import Row
from ctxdoc.replay.sessions import short_name
from ctxdoc.request.usage import Origin

SHOWN = 3
"""Stretches of the dearest session."""
SMALL = 0.01
"""Share of the longest stretch's tokens under which one is left out."""


def growth_rows(replay: Ledger) -> Iterator[Row]:
    """The last stretches of the session that sent most, in time order, and how the last one goes on."""
    stretches = _stretches_to_show(replay)
    for index, line in enumerate(_growth_lines(replay, stretches)):
        yield Row("" if index else "Growth", line)


def _stretches_to_show(replay: Ledger) -> list[Grown]:
    """Those of the session that sent most, without the ones that are small beside its longest."""
    of_session: defaultdict[str, list[Grown]] = defaultdict(list)
    for grown in replay.growth:
        # A line through two points always fits.
        if grown.fit.turns > 2:
            of_session[grown.session].append(grown)
    own = max(of_session.values(), key=_sent, default=[])
    most = max((grown.fit.recorded for grown in own), default=0)
    shown = (grown for grown in own if grown.fit.recorded >= SMALL * most)
    return sorted(shown, key=lambda grown: grown.rows[-1])


def _sent(stretches: Sequence[Grown]) -> int:
    return sum(grown.fit.recorded for grown in stretches)


def _growth_lines(replay: Ledger, stretches: Sequence[Grown]) -> Iterator[str]:
    if not stretches:
        return
    last = stretches[-1]
    if len(replay.sessions) > 1:
        name = short_name(last.session)
        yield f"of {name}, the session that sent most (--session shows another)"
    if len(stretches) > SHOWN:
        more = counted(len(stretches) - SHOWN, "earlier stretch")
        yield f"… {more} (--format json lists them)"
    for grown in stretches[-SHOWN:]:
        yield _stretch(grown, replay.origin_of(grown))
    fall = falls_of(replay).get(last.rows)
    yield from _outlook(last, forecast(last.fit, replay.grown_rows(last), fall))


def _stretch(grown: Grown, origin: Origin) -> str:
    fit = grown.fit
    r2 = "" if fit.r2 is None else f", R² {fit.r2:.3f}"
    if fit.fits is False:
        r2 += (
            f", off by up to {fit.largest_error:,.0f} tokens ({share_text(fit.largest_share, 1)} of the "
            "prompt): the law does not fit"
        )
    elif fit.bends:
        r2 += ", but it bends: each turn adds more or less than the one before"
    return (
        f"requests {min(grown.rows):,} to {max(grown.rows):,}: "
        f"P {fit.prefix:,.0f} + a {fit.per_turn or 0:,.0f} a turn{r2}; "
        f"n·P + a·n²/2 = {fit.law:,.0f}, exactly {fit.exact:,.0f}, "
        f"{'recorded' if origin is Origin.REPORTED else origin} {fit.recorded:,}"
    )


def _outlook(grown: Grown, ahead: Forecast | None) -> Iterator[str]:
    overtakes = grown.fit.square_overtakes_at
    if overtakes is not None and grown.fit.foretells:
        when = "since" if overtakes < grown.fit.turns else "from"
        yield f"history sent again is more than half of the input {when} turn {overtakes:,.0f} (2·P/a)"
    if ahead is None:
        return
    text = _end(ahead)
    costs = [_cost(n.turns, n.cost) for n in ahead.next if n.cost is not None]
    if costs:
        text += (
            f"; if nothing changes ({ahead.read_share:.0%} read), {', '.join(costs)} (simulated)"
        )
    yield text


def _end(ahead: Forecast) -> str:
    """Up to where the stretch goes on."""
    if ahead.falls_at is not None:
        when = f", {counted(ahead.falls_in, 'turn')} from here" if ahead.falls_in else ""
        return f"the log shows prompts fall at {ahead.falls_at:,} tokens{when}: no further forecast"
    left = ahead.turns_left
    text = f"from here the window of {ahead.window:,} tokens "
    return text + (
        f"is full in {counted(left, 'turn')}" if left is not None else "does not fill up"
    )


def _cost(turns: int, cost: Decimal) -> str:
    return f"{turns} more turns cost {money_text(cost)}"
