"""Text that a client, a gateway or a program puts into a prompt and takes out again: blocks and wrapped
pieces that came, went or stand elsewhere, in messages and in the system prompt."""

from __future__ import annotations

from msgspec import Struct

from ctxdoc.diagnosis.case import Case
from ctxdoc.diagnosis.changed_text import find_inserted_kind
from ctxdoc.diagnosis.history_edits import (
    INJECTED,
    LIFTED,
    asks_anew,
    history_blocks,
    message_blocks,
    text_of,
)
from ctxdoc.diagnosis.text_values import changed_span
from ctxdoc.prompt.diff import Change
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.request import codec
from ctxdoc.request.request import Section

ELSEWHERE = "stands in another message now"
MISSING = "is missing now"
PUT_IN = "was put in afterwards"
OPENERS = ("<", "[", "#")
SWALLOWED = 2
"""Characters of an opening bracket and a blank that the equal start of two texts may take."""


class Moved(Struct, frozen=True):
    """A text that is at another place, or a picture."""

    pointer: str
    what: str
    text: str = ""


def injected_difference(case: Case) -> Moved | None:
    """A text block that a message gained or lost, or a wrapped text inside of one."""
    change = case.message_change
    if change is None or asks_anew(case):
        return None
    before, after = message_blocks(case.before, change), message_blocks(case.after, change)
    # Clients put their reminders into messages of the user.
    if not _are_users([*before, *after]):
        return None
    sole = _sole_blocks(before, after)
    if sole:
        return _injected_block(case, change, sole[0], kept=_share_blocks(before, after))
    if _in_another_order(before, after) and before[0].kind == "text":
        return Moved(change.difference.pointer, "stands in another order", text_of(before[0]))
    return _wrapped_text(case, change)


def _are_users(blocks: list[Segment]) -> bool:
    return bool(blocks) and blocks[0].role == "user"


def _sole_blocks(before: list[Segment], after: list[Segment]) -> list[Segment]:
    """The blocks that only one side of a message has, where the other has none of its own."""
    lost, gained = _one_sided_blocks(before, after)
    # A message that is there on one side only is no block that was put into one.
    if not before or not after or (lost and gained):
        return []
    return lost or gained


def _injected_block(case: Case, change: Change, block: Segment, *, kept: bool) -> Moved | None:
    """A text beside which the message has kept others; a message without any is another message."""
    if block.kind != "text" or not kept:
        return None
    return Moved(change.difference.pointer, _whereabouts(case, block), text_of(block))


def _one_sided_blocks(
    before: list[Segment], after: list[Segment]
) -> tuple[list[Segment], list[Segment]]:
    """The blocks that went, and those that came."""
    one, two = {s.digest for s in before}, {s.digest for s in after}
    return [s for s in before if s.digest not in two], [s for s in after if s.digest not in one]


def _share_blocks(before: list[Segment], after: list[Segment]) -> bool:
    return not {s.digest for s in before}.isdisjoint(s.digest for s in after)


def _in_another_order(before: list[Segment], after: list[Segment]) -> bool:
    one, two = [s.digest for s in before], [s.digest for s in after]
    return one != two and sorted(one) == sorted(two)


def _whereabouts(case: Case, segment: Segment) -> str:
    if any(s.digest == segment.digest for s in history_blocks(case.after.prefix)):
        return ELSEWHERE
    return MISSING if segment in history_blocks(case.before.prefix) else PUT_IN


def _wrapped_text(case: Case, change: Change) -> Moved | None:
    """A wrapped piece of a text that only one side of it has."""
    texts = _texts_of(change)
    if texts is None:
        return None
    start, end_before, end_after = changed_span(*texts)
    piece = texts[0][start:end_before] or texts[1][start:end_after]
    if start not in (end_before, end_after) or not _is_wrapping(texts, piece):
        return None
    what = MISSING if end_before > start else PUT_IN
    if _is_in_messages(case, piece.strip()):
        what = ELSEWHERE
    return Moved(change.difference.pointer, what, piece.strip())


def _is_wrapping(texts: tuple[str, str], piece: str) -> bool:
    return INJECTED.fullmatch(_widened(texts[0] or texts[1], piece)) is not None


def _is_in_messages(case: Case, piece: str) -> bool:
    """Whether a text of the later messages holds a piece."""
    return bool(piece) and any(piece in text_of(s) for s in history_blocks(case.after.prefix))


def _texts_of(change: Change) -> tuple[str, str] | None:
    """Both sides of a changed text; None where one of them is no text."""
    match change.difference.before, change.difference.after:
        case str(before), str(after):
            return before, after
        case _:
            return None


def _widened(text: str, piece: str) -> str:
    """A removed piece from its opening bracket on: the common start may have swallowed it."""
    if not piece.rstrip().endswith((">", "]")):
        return piece
    at = max(0, text.find(piece))
    opened = (text.rfind(each, 0, at) for each in OPENERS if not piece.startswith(each))
    start = next((each for each in opened if each >= max(0, at - SWALLOWED)), at)
    return text[start:at] + piece


def system_blocks(prefix: Prefix) -> list[Segment]:
    """The blocks of the system prompt."""
    return [s for s in prefix.segments if s.section is Section.SYSTEM]


def came_or_went(case: Case) -> Moved | None:
    """System blocks that stand on one side only, all others being equal and in their order."""
    change = system_change(case)
    if change is None:
        return None
    before, after = system_blocks(case.before.prefix), system_blocks(case.after.prefix)
    lost, gained = _one_sided_blocks(before, after)
    if bool(lost) == bool(gained):
        return None
    moved = lost or gained
    if _others(before, moved) != _others(after, moved):
        return None
    what = "gained the block" if gained else "lost the block"
    return Moved(change.difference.pointer, what, "\n".join(map(text_of, moved)))


def _others(blocks: list[Segment], moved: list[Segment]) -> list[bytes]:
    """All blocks but those that moved, in their order."""
    gone = {segment.digest for segment in moved}
    return [segment.digest for segment in blocks if segment.digest not in gone]


def system_change(case: Case) -> Change | None:
    """The first difference in the system prompt."""
    return next((c for c in case.changes if c.difference.section is Section.SYSTEM), None)


def injected_system_text(case: Case) -> Moved | None:
    """Wrapped text, or text of the messages, that came into the system prompt or left it."""
    change, block = system_change(case), came_or_went(case)
    if change is None:
        return None
    text, came = _one_sided(change) if block is None else (block.text, "gained" in block.what)
    text = text.strip()
    if _is_lifted(case, text):
        what = "stands in the system prompt now" if came else "left the system prompt"
    elif _is_wrapped(text, alone=block is not None):
        what = PUT_IN if came else MISSING
    else:
        return None
    return Moved(change.difference.pointer, what, text)


def _is_lifted(case: Case, text: str) -> bool:
    """Whether a gateway took a text out of the messages: it stands there on the other side."""
    return len(text) >= LIFTED and any(_holds(e.prefix, text) for e in (case.before, case.after))


def _is_wrapped(text: str, *, alone: bool) -> bool:
    """Whether a client wrapped a text and it is no value, such as a time, that changes by itself."""
    # In a prompt of one text a heading opens a section of it, and no block of its own.
    if not text or not INJECTED.fullmatch(text) or (text.startswith("#") and not alone):
        return False
    return find_inserted_kind("", text) is None


def _one_sided(change: Change) -> tuple[str, bool]:
    """The text that one side of a changed text has more, and whether it came; empty where both
    sides have another."""
    texts = _texts_of(change)
    if texts is None:
        return "", False
    before, after = texts
    start, end_before, end_after = changed_span(before, after)
    if start == end_before:
        return _widened(after, after[start:end_after]), True
    if start == end_after:
        return _widened(before, before[start:end_before]), False
    return "", False


def _holds(prefix: Prefix, text: str) -> bool:
    """Whether a block of the messages holds a text."""
    # Segments are kept as written: the text is spelled as JSON once, and no block is decoded.
    inner = codec.encode(text)[1:-1]
    return any(s.size > len(inner) and inner in s.data for s in history_blocks(prefix))
