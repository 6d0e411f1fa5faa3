"""The prefix that a later request should have read: whether it should share the earlier one's, how much of
that was cached, and what calls of one form write without anybody reading it."""

from __future__ import annotations

from msgspec.structs import replace

from ctxdoc.cache.simulator import Relax, scopes_differ
from ctxdoc.diagnosis.case import Case
from ctxdoc.diagnosis.conversation import (
    continues,
    goes_on,
    goes_on_elsewhere,
    is_said,
    is_same_agent,
    opens_similarly,
)
from ctxdoc.diagnosis.history_edits import asks_anew, text_of
from ctxdoc.diagnosis.quotes import quoted_history
from ctxdoc.diagnosis.sharing import is_promised, sharable_tokens
from ctxdoc.prompt.diff import Change, common_length
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.replay.measure import MeasuredRequest
from ctxdoc.request.request import Section


def expected(case: Case) -> tuple[Case, int]:
    """The case once it is known whether the later request should share the earlier one's prefix, and the
    tokens of it that were cached. What two conversations do not share is nobody's promise."""
    # The claim comes first: what is waste, and what nobody promised, is asked of those that share a prefix.
    related, cached = _claim(case)
    elsewhere = scopes_differ(case.before.request.scope, case.after.request.scope)
    if _is_unread(case):
        case = replace(case, unread=_equal_ahead(case))
    if related and _is_unpromised(case, elsewhere=elsewhere):
        case, related, cached = _unpromised(case, cached)
    if elsewhere and not related:
        # What stands at another place is none of its.
        case = _without_other_places(case)
        cached = case.outcome.could_read[Relax.REACH]
    return replace(case, related=related), cached


def _is_unpromised(case: Case, *, elsewhere: bool) -> bool:
    """Whether two requests are of two conversations, and differ by something of their own."""
    if case.divergence is None and not elsewhere:
        return False
    return not goes_on(case) and not is_promised(case)


def _claim(case: Case) -> tuple[bool, int]:
    """Whether the later request should share the earlier one's prefix, and how much of it was
    cached."""
    change = case.divergence
    reach = case.outcome.could_read[Relax.REACH]
    if change is None and case.before.prefix.row:
        return True, cached_by(case.before)
    if _ends_within(change, case.after.prefix):
        # It ends where the earlier one goes on: what lies behind its end is none of its prefix.
        return True, reach
    if asks_anew(case) and len(case.changes) == 1:
        return _claim_of_question(case, reach)
    end = _shared_end(case)
    return (False, reach) if end is None else (True, cached_by(case.before, end))


def _claim_of_question(case: Case, reach: int) -> tuple[bool, int]:
    """The same of another question behind an equal prompt: what that wrote was cached for all of them,
    unless each one marks only its own end."""
    if reach or not _marks_too_late(case):
        return True, reach
    volatile = case.asked and not case.was_read
    return (True, cached_by(case.before)) if volatile else (False, 0)


def _shared_end(case: Case) -> Section | None:
    """The part of the prompt that ends what both should share, `Section.NONE` where that is all of it;
    None where they share nothing but by chance."""
    if case.before.prefix.root != case.after.prefix.root:
        # Entries belong to one model: a side call of another one could share nothing.
        return Section.NONE if goes_on_elsewhere(case) else None
    if continues(case):
        return Section.NONE
    if is_same_agent(case):
        # Another conversation of one agent has its tools and system prompt, and other messages.
        return Section.MESSAGES
    if is_said(case) and quoted_history(case) is not None:
        return Section.NONE
    return None


def _unpromised(case: Case, cached: int) -> tuple[Case, bool, int]:
    """Two conversations that differ by something of their own: what they could share, whether they
    should, and what was cached of it."""
    case = replace(case, sharable=sharable_tokens(case))
    volatile = not case.sharable and _is_volatile(case)
    if volatile and case.asked:
        # Who names the two requests asks why nothing was read, however they belong together.
        return case, True, cached_by(case.before)
    if case.sharable or not case.asked:
        unread = case.identical if volatile else 0
        return replace(case, unread=unread), False, case.outcome.could_read[Relax.REACH]
    return case, True, cached


def _without_other_places(case: Case) -> Case:
    """The case with nothing to be read at another place."""
    within = case.outcome.could_read
    within = (*within[: Relax.SCOPE], *[within[Relax.EXPIRY]] * 2)
    return replace(case, outcome=replace(case.outcome, could_read=within))


def _ends_within(change: Change | None, after: Prefix) -> bool:
    """Whether the later prompt is over where the earlier one goes on with messages."""
    if change is None:
        return False
    gone = change.before
    over = change.index == len(after.segments) and change.after is None
    return over and gone is not None and gone.section is Section.MESSAGES


def cached_by(before: MeasuredRequest, end: Section = Section.NONE) -> int:
    """Tokens up to the last breakpoint of a request that was in the cache after it, ahead of
    `end`."""
    known = before.cached
    if before.request.refused:
        return 0
    if known is not None and (not known or end is Section.NONE):
        # The counters say it of the whole prompt; of a part of it only the sizes do.
        return known
    marks = _usable_marks(before, end)
    size = before.sizes.at(marks[-1]) if marks else 0
    return size if known is None else min(size, known)


def _usable_marks(before: MeasuredRequest, end: Section) -> list[int]:
    """The breakpoints that stand ahead of a part of the prompt and are not too early for the model."""
    prefix, sizes = before.prefix, before.sizes
    ahead = (i for i in prefix.breakpoints if prefix.segments[i].section is not end)
    return [i for i in ahead if sizes.at(i) >= prefix.rule.minimum]


def _is_unread(case: Case) -> bool:
    """Whether two calls that ask anew share what could be cached, and each writes it where no other reads
    it."""
    # Who names two requests asks for the loss between them, and not for the waste of both.
    if case.asked or not asks_anew(case):
        return False
    if case.was_read or len(case.changes) != 1 or case.outcome.could_read[Relax.REACH]:
        return False
    return case.counters.cache_write > 0 and _marks_too_late(case)


def _equal_ahead(case: Case) -> int:
    """Tokens of what both have ahead of their first difference, the start of its block included; 0 where
    they are fewer than the model caches."""
    tokens = case.identical + _equal_start_of_block(case)
    return round(tokens) if tokens >= case.after.prefix.rule.minimum else 0


def _equal_start_of_block(case: Case) -> float:
    """Tokens at the start of the first block that differs: split there, they could be cached."""
    change, sizes = case.divergence, case.after.sizes
    if change is None or change.before is None or change.after is None:
        return 0.0
    one, two = text_of(change.before), text_of(change.after)
    if not one or not two:
        return 0.0
    share = common_length(one, two) / len(two)
    return share * (sizes.at(change.index) - sizes.at(change.index - 1))


def _is_volatile(case: Case) -> bool:
    """Whether two calls of one form share enough to be cached, mark only what they do not share, and
    nobody read what they wrote."""
    one, two = case.before.prefix.as_sent, case.after.prefix.as_sent
    change = case.divergence
    # A longer conversation is one that goes on, and no call of the same form.
    if change is None or case.was_read or len(two.row) > len(one.row):
        return False
    enough = case.identical >= two.rule.minimum and case.counters.cache_write > 0
    marks = two.breakpoints
    return enough and bool(marks) and marks[0] >= change.index


def _marks_too_late(case: Case) -> bool:
    """Whether both requests share what could be cached and mark only what they do not share."""
    change = case.divergence
    marks = case.before.prefix.breakpoints
    if change is None or not marks or marks[0] < change.index:
        return False
    return case.identical >= case.after.prefix.rule.minimum or opens_similarly(case)
