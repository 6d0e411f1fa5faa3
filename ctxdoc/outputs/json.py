"""The report's data as JSON, indented, keys in their fixed order."""

from __future__ import annotations

import msgspec

from ctxdoc import canonical
from ctxdoc.outputs.base import Output, Style
from ctxdoc.reports import Report


def _write(report: Report, style: Style) -> str:
    del style
    return msgspec.json.format(canonical.encode(report.data), indent=2).decode() + "\n"


OUTPUT = Output(id="json", title="the versioned JSON document", write=_write)
