"""Questions about a case that several causes ask."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct

from ctxdoc import canonical
from ctxdoc.cache import RULES, places_differ, positions
from ctxdoc.canonical import Json
from ctxdoc.causes.base import Case, Exchange, Match, Part
from ctxdoc.causes.changed_text import (
    Kind,
    changed_span,
    find_kinds,
    only_values_differ,
    similarity,
)
from ctxdoc.diff import Change, Place
from ctxdoc.model import Section
from ctxdoc.render import Prefix, Segment

SHORT = 80
"""Bytes up to which a message may be the same by chance, such as 'go on'."""
QUOTED = "\x02\x03"
"""Around text of a request in an explanation: the report decides whether it is shown."""
QUOTE = 32
"""Characters of a value that an explanation repeats."""
SUMMARY = re.compile(
    r"^\W*(?:\w+\W+){0,6}?(?:summary|recap|zusammenfassung|résumé|resumen|riassunto|摘要|总结|要約)\b|"
    r"summar(?:y|ies|ized) (?:of|so far)|\bcompacted\b|condensed (?:history|conversation)|"
    r"conversation so far|being continued from|previous conversation|"
    r"earlier (?:conversation|messages) (?:was|were|have been)|so far:",
    re.IGNORECASE,
)
"""What a text that stands for a history says of itself."""
INJECTED = re.compile(r"\s*(?:<[\w:-]+[^>]*>.*</[\w:-]+>|\[[^\]]+\].*|#+ .*)\s*", re.DOTALL)
"""Text that a client wraps into a message: a tag, a bracket, a heading."""
SIMILAR_SYSTEM = 0.3
"""Share of equal text from which on two system prompts are one."""
SIMILAR_ANSWER = 0.5
REPEATED_TOKENS = 256
REPEATED_SHARE = 0.1
"""History that is paid in full again is worth a word from either of these on."""


class Found(Struct, frozen=True):
    """A value that changed."""

    pointer: str
    before: str
    after: str
    leading: bool
    """Whether no other value changed before it in the same text."""


class Moved(Struct, frozen=True):
    """A text that is at another place, or a picture."""

    pointer: str
    what: str
    text: str = ""


def quote(value: Json, byte: int | None = None, default: str = "nothing") -> str:
    """A short piece of a value, around a byte, for an explanation."""
    if value is None:
        return default
    if isinstance(value, dict):
        value = next((v for v in map(value.get, ("text", "thinking", "content")) if v), value)
    text = value if isinstance(value, str) else canonical.encode(value).decode()
    start = 0
    if byte is not None and isinstance(value, str):
        start = max(0, len(value.encode()[:byte].decode("utf-8", "ignore")) - 8)
    piece = text[start : start + QUOTE]
    shown = piece.encode("unicode_escape").decode() if not piece.isprintable() else piece
    shown = f"{'…' if start else ''}{shown}{'…' if start + QUOTE < len(text) else ''}"
    return f"{QUOTED[0]}{shown}{QUOTED[1]}"


def find_value(case: Case, kind: Kind) -> Found | None:
    """The first changed text in which a value of that kind changed."""
    for change in case.changes:
        texts = _texts(change.place)
        if texts is None or not _may_hold_value(case, change, *texts):
            continue
        kinds = find_kinds(*texts)
        if kind in kinds:
            start, end_before, end_after = changed_span(*texts)
            return Found(
                change.place.pointer,
                _piece(texts[0], start, end_before),
                _piece(texts[1], start, end_after),
                leading=kinds[0] is kind,
            )
    return None


def _piece(text: str, start: int, end: int) -> str:
    low = max(text.rfind(" ", 0, start) + 1, text.rfind("\n", 0, start) + 1, start - QUOTE // 2)
    stop = re.compile(r"[\s,;]|$").search(text, end)
    piece = text[low : stop.start() if stop else end].rstrip(".:")
    return quote(piece) if piece else "nothing"


def _texts(place: Place) -> tuple[str, str] | None:
    """Both sides as texts; a block that stands on one side only against nothing."""
    before, after = (_text_of(value) for value in (place.before, place.after))
    if before is None or after is None or (not before and not after):
        return None
    return before, after


def _text_of(value: Json) -> str | None:
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
    if change.place.pointer.endswith((".name", ".id", ".tool_use_id", ".signature", ".data")):
        return False
    if change.place.section in (Section.SYSTEM, Section.TOOLS):
        return True
    segment = change.after
    if change.place.section is not Section.MESSAGES or segment is None:
        return False
    # What a client writes anew stands in texts of the user's side; calls, results and replies are
    # history, and other history is history that was rewritten.
    if segment.kind != "text" or segment.role == "assistant":
        return False
    return only_values_differ(before, after) and not asks_anew(case, change)


def tool_data(exchange: Exchange) -> list[bytes]:
    """The rendered definitions in their order."""
    return [s.data for s in _tools(exchange.prefix)]


def tool_names(exchange: Exchange) -> list[str]:
    """The names in their order; a server's toolset has its type for a name."""
    return [_tool_name(s.value) for s in _tools(exchange.prefix)]


def _tools(prefix: Prefix) -> Iterator[Segment]:
    return (s for s in prefix.segments if s.kind == "tool" and s.level is Section.TOOLS)


def _tool_name(value: Json) -> str:
    tool = value if isinstance(value, dict) else {}
    return str(tool.get("name") or tool.get("mcp_server_name") or tool.get("type") or "")


def mcp_change(case: Case) -> Change | None:
    """The difference in the list of tool servers."""
    return next((c for c in case.changes if c.place.pointer.startswith("$.mcp_servers")), None)


def find_key_order(case: Case) -> Place | None:
    """The first place whose two sides are equal once the keys are sorted."""
    for change in case.changes:
        one, two = change.before, change.after
        if one is None or two is None or one.data == two.data:
            continue
        if canonical.encode_sorted(one.value) == canonical.encode_sorted(two.value):
            return change.place
    return None


def find_leaf(case: Case, same: Callable[[Json, Json], bool]) -> Place | None:
    """The first differing value for which the comparison says that both are the same."""
    for change in case.changes:
        place = change.place
        if place.before is None or place.after is None or place.section is Section.SETTINGS:
            continue
        if place.section is not Section.MODEL and same(place.before, place.after):
            return place
    return None


def same_json_value(before: Json, after: Json) -> bool:
    """Equal numbers in two spellings, or texts that hold equal JSON."""
    one, two = _number(before), _number(after)
    if one is not None and two is not None:
        return one == two
    if isinstance(before, str) and isinstance(after, str):
        if not (before.lstrip()[:1] in '{["' and after.lstrip()[:1] in '{["' and before.strip()):
            return False
        try:
            return bool(msgspec.json.decode(before.encode()) == msgspec.json.decode(after.encode()))
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return False
    return False


def _number(value: Json) -> Decimal | None:
    if isinstance(value, Raw):
        return Decimal(bytes(value).decode())
    return Decimal(value) if isinstance(value, int) and not isinstance(value, bool) else None


def same_normalized(before: Json, after: Json) -> bool:
    """Equal but for white space at line ends and text ends, line ends, and Unicode form."""
    if not (isinstance(before, str) and isinstance(after, str)):
        return False
    return before != after and _normalized(before) == _normalized(after)


def _normalized(text: str) -> str:
    plain = unicodedata.normalize("NFKC", text).replace("\r\n", "\n").replace("\r", "\n")
    plain = re.sub("[\u200b\ufeff\u00ad]", "", plain)
    return re.sub(r"[ \t]+", " ", re.sub(r"[ \t]+(?=\n|$)", "", plain)).strip()


def message_blocks(exchange: Exchange, change: Change) -> list[Segment]:
    """The blocks of the message in which a change lies."""
    segment = change.before or change.after
    index = segment.rank[1] if segment else -1
    return [s for s in _history(exchange.prefix) if s.rank[1] == index]


def _history(prefix: Prefix) -> list[Segment]:
    return [s for s in prefix.segments if s.section is Section.MESSAGES and s.is_block]


def message_count(exchange: Exchange) -> int:
    """Messages of the body."""
    return len(exchange.request.body.messages)


def _messages(prefix: Prefix) -> list[bytes]:
    """Each message as its role and blocks."""
    found: dict[int, bytes] = {}
    for segment in _history(prefix):
        start = found.get(segment.rank[1], segment.role.encode())
        found[segment.rank[1]] = start + b"\0" + segment.data
    return list(found.values())


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
    texts = [_text(s) if s else "" for s in (change.before, change.after)]
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
        if after[start : start + len(kept)] == kept and (len(kept) > 1 or len(kept[0]) > SHORT):
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
    return len(new) < len(gone) and 2 * sum(map(len, new)) <= sum(map(len, gone))


def _until_kept(before: list[bytes], after: list[bytes]) -> tuple[list[bytes], list[bytes]]:
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
    return segment.kind == "compaction" or bool(SUMMARY.search(_text(segment)[:1000]))


def injected_difference(case: Case) -> Moved | None:
    """A text block that a message gained or lost, or a wrapped text inside of one."""
    change = case.message_change
    if change is None or asks_anew(case):
        return None
    before, after = message_blocks(case.before, change), message_blocks(case.after, change)
    role = (before or after)[0].role if before or after else ""
    if role != "user":
        return None
    one, two = [s.data for s in before], [s.data for s in after]
    lost = [s for s in before if s.data not in two]
    gained = [s for s in after if s.data not in one]
    if bool(lost) != bool(gained) and (before and after):
        segment = (lost or gained)[0]
        if segment.kind == "text" and set(one) & set(two):
            return Moved(change.place.pointer, _whereabouts(case, segment), _text(segment))
        return None
    if not lost and one != two and sorted(one) == sorted(two) and before[0].kind == "text":
        return Moved(change.place.pointer, "stands in another order", _text(before[0]))
    return _wrapped_text(case, change)


def _text(segment: Segment) -> str:
    value = segment.value
    return str(value.get("text", "")) if isinstance(value, dict) else ""


def _whereabouts(case: Case, segment: Segment) -> str:
    if any(s.data == segment.data for s in _history(case.after.prefix)):
        return "stands in another message now"
    return "is missing now" if segment in _history(case.before.prefix) else "was put in afterwards"


def _wrapped_text(case: Case, change: Change) -> Moved | None:
    texts = _texts(change.place)
    if texts is None:
        return None
    before, after = texts
    start, end_before, end_after = changed_span(before, after)
    piece = before[start:end_before] or after[start:end_after]
    one_sided = start in (end_before, end_after)
    if not one_sided or not INJECTED.fullmatch(_widened(before or after, piece)):
        return None
    what = "is missing now" if end_before > start else "was put in afterwards"
    if piece.strip() and any(piece.strip() in _text(s) for s in _history(case.after.prefix)):
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


def ids_regenerated(case: Case) -> bool:
    """Whether calls and results differ in their ids only, each old id having one new id."""
    change = case.message_change
    if change is None or not change.place.pointer.endswith((".id", ".tool_use_id")):
        return False
    names: dict[str, str] = {}
    before, after = _history(case.before.prefix), _history(case.after.prefix)
    for one, two in zip(before, after, strict=False):
        if one.data == two.data:
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
        return "", canonical.encode(value)
    found = str(value.get("id") or value.get("tool_use_id") or "")
    rest = {k: v for k, v in value.items() if k not in ("id", "tool_use_id")}
    return found, canonical.encode(rest)


def thinking_dropped(case: Case) -> str | None:
    """Who dropped thinking: `client`, or `server` where the body still has it; None if none went."""
    change = case.message_change
    if change is None:
        return None
    before, after = message_blocks(case.before, change), message_blocks(case.after, change)
    thought = [s for s in before if s.kind in ("thinking", "redacted_thinking")]
    if not thought:
        return None
    kept = {s.data for s in after}
    if len(thought) <= sum(s.kind in ("thinking", "redacted_thinking") for s in after):
        return None
    rest_one = [s.data for s in before if s not in thought]
    rest_two = [s.data for s in after if s.kind not in ("thinking", "redacted_thinking")]
    if rest_one != rest_two or all(s.data in kept for s in thought):
        return None
    stripped = {s.data for s in case.after.prefix.unrendered}
    return "server" if any(s.data in stripped for s in thought) else "client"


def image_difference(case: Case) -> Moved | None:
    """An image that came, went or has other bytes, with its place."""
    for change in case.changes:
        segment = change.after or change.before
        if segment is None or change.place.section is not Section.MESSAGES:
            continue
        one = b'"type":"image"' in change.before.data if change.before else False
        two = b'"type":"image"' in change.after.data if change.after else False
        if segment.kind == "setting":
            what = "The first image came" if change.before is None else "The last image went"
            return Moved(change.place.pointer, what)
        if one and not two:
            return Moved(change.place.pointer, "An image was removed or replaced")
        if two and not one and change.before is not None:
            return Moved(change.place.pointer, "An image took another block's place")
        if one and two and ".source" in change.place.pointer:
            return Moved(change.place.pointer, "An image was encoded again")
    return None


def setting_change(case: Case, *pointers: str) -> Place | None:
    """The difference in one of the settings."""
    for change in case.changes:
        if change.place.section is Section.SETTINGS and change.place.pointer.startswith(pointers):
            return change.place
    return None


def feature_change(case: Case) -> Place | None:
    """The difference in what the platform renders ahead of the system prompt."""
    for change in case.changes:
        if change.level is Section.SYSTEM and change.place.section is not Section.SYSTEM:
            return change.place
    return None


def forked(case: Case) -> str | None:
    """How a side call's prefix differs from its parent's, or None when it is no side call.

    Another tool list that keeps some of the parent's tools is the same agent's.
    """
    before, after = set(tool_names(case.before)), set(tool_names(case.after))
    if before and not after:
        return "without the tool definitions"
    other_system = not similar_systems(case.before.prefix, case.after.prefix)
    few = 2 * len(before & after) < len(before) and case.message_change is not None
    if before and (few or before.isdisjoint(after)):
        return "with other tools" + (" and another system prompt" if other_system else "")
    return "with another system prompt" if other_system else None


def similar_systems(before: Prefix, after: Prefix) -> bool:
    """Whether two system prompts are one that was changed, or both are missing."""
    texts = [_normalized("\n".join(map(_text, _system_blocks(p)))) for p in (before, after)]
    if not all(texts):
        return not any(texts)
    lines = [set(text.splitlines()) for text in texts]
    shared = len(lines[0] & lines[1]) / max(map(len, lines))
    return max(shared, similarity(*texts)) >= SIMILAR_SYSTEM


def _system_blocks(prefix: Prefix) -> list[Segment]:
    return [s for s in prefix.segments if s.section is Section.SYSTEM]


def repeated_uncached(case: Case) -> int:
    """Tokens that both requests have behind the last breakpoint of the later one; 0 if too few."""
    prefix, sizes = case.after.prefix, case.after.sizes
    if not prefix.breakpoints:
        return 0
    last = prefix.breakpoints[-1]
    if prefix.segments[last].section is Section.MESSAGES and not case.parts[Part.REACH]:
        return 0
    tokens = case.identical - sizes.at(last)
    enough = tokens >= REPEATED_TOKENS or tokens >= REPEATED_SHARE * sizes.total
    return tokens if enough and tokens > 0 else 0


def refused_for(case: Case, cause: str, why: str) -> Match | None:
    """A match where the request breaks that rule on breakpoints."""
    refusal = case.refusal
    if refusal is None or refusal.cause != cause:
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
    shared = [m for m in case.before.prefix.breakpoints if m < len(at) and m < marks[-1]]
    behind = at[marks[-1]] - at[shared[-1]] + 1 if shared else 0
    return behind if behind > RULES.lookback else None


def duration_text(seconds: float | None) -> str:
    """A time span in the unit that a person would use."""
    if seconds is None:
        return "an unknown time"
    if seconds < 90:
        return f"{seconds:.1f} s"
    if seconds < 5400:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"


def place_change(case: Case) -> str | None:
    """What the log says of the two places, where they differ."""
    before, after = case.before.request.place, case.after.request.place
    if not places_differ(before, after):
        return None
    known = dict(before)
    return ", ".join(
        f"{name} went from {known[name]} to {value}"
        for name, value in after
        if name in known and known[name] != value
    )


def unseen(case: Case) -> str:
    """What the log does not show and could explain a miss; empty when it shows everything."""
    hidden = []
    if case.gap is None:
        hidden.append("when the requests were sent")
    usage = case.before.usage
    if usage is not None and usage.cache_read and not case.whole_log:
        hidden.append("when the entries that the earlier request read were last used")
    betas = [e.request.headers.get("anthropic-beta") for e in (case.before, case.after)]
    if betas[0] != betas[1]:
        hidden.append("what the changed anthropic-beta header does to the prompt")
    return " and ".join(hidden)
