"""How a stretch goes on, by arithmetic that is written out."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxdoc.ledger.forecast import Fall, forecast
from ctxdoc.ledger.request_cost import RequestCost
from ctxdoc.replay.growth import Growth, Turn, iter_growth
from ctxdoc.request.usage import Usage
from tests.ledger.test_ledger import replayed
from tests.support.sessions import session

MILLION = Decimal(1_000_000)
P, A, OUTPUT = 9_000, 1_000, 100
SIZES = tuple(P + A * k for k in range(1, 5))
"""10,000 to 13,000."""


def usage(before: int, size: int, *, hour: bool = False) -> Usage:
    """All of the prompt before is read, and all that is new is written."""
    new = size - before
    return Usage(
        uncached=0,
        cache_read=before,
        cache_write_5m=0 if hour else new,
        cache_write_1h=new if hour else 0,
        output=OUTPUT,
    )


def stretch(folder: Path, *, hour: bool = False) -> tuple[Growth, list[RequestCost]]:
    """Four requests of claude-sonnet-4-5 that grow by a thousand tokens each."""
    rows = replayed(folder, session({}, turns=4)).rows
    pairs = zip(rows, (0, *SIZES), SIZES, strict=False)
    known = [replace(row, reported=usage(old, new, hour=hour)) for row, old, new in pairs]
    (fit,) = iter_growth(Turn(k, size) for k, size in enumerate(SIZES, start=1))
    return fit, known


def test_ten_turns_cost_what_each_reads_and_writes(tmp_path: Path) -> None:
    """Turn t reads 13,000 + 1,000 (t-1) tokens, writes 1,000 and answers with 100: over ten turns
    175,000 · 0.3 + 10,000 · 3.75 + 1,000 · 15 = 105,000 per million."""
    fit, rows = stretch(tmp_path)
    ahead = forecast(fit, rows)
    assert ahead is not None
    assert [each.turns for each in ahead.next] == [10, 50, 100]
    assert ahead.next[0].cost == Decimal("0.105")
    assert ahead.read_share == 1.0
    assert (ahead.falls_at, ahead.falls_in) == (None, None)


@pytest.mark.parametrize("turns", [10, 50, 100])
def test_each_horizon_is_the_sum_of_a_row_of_numbers(turns: int, tmp_path: Path) -> None:
    """n·13,000 + 1,000·n(n-1)/2 tokens are read over n turns."""
    fit, rows = stretch(tmp_path)
    ahead = forecast(fit, rows)
    assert ahead is not None
    read = turns * SIZES[-1] + A * turns * (turns - 1) // 2
    cost = (read * Decimal("0.3") + turns * A * Decimal("3.75") + turns * OUTPUT * 15) / MILLION
    assert {each.turns: each.cost for each in ahead.next}[turns] == cost


def test_writes_for_an_hour_go_on_as_such(tmp_path: Path) -> None:
    """At twice the input price instead of 1.25 times: 10,000 · 2.25 per million more."""
    costs = []
    for hour in (False, True):
        ahead = forecast(*stretch(tmp_path, hour=hour))
        assert ahead is not None
        costs.append(ahead.next[0].cost or Decimal(0))
    assert costs[1] - costs[0] == 10_000 * Decimal("2.25") / MILLION


def test_the_window_is_full_where_the_line_reaches_it(tmp_path: Path) -> None:
    """Claude Sonnet 4.5 takes 200,000: (200,000 - 13,000) / 1,000 = 187 turns."""
    ahead = forecast(*stretch(tmp_path))
    assert ahead is not None
    assert (ahead.window, ahead.turns_left) == (200_000, 187)


@pytest.mark.parametrize(("tokens", "left", "known"), [(22_999, 9, False), (23_000, 10, True)])
def test_no_cost_is_told_beyond_a_fall(tokens: int, left: int, known: bool, tmp_path: Path) -> None:
    """Where prompts fell before at 23,000 there are just ten turns from 13,000 to there."""
    fit, rows = stretch(tmp_path)
    ahead = forecast(fit, rows, Fall(tokens, here=False))
    assert ahead is not None
    assert (ahead.falls_at, ahead.falls_in, ahead.turns_left) == (tokens, left, None)
    assert (ahead.next[0].cost is not None) is known
    assert [each.cost for each in ahead.next[1:]] == [None, None]


def test_a_stretch_that_ended_is_not_foretold(tmp_path: Path) -> None:
    fit, rows = stretch(tmp_path)
    assert forecast(fit, rows, Fall(13_000, here=True)) is None


def test_two_requests_with_counters_foretell_and_one_does_not(tmp_path: Path) -> None:
    fit, rows = stretch(tmp_path)
    assert forecast(fit, rows[:2]) is not None
    assert forecast(fit, rows[:1]) is None


@given(
    prefix=st.integers(1_000, 50_000),
    more=st.integers(100, 1_000),
    turns=st.integers(3, 40),
)
def test_the_growth_law_is_off_by_half_a_turn(prefix: int, more: int, turns: int) -> None:
    """n·P + a·n(n+1)/2 is what is sent; n·P + a·n²/2 leaves a·n/2 of it away."""
    (fit,) = iter_growth(Turn(k, prefix + more * k) for k in range(1, turns + 1))
    assert fit.per_turn == pytest.approx(more)
    assert fit.prefix == pytest.approx(prefix, abs=1e-3)
    assert fit.recorded == sum(prefix + more * k for k in range(1, turns + 1))
    assert fit.exact == pytest.approx(fit.recorded)
    assert fit.exact - fit.law == pytest.approx(more * turns / 2, rel=1e-3)
    assert fit.square_overtakes_at == pytest.approx(2 * prefix / more)
