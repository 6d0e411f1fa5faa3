"""Rows for data frames: flat dicts of plain values, made from the documents and tables of the reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TypeAlias

from ctxdoc.outputs.report import Records
from ctxdoc.request.codec import Json

Scalar: TypeAlias = str | int | float | bool | datetime | None
Row: TypeAlias = dict[str, Scalar]

NUMBERS = frozenset(("cost", "percent"))
"""Words in the names of values that a document spells as decimal strings."""
TRUTHS = {"true": True, "false": False, "none": None}
"""As tables spell them."""


def rows_of(items: Iterable[Mapping[str, Json]]) -> list[Row]:
    """The objects of a document as rows; an object inside of one is spread, a list of texts is joined, and a
    list of objects stays in the document."""
    found = [dict(_cells(item)) for item in items]
    # A frame, and a CSV, want every key in every row.
    names = dict.fromkeys(name for row in found for name in row)
    return [{name: row.get(name) for name in names} for row in found]


def named(cause: Mapping[str, Json]) -> dict[str, Json]:
    """A cause of a document, its id called as in all tables."""
    return {"cause" if name == "id" else name: value for name, value in cause.items()}


def rows_of_records(records: Records | None) -> list[Row]:
    """A table for other programs as rows."""
    if records is None:
        return []
    return [
        {name: _value(name, cell) for name, cell in zip(records.columns, row, strict=True)}
        for row in records.rows
    ]


def _cells(item: Mapping[str, Json], ahead: str = "") -> Iterator[tuple[str, Scalar]]:
    for name, value in item.items():
        match value:
            case dict():
                yield from _cells(value, f"{ahead}{name}_")
            case list():
                if not any(isinstance(each, dict) for each in value):
                    yield ahead + name, "; ".join(map(str, value))
            case _:
                yield ahead + name, _value(name, value)


def _value(name: str, value: Json) -> Scalar:
    """A cell in its own type: a frame sums numbers and sorts times, and neither as text."""
    if not isinstance(value, str):
        return value if isinstance(value, int) else None
    if name == "at":
        return datetime.fromisoformat(value)
    if NUMBERS.intersection(name.split("_")):
        return float(value)
    return TRUTHS.get(value, value) if name in ("avoidable", "fits_window") else value
