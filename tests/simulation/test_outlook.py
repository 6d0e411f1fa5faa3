"""The session in hand: what each way costs from here on, and which is the cheapest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from msgspec.structs import replace

from ctxdoc.errors import InputError
from ctxdoc.simulation.history.from_numbers import Shape, made_session
from ctxdoc.simulation.history.messages import BreakpointAt, Session
from ctxdoc.simulation.outlook import Outlook, outlook_of

MODEL = "claude-sonnet-4-6"
"""Input 3, write 3.75, read 0.30, output 15 USD per million tokens."""
INPUT, WRITE, READ, OUTPUT = Decimal(3), Decimal("3.75"), Decimal("0.3"), Decimal(15)
MILLION = 10**6
P, A, REPLY = 8_000, 2_000, 400
ASKED = 200


def session_of(turns: int, *, gap: float = 20) -> Session:
    return made_session(
        Shape(prefix=P, per_turn=A, turns=turns, tool_share=0.8, output=REPLY, model=MODEL, gap=gap)
    )


def outlook(turns: int, **given: object) -> Outlook:
    session = session_of(turns)
    # Each breakpoint is read within the lifetime of what it reads: the fixed part is marked for an hour.
    marks = (BreakpointAt(0, 0, "1h"), BreakpointAt(1, 0, "1h"))
    session = replace(session, calls=tuple(replace(call, marks=marks) for call in session.calls))
    now = session.calls[-1].at
    return outlook_of(session, "s", **{"now": now, **given})  # type: ignore[arg-type]


HOUR = Decimal(6)
"""What writing for an hour costs."""


def going_on(turns: int, calls: int) -> list[Decimal]:
    """Each call reads all before it and writes what it adds."""
    prompt = P + A * turns
    return [
        ((prompt + A * (k - 1)) * READ + A * HOUR + REPLY * OUTPUT) / MILLION
        for k in range(1, calls + 1)
    ]


def handed_off(turns: int, calls: int, summary: int) -> list[Decimal]:
    """The summary is asked for behind the whole prompt; the new session reads P, and writes the summary."""
    prompt = P + A * turns
    # The breakpoint stays on the tool result: the question behind it is paid once, in full.
    asked = (prompt * READ + A * HOUR + ASKED * INPUT + summary * OUTPUT) / MILLION
    first = (P * READ + summary * HOUR + REPLY * OUTPUT) / MILLION
    later = [
        ((P + summary + A * (k - 1)) * READ + A * HOUR + REPLY * OUTPUT) / MILLION
        for k in range(1, calls)
    ]
    return [asked + first, *later]


def pays_after(own: list[Decimal], other: list[Decimal]) -> int | None:
    ahead, since = Decimal(0), None
    for number, (one, two) in enumerate(zip(own, other, strict=True), start=1):
        ahead += two - one
        since = (since or number) if ahead > 0 else None
    return since


@pytest.mark.parametrize(
    ("turns", "calls", "summary"), [(12, 8, 1_000), (40, 40, 3_500), (6, 30, 900)]
)
def test_each_way_costs_what_its_closed_form_says(turns: int, calls: int, summary: int) -> None:
    found = outlook(turns, calls=calls, summary=summary)
    ways = {way.id: way for way in found.ways}
    keep, hand = going_on(turns, calls), handed_off(turns, calls, summary)
    assert ways["go_on"].total == sum(keep)
    assert ways["go_on"].next_call == keep[0]
    assert ways["handoff"].total == sum(hand)
    assert ways["handoff"].once == hand[0] - keep[0]
    assert ways["handoff"].pays_after == pays_after(hand, keep)
    # Behind a pause all of the next prompt is written again.
    cold = ((P + A * (turns + 1)) * HOUR + REPLY * OUTPUT) / MILLION
    assert ways["go_on"].next_after_pause == cold


@pytest.mark.parametrize("turns", [2, 5, 10, 20, 40, 80])
@pytest.mark.parametrize("calls", [1, 3, 10, 60])
def test_the_advice_is_the_cheapest_of_the_four(turns: int, calls: int) -> None:
    found = outlook(turns, calls=calls)
    totals = {way.id: way.total for way in found.ways}
    assert list(totals) == ["go_on", "compact", "handoff", "wait"]
    least = min(total for total in totals.values() if total is not None)
    if found.best.id == "go_on":
        # Another way may be cheaper by less than a hundredth, which is not worth what it hides.
        assert least >= Decimal("0.99") * (totals["go_on"] or 0)
    else:
        assert totals[found.best.id] == least


def test_a_last_call_is_not_worth_a_summary_and_a_long_way_is() -> None:
    assert outlook(20, calls=1).best.id == "go_on"
    assert outlook(20, calls=100).best.id in ("compact", "handoff")
    assert outlook(20, calls=100).best.pays_after is not None


def test_the_entry_lives_to_the_end_of_its_hour() -> None:
    last = session_of(12).calls[-1].at
    assert last is not None
    for seconds, left in ((0, 3_600), (3_599, 1), (3_600, 0), (9_000, 0)):
        found = outlook(12, now=last + timedelta(seconds=seconds))
        assert found.alive_for == left
        going_on_ = found.going_on
        assert (going_on_.next_call == going_on_.next_after_pause) is (left == 0)


def test_a_time_before_the_last_call_is_a_mistake() -> None:
    with pytest.raises(InputError, match="before the last call"):
        outlook(12, now=datetime(2000, 1, 1, tzinfo=UTC))


def test_the_window_is_where_a_compaction_costs_least_a_call() -> None:
    """C = r·P + out·S + w·(S + a), read and write factors of 0.1 and 1.25: √(2·C/(r·a)) calls."""
    found = outlook(40, summary=3_500)
    once = 0.1 * P + 5 * 3_500 + 1.25 * (3_500 + A)
    turns = (2 * once / (0.1 * A)) ** 0.5
    assert found.compact_at.turns == round(turns)
    assert found.compact_at.by_formula == round(P + 3_500 + A * turns)


def test_it_is_projected_no_further_than_the_window() -> None:
    """1,000,000 tokens, of which 988,000 are there: six calls of 2,000 are left."""
    session = made_session(Shape(prefix=P, per_turn=A, turns=490, output=REPLY, model=MODEL))
    assert outlook_of(session, "s").calls == 6
    assert outlook_of(session_of(12), "s").calls == 12
    assert outlook_of(session_of(3), "s").calls == 10
