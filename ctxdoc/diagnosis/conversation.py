"""The conversation that two requests belong to: whether the later one goes on from the earlier one."""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from ctxdoc.diagnosis.case import Case
from ctxdoc.diagnosis.changed_text import similarity
from ctxdoc.diagnosis.evidence import similar_systems, tool_names
from ctxdoc.diagnosis.history_edits import INJECTED, looks_like_summary, message_count, text_of
from ctxdoc.diagnosis.sharing import has_other_user
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.replay.link import are_apart
from ctxdoc.request.request import Section

SHORT_TEXT = 16
LONG_TEXT = 64
"""Characters or bytes from which on equal text is no chance."""
SIMILAR = 0.5
"""Share of equal text from which on two texts are one text that was changed."""
LONG_MESSAGE = 400
"""Bytes from which on one equal message is enough to tell a conversation by."""
EQUAL_MESSAGES = 2
"""Shorter ones that tell it."""


class _Talk(Struct, frozen=True, dict=True):
    """The message blocks of two requests, neither without any."""

    before: list[Segment]
    after: list[Segment]

    @cached_property
    def shared(self) -> list[Segment]:
        """Blocks of the later request that the earlier one has too, and that are no chance."""
        known = {segment.digest: segment for segment in self.before}
        return [known[s.digest] for s in self.after if s.digest in known and _is_said_once(s)]

    @property
    def is_opened_alike(self) -> bool:
        """Whether both begin with the same block."""
        return self.before[0].digest == self.after[0].digest

    @property
    def is_answered(self) -> bool:
        """Whether the later request holds a reply of the model."""
        return any(segment.role == "assistant" for segment in self.after)

    @property
    def is_shared_behind_opening(self) -> bool:
        """Whether what both share, their first block aside, tells a conversation."""
        return _are_telling([each for each in self.shared if each is not self.before[0]])


def goes_on(case: Case) -> bool:
    """Whether two requests are of one conversation, as the log or their messages tell."""
    if case.before.prefix.root != case.after.prefix.root:
        return goes_on_elsewhere(case)
    if _is_one_session(case):
        return True
    if has_other_user(case):
        return False
    talk = _talk_of(case)
    if talk is None:
        return False
    # A person who names two requests that open alike means one conversation.
    return (case.asked and talk.is_opened_alike) or _is_taken_up(case, talk, said=False)


def goes_on_elsewhere(case: Case) -> bool:
    """Whether a conversation goes on with another model: the same tools and system prompt, and more
    messages than before."""
    longer = message_count(case.after) > message_count(case.before)
    return longer and _are_one_agent(case) and (_extends(case) or continues(case))


def continues(case: Case) -> bool:
    """Whether both requests hold the same conversation: the log or the person who asks says so, or they
    share more than the minimum of the prompt, or more than one short message."""
    talk = _talk_of(case)
    return talk is not None and _is_taken_up(case, talk, said=is_said(case))


def is_said(case: Case) -> bool:
    """Whether the log, or the person who asks, says that two requests belong together."""
    return case.asked or _is_one_session(case)


def _is_one_session(case: Case) -> bool:
    """Whether the log names one session for both."""
    one, two = case.before.request, case.after.request
    return bool(one.session) and one.session == two.session


def is_same_agent(case: Case) -> bool:
    """Whether model, tools and system are those of one agent, though the last two may have changed."""
    return case.before.prefix.root == case.after.prefix.root and _are_one_agent(case)


def opens_similarly(case: Case) -> bool:
    """Whether both conversations begin with one long text that was changed."""
    texts = [_opening_text(e.prefix) for e in (case.before, case.after)]
    return min(map(len, texts)) >= LONG_TEXT and similarity(*texts) >= SIMILAR


def _talk_of(case: Case) -> _Talk | None:
    before, after = (_blocks(e.prefix.as_sent) for e in (case.before, case.after))
    return _Talk(before, after) if before and after else None


def _is_taken_up(case: Case, talk: _Talk, *, said: bool) -> bool:
    """Whether the later messages are those of the earlier request; `said` is what the log tells."""
    if are_apart(case.before.request, case.after.request):
        # Many conversations begin with the same words.
        return talk.is_shared_behind_opening
    return _is_held_as_said(case, talk) if said else _is_held_by_messages(case, talk)


def _is_held_as_said(case: Case, talk: _Talk) -> bool:
    """Whether messages bear out what the log says: one that both have is enough."""
    # The first blocks are asked first: that is one comparison, and most requests only append.
    if talk.is_opened_alike or talk.shared:
        return True
    return _is_condensed_or_longer(case) or opens_similarly(case)


def _is_held_by_messages(case: Case, talk: _Talk) -> bool:
    """Whether messages alone tell that it is one conversation."""
    # Without an answer of the model it is a question, and two users may ask the same one.
    if talk.is_answered and _are_enough(case, talk.shared):
        return True
    if has_other_user(case) or not _are_one_agent(case):
        return False
    if _is_condensed_or_longer(case):
        return True
    # Two questions of one form are two conversations; one that changed goes on with an answer.
    return len(talk.after) > len(talk.before) and opens_similarly(case)


def _is_condensed_or_longer(case: Case) -> bool:
    return looks_like_summary(case) or _extends(case)


def _extends(case: Case) -> bool:
    """Whether the later request has all messages of the earlier one at its start, and more."""
    one, two = case.before.prefix.as_sent.row, case.after.prefix.as_sent.row
    return len(two) > len(one) and two[: len(one)] == one


def _are_enough(case: Case, shared: list[Segment]) -> bool:
    """Whether shared messages tell a conversation, by themselves or with all that stands ahead of them."""
    if shared and case.identical >= case.after.prefix.rule.minimum:
        return True
    return _are_telling(shared)


def _are_telling(shared: list[Segment]) -> bool:
    """Whether messages that two requests share are more than one short one."""
    if any(segment.size >= LONG_MESSAGE for segment in shared):
        return True
    return len({segment.digest for segment in shared}) >= EQUAL_MESSAGES


def _is_said_once(segment: Segment) -> bool:
    """Whether a block is so long, and so much the user's own, that two conversations do not share
    it by chance."""
    if segment.kind != "text":
        return True
    text = text_of(segment)
    # A client puts the same reminders into every conversation.
    return len(text) >= SHORT_TEXT and not INJECTED.fullmatch(text)


def _blocks(prefix: Prefix) -> list[Segment]:
    return [s for s in prefix.segments if s.section is Section.MESSAGES and s.is_block]


def _opening_text(prefix: Prefix) -> str:
    return next((text_of(segment) for segment in _blocks(prefix)), "")


def _are_one_agent(case: Case) -> bool:
    """Whether tools and system are those of one agent."""
    before, after = case.before.prefix, case.after.prefix
    if not similar_systems(before, after):
        return False
    one, two = (set(tool_names(each)) for each in (case.before, case.after))
    if _is_system_kept(before, after):
        # With the system prompt equal to the byte, one tool in common is proof enough.
        return not one.isdisjoint(two) or one == two
    return 2 * len(one & two) >= len(one | two)


def _is_system_kept(before: Prefix, after: Prefix) -> bool:
    """Whether both have a system prompt, and the same one."""
    one, two = (
        [s.digest for s in prefix.segments if s.section is Section.SYSTEM]
        for prefix in (before, after)
    )
    return bool(one) and one == two
