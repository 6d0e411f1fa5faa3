"""The report's data as JSON, indented, keys in their fixed order."""

from __future__ import annotations

import re

import msgspec

from ctxdoc.outputs.base import Output, Style
from ctxdoc.outputs.report import Report
from ctxdoc.request import codec

STEERING = re.compile("[\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
"""Characters that a terminal acts on and that JSON may hold as they are."""


def _write(report: Report, style: Style) -> str:
    del style
    # The line end goes to the bytes, and those at once: a long document would be held three times.
    text = (msgspec.json.format(codec.encode(report.data), indent=2) + b"\n").decode()
    # The one of them in ASCII: most documents are plain ASCII, and some are long.
    if text.isascii() and "\x7f" not in text:
        return text
    return STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


OUTPUT = Output(id="json", title="the versioned JSON document", write=_write)
