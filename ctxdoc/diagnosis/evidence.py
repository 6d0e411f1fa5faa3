"""Questions about a case that several causes ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from msgspec import Struct

from ctxdoc.cache.breakpoint_rules import RefusalCode
from ctxdoc.cache.lookback import positions
from ctxdoc.diagnosis.case import Case, Confidence, Part
from ctxdoc.diagnosis.cause import Match, capped
from ctxdoc.diagnosis.changed_text import judge_values, only_values_differ, similarity
from ctxdoc.diagnosis.history_edits import (
    INJECTED,
    asks_anew,
    gives_back_answer,
    is_continued,
    text_of,
)
from ctxdoc.diagnosis.injected_text import (
    Moved,
    came_or_went,
    injected_system_text,
    system_blocks,
    system_change,
)
from ctxdoc.diagnosis.spelling import normalized
from ctxdoc.diagnosis.tallies import is_grown
from ctxdoc.diagnosis.text_values import Kind, Told, changed_span
from ctxdoc.prompt.diff import Change, Difference
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.replay.measure import MeasuredRequest
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Section

QUOTED = "\x02\x03"
"""Around text of a request in an explanation: the report decides whether it is shown."""
QUOTE = 32
"""Characters of a value that an explanation repeats."""
LEAD = 8
"""Characters that are shown ahead of the first that differs."""
SIMILAR_SYSTEM = 0.3
"""Share of equal text from which on two system prompts are one."""
KEPT = 0.5
"""Share of a system prompt that an edit leaves: below it the prompt is another agent's."""
REPEATED_TOKENS = 256
REPEATED_SHARE = 0.1
"""History that is paid in full again is worth a word from either of these on."""


class ChangedValue(Struct, frozen=True):
    """A value that changed."""

    pointer: str
    before: str
    after: str
    leading: bool
    """Whether no other value changed before it in the same text."""
    ceiling: Confidence
    """How sure its kind can be."""


def quote(value: Json, byte: int | None = None, default: str = "nothing", size: int = QUOTE) -> str:
    """A short piece of a value, around a byte, for an explanation."""
    if value is None:
        return default
    said = _said_in(value)
    text = said if isinstance(said, str) else codec.encode(said).decode()
    # A byte counts inside of a text as it is, not as JSON spells it.
    start = _start_of(said, byte) if byte is not None and isinstance(said, str) else 0
    piece = text[start : start + size]
    shown = piece.encode("unicode_escape").decode() if not piece.isprintable() else piece
    shown = f"{'…' if start else ''}{shown}{'…' if start + size < len(text) else ''}"
    return f"{QUOTED[0]}{shown}{QUOTED[1]}"


def _said_in(value: Json) -> Json:
    """What a block says; the whole value where it says nothing."""
    if not isinstance(value, dict):
        return value
    return next((v for v in map(value.get, ("text", "thinking", "content")) if v), value)


def _start_of(text: str, byte: int) -> int:
    """The character from which on a text is shown, so that some stands ahead of a byte of it."""
    return max(0, len(text.encode()[:byte].decode("utf-8", "ignore")) - LEAD)


def find_value(case: Case, kind: Kind) -> ChangedValue | None:
    """The first changed text in which a value of that kind changed."""
    for change in case.changes:
        texts = _texts(change.difference)
        if texts is None or not _may_hold_value(case, change, *texts):
            continue
        judged = judge_values(*texts)
        told = _first_of_kind(judged, kind)
        if told is None:
            continue
        start, end_before, end_after = changed_span(*texts)
        return ChangedValue(
            change.difference.pointer,
            _piece(texts[0], start, end_before),
            _piece(texts[1], start, end_after),
            leading=told is judged[0],
            ceiling=_ceiling_in(change, told, texts[1]),
        )
    return None


def _first_of_kind(judged: tuple[Told | None, ...], kind: Kind) -> Told | None:
    return next((told for told in judged if told is not None and told.kind is kind), None)


def _ceiling_in(change: Change, told: Told, text: str) -> Confidence:
    """How sure a value can be where it stands."""
    # What a user wrote holds dates and ids too; what a client puts in is wrapped, or has a label.
    clients = told.labelled or INJECTED.fullmatch(text) is not None
    if change.difference.section is not Section.MESSAGES or clients:
        return told.ceiling
    return capped(told.ceiling, Confidence.LIKELY)


def _piece(text: str, start: int, end: int) -> str:
    piece = _words_at(text, start, end)
    return quote(piece) if piece else "nothing"


def _words_at(text: str, start: int, end: int) -> str:
    """A stretch of a text with the words at its ends."""
    low = max(text.rfind(" ", 0, start) + 1, text.rfind("\n", 0, start) + 1, start - QUOTE // 2)
    stop = re.compile(r"[\s,;]|$").search(text, end)
    return text[low : stop.start() if stop else end].rstrip(".:")


def _texts(difference: Difference) -> tuple[str, str] | None:
    """Both sides as texts; a block that stands on one side only against nothing."""
    before, after = (_as_text(value) for value in (difference.before, difference.after))
    if before is None or after is None or (not before and not after):
        return None
    return before, after


def _as_text(value: Json) -> str | None:
    match value:
        case str():
            return value
        case None:
            return ""
        case {"type": "text", "text": str(text)}:
            return text
        case _:
            return None


def _may_hold_value(case: Case, change: Change, before: str, after: str) -> bool:
    """Text of the system prompt may change as it likes; a message's text only in a value."""
    if change.difference.pointer.endswith((".name", ".id", ".tool_use_id", ".signature", ".data")):
        return False
    if change.difference.section in (Section.SYSTEM, Section.TOOLS):
        return True
    segment = change.after
    if change.difference.section is not Section.MESSAGES or segment is None:
        return False
    # What a client writes anew stands in texts of the user's side; calls, results and replies are
    # history, and other history is history that was rewritten.
    if segment.kind != "text" or segment.role == "assistant":
        return False
    return only_values_differ(before, after) and not asks_anew(case, change)


def tool_data(exchange: MeasuredRequest) -> list[bytes]:
    """A hash of each rendered definition, in their order."""
    return [s.digest for s in _tools(exchange.prefix)]


def tool_names(exchange: MeasuredRequest) -> list[str]:
    """The names in their order; a server's toolset has its type for a name."""
    return [_tool_name(s.value) for s in _tools(exchange.prefix)]


def _tools(prefix: Prefix) -> Iterator[Segment]:
    return (s for s in prefix.segments if s.kind == "tool" and s.level is Section.TOOLS)


def _tool_name(value: Json) -> str:
    tool = value if isinstance(value, dict) else {}
    return str(tool.get("name") or tool.get("mcp_server_name") or tool.get("type") or "")


def mcp_change(case: Case) -> Change | None:
    """The difference in the list of tool servers."""
    return next((c for c in case.changes if c.difference.pointer.startswith("$.mcp_servers")), None)


def image_difference(case: Case) -> Moved | None:
    """An image that came, went or has other bytes, with its place."""
    for change in case.changes:
        what = _image_change(change) if change.difference.section is Section.MESSAGES else ""
        if what:
            return Moved(change.difference.pointer, what)
    return None


def _image_change(change: Change) -> str:
    """What became of an image; empty where a difference concerns none."""
    before, after = change.before, change.after
    segment = after or before
    if segment is not None and segment.kind == "setting":
        # Whether there is any image is a part of the prompt by itself.
        return "The first image came" if before is None else "The last image went"
    match before is not None and before.pictured, after is not None and after.pictured:
        case (True, False):
            return "An image was removed or replaced"
        case (False, True) if before is not None:
            return "An image took another block's place"
        case (True, True) if ".source" in change.difference.pointer:
            return "An image was encoded again"
    return ""


def setting_change(case: Case, *pointers: str) -> Difference | None:
    """The difference in one of the settings."""
    for change in case.changes:
        if change.difference.section is Section.SETTINGS and change.difference.pointer.startswith(
            pointers
        ):
            return change.difference
    return None


def feature_change(case: Case) -> Difference | None:
    """The difference in what the platform renders ahead of the system prompt."""
    for change in case.changes:
        if change.level is Section.SYSTEM and change.difference.section is not Section.SYSTEM:
            return change.difference
    return None


def forked(case: Case) -> str | None:
    """How a side call's prefix differs from its parent's, or None when it is no side call.

    Another tool list that keeps some of the parent's tools is the same agent's.
    """
    before, after = set(tool_names(case.before)), set(tool_names(case.after))
    if before and not after:
        return "without the tool definitions"
    other_system = _has_other_system(case)
    if before & after and not other_system and gives_back_answer(case):
        # The next turn of the same agent, whatever became of its tools.
        return None
    if _are_other_tools(before, after, case):
        return "with other tools" + (" and another system prompt" if other_system else "")
    return "with another system prompt" if other_system else None


def _has_other_system(case: Case) -> bool:
    if similar_systems(case.before.prefix, case.after.prefix):
        return False
    # A gateway that lifts a reminder out of the messages makes a system prompt where none was.
    return injected_system_text(case) is None


def _are_other_tools(before: set[str], after: set[str], case: Case) -> bool:
    """Whether no tool is left, or few are and the messages are others too."""
    few = 2 * len(before & after) < len(before) and case.message_change is not None
    return bool(before) and (few or before.isdisjoint(after))


def edited_system(case: Case) -> Moved | None:
    """What changed in a system prompt that is still the same one, between two requests of a
    conversation."""
    change = system_change(case)
    before, after = (system_blocks(e.prefix) for e in (case.before, case.after))
    if change is None or not before or not after or not is_continued(case):
        return None
    block = came_or_went(case)
    if block is not None:
        return Moved(change.difference.pointer, f"{block.what} {quote(block.text)}", block.text)
    texts = _texts(change.difference)
    if texts is None or _kept_share(_joined(before), _joined(after)) < KEPT:
        return None
    return Moved(change.difference.pointer, _edit_of(*texts))


def _edit_of(before: str, after: str) -> str:
    """What a text gained, lost, or has in place of something else."""
    start, end_before, end_after = changed_span(before, after)
    if start == end_before:
        return f"gained {quote(after[start:end_after].strip())}"
    if start == end_after:
        return f"lost {quote(before[start:end_before].strip())}"
    one, two = _words_at(before, start, end_before), _words_at(after, start, end_after)
    grown = " (a number that grew: if it counts, it will go on)" if is_grown(one, two) else ""
    return f"has {quote(two)} in place of {quote(one)}{grown}"


def _kept_share(before: str, after: str) -> float:
    """Share of a text that a later one still holds: around the changed span, or by its lines."""
    start, end_before, _ = changed_span(before, after)
    kept = 1 - (end_before - start) / max(len(before), 1)
    if kept >= KEPT:
        return kept
    lines = [set(text.splitlines()) - {""} for text in (before, after)]
    return len(lines[0] & lines[1]) / max(1, len(lines[0]))


def _joined(blocks: list[Segment]) -> str:
    return "\n".join(map(text_of, blocks))


def similar_systems(before: Prefix, after: Prefix) -> bool:
    """Whether two system prompts are one that was changed, or both are missing."""
    sent = [_joined(system_blocks(p)) for p in (before, after)]
    if all(sent) and similarity(*sent) >= SIMILAR_SYSTEM:
        return True
    texts = [normalized(text) for text in sent]
    if not all(texts):
        return not any(texts)
    lines = [set(text.splitlines()) for text in texts]
    shared = len(lines[0] & lines[1]) / max(map(len, lines))
    if max(shared, similarity(*texts)) >= SIMILAR_SYSTEM:
        return True
    rows = [_rows_of_words(text) for text in texts]
    return len(rows[0] & rows[1]) >= SIMILAR_SYSTEM * max(1, *map(len, rows))


ROW = 8
"""Words in a row that two texts do not share by chance."""


@lru_cache(maxsize=4)
def _rows_of_words(text: str) -> frozenset[int]:
    """Hashes of the rows of words of a text: one that was edited at several places keeps most of them."""
    words = text.split()
    return frozenset(map(hash, zip(*(words[start:] for start in range(ROW)), strict=False)))


def repeated_uncached(case: Case) -> int:
    """Tokens that both requests have behind the last breakpoint of the later one; 0 if too few."""
    prefix, sizes = case.after.prefix, case.after.sizes
    if not prefix.breakpoints or case.by_server:
        return 0
    last = prefix.breakpoints[-1]
    if prefix.segments[last].section is Section.MESSAGES and not case.parts[Part.REACH]:
        return 0
    tokens = min(case.identical - sizes.at(last), case.counters.uncached)
    enough = max(1, min(REPEATED_TOKENS, REPEATED_SHARE * sizes.total))
    return tokens if tokens >= enough else 0


def refused_for(case: Case, code: RefusalCode, why: str) -> Match | None:
    """A match where the request breaks that rule on breakpoints."""
    refusal = case.refusal
    if refusal is None or refusal.code is not code:
        return None
    return Match(
        explanation=f"The breakpoint on {refusal.pointer} makes the API refuse the request "
        f"({refusal.text}): {why}.",
        confidence=case.proof,
        pointer=refusal.pointer,
    )


def positions_behind(case: Case) -> int | None:
    """Positions from the last breakpoint back to the earlier request's last one, both included."""
    marks = case.after.prefix.breakpoints
    if not case.parts[Part.REACH] or not marks:
        return None
    at = positions(case.after.prefix)
    shared = [m for m in case.before.prefix.breakpoints if m < min(len(at), marks[-1])]
    behind = at[marks[-1]] - at[shared[-1]] + 1 if shared else 0
    return behind if behind > case.after.prefix.rule.rules.lookback else None


def duration_text(seconds: float | None) -> str:
    """A time span in the unit that a person would use."""
    if seconds is None:
        return "an unknown time"
    if seconds < 90:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
