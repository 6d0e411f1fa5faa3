"""The shape of a JSON text: the same as of the decoded document, and of a cut one a part of it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.reading.shape import SHAPE_DEPTH, shape_of
from ctxdoc.reading.source import FIRST_DOCUMENTS, Document, Source
from ctxdoc.request.log import Skipped

NAMES = st.text(st.sampled_from('ab{}[]:,"\\ é'), min_size=1, max_size=3).filter(
    # The escapes of a name stay as they are spelled: the formats' own names have none.
    lambda name: json.dumps(name) == f'"{name}"'
)
VALUES = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('ab{}[]:,"\\ é'), max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)


def paths_of(value: Any, above: tuple[str, ...] = ()) -> set[str]:
    """An independent model: the members of the decoded document."""
    if isinstance(value, list):
        inner = (*above[:-1], f"{above[-1]}[]") if above else above
        return set().union(*(paths_of(item, inner) for item in value))
    if not isinstance(value, dict):
        return set()
    found = {".".join((*above, name)) for name in value if len(above) < SHAPE_DEPTH}
    return found.union(*(paths_of(member, (*above, name)) for name, member in value.items()))


@given(OBJECTS, st.sampled_from([None, 1]))
def test_the_shape_is_that_of_the_document(value: dict[str, Any], indent: int | None) -> None:
    nested = any(isinstance(item, list) for item in every_item(value))
    shape = shape_of(json.dumps(value, indent=indent).encode())
    # A list right in a list has no name of its own, so that its members count to the outer one.
    assert shape == paths_of(value) or nested


def every_item(value: Any) -> list[Any]:
    """The items of all lists."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = list(value) if isinstance(value, list) else []
    return own + [item for each in inner for item in every_item(each)]


@given(OBJECTS, st.integers(0, 200))
def test_a_cut_document_shows_a_part_of_its_shape(value: dict[str, Any], end: int) -> None:
    data = json.dumps(value).encode()
    assert shape_of(data[:end]) <= shape_of(data)


def test_a_second_document_adds_nothing() -> None:
    assert shape_of(b'{"a": 1} {"b": 2}') == {"a"}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ("hello", 0),
        ('{"a": 1}', 1),
        ('{"a": 1}\n' * FIRST_DOCUMENTS, FIRST_DOCUMENTS),
        ('{"a": 1}\n' * (FIRST_DOCUMENTS + 1), FIRST_DOCUMENTS),
        ('{\n"a": 1\n}', 1),
        ('[\n{"a": 1}\n]', 1),
    ],
)
def test_the_first_documents_are_looked_at(text: str, count: int) -> None:
    shapes = Source("x", io.BytesIO(text.encode())).shapes
    assert shapes == (frozenset({"a"}),) * count


LINES = st.lists(st.dictionaries(st.sampled_from("ab"), st.integers(), max_size=2), min_size=1)


@given(LINES, st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_a_document_a_line_is_read_with_its_line(
    rows: list[dict[str, int]], ends: bool, between: str
) -> None:
    text = between.join(map(json.dumps, rows)) + (between if ends else "")
    found = list(Source("x", io.BytesIO(text.encode())).documents())
    assert all(isinstance(each, Document) for each in found)
    assert [json.loads(bytes(each.data)) for each in found if isinstance(each, Document)] == rows
    step = between.count("\n")
    assert [each.line for each in found] == [1 + step * index for index in range(len(rows))]


@given(LINES, st.sampled_from([None, 1]))
def test_the_items_of_an_array_are_numbered(rows: list[dict[str, int]], indent: int | None) -> None:
    text = json.dumps(rows, indent=indent)
    found = list(Source("x", io.BytesIO(text.encode())).documents())
    assert [json.loads(bytes(each.data)) for each in found if isinstance(each, Document)] == rows
    assert [each.line for each in found] == list(range(1, len(rows) + 1))


@pytest.mark.parametrize("size", [1 << 18, (1 << 18) + 1, (1 << 20) - 1, (1 << 20) + 5, 3 << 20])
def test_a_long_line_is_whole_wherever_a_read_ends(size: int) -> None:
    """Lines longer than the head, and than the piece that is read at once."""
    rows = [b'"' + b"a" * size + b'"', b"{}", b'"' + b"b" * size + b'"']
    source = Source("x", io.BytesIO(b"\n".join(rows)))
    found = [line for _, line in source.lines()]
    assert not any(isinstance(line, Skipped) for line in found)
    assert [bytes(line).strip() for line in found if isinstance(line, bytes)] == rows
