"""Columns of a table for a terminal: how wide each has to be, and which are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ctxdoc.outputs.report import Table

LONG_WORD = 24
"""Characters of a word from which on it is broken."""
LABEL_WIDTH = 8
"""Characters of a label at least."""
GAP = 2
"""Blanks between two columns."""


class Column(NamedTuple):
    """A column, as its cells are."""

    title: str
    numeric: bool
    least: int
    """Characters without which it cannot be read."""


def column_of(part: Table, index: int) -> Column:
    """A column of a table by its index."""
    cells = [row[index] for row in part.rows]
    numeric = all(cell.lstrip("+-<$")[:1].isdigit() or cell in ("-", "none") for cell in cells)
    title = part.columns[index]
    if numeric:
        return Column(title, True, max(map(len, [title, *cells])))
    words = [word for cell in cells for word in cell.split()]
    return Column(title, False, min(LONG_WORD, max(map(len, [title, *words]))))


def shown_columns(columns: Sequence[Column], optional: Sequence[int], width: int) -> list[int]:
    """The indexes of the columns that fit; optional ones go, the first of them first."""
    shown = list(range(len(columns)))
    for index in optional:
        if least_width(columns, shown) <= width:
            break
        shown.remove(index)
    return shown


def least_width(columns: Sequence[Column], shown: Sequence[int]) -> int:
    """Characters without which some columns cannot be read."""
    return sum(columns[index].least + GAP for index in shown)
