"""Short pieces of text around a difference, with invisible characters made visible."""

from __future__ import annotations

from ctxdoc.outputs.printable import visible
from ctxdoc.outputs.report import Snippet
from ctxdoc.prompt.diff import Difference, first_difference
from ctxdoc.request import codec
from ctxdoc.request.codec import Json

BEFORE = 28
"""Characters shown before the first difference."""
AFTER = 44


def snippet_of(difference: Difference) -> Snippet:
    """Both sides around the first differing character."""
    before, after = _text(difference.before), _text(difference.after)
    byte = difference.byte
    if byte is None:
        byte = first_difference(before.encode(), after.encode()) or 0
    at = len(before.encode()[:byte].decode("utf-8", "ignore"))
    start = max(0, at - BEFORE)
    lead = ("…" if start else "") + visible(before[start:at])
    return Snippet(
        label=difference.pointer,
        before=lead + _tail(before, at) if difference.before is not None else "(not there)",
        after=lead + _tail(after, at) if difference.after is not None else "(not there)",
        mark=len(lead),
    )


def excerpt(value: Json, byte: int | None) -> str | None:
    """One side as plain text around a byte, or None where there is nothing."""
    if value is None:
        return None
    text = _text(value)
    at = len(text.encode()[: byte or 0].decode("utf-8", "ignore"))
    return text[max(0, at - BEFORE) : at + AFTER]


def _tail(text: str, at: int) -> str:
    rest = text[at : at + AFTER]
    shown = visible(rest)
    if rest[:1] == " ":
        shown = "␠" + shown[1:]
    if not rest:
        return "(ends here)"
    return shown + ("…" if at + AFTER < len(text) else "")


def _text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else codec.encode(value).decode()
