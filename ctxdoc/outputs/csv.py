"""The rows of a report as CSV (RFC 4180), for a spreadsheet or a data frame."""

from __future__ import annotations

import csv
import io
import re

from ctxdoc.errors import InputError
from ctxdoc.outputs.base import Output, Style
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import Cell, Report

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of a text that a spreadsheet would run."""


NUMBER = re.compile(r"-[0-9]+\.[0-9]+", re.ASCII)
"""A number as this program writes it, with a fraction: a name in a log rarely looks so."""


def _write(report: Report, style: Style) -> str:
    del style
    records = report.records
    if records is None:
        raise InputError("this report has no rows", "use --format json")
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(records.columns)
    writer.writerows([_cell(cell) for cell in row] for row in records.rows)
    return stream.getvalue()


def _cell(cell: Cell) -> str | int:
    if cell is None or isinstance(cell, int):
        return "" if cell is None else cell
    text = harmless(cell)
    if NUMBER.fullmatch(text):
        # A number below 0 is no formula, and a program reads it as what it is.
        return text
    return f"'{text}" if text.startswith(FORMULA) else text


OUTPUT = Output(id="csv", title="a row for each request", write=_write)
