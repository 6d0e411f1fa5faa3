"""How numbers are spelled, at both sides of each boundary."""

from __future__ import annotations

from decimal import Decimal

import pytest

from ctxdoc.outputs.numbers import (
    change_text,
    counted,
    money_json,
    money_text,
    share_text,
    short_text,
    tokens_text,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0"), (-1, "-1"), (999, "999"), (1000, "1,000"), (-1000, "-1,000")],
)
def test_tokens_have_separators_and_a_dash_where_unknown(value: int | None, text: str) -> None:
    assert tokens_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (9_999, "9,999"),
        (10_000, "10.0k"),
        (-10_000, "-10.0k"),
        (100_000, "100k"),
        (1_000_000, "1.0M"),
        (100_000_000, "100M"),
    ],
)
def test_a_short_count_takes_a_unit_from_ten_thousand_on(value: int | None, text: str) -> None:
    assert short_text(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [(0, 0, "-"), (0, 5, "0%"), (1, 1000, "<1%"), (6, 1000, "1%"), (5, 5, "100%")],
)
def test_a_share_that_is_not_nothing_is_not_told_as_nothing(
    part: int, whole: int, text: str
) -> None:
    assert share_text(part, whole) == text


@pytest.mark.parametrize(
    ("value", "other", "text"),
    [
        (None, Decimal(1), "-"),
        (Decimal(1), None, "-"),
        (Decimal(1), Decimal(0), "-"),
        (Decimal(1), Decimal(1), "0%"),
        (Decimal("1.004"), Decimal(1), "0%"),
        (Decimal("0.5"), Decimal(1), "-50%"),
        (Decimal(3), Decimal(2), "+50%"),
    ],
)
def test_a_change_has_a_sign_unless_it_is_none(
    value: Decimal | None, other: Decimal | None, text: str
) -> None:
    assert change_text(value, other) == text


def test_tiny_money_is_seen_and_unknown_money_is_a_dash() -> None:
    assert money_text(None) == "-"
    assert Decimal(money_text(Decimal("0.000004")).lstrip("$<")) > 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, None), ("0", "0"), ("0.10", "0.1"), ("100", "100"), ("0.0000003", "0.0000003")],
)
def test_money_in_json_has_neither_exponent_nor_trailing_zeros(
    value: str | None, text: str | None
) -> None:
    assert money_json(None if value is None else Decimal(value)) == text


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (0, "request", "0 requests"),
        (1, "request", "1 request"),
        (1000, "request", "1,000 requests"),
        (2, "avoidable miss", "2 avoidable misses"),
        (2, "earlier stretch", "2 earlier stretches"),
        (1, "prefix", "1 prefix"),
        (2, "prefix", "2 prefixes"),
    ],
)
def test_a_noun_is_in_the_singular_for_one_only(count: int, noun: str, text: str) -> None:
    assert counted(count, noun) == text
