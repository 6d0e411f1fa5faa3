"""The report as Markdown, for an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxdoc.outputs.base import Output, Style
from ctxdoc.outputs.printable import harmless
from ctxdoc.outputs.report import (
    Chart,
    Curves,
    Fields,
    Headline,
    Heat,
    Notes,
    Part,
    Report,
    Row,
    Snippet,
    Table,
)


def _write(report: Report, style: Style) -> str:
    del style
    return "\n".join(line for part in report.parts for line in _lines(part)).strip() + "\n"


def _lines(part: Part) -> Iterator[str]:
    match part:
        case Headline():
            yield f"**{part.word}** {_escaped(part.text)}"
            yield from _written("\n{}", part.under)
        case Fields():
            yield from map(_field, part.rows)
        case Snippet():
            yield from _snippet(part)
        case Table():
            yield from _written("### {}\n", part.title)
            yield from map(_row, (part.columns, ("---",) * len(part.columns), *part.rows))
        case Notes():
            yield from _written("**{}**\n", part.title)
            yield from map(_item, part.lines)
        case Chart() | Curves() | Heat():
            # An issue shows no file of its own; --plot draws one.
            return
    yield ""


def _written(form: str, text: str) -> Iterator[str]:
    """A text in its form; nothing where there is none, which a form alone would not be."""
    if text:
        yield form.format(_escaped(text))


def _item(line: str) -> str:
    return f"- {_escaped(line)}"


def _field(row: Row) -> str:
    text = _code(row.text) if row.is_command else _escaped(row.text)
    # A row without a label goes on with the item above it.
    return f"- **{row.label}:** {text}" if row.label else f"  {text}"


def _snippet(part: Snippet) -> Iterator[str]:
    # A fence is longer than any run of backticks inside, so that no text of a log ends it.
    fence = _fence(part.before + part.after)
    yield from (f"{fence}diff", f"- {harmless(part.before)}", f"+ {harmless(part.after)}", fence)


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_escaped(cell) for cell in cells) + " |"


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_<>|\[\]])", r"\\\1", harmless(text)).replace("\n", " ")


def _fence(text: str, least: int = 3) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _code(text: str) -> str:
    """A command between backticks, so that it is copied as it is."""
    fence = _fence(text, least=1)
    space = " " if "`" in text else ""
    return f"{fence}{space}{harmless(text)}{space}{fence}"


OUTPUT = Output(id="markdown", title="for an issue or a pull request", write=_write)
