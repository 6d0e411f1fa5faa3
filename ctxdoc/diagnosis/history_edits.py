"""Edits of a history: what of the messages of a case is still there, was cut, replaced or renamed."""

from __future__ import annotations

import re
from typing import NamedTuple

from ctxdoc.diagnosis.case import Case
from ctxdoc.diagnosis.changed_text import similarity
from ctxdoc.diagnosis.text_values import compiled
from ctxdoc.prompt.diff import Change
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
SIMILAR_ANSWER = 0.5
THINKING = r"\bthinking\b"
BOUND = (
    r"\bbound to\b|\bbinding\b|block_binding|prefix_mismatch|different (?:conversation|prefix|prompt)|"
    r"differs from when|prefix (?:does not|doesn't|did not) match|(?:prefix|prompt) (?:was |has )?changed"
)
"""What the API says of a thinking block whose prompt was changed (preserved-thinking page, 2026-10-08)."""


def message_blocks(exchange: MeasuredRequest, change: Change) -> list[Segment]:
    """The blocks of the message in which a change lies."""
    segment = _segment_of(change)
    index = segment.rank[1] if segment else -1
    return [s for s in history_blocks(exchange.prefix) if s.rank[1] == index]


def history_blocks(prefix: Prefix) -> list[Segment]:
    """The blocks of the messages."""
    return [s for s in prefix.segments if s.section is Section.MESSAGES and s.is_block]


def message_count(exchange: MeasuredRequest) -> int:
    """Messages of the body."""
    body = exchange.request.body
    return len(body.messages) if body else 0


def _messages(prefix: Prefix) -> list[_Message]:
    found: dict[int, _Message] = {}
    for segment in history_blocks(prefix):
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
    segment = _segment_of(change)
    if change is None or segment is None:
        return False
    behind = segment.rank[1] - (message_count(case.after) - 1)
    if behind > 0:
        return True
    if behind == -1 and segment.role == "assistant":
        # A rewind gives the last reply anew, and the question behind it with it.
        return _answers_differ(change)
    return behind == 0 and _is_question(case, segment)


def _is_question(case: Case, segment: Segment) -> bool:
    """Whether a block is the user's, and no summary that stands for the history."""
    return segment.role == "user" and not looks_like_summary(case)


def _segment_of(change: Change | None) -> Segment | None:
    """The block that a change is of; None for one of the model."""
    return (change.before or change.after) if change is not None else None


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
    # The fewest that explain it: a window slides by one turn or two, and equal messages come again.
    for count in range(1, len(before) - start):
        kept = before[start + count :]
        if after[start : start + len(kept)] == kept and (len(kept) > 1 or kept[0].size > SHORT):
            return count
    return 0


def replaced_by_few(case: Case) -> bool:
    """Whether two or more messages from the first difference on gave way to fewer ones."""
    tails = _tails_of(case)
    if tails is None:
        return False
    before, after = tails
    gone, new = _until_kept(before, after)
    if len(gone) < 2 or not new or asks_anew(case):
        return False
    if looks_like_summary(case):
        # A summary may come with the newest messages: the question and its answer are two.
        return len(new) < len(gone) or len(after) < len(before) + 2
    return _are_condensed(gone, new)


def _tails_of(case: Case) -> tuple[list[_Message], list[_Message]] | None:
    """The messages of both requests from the first that differs on; None where one side has none."""
    change = case.message_change
    if change is None or change.before is None or change.after is None:
        return None
    start = change.before.rank[1]
    return _messages(case.before.prefix)[start:], _messages(case.after.prefix)[start:]


def _are_condensed(gone: list[_Message], new: list[_Message]) -> bool:
    """Whether messages are fewer than those that they replace, and half as large at most."""
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


def text_of(segment: Segment) -> str:
    """The text of a text block; empty for any other."""
    value = segment.value
    return str(value.get("text", "")) if isinstance(value, dict) else ""


def gives_back_answer(case: Case) -> bool:
    """Whether the later request has an answer where the messages of the earlier one end, and goes on."""
    body = case.before.request.body
    index = len(body.messages) if body is not None else -1
    answer = any(
        s.rank[1] == index and s.role == "assistant" for s in history_blocks(case.after.prefix)
    )
    return answer and message_count(case.after) > index + 1


def is_continued(case: Case) -> bool:
    """Whether the later request holds the conversation of the earlier one: its first message, or a
    block that is too long to be there by chance."""
    before, after = history_blocks(case.before.prefix), history_blocks(case.after.prefix)
    if not before or not after:
        return False
    segment = _segment_of(case.message_change)
    if segment is None or segment.rank[1] > 0:
        return True
    return not _long_ones(before).isdisjoint(segment.digest for segment in after)


def _long_ones(blocks: list[Segment]) -> set[bytes]:
    """The blocks that are too long to be there by chance."""
    return {segment.digest for segment in blocks if segment.size > SHORT}


def refuses_thinking(error: str) -> bool:
    """Whether the API refused a thinking block for the prompt ahead of it; other faults of a signature
    say nothing of a prompt."""
    return bool(compiled(BOUND).search(error) and compiled(THINKING).search(error))


def ids_regenerated(case: Case) -> bool:
    """Whether calls and results differ in their ids only, each old id having one new id."""
    change = case.message_change
    if change is None or not change.difference.pointer.endswith((".id", ".tool_use_id")):
        return False
    names: dict[str, str] = {}
    before, after = history_blocks(case.before.prefix), history_blocks(case.after.prefix)
    for one, two in zip(before, after, strict=False):
        if one.digest == two.digest:
            continue
        id_one, rest_one = _without_ids(one.value)
        id_two, rest_two = _without_ids(two.value)
        if one.rank != two.rank or rest_one != rest_two:
            # What was edited behind the new ids is another cause's.
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
