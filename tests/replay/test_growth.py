"""The growth law: arithmetic written out, and the stretches that it is fitted to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.replay.growth import Turn, fit, iter_growth


def turns(*sizes: int) -> list[Turn]:
    return [Turn(number, size) for number, size in enumerate(sizes, start=1)]


def test_twenty_turns_of_three_hundred_tokens_are_63000() -> None:
    """P = 0, a = 300, n = 20: 300 · 20 · 21 / 2 = 63,000 exactly, 300 · 400 / 2 = 60,000 by the law."""
    found = fit(turns(*(300 * k for k in range(1, 21))))
    assert found.prefix == pytest.approx(0, abs=1e-6)
    assert found.per_turn == pytest.approx(300)
    assert round(found.exact) == found.recorded == 63_000
    assert round(found.law) == 60_000
    assert found.r2 == pytest.approx(1)


def test_the_square_term_overtakes_where_half_a_n_squared_is_n_p() -> None:
    """n·20,000 = 1,982·n²/2 at n = 20.18; (200,000 − 257,840) / 1,982 leaves no turn."""
    found = fit(turns(*(20_000 + 1_982 * k for k in range(1, 121))))
    assert found.square_overtakes_at == pytest.approx(2 * 20_000 / 1_982)
    assert found.turns_left(200_000) == 0
    # (1,000,000 − 257,840) / 1,982 = 374.4
    assert found.turns_left(1_000_000) == 374
    # 120·20,000 + 1,982·120²/2 and 120·20,000 + 1,982·120·121/2
    assert round(found.law) == 16_670_400
    assert round(found.exact) == 16_789_320


def test_no_prompt_is_smaller_than_nothing() -> None:
    """A line through (1, 588) and (2, 1372) begins at -196: through zero it has the slope
    (588 + 2 · 1372) / 5."""
    found = fit(turns(588, 1372))
    assert (found.prefix, found.per_turn) == (0, pytest.approx(666.4))


def test_one_request_has_no_slope_and_two_have_no_r2() -> None:
    one, two = fit(turns(500)), fit(turns(500, 700))
    assert (one.prefix, one.per_turn, one.r2, one.square_overtakes_at) == (500, None, None, None)
    assert (two.prefix, two.per_turn, two.r2) == (300, 200, None)


def test_a_prompt_that_stays_has_no_turns_left_to_count() -> None:
    found = fit(turns(900, 900, 900))
    assert (found.per_turn, found.turns_left(200_000), found.r2) == (0, None, 1.0)


@pytest.mark.parametrize(
    ("sizes", "stretches"),
    [
        ((100, 200, 300), [(1, 3)]),
        # a clearing: the prompt falls by more than 3 %
        ((10_000, 11_000, 6_000, 7_000), [(1, 2), (3, 4)]),
        # within 3 %: a note that went is no other prompt
        ((10_000, 9_800, 9_900), [(1, 3)]),
        # within 20 tokens
        ((100, 85, 95), [(1, 3)]),
        # another prefix: more than four times as long
        ((400, 20_000, 20_500), [(1, 1), (2, 3)]),
    ],
)
def test_a_stretch_ends_where_the_prompt_is_another_one(
    sizes: tuple[int, ...], stretches: list[tuple[int, int]]
) -> None:
    assert [(g.first, g.last) for g in iter_growth(turns(*sizes))] == stretches


def test_a_known_replacement_starts_a_stretch_though_the_size_stays() -> None:
    rows = [Turn(1, 1000), Turn(2, 1100), Turn(3, 1150, starts=True)]
    assert [(g.first, g.last) for g in iter_growth(rows)] == [(1, 2), (3, 3)]


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40))
def test_stretches_tile_a_session_and_their_exact_sums_are_the_recorded_ones(
    sizes: list[int],
) -> None:
    """The residuals of a line of least squares sum to zero, so that n·P + a·n(n+1)/2 is the sum."""
    found = list(iter_growth(turns(*sizes)))
    assert [g.first for g in found] == [1, *(g.last + 1 for g in found[:-1])]
    assert sum(g.recorded for g in found) == sum(sizes)
    for growth in found:
        if growth.prefix > 0:
            assert growth.exact == pytest.approx(growth.recorded, rel=1e-9, abs=1e-3)
        assert growth.r2 is None or -1e-9 <= growth.r2 <= 1 + 1e-9


@pytest.mark.parametrize(
    ("sizes", "fits", "bends"),
    [
        # a line with a little noise
        ((10_000, 12_010, 13_990, 16_005, 18_000), True, False),
        # each turn adds 60 more than the one before: the line is near, and still it bends
        (tuple(10_000 + 1_000 * k + 30 * k * k for k in range(1, 13)), True, True),
        # each turn adds less
        (tuple(30_000 + 1_000 * k - 20 * k * k for k in range(1, 13)), True, True),
        # two plateaus: no line, and no bend either
        ((10_000, 10_100, 10_200, 30_000, 30_100, 30_200), False, False),
        # four prompts are too few to call it a bend
        ((1_000, 1_100, 1_400, 1_900), False, False),
        # sizes that hardly vary have nothing to explain: off by 10 tokens
        ((9_000, 9_010, 8_995, 9_010), True, False),
    ],
)
def test_the_law_says_when_it_does_not_fit(sizes: tuple[int, ...], fits: bool, bends: bool) -> None:
    found = fit(turns(*sizes))
    assert (found.fits, found.bends) == (fits, bends)
    assert found.foretells == (fits and not bends)


def test_the_largest_error_is_in_tokens_and_as_a_share_of_its_prompt() -> None:
    """(1, 1000), (2, 1000), (3, 1600): the line is 600 + 300·k; off by 100, 200 and 100 tokens."""
    found = fit(turns(1000, 1000, 1600))
    assert found.largest_error == pytest.approx(200)
    assert found.largest_share == pytest.approx(0.2)
    # 1 - (100² + 200² + 100²) / (200² + 200² + 400²)
    assert found.r2 == pytest.approx(0.75)
    assert found.fits is False


def test_two_requests_are_too_few_to_say_whether_the_law_fits() -> None:
    found = fit(turns(500, 700))
    assert (found.fits, found.foretells) == (None, True)
