"""Parts of a report in rich: in colour, or fitted to a width that they are too wide for."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from itertools import groupby

from rich.console import Console, OverflowMethod
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from ctxdoc.outputs.base import Style
from ctxdoc.outputs.columns import GAP, LABEL_WIDTH, Column, column_of, least_width, shown_columns
from ctxdoc.outputs.numbers import counted
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import (
    Chart,
    Curves,
    Fields,
    Headline,
    Heat,
    Notes,
    Part,
    Snippet,
    Table,
)

TONES = {"good": "bold green", "bad": "bold red", "warn": "bold yellow", "plain": "bold cyan"}
SHORT_WORD = 10
"""Characters that a column of a table has at least, where its words are so long."""


def styled_lines(part: Part, style: Style) -> list[str]:
    """The lines of a part, without blanks at their ends."""
    stream = StringIO()
    console = Console(
        file=stream,
        width=style.width,
        force_terminal=style.color,
        color_system="standard" if style.color else None,
        no_color=not style.color,
        _environ={},
        highlight=False,
        emoji=False,
        markup=False,
    )
    _print(console, part)
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def _print(console: Console, part: Part) -> None:
    match part:
        case Headline():
            console.print(Text.assemble((part.word, TONES[part.tone]), "  ", harmless(part.text)))
            if part.under:
                console.print(_said(part.under, style="dim"), overflow="fold")
            console.print()
        case Fields():
            _print_fields(console, part)
            console.print()
        case Snippet():
            console.print(_snippet(part))
            console.print()
        case Table():
            _print_table(console, part)
        case Notes():
            if part.title:
                console.print(_said(part.title, style="bold"))
            for line in part.lines:
                console.print(Padding(_said(line, overflow="fold"), (0, 0, 0, 2)))
            console.print()
        case Chart() | Curves() | Heat():
            pass


def _said(text: str, style: str = "", overflow: OverflowMethod | None = None) -> Text:
    """A text of a report, harmless for a terminal."""
    return Text(harmless(text), style=style, overflow=overflow)


def _print_fields(console: Console, part: Fields) -> None:
    width = max([LABEL_WIDTH, *(len(row.label) for row in part.rows)])
    for is_command, rows in groupby(part.rows, key=lambda row: row.is_command):
        if is_command:
            for row in rows:
                line = _said(f"{row.label:{width}}    {row.text}")
                console.print(line, no_wrap=True, overflow="ignore", crop=False)
            continue
        grid = RichTable.grid(padding=(0, 1))
        grid.add_column(min_width=width, no_wrap=True)
        grid.add_column(overflow="fold")
        for row in rows:
            grid.add_row(
                _said(row.label, style="dim"), _said(row.text, style="bold" if row.strong else "")
            )
        console.print(grid)


def _snippet(part: Snippet) -> RichTable:
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(min_width=LABEL_WIDTH, no_wrap=True)
    grid.add_column(no_wrap=True, overflow="crop")
    mark = part.mark
    for label, text, color in (("before", part.before, "red"), ("after", part.after, "green")):
        line = _said(text)
        line.stylize(color, mark)
        grid.add_row(Text(label, style="dim"), line)
    if "(not there)" not in (part.before, part.after):
        grid.add_row("", Text(" " * mark + "^", style="bold"))
    return grid


def _print_table(console: Console, part: Table) -> None:
    if part.title:
        console.print(_said(part.title, style="bold"))
    indent = 2 if part.title else LABEL_WIDTH + 1
    columns = [column_of(part, index) for index in range(len(part.columns))]
    shown = shown_columns(columns, part.optional, console.width - indent)
    console.print(Padding(_grid(part, columns, shown, console.width - indent), (0, 0, 0, indent)))
    left = len(columns) - len(shown)
    if left:
        text = f"{counted(left, 'column')} left out at this width; --format csv or json has all"
        console.print(Padding(_said(text, style="dim"), (0, 0, 0, indent)))
    console.print()


def _grid(part: Table, columns: Sequence[Column], shown: Sequence[int], width: int) -> RichTable:
    fits = least_width(columns, shown) <= width
    table = RichTable(box=None, padding=(0, GAP, 0, 0), header_style="dim", show_edge=False)
    for column in (columns[index] for index in shown):
        table.add_column(
            column.title,
            justify="right" if column.numeric else "left",
            overflow="fold",
            # A number broken into lines reads as two: only where nothing else helps.
            no_wrap=column.numeric and fits,
            min_width=column.least if fits else min(column.least, SHORT_WORD),
        )
    for row in part.rows:
        table.add_row(*(_said(row[index]) for index in shown))
    return table
