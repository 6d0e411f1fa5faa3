"""A stand-in for pandas, which is no dependency: a DataFrame that takes what pandas takes as it is, and nothing
else."""

from __future__ import annotations

from datetime import datetime

SCALARS = (str, int, float, bool, datetime, type(None))


class DataFrame:
    """A frame of a list of flat dicts.

    Raises TypeError for rows that pandas would take in another way: other keys in one of them, or a cell that
    holds several values.
    """

    def __init__(self, rows: list[dict[str, object]]) -> None:
        if not isinstance(rows, list):
            raise TypeError(f"rows are a {type(rows).__name__}, not a list")
        self.columns = list(rows[0]) if rows else []
        for row in rows:
            if type(row) is not dict or list(row) != self.columns:
                raise TypeError(f"a row has other keys: {row}")
            for name, cell in row.items():
                if not isinstance(name, str) or not isinstance(cell, SCALARS):
                    raise TypeError(f"'{name}' is a {type(cell).__name__}")
        self.shape = (len(rows), len(self.columns))
