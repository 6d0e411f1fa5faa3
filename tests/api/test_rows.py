"""Rows: flat, of plain values, the same keys in each."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.api.rows import named, rows_of, rows_of_records
from ctxdoc.outputs.report import Records
from tests.support.frame import DataFrame

SCALARS = st.none() | st.booleans() | st.integers() | st.text("ab1", max_size=3)
LISTS = st.lists(st.text("ab", max_size=2), max_size=3) | st.just([{"a": 1}])
NAMES = st.sampled_from(["width", "size", "tokens", "kind"])
OBJECTS = st.dictionaries(
    NAMES, SCALARS | LISTS | st.dictionaries(NAMES, SCALARS, max_size=2), max_size=4
)


@given(st.lists(OBJECTS, max_size=4))
def test_any_objects_make_rows_that_a_frame_takes(objects: list[dict[str, object]]) -> None:
    rows = rows_of(objects)  # type: ignore[arg-type]
    assert len(rows) == len(objects)
    DataFrame(rows)  # type: ignore[arg-type]


def test_an_object_is_spread_a_list_joined_and_a_list_of_objects_left_out() -> None:
    item = {"size": {"width": 1, "height": 2}, "requests": [5, 8], "suggestions": [{"width": 1}]}
    assert rows_of([item]) == [{"size_width": 1, "size_height": 2, "requests": "5; 8"}]  # type: ignore[list-item]


def test_what_one_row_lacks_is_none() -> None:
    assert rows_of([{"pages": 2}, {"width": 3}]) == [
        {"pages": 2, "width": None},
        {"pages": None, "width": 3},
    ]


def test_no_objects_are_no_rows() -> None:
    assert rows_of([]) == rows_of_records(None) == []


@pytest.mark.parametrize(
    ("name", "cell", "value"),
    [
        ("cost", "0.25", 0.25),
        ("cost_without_cache", "1", 1.0),
        ("per_turn_cost_cached", "0.5", 0.5),
        ("vs_keep_percent", "-3.25", -3.25),
        ("lost_cost", None, None),
        ("costly", "0.25", "0.25"),
        ("at", "2026-11-02T09:00:00+00:00", datetime(2026, 11, 2, 9, tzinfo=UTC)),
        ("avoidable", "true", True),
        ("avoidable", "none", None),
        ("fits_window", "false", False),
        ("session", "true", "true"),
        ("line", 7, 7),
    ],
)
def test_a_cell_has_the_type_of_what_it_is(
    name: str, cell: str | int | None, value: object
) -> None:
    (row,) = rows_of_records(Records((name,), ((cell,),)))
    assert row == {name: value}
    assert type(row[name]) is type(value)


def test_a_cause_is_called_cause() -> None:
    assert named({"id": "tool_order", "title": "t"}) == {"cause": "tool_order", "title": "t"}


@pytest.mark.parametrize(
    "rows",
    [
        ({"a": 1},),
        [{"a": 1}, {"b": 1}],
        [{"a": 1, "b": 2}, {"b": 2, "a": 1}],
        [{"a": [1]}],
        [{"a": {"b": 1}}],
        [{1: 2}],
        [["a"]],
    ],
)
def test_the_stand_in_for_a_frame_refuses_what_pandas_takes_otherwise(rows: object) -> None:
    """Or takes with holes in it, or with lists in its cells."""
    with pytest.raises(TypeError):
        DataFrame(rows)  # type: ignore[arg-type]


def test_the_stand_in_has_the_shape_of_a_frame() -> None:
    assert DataFrame([]).shape == (0, 0)
    assert DataFrame([{"a": 1, "b": None}] * 3).shape == (3, 2)
