"""Parts of a report as plain text, where nothing has to be fitted: their lines, without rich.

They are those that rich writes, to the character. What it alone does is left to it: columns that are
wider than the page, and characters of another width than one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from ctxdoc.outputs.columns import GAP, LABEL_WIDTH, Column, column_of, shown_columns
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import Fields, Headline, Notes, Part, Row, Snippet, Table

NARROW = re.compile(
    "[\\n\u0020-\u007e\u00a0-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u2193\u21e5\u23ce\u240d]*"
)
"""Text whose every character is one column wide: Latin letters, dashes, quotes, arrows, signs of line ends."""
LEAST_WIDTH = 40
"""Columns below which everything has to be fitted."""
MAX_CUT = 17
"""Characters of a snippet that are cut off at most; of a longer one rich takes its labels away too."""
WORD = re.compile(r"\s*\S+\s*")


class _UnfitError(Exception):
    """A part that has to be fitted."""


def plain_lines(part: Part, width: int) -> list[str] | None:
    """The lines of a part; None where it has to be fitted."""
    if width < LEAST_WIDTH:
        return None
    try:
        return [line.rstrip() for line in _lines(part, width)]
    except _UnfitError:
        return None


def _lines(part: Part, width: int) -> Iterator[str]:
    match part:
        case Headline():
            yield from _wrapped(f"{part.word}  {_said(part.text)}", width)
            if part.under:
                yield from _wrapped(_said(part.under), width)
            yield ""
        case Fields():
            yield from _field_lines(part, width)
            yield ""
        case Snippet():
            yield from _snippet_lines(part, width)
            yield ""
        case Table():
            yield from _table_lines(part, width)
            yield ""
        case Notes():
            if part.title:
                yield from _wrapped(_said(part.title), width)
            for text in part.lines:
                yield from _indented(_wrapped(_said(text), width - 2), 2)
            yield ""


def _said(text: str) -> str:
    """A text of a report, harmless for a terminal; raises _UnfitError for one of uneven width."""
    said = harmless(text)
    if not said.isascii() and not NARROW.fullmatch(said):
        raise _UnfitError
    return said


def _one_line(text: str, width: int) -> str:
    said = _said(text)
    if "\n" in said or len(said) > width:
        raise _UnfitError
    return said


def _indented(lines: Sequence[str], count: int) -> Iterator[str]:
    return (" " * count + line for line in lines)


def _field_lines(part: Fields, width: int) -> Iterator[str]:
    label_width = max([LABEL_WIDTH, *(len(row.label) for row in part.rows)])
    for is_command, rows in groupby(part.rows, key=lambda row: row.is_command):
        for row in rows:
            if is_command:
                yield from harmless(f"{row.label:{label_width}}    {row.text}").split("\n")
            else:
                yield from _row_lines(row, label_width, width - label_width - 1)


def _row_lines(row: Row, label_width: int, width: int) -> Iterator[str]:
    if width < LABEL_WIDTH:
        raise _UnfitError
    label = _one_line(row.label, label_width)
    first, *more = _wrapped(_said(row.text), width)
    yield f"{label:{label_width}} {first}"
    yield from _indented(more, label_width + 1)


def _snippet_lines(part: Snippet, width: int) -> Iterator[str]:
    """Two texts one above the other: what does not fit is cut off, so that they stay so."""
    indent = LABEL_WIDTH + 1
    rows = [("before", part.before), ("after", part.after)]
    if "(not there)" not in (part.before, part.after):
        rows.append(("", " " * part.mark + "^"))
    for label, text in rows:
        yield f"{label:{LABEL_WIDTH}} {_one_line(text, width - indent + MAX_CUT)}"[:width]


def _table_lines(part: Table, width: int) -> Iterator[str]:
    indent = 2 if part.title else LABEL_WIDTH + 1
    columns = [column_of(part, index) for index in range(len(part.columns))]
    # Which of the columns stay is a question of the width.
    if len(shown_columns(columns, part.optional, width - indent)) < len(columns):
        raise _UnfitError
    if part.title:
        yield from _wrapped(_said(part.title), width)
    cells = [[_one_line(cell, width) for cell in row] for row in (part.columns, *part.rows)]
    widths = [
        max(column.least, *map(len, texts)) for column, *texts in zip(columns, *cells, strict=True)
    ]
    if not widths or sum(widths) + GAP * len(widths) > width - indent:
        raise _UnfitError
    for row in cells:
        yield " " * indent + _aligned(columns, row, widths)


def _aligned(columns: Sequence[Column], row: Sequence[str], widths: Sequence[int]) -> str:
    """The cells of a row: numbers to the right, words to the left."""
    cells = [
        text.rstrip().rjust(size) if column.numeric else text.ljust(size)
        for column, text, size in zip(columns, row, widths, strict=True)
    ]
    return (" " * GAP).join(cells)


def _wrapped(text: str, width: int) -> list[str]:
    """A text in lines of a width, broken between words; a longer word is broken where the width ends."""
    return [piece for line in text.split("\n") for piece in _pieces(line, width)]


def _pieces(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    ends: list[int] = []
    used = 0
    for word in WORD.finditer(line):
        start, size = word.start(), len(word[0].rstrip())
        if used + size <= width:
            used += len(word[0])
        elif size <= width:
            # What does not fit goes to a line of its own, whole.
            ends.append(start)
            used = len(word[0])
        else:
            starts = range(start, word.end(), width)
            ends += starts
            used = word.end() - starts[-1]
    bounds = [0, *filter(None, ends), len(line)]
    return [line[one:two] for one, two in pairwise(bounds)]
