"""What two conversations could share: the prompts of two users, or of two first requests.

What one conversation shares with another is nobody's promise. Where a short text of one user stands ahead
of a long one that all have, sharing it would save money all the same.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ctxdoc.cache.simulator import scopes_differ
from ctxdoc.diagnosis.case import Case
from ctxdoc.diagnosis.changed_text import find_kinds
from ctxdoc.diagnosis.history_edits import text_of
from ctxdoc.diagnosis.spelling import find_key_order, find_leaf, same_json_value, same_normalized
from ctxdoc.diagnosis.text_values import Kind, changed_span
from ctxdoc.prompt.diff import Change
from ctxdoc.prompt.segments import Segment
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.request import Request, Section

MOSTLY = 0.5
"""Share of tools and system prompt that has to be equal for two prompts to be those of one agent."""
SESSION_MARK = "_session_"
"""In the user ids of Claude Code: behind it stands the session, which is no user."""
AHEAD = (Section.TOOLS, Section.SYSTEM)


def user_of(request: Request) -> str:
    """The user that a request names in its metadata; empty where it names none."""
    body = request.body
    if body is None:
        return ""
    try:
        metadata = codec.decode(body.metadata)
    except (msgspec.DecodeError, RecursionError):
        return ""
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    return user.partition(SESSION_MARK)[0] if isinstance(user, str) else ""


def has_other_user(case: Case) -> bool:
    """Whether both requests name their user, and not the same one."""
    users = [user_of(exchange.request) for exchange in (case.before, case.after)]
    return all(users) and users[0] != users[1]


def is_promised(case: Case) -> bool:
    """Whether the first request of a conversation should have the same prefix as another one: it differs
    by nothing, or by something that nobody means to send anew, such as a time or an order."""
    change = case.divergence
    if scopes_differ(case.before.request.scope, case.after.request.scope):
        # Another account or region has its own users.
        return False
    if change is None or change.level is Section.MESSAGES:
        return True
    if change.difference.section is Section.TOOLS:
        # The same tools in another order, or described anew, are one agent's; other tools are another's.
        return _names(case.before.prefix.segments) == _names(case.after.prefix.segments)
    return change.difference.section is Section.SYSTEM and _is_nobodys_choice(case, change)


def _is_nobodys_choice(case: Case, change: Change) -> bool:
    """Whether a difference in the system prompt is one that nobody means to send anew."""
    kind = _kind_of(change)
    if has_other_user(case) and kind is not Kind.TIME:
        return False
    if kind in NEVER_AGAIN or find_key_order(case) is not None:
        return True
    same = (same_json_value, same_normalized)
    return any(find_leaf(case, test) == change.difference for test in same)


NEVER_AGAIN = (Kind.TIME, Kind.ID, Kind.COUNTER)
"""Values that are new each time; what surrounds or is remembered may well be another conversation's."""


def _names(segments: tuple[Segment, ...]) -> list[str]:
    return sorted(s.name for s in segments if s.section is Section.TOOLS)


def _kind_of(change: Change) -> Kind | None:
    """What the first value is that differs in two texts of the system prompt."""
    one, two = (_text(side) for side in (change.difference.before, change.difference.after))
    if not one or not two:
        return None
    start, end_before, end_after = changed_span(one, two)
    if start in (end_before, end_after):
        # A line that one of two conversations has and the other has not is no value that changed.
        return None
    kinds = find_kinds(one, two)
    return kinds[0] if kinds else None


def _text(value: Json) -> str:
    match value:
        case str():
            return value
        case {"type": "text", "text": str(text)}:
            return text
        case _:
            return ""


def sharable_tokens(case: Case) -> int:
    """Tokens of tools and system prompt that both requests have behind their first difference; 0 where
    that is less than the model caches, or where they are not mostly the same.

    Tools of one user are told by the user that the metadata names.
    """
    change = case.divergence
    if change is None or change.difference.section not in AHEAD:
        return 0
    if change.difference.section is Section.TOOLS and not has_other_user(case):
        return 0
    equal = _equal_around(case, change.index)
    minimum = case.after.prefix.rule.minimum
    # Equal text of a prompt that is mostly another one is boilerplate, and no agent that both run.
    if equal.behind < minimum or equal.ahead + equal.behind < MOSTLY * equal.whole:
        return 0
    return round(equal.behind)


class _Equal(NamedTuple):
    """Tokens of tools and system prompt, and what of them two requests have in common."""

    whole: int
    ahead: float
    """Ahead of the first difference."""
    behind: float


def _equal_around(case: Case, changed: int) -> _Equal:
    """What both requests have on the two sides of the block that differs first."""
    sizes, segments = case.after.sizes, case.after.prefix.segments
    one = {s.rank: s for s in case.before.prefix.segments if s.section in AHEAD}
    known = {s.digest for s in one.values()}
    whole, ahead, behind = 0, 0.0, 0.0
    for index, segment in enumerate(segments):
        if segment.section not in AHEAD:
            continue
        tokens = sizes.at(index) - sizes.at(index - 1)
        whole += tokens
        if index < changed:
            ahead += tokens
            continue
        start, end = _equal_shares(one.get(segment.rank), segment, known)
        # The start of the first block that differs lies ahead of the difference, all else behind it.
        ahead += tokens * start if index == changed else 0
        behind += tokens * end if index == changed else tokens * (start + end)
    return _Equal(whole, ahead, behind)


def _equal_shares(before: Segment | None, after: Segment, known: set[bytes]) -> tuple[float, float]:
    """Shares of a block that both have at its start and at its end; all of it counts as its end."""
    if after.digest in known:
        return 0.0, 1.0
    one, two = text_of(before) if before is not None else "", text_of(after)
    if not one or not two:
        return 0.0, 0.0
    start, _, end = changed_span(one, two)
    return start / len(two), (len(two) - end) / len(two)
