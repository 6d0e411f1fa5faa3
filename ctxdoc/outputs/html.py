"""The report as one HTML file: no network, no scripts, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from ctxdoc.outputs.base import Output, Style
from ctxdoc.outputs.plot import GRID, INK, PAPER, write_picture
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import (
    Chart,
    Curves,
    Fields,
    Headline,
    Heat,
    Notes,
    Part,
    Picture,
    Records,
    Report,
    Row,
    Snippet,
    Table,
)

MOST_ROWS = 1000
"""Requests that the page lists."""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --dim: #5b6470;
  --line: #d5d9df; --good: #1a7f37; --bad: #cf222e; --warn: #9a6700; --plain: #0969da; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6e9ed; --paper: #14171a; --dim: #9aa4b0;
  --line: #333a42; --good: #56d364; --bad: #ff7b72; --warn: #e3b341; --plain: #79c0ff; }} }}
body {{ font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.3rem; }} h1 b {{ margin-right: .6rem; }} h2 {{ font-size: 1.05rem; margin-top: 2rem; }}
.good {{ color: var(--good); }} .bad {{ color: var(--bad); }} .warn {{ color: var(--warn); }}
.plain {{ color: var(--plain); }} .dim, th, dt {{ color: var(--dim); }}
dl {{ display: grid; grid-template-columns: 6rem 1fr; gap: .2rem 1rem; }} dd {{ margin: 0; }}
dd, td, li, p {{ overflow-wrap: anywhere; }} .strong {{ font-weight: 600; }}
td {{ white-space: nowrap; }} td:last-child {{ white-space: normal; min-width: 12rem; }}
.wide {{ overflow-x: auto; }} table {{ border-collapse: collapse; font-size: .9rem; }}
th, td {{ text-align: left; padding: .2rem .9rem .2rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }} td.n, th.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
pre {{ overflow-x: auto; padding: .6rem; border: 1px solid var(--line); }}
svg {{ width: 100%; height: auto; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def _write(report: Report, style: Style) -> str:
    del style
    parts = report.parts
    lines = [line for part in parts for line in _lines(part)]
    records = report.records
    if records is not None:
        lines += _rows(records)
    head = next((part for part in parts if isinstance(part, Headline)), None)
    title = f"ctxdoc: {head.text}" if head else "ctxdoc"
    return PAGE.format(title=_text(title), body="\n".join(lines))


def _text(text: str) -> str:
    return escape(harmless(text))


def _lines(part: Part) -> Iterator[str]:
    match part:
        case Headline():
            yield f'<h1><b class="{part.tone}">{_text(part.word)}</b>{_text(part.text)}</h1>'
            yield from _paragraph(part.under)
        case Fields():
            yield from ("<dl>", *map(_field, part.rows), "</dl>")
        case Snippet():
            yield f"<pre>- {_text(part.before)}\n+ {_text(part.after)}</pre>"
        case Table():
            yield from _title(part.title)
            yield from _table(part.columns, part.rows)
        case Notes():
            yield from _title(part.title)
            yield from ("<ul>", *map(_item, part.lines), "</ul>")
        case Chart() | Curves() | Heat():
            yield from (*_title(part.title), _drawing(part))


def _paragraph(text: str) -> list[str]:
    return [f'<p class="dim">{_text(text)}</p>'] if text else []


def _title(title: str) -> list[str]:
    return [f"<h2>{_text(title)}</h2>"] if title else []


def _field(row: Row) -> str:
    strong = ' class="strong"' if row.strong else ""
    text = f"<code>{_text(row.text)}</code>" if row.is_command else _text(row.text)
    return f"<dt>{_text(row.label)}</dt><dd{strong}>{text}</dd>"


def _item(line: str) -> str:
    return f"<li>{_text(line)}</li>"


def _table(columns: tuple[str, ...], rows: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    marks = [' class="n"' if _is_numeric(index, rows) else "" for index in range(len(columns))]
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f"<th{m}>{_text(c)}</th>" for m, c in zip(marks, columns, strict=True))
    yield "</tr></thead><tbody>"
    for row in rows:
        cells = zip(marks, row, strict=True)
        yield "<tr>" + "".join(f"<td{m}>{_text(cell)}</td>" for m, cell in cells) + "</tr>"
    yield "</tbody></table></div>"


def _is_numeric(index: int, rows: tuple[tuple[str, ...], ...]) -> bool:
    """Whether a column holds numbers, or nothing: then its figures stand below each other."""
    return bool(rows) and all(re.match(r"[-+]?[<$]?\d|-$|$", row[index]) for row in rows)


def _rows(records: Records) -> Iterator[str]:
    """Every request, folded away."""
    shown = records.rows[:MOST_ROWS]
    left = len(records.rows) - len(shown)
    more = (
        f" (the first {MOST_ROWS:,} of {len(records.rows):,}; --format csv has all)" if left else ""
    )
    yield f"<details><summary>Requests{more}</summary>"
    cells = tuple(tuple("" if cell is None else str(cell) for cell in row) for row in shown)
    yield from _table(records.columns, cells)
    yield "</details>"


def _drawing(chart: Picture) -> str:
    """The picture inside of the page, in the page's own colours."""
    drawn = write_picture(chart, "svg").decode()
    drawn = drawn[drawn.index("<svg") :]
    for color, name in ((INK, "--ink"), (GRID, "--line"), (PAPER, "--paper")):
        drawn = drawn.replace(color, f"var({name})")
    return f'<figure role="img" aria-label="{_text(chart.title)}">{drawn}</figure>'


OUTPUT = Output(id="html", title="one file for a browser, with the chart", write=_write)
