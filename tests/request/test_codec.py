"""JSON as values and back: nothing of its meaning is lost, numbers stay as they were spelled."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ctxdoc.request.codec import decode, encode, encode_sorted, plain

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(VALUES)
def test_a_value_comes_back(value: Any) -> None:
    assert decode(encode(value)) == value
    assert plain(value) == value


@given(VALUES)
def test_the_sorted_form_is_one_for_any_order_of_the_members(value: Any) -> None:
    assert encode_sorted(value) == encode_sorted(turned(value))
    assert json.loads(encode_sorted(value)) == value


def turned(value: Any) -> Any:
    """The value with the members of each object in the other order."""
    match value:
        case list():
            return [turned(item) for item in value]
        case dict():
            return {name: turned(member) for name, member in reversed(value.items())}
    return value


@pytest.mark.parametrize(
    "number", ["1.0", "1.50", "1e5", "-0.0", "1E+2", "0.1000000000000000000001"]
)
def test_a_number_with_a_fraction_stays_as_it_was_spelled(number: str) -> None:
    value = decode(f'{{"a": [{number}]}}'.encode())
    assert encode(value) == f'{{"a":[{number}]}}'.encode()
    assert plain(value) == {"a": [float(number)]}


def test_a_number_that_no_float_holds_stays_a_text() -> None:
    assert plain(Raw(b"1e999")) == "1e999"
