"""The report for a terminal; plain text where colour is off."""

from __future__ import annotations

from collections.abc import Sequence

from ctxdoc.outputs.base import Output, Style
from ctxdoc.outputs.plain import plain_lines
from ctxdoc.outputs.report import Part, Report


def _write(report: Report, style: Style) -> str:
    lines = [line for part in report.parts for line in _lines(part, style)]
    return "\n".join(lines) + "\n"


def _lines(part: Part, style: Style) -> Sequence[str]:
    found = None if style.color else plain_lines(part, style.width)
    if found is not None:
        return found
    # Rich takes a fifth of the time of a whole diagnosis to load: most reports need none of it.
    from ctxdoc.outputs.styled import styled_lines

    return styled_lines(part, style)


OUTPUT = Output(id="text", title="for a terminal", write=_write)
