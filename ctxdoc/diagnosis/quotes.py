"""Quotes of a conversation: whether one text of a later request holds messages of an earlier one."""

from __future__ import annotations

from ctxdoc.diagnosis.case import Case
from ctxdoc.diagnosis.history_edits import LIFTED, SHORT, history_blocks, text_of
from ctxdoc.prompt.diff import common_length
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.request import codec
from ctxdoc.request.codec import Json

QUOTED_MESSAGES = 3
QUOTED_ROW = 500
"""A call quotes a conversation from so many whole messages, or characters in a row, on."""
MAX_QUOTE = 200_000
"""Characters of a text in which quotes are looked for."""
MAX_PIECES = 64
"""Pieces of a conversation that are looked for."""


def quoted_history(case: Case) -> int | None:
    """Whole messages of the earlier request that one text of the later one quotes; 0 where it is no
    more than a long row of characters, None where neither."""
    text = _longest_text(case.after.prefix)
    if not text:
        return None
    pieces = _pieces(case.before.prefix)
    quotes = [_quote_in(text, piece) for piece in pieces]
    whole = sum(quote is not None for quote in quotes)
    if whole >= QUOTED_MESSAGES:
        # Short ones may stand there by chance, three of them do not.
        return whole
    pairs = zip(pieces, quotes, strict=True)
    return 0 if any(_is_quoted_at_length(text, *pair) for pair in pairs) else None


def _longest_text(prefix: Prefix) -> str:
    """The longest text of the user's side, as far as quotes are looked for; empty where it is short."""
    texts = [s for s in history_blocks(prefix) if s.kind == "text" and s.role == "user"]
    longest = max(texts, key=lambda s: s.size, default=None)
    # Bytes are asked before the text is made: most requests have no text of that length.
    if longest is None or longest.size < QUOTED_ROW:
        return ""
    return text_of(longest)[:MAX_QUOTE]


def _is_quoted_at_length(text: str, piece: str, quote: str | None) -> bool:
    """Whether a text holds a long piece, or a long row of one that it does not hold as a whole."""
    return len(quote) >= QUOTED_ROW if quote is not None else _has_row(piece, text)


def _quote_in(text: str, piece: str) -> str | None:
    """A piece as a text quotes it: as it is, or written as JSON; None where it does not."""
    written = codec.encode(piece)[1:-1].decode()
    return next((form for form in (piece, written) if form in text), None)


def _pieces(prefix: Prefix) -> list[str]:
    """The texts of the newest messages that are too long to be said by chance."""
    blocks = [s for s in history_blocks(prefix) if s.size > SHORT][-MAX_PIECES:]
    found = (_said(s.value)[:MAX_QUOTE] for s in blocks)
    return [text for text in found if len(text) >= LIFTED]


def _said(value: Json) -> str:
    """What a text block or a tool result says."""
    match value:
        case {"type": "text", "text": str(text)} | {"type": "tool_result", "content": str(text)}:
            return text
        case _:
            return ""


def _has_row(piece: str, text: str) -> bool:
    """Whether a text holds a long row of a piece: each such row covers one of these stretches."""
    step = QUOTED_ROW // 2
    for start in range(0, min(len(piece) - step, 8 * step), step):
        at = text.find(piece[start : start + step])
        if at < 0:
            continue
        behind = common_length(piece[start:], text[at : at + QUOTED_ROW])
        ahead = common_length(piece[:start][::-1][:step], text[:at][::-1][:step])
        if ahead + behind >= QUOTED_ROW:
            return True
    return False
