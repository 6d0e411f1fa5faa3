"""Laws of money and tokens that hold for every log."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.losses import losses_of
from ctxdoc.ledger.totals import Sum, Tokens, totals_of
from tests.ledger.test_ledger import LONG, plain, replayed, used
from tests.support.sessions import Body, clock_goes_on, session, tools_move

MILLION = Decimal(1_000_000)
EVENTS = st.lists(
    st.sampled_from(["", "clock", "tools", "pause", "no counters"]), min_size=2, max_size=7
)
COUNTERS = st.tuples(
    st.integers(1, 9_000), st.integers(0, 9_000), st.integers(0, 9_000)
).filter(lambda parts: sum(parts) > 500)  # fmt: skip


def records_of(events: list[str]) -> list[Body]:
    """A session with an event at each request."""
    changes = {"clock": clock_goes_on, "tools": tools_move}
    made = {n: changes[e] for n, e in enumerate(events, start=1) if e in changes}
    pauses = {n: 400 for n, e in enumerate(events, start=1) if e == "pause"}
    records = session(made, pauses, turns=len(events))
    for row, event in zip(records, events, strict=True):
        if event == "no counters":
            row["response"] = None
    return records


def of_events(factory: pytest.TempPathFactory, events: list[str]) -> Ledger:
    return replayed(factory.mktemp("log"), records_of(events))


@settings(max_examples=15)
@given(EVENTS, st.integers(0, 7))
def test_totals_of_two_parts_add_up_to_those_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, events: list[str], cut: int
) -> None:
    """Cut anywhere: no request is counted twice, and none is left out."""
    rows = of_events(tmp_path_factory, events).rows
    whole, one, two = totals_of(rows), totals_of(rows[:cut]), totals_of(rows[cut:])

    def amount(each: Sum) -> Decimal:
        return each.amount or Decimal(0)

    def parts(each: Tokens | None) -> tuple[int, int, int]:
        return (each.input, each.cache_read, each.output) if each else (0, 0, 0)

    for name in ("cost", "without_cache", "guessed_cost", "priced", "lost", "avoidable", "waste"):
        left, right = getattr(one, name), getattr(two, name)
        both = getattr(whole, name)
        assert amount(both) == amount(left) + amount(right), name
        assert both.count == left.count + right.count, name
    for name in ("reported", "simulated", "every"):
        pairs = zip(parts(getattr(one, name)), parts(getattr(two, name)), strict=True)
        assert parts(getattr(whole, name)) == tuple(a + b for a, b in pairs), name
    assert whole.requests == one.requests + two.requests == len(events)


@settings(max_examples=15)
@given(EVENTS)
def test_what_is_lost_and_wasted_was_paid(
    tmp_path_factory: pytest.TempPathFactory, events: list[str]
) -> None:
    """Of no request more than its cost, and of its input no more than it has."""
    found = of_events(tmp_path_factory, events)
    for row in found.rows:
        assert row.cost is not None
        assert row.counters is not None
        wrong = [each for each in (row.miss, row.waste) if each is not None]
        assert sum((each.cost or Decimal(0) for each in wrong), Decimal(0)) <= row.cost
        assert sum(each.tokens or 0 for each in wrong) <= row.counters.input
    totals = totals_of(found.rows)
    assert totals.priced.amount is not None
    assert totals.wasted <= totals.priced.amount


@settings(max_examples=15)
@given(EVENTS)
def test_losses_by_cause_are_the_losses_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, events: list[str]
) -> None:
    """Each miss stands under one cause; the dearest cause comes first."""
    found = of_events(tmp_path_factory, events)
    losses = losses_of(found.rows)
    numbers = [row.number for loss in losses if loss.kind == "miss" for row in loss.rows]
    assert sorted(numbers) == [row.number for row in found.rows if row.miss]
    costs = [loss.cost or Decimal(0) for loss in losses]
    assert costs == sorted(costs, reverse=True)
    totals = totals_of(found.rows)
    of_misses = sum((loss.cost or Decimal(0) for loss in losses if loss.kind == "miss"), Decimal(0))
    assert of_misses == (totals.lost.amount or 0)


@settings(max_examples=30)
@given(st.lists(COUNTERS, min_size=1, max_size=4))
def test_blocks_add_up_to_what_was_read_written_and_paid_in_full(
    tmp_path_factory: pytest.TempPathFactory, counters: list[tuple[int, int, int]]
) -> None:
    """Whatever the counters say of the blocks of one prompt: each token is shared out once."""
    rows = [plain("go on " * 90, used(*parts), 20 * n, LONG) for n, parts in enumerate(counters)]
    found = replayed(tmp_path_factory.mktemp("log"), rows)
    whole = sum(sum(parts) for parts in counters)
    sent = sum(block.lifetime_tokens for block in found.blocks)
    # Each of two blocks rounds once a request, and shares are whole millionths.
    assert sent == pytest.approx(whole, rel=1e-3, abs=3 * len(counters))
    paid = sum(Decimal(3) * a + Decimal("0.3") * b + Decimal("3.75") * c for a, b, c in counters)
    cost = sum((block.cost or Decimal(0) for block in found.blocks), Decimal(0))
    assert cost == pytest.approx(paid / MILLION, rel=Decimal("2e-3"))
