"""Questions about the messages of a case: what of the history is still there, and where."""

from __future__ import annotations

import re
from typing import NamedTuple

from msgspec import Struct

from ctxdoc.diagnosis.case import Case
from ctxdoc.diagnosis.changed_text import find_inserted_kind, similarity
from ctxdoc.diagnosis.text_values import changed_span, compiled
from ctxdoc.prompt.diff import Change, common_length
from ctxdoc.prompt.messages_form import THINKING_KINDS
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.replay.measure import MeasuredRequest
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Section

SHORT = 80
"""Bytes up to which a message may be the same by chance, such as 'go on'."""
SUMMARY = (
    r"^\W*(?:\w+\W+){0,6}?(?:summary|recap|zusammenfassung|résumé|resumen|riassunto|摘要|总结|要約)\b|"
    r"summar(?:y|ies|ized) (?:of|so far)|\bcompacted\b|condensed (?:history|conversation)|"
    r"conversation so far|being continued from|previous conversation|"
    r"earlier (?:conversation|messages) (?:was|were|have been)|so far:"
)
"""What a text that stands for a history says of itself."""
INJECTED = re.compile(r"\s*(?:<[\w:-]+[^>]*>.*</[\w:-]+>|\[[^\]]+\].*|#+ .*)\s*", re.DOTALL)
"""Text that a client wraps into a message: a tag, a bracket, a heading."""
LIFTED = 16
"""Characters from which on a text that stands elsewhere too is no chance."""
QUOTED_MESSAGES = 3
QUOTED_ROW = 500
"""A call quotes a conversation from so many whole messages, or characters in a row, on."""
MAX_QUOTE = 200_000
"""Characters of a text in which quotes are looked for."""
MAX_PIECES = 64
"""Pieces of a conversation that are looked for."""
SIMILAR_ANSWER = 0.5
THINKING = r"\bthinking\b"
BOUND = (
    r"\bbound to\b|\bbinding\b|block_binding|prefix_mismatch|different (?:conversation|prefix|prompt)|"
    r"differs from when|prefix (?:does not|doesn't|did not) match|(?:prefix|prompt) (?:was |has )?changed"
)
"""What the API says of a thinking block whose prompt was changed (preserved-thinking page, 2026-10-08)."""


class Moved(Struct, frozen=True):
    """A text that is at another place, or a picture."""

    pointer: str
    what: str
    text: str = ""


def message_blocks(exchange: MeasuredRequest, change: Change) -> list[Segment]:
    """The blocks of the message in which a change lies."""
    segment = change.before or change.after
    index = segment.rank[1] if segment else -1
    return [s for s in _history(exchange.prefix) if s.rank[1] == index]


def _history(prefix: Prefix) -> list[Segment]:
    return [s for s in prefix.segments if s.section is Section.MESSAGES and s.is_block]


def message_count(exchange: MeasuredRequest) -> int:
    """Messages of the body."""
    body = exchange.request.body
    return len(body.messages) if body else 0


def _messages(prefix: Prefix) -> list[_Message]:
    found: dict[int, _Message] = {}
    for segment in _history(prefix):
        known = found.get(segment.rank[1], _Message(segment.role.encode(), 0))
        found[segment.rank[1]] = _Message(known.key + segment.digest, known.size + segment.size)
    return list(found.values())


class _Message(NamedTuple):
    """A message by a key of its role and blocks."""

    key: bytes
    size: int
    """Bytes."""


def asks_anew(case: Case, change: Change | None = None) -> bool:
    """Whether the change lies in the last message of the later request, or behind its end: another
    question after the same history, a branch or a rewind."""
    change = change or case.message_change
    segment = (change.before or change.after) if change else None
    if change is None or segment is None:
        return False
    last = message_count(case.after) - 1
    if segment.rank[1] > last:
        return True
    if segment.rank[1] == last - 1 and segment.role == "assistant":
        return _answers_differ(change)
    return segment.rank[1] == last and segment.role == "user" and not looks_like_summary(case)


def _answers_differ(change: Change) -> bool:
    """Whether a reply is another one, and not the same one that was changed."""
    texts = [text_of(s) if s else "" for s in (change.before, change.after)]
    return bool(all(texts)) and similarity(*texts) < SIMILAR_ANSWER


def dropped_messages(case: Case) -> int:
    """How many messages are gone from the place of the first difference on, all later ones kept."""
    change = case.message_change
    if change is None or change.before is None:
        return 0
    before, after = _messages(case.before.prefix), _messages(case.after.prefix)
    start = change.before.rank[1]
    for count in range(1, len(before) - start):
        kept = before[start + count :]
        if after[start : start + len(kept)] == kept and (len(kept) > 1 or kept[0].size > SHORT):
            return count
    return 0


def replaced_by_few(case: Case) -> bool:
    """Whether two or more messages from the first difference on gave way to fewer ones."""
    change = case.message_change
    if change is None or change.before is None or change.after is None:
        return False
    start = change.before.rank[1]
    before, after = (_messages(e.prefix)[start:] for e in (case.before, case.after))
    gone, new = _until_kept(before, after)
    if len(gone) < 2 or not new or asks_anew(case):
        return False
    if looks_like_summary(case):
        return len(new) < len(gone) or len(after) < len(before) + 2
    return len(new) < len(gone) and 2 * _size(new) <= _size(gone)


def _size(messages: list[_Message]) -> int:
    return sum(message.size for message in messages)


def _until_kept(
    before: list[_Message], after: list[_Message]
) -> tuple[list[_Message], list[_Message]]:
    """The messages on both sides ahead of the first that both have."""
    places = {message: index for index, message in reversed(list(enumerate(after)))}
    for index, message in enumerate(before):
        if message in places:
            return before[:index], after[: places[message]]
    return before, after


def looks_like_summary(case: Case) -> bool:
    """Whether the first new text says of itself that it stands for a history."""
    change = case.message_change
    segment = change.after if change else None
    if segment is None:
        return False
    return segment.kind == "compaction" or bool(compiled(SUMMARY).search(text_of(segment)[:1000]))


def injected_difference(case: Case) -> Moved | None:
    """A text block that a message gained or lost, or a wrapped text inside of one."""
    change = case.message_change
    if change is None or asks_anew(case):
        return None
    before, after = message_blocks(case.before, change), message_blocks(case.after, change)
    # Clients put their reminders into messages of the user.
    if next((segment.role for segment in before or after), "") != "user":
        return None
    lost, gained = _one_sided_blocks(before, after)
    if bool(lost) != bool(gained) and before and after:
        return _injected_block(case, change, (lost or gained)[0], kept=_share_blocks(before, after))
    if not lost and before and before[0].kind == "text" and _in_another_order(before, after):
        return Moved(change.place.pointer, "stands in another order", text_of(before[0]))
    return _wrapped_text(case, change)


def _injected_block(case: Case, change: Change, block: Segment, *, kept: bool) -> Moved | None:
    """A text beside which the message has kept others; a message without any is another message."""
    if block.kind != "text" or not kept:
        return None
    return Moved(change.place.pointer, _whereabouts(case, block), text_of(block))


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


def text_of(segment: Segment) -> str:
    """The text of a text block; empty for any other."""
    value = segment.value
    return str(value.get("text", "")) if isinstance(value, dict) else ""


def _whereabouts(case: Case, segment: Segment) -> str:
    if any(s.digest == segment.digest for s in _history(case.after.prefix)):
        return "stands in another message now"
    return "is missing now" if segment in _history(case.before.prefix) else "was put in afterwards"


def _wrapped_text(case: Case, change: Change) -> Moved | None:
    before, after = change.place.before, change.place.after
    if not (isinstance(before, str) and isinstance(after, str)):
        return None
    start, end_before, end_after = changed_span(before, after)
    piece = before[start:end_before] or after[start:end_after]
    one_sided = start in (end_before, end_after)
    if not one_sided or not INJECTED.fullmatch(_widened(before or after, piece)):
        return None
    what = "is missing now" if end_before > start else "was put in afterwards"
    if piece.strip() and any(piece.strip() in text_of(s) for s in _history(case.after.prefix)):
        what = "stands in another message now"
    return Moved(change.place.pointer, what, piece.strip())


def _widened(text: str, piece: str) -> str:
    """A removed piece from its opening bracket on: the common start may have swallowed it."""
    for opener in ("<", "[", "#"):
        if opener in text and piece.rstrip().endswith((">", "]")) and opener not in piece[:1]:
            at = text.find(piece)
            start = text.rfind(opener, 0, at) if at > 0 else -1
            if start >= 0 and at - start <= 2:
                return text[start:at] + piece
    return piece


def system_blocks(prefix: Prefix) -> list[Segment]:
    """The blocks of the system prompt."""
    return [s for s in prefix.segments if s.section is Section.SYSTEM]


def gives_back_answer(case: Case) -> bool:
    """Whether the later request has an answer where the messages of the earlier one end, and goes on."""
    body = case.before.request.body
    index = len(body.messages) if body is not None else -1
    answer = any(s.rank[1] == index and s.role == "assistant" for s in _history(case.after.prefix))
    return answer and message_count(case.after) > index + 1


def is_continued(case: Case) -> bool:
    """Whether the later request holds the conversation of the earlier one: its first message, or a
    block that is too long to be there by chance."""
    before, after = _history(case.before.prefix), _history(case.after.prefix)
    if not before or not after:
        return False
    change = case.message_change
    segment = (change.before or change.after) if change else None
    if segment is None or segment.rank[1] > 0:
        return True
    known = {s.digest for s in before if s.size > SHORT}
    return any(s.digest in known for s in after)


def came_or_went(case: Case) -> Moved | None:
    """System blocks that stand on one side only, all others being equal and in their order."""
    change = system_change(case)
    if change is None:
        return None
    before, after = system_blocks(case.before.prefix), system_blocks(case.after.prefix)
    lost, gained = _one_sided_blocks(before, after)
    if bool(lost) == bool(gained):
        return None
    moved = {s.digest for s in lost or gained}
    kept = [[s.digest for s in blocks if s.digest not in moved] for blocks in (before, after)]
    if kept[0] != kept[1]:
        return None
    what = "gained the block" if gained else "lost the block"
    return Moved(change.place.pointer, what, "\n".join(map(text_of, lost or gained)))


def system_change(case: Case) -> Change | None:
    """The first difference in the system prompt."""
    return next((c for c in case.changes if c.place.section is Section.SYSTEM), None)


def injected_system_text(case: Case) -> Moved | None:
    """Wrapped text, or text of the messages, that came into the system prompt or left it."""
    change, block = system_change(case), came_or_went(case)
    if change is None:
        return None
    text, came = _one_sided(change) if block is None else (block.text, "gained" in block.what)
    text = text.strip()
    # A gateway lifts a block out of the messages: it stands there on the other side.
    if len(text) >= LIFTED and any(_holds(e.prefix, text) for e in (case.before, case.after)):
        what = "stands in the system prompt now" if came else "left the system prompt"
        return Moved(change.place.pointer, what, text)
    if not _is_wrapped(text, alone=block is not None):
        return None
    what = "was put in afterwards" if came else "is missing now"
    return Moved(change.place.pointer, what, text)


def _is_wrapped(text: str, *, alone: bool) -> bool:
    """Whether a client wrapped a text and it is no value, such as a time, that changes by itself."""
    # In a prompt of one text a heading opens a section of it, and no block of its own.
    if not text or not INJECTED.fullmatch(text) or (text.startswith("#") and not alone):
        return False
    return find_inserted_kind("", text) is None


def _one_sided(change: Change) -> tuple[str, bool]:
    """The text that one side of a changed text has more, and whether it came; empty where both
    sides have another."""
    before, after = change.place.before, change.place.after
    if not (isinstance(before, str) and isinstance(after, str)):
        return "", False
    start, end_before, end_after = changed_span(before, after)
    if start == end_before:
        return _widened(after, after[start:end_after]), True
    if start == end_after:
        return _widened(before, before[start:end_before]), False
    return "", False


def _holds(prefix: Prefix, text: str) -> bool:
    """Whether a block of the messages holds a text."""
    inner = codec.encode(text)[1:-1]
    return any(s.size > len(inner) and inner in s.data for s in _history(prefix))


def quoted_history(case: Case) -> int | None:
    """Whole messages of the earlier request that one text of the later one quotes; 0 where it is no
    more than a long row of characters, None where neither."""
    texts = [s for s in _history(case.after.prefix) if s.kind == "text" and s.role == "user"]
    longest = max(texts, key=lambda s: s.size, default=None)
    if longest is None or longest.size < QUOTED_ROW:
        return None
    text = text_of(longest)[:MAX_QUOTE]
    pieces = _pieces(case.before.prefix)
    quotes = [_quote_in(text, piece) for piece in pieces]
    whole = sum(quote is not None for quote in quotes)
    if whole >= QUOTED_MESSAGES:
        # Short ones may stand there by chance, three of them do not.
        return whole
    if any(quote is not None and len(quote) >= QUOTED_ROW for quote in quotes):
        return 0
    rest = (p for p, quote in zip(pieces, quotes, strict=True) if quote is None)
    return 0 if any(_has_row(piece, text) for piece in rest) else None


def _quote_in(text: str, piece: str) -> str | None:
    """A piece as a text quotes it: as it is, or written as JSON; None where it does not."""
    written = codec.encode(piece)[1:-1].decode()
    return next((form for form in (piece, written) if form in text), None)


def _pieces(prefix: Prefix) -> list[str]:
    """The texts of the newest messages that are too long to be said by chance."""
    blocks = [s for s in _history(prefix) if s.size > SHORT][-MAX_PIECES:]
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


def refuses_thinking(error: str) -> bool:
    """Whether the API refused a thinking block for the prompt ahead of it; other faults of a signature
    say nothing of a prompt."""
    return bool(compiled(BOUND).search(error) and compiled(THINKING).search(error))


def ids_regenerated(case: Case) -> bool:
    """Whether calls and results differ in their ids only, each old id having one new id."""
    change = case.message_change
    if change is None or not change.place.pointer.endswith((".id", ".tool_use_id")):
        return False
    names: dict[str, str] = {}
    before, after = _history(case.before.prefix), _history(case.after.prefix)
    for one, two in zip(before, after, strict=False):
        if one.digest == two.digest:
            continue
        id_one, rest_one = _without_ids(one.value)
        id_two, rest_two = _without_ids(two.value)
        if one.rank != two.rank or rest_one != rest_two:
            return bool(names)
        if names.setdefault(id_one, id_two) != id_two:
            return False
    return len(set(names.values())) == len(names) > 0


def _without_ids(value: Json) -> tuple[str, bytes]:
    if not isinstance(value, dict):
        return "", codec.encode(value)
    found = str(value.get("id") or value.get("tool_use_id") or "")
    rest = {k: v for k, v in value.items() if k not in ("id", "tool_use_id")}
    return found, codec.encode(rest)


def thinking_dropped(case: Case) -> str | None:
    """Who dropped thinking: `client`, or `server` where the body still has it; None if none went."""
    change = case.message_change
    if change is None:
        return None
    before, after = message_blocks(case.before, change), message_blocks(case.after, change)
    thought, rest = _parted(before)
    still, kept = _parted(after)
    # Thinking that is another one, or went beside other changes, was not dropped alone.
    if len(thought) <= len(still) or rest != kept or set(thought) <= set(still):
        return None
    stripped = {s.digest for s in case.after.prefix.unrendered}
    return "client" if stripped.isdisjoint(thought) else "server"


def _parted(blocks: list[Segment]) -> tuple[list[bytes], list[bytes]]:
    """The blocks of thinking, and all others."""
    thought = [s.digest for s in blocks if s.kind in THINKING_KINDS]
    return thought, [s.digest for s in blocks if s.kind not in THINKING_KINDS]
