"""Explanations with their pieces of request text in quotes, or without them."""

from __future__ import annotations

import re

from ctxdoc.diagnosis.evidence import QUOTED
from ctxdoc.outputs.printable import one_line


def said(explanation: str, excerpts: bool) -> str:
    """An explanation with its pieces of request text in quotes, or without them."""
    explanation = one_line(explanation)
    if excerpts:
        return explanation.replace(QUOTED[0], "'").replace(QUOTED[1], "'")
    return re.sub(f"{QUOTED[0]}.*?{QUOTED[1]}", "(text left out)", explanation, flags=re.DOTALL)
