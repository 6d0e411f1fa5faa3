"""What had been cached, what was lost, and which rule each lost token is due to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ctxdoc.cache.simulator import Relax, scopes_differ
from ctxdoc.diagnosis.api_word import api_word
from ctxdoc.diagnosis.case import TOLERANCE_SHARE, TOLERANCE_TOKENS, Case, Part
from ctxdoc.diagnosis.changed_text import similarity
from ctxdoc.diagnosis.evidence import similar_systems, tool_names
from ctxdoc.diagnosis.history_edits import (
    INJECTED,
    asks_anew,
    looks_like_summary,
    message_count,
    quoted_history,
    text_of,
)
from ctxdoc.diagnosis.sharing import has_other_user, is_promised, sharable_tokens
from ctxdoc.diagnosis.undocumented import both_of_a_batch
from ctxdoc.errors import NoRequestError
from ctxdoc.prompt.diff import Change, common_length, common_segments, find_divergence, iter_changes
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import AT, Segment
from ctxdoc.replay.link import are_apart, gap_between
from ctxdoc.replay.measure import MeasuredRequest, listed_passes
from ctxdoc.replay.walk import ReplayedRequest, Step, Walk, replayed_pair
from ctxdoc.request.log import Skipped
from ctxdoc.request.request import Request, Section
from ctxdoc.request.usage import Origin
from ctxdoc.tokens.estimate import ERROR_SHARE

NO_PARTS: dict[Part, int] = dict.fromkeys(Part, 0)
SHORT_TEXT = 16
LONG_TEXT = 64
"""Characters or bytes from which on equal text is no chance."""
SIMILAR = 0.5
"""Share of equal text from which on two texts are one text that was changed."""


def case_of_pair(before: Request, after: Request) -> Case:
    """Two requests of which nothing earlier is known."""
    return case_of(replayed_pair(before, after))


def iter_cases(
    requests: Sequence[Request],
    chosen: dict[int, int] | None = None,
    unusable: list[Skipped] | None = None,
) -> Iterator[Case]:
    """Each request of a log compared with the right earlier one, in the order of the log; `chosen` picks
    it by index.

    A request that cannot be rendered is passed over and added to `unusable`. Raises NoRequestError
    when `chosen` names it.
    """
    picked = chosen or {}
    walk = Walk(requests, any_model=True)
    for index in range(len(requests)):
        step = walk.step(index, picked.get(index))
        if step.replayed is None and index in {*picked, *picked.values()}:
            raise NoRequestError(step.reason)
        yield from _cases_of(step, unusable)


def iter_in_time(
    requests: Sequence[Request], unusable: list[Skipped]
) -> Iterator[tuple[int, Case]]:
    """The index and the case of each request in the order of their starts; one that cannot be
    rendered is passed over and added to `unusable`."""
    for step in Walk(requests, any_model=True).steps():
        for case in _cases_of(step, unusable):
            yield step.index, case


def _cases_of(step: Step, unusable: list[Skipped] | None) -> Iterator[Case]:
    """The case of a step, or the note that there is none."""
    if step.replayed is not None:
        yield case_of(step.replayed)
    elif unusable is not None:
        unusable.append(Skipped(step.request.source, step.request.line, step.reason))


def case_of(replayed: ReplayedRequest) -> Case:
    """What the later request lost of what the earlier one had cached, rule by rule."""
    before, after = replayed.before, replayed.after
    if before is None:
        return _first_case(replayed)
    identical = _identical(before, after)
    if before.answered is not None and replayed.gives_back:
        before = before.answered
    divergence = find_divergence(before.prefix, after.prefix)
    case = replace(
        _bare_case(replayed, before),
        divergence=divergence,
        changes=tuple(iter_changes(before.prefix, after.prefix)) if divergence else (),
        identical=identical,
        gap=gap_between(before.request, after.request),
        same_response=after.request.is_same_response(before.request),
        by_server=_is_by_server(before.prefix, after.prefix, divergence),
    )
    case = _attributed(case, replayed.alive)
    word = api_word(case)
    return replace(case, api_agrees=word is not None and bool(word.agrees))


def _first_case(replayed: ReplayedRequest) -> Case:
    """A request that goes on from none: there is nothing that it could have lost."""
    after = replayed.after
    case = _bare_case(replayed, replace(after, usage=None))
    return replace(case, whole_log=False, part=_first_part(case))


def _bare_case(replayed: ReplayedRequest, before: MeasuredRequest) -> Case:
    """A case in which nothing is compared yet."""
    after = replayed.after
    usage = after.usage
    if usage is not None and usage.input == 0 and after.request.refused:
        usage = None
    return Case(
        before=before,
        after=after,
        outcome=replayed.outcome,
        counters=usage or after.request.simulated_usage or replayed.outcome.usage,
        origin=Origin.REPORTED if usage else Origin.SIMULATED,
        divergence=None,
        changes=(),
        identical=0,
        cached=0,
        lost=0,
        parts=NO_PARTS,
        part=Part.COLD,
        gap=None,
        refusal=after.refusal,
        same_response=False,
        related=False,
        whole_log=replayed.in_log,
        asked=replayed.asked,
        by_server=False,
        was_read=replayed.was_read,
    )


def _is_by_server(before: Prefix, after: Prefix, divergence: Change | None) -> bool:
    """Whether the bodies are equal where the prompts differ: the API took something out."""
    if divergence is None or (before.sent is None and after.sent is None):
        return False
    sent = find_divergence(before.as_sent, after.as_sent)
    if sent is None:
        return True
    return sent.index > divergence.index and sent.place.pointer != divergence.place.pointer


def written_keys(case: Case) -> tuple[bytes, ...]:
    """The prefixes of which both requests write entries."""
    return tuple(
        each.prefix.keys[mark]
        for each in (case.before, case.after)
        for mark in each.prefix.breakpoints
    )


def _first_part(case: Case) -> Part:
    """What can be said of a request that has none before it."""
    if case.refusal is not None or case.after.request.refused:
        return Part.REFUSAL
    return Part.NEVER_CACHED if _never_caches(case) and not case.counters.cache_read else Part.COLD


def _identical(before: MeasuredRequest, after: MeasuredRequest) -> int:
    """Tokens of the leading blocks that both bodies have, whatever the API made of them; never more than
    the earlier prompt has by its own counters."""
    own = before.usage.input if before.usage is not None and not before.passes else 0
    found = _equal_start(before, after)
    right = before.corrected.input if before.corrected is not None else own
    return min(found, right) if right else found


def _equal_start(before: MeasuredRequest, after: MeasuredRequest) -> int:
    one, two = before.prefix.as_sent, after.prefix.as_sent
    index = common_segments(one, two) - 1
    while index >= 0 and not two.segments[index].is_block:
        index -= 1
    if after.prefix.sent is None:
        return after.sizes.at(index)
    if before.prefix.sent is None:
        return before.sizes.at(index)
    return after.sizes.at(common_segments(before.prefix, after.prefix) - 1)


def _attributed(case: Case, alive: int | None) -> Case:
    """Adds what had been cached, what was lost, and which rule each lost token is due to.

    `alive` are the tokens of the earlier prompt whose entries had not ended, where some had.
    """
    if case.same_response:
        return replace(case, part=Part.RECORD)
    if case.refusal is not None or case.after.request.refused:
        return replace(case, part=Part.REFUSAL)
    read = _first_read(case)
    if _reads_another(case, read) and not (_same_agent(case) and _continues(case)):
        return replace(case, part=Part.NOTHING)
    case, cached = _compared(case)
    if case.unread and not case.asked:
        return replace(case, part=Part.WASTE if not read else Part.NOTHING)
    # Entries of other requests that go on differently are no part of this comparison.
    reached = [
        max(read, min(_as_read(tokens, read), case.identical)) for tokens in case.outcome.could_read
    ]
    due = _due(case, cached, reached, read, alive)
    if case.related:
        cached = max(cached, reached[Relax.REACH])
    if case.before.cached is not None:
        # What its counters say goes before what the model has of earlier requests.
        cached = min(cached, max(case.before.cached, read))
    if case.divergence is None:
        cached = min(cached, max(_as_read(case.identical, read), read))
    lost = max(0, cached - read)
    if lost <= _tolerance(case, read):
        lost = 0
    worth = {part: tokens for part, tokens in due.items() if tokens > TOLERANCE_TOKENS}
    case = replace(case, cached=cached, lost=lost)
    case = _settled(case, worth if lost > TOLERANCE_TOKENS else {})
    return replace(case, part=_main_part(case))


def _tolerance(case: Case, read: int) -> float:
    """Tokens that are no loss: more of them where what was cached is no counted size."""
    known = case.before.cached
    counted = known is not None and (case.cached == known or case.divergence is None)
    goes_on = case.asked or _goes_on(case)
    return TOLERANCE_TOKENS if counted or goes_on else max(TOLERANCE_TOKENS, TOLERANCE_SHARE * read)


def _compared(case: Case) -> tuple[Case, int]:
    """The case once it is known whether the later request should share the earlier one's prefix, and the
    tokens of it that were cached. What two conversations do not share is nobody's promise."""
    related, cached = _sharable(case)
    elsewhere = scopes_differ(case.before.request.place, case.after.request.place)
    if not case.asked and asks_anew(case) and _is_unread(case):
        case = replace(case, unread=_equal_ahead(case))
    differs = related and (case.divergence is not None or elsewhere)
    if differs and not _goes_on(case) and not is_promised(case):
        case = replace(case, sharable=sharable_tokens(case))
        volatile = not case.sharable and _is_volatile(case)
        if volatile and case.asked:
            cached = _cached_by(case.before, None)
        elif case.sharable or not case.asked:
            related, cached = False, case.outcome.could_read[Relax.REACH]
            case = replace(case, unread=case.identical if volatile else 0)
    if elsewhere and not related:
        # What stands at another place is none of its.
        within = case.outcome.could_read
        within = (*within[: Relax.SCOPE], *[within[Relax.EXPIRY]] * 2)
        case = replace(case, outcome=replace(case.outcome, could_read=within))
        cached = within[Relax.REACH]
    return replace(case, related=related), cached


def _due(
    case: Case, cached: int, reached: Sequence[int], read: int, alive: int | None
) -> dict[Part, int]:
    """Tokens that each rule accounts for; `reached` is what could be read with each of `Relax`."""
    # What had ended would have been lost without a difference too; to another model no time matters.
    timeless = alive is None or case.before.prefix.root != case.after.prefix.root
    ended = 0 if timeless else max(0, cached - max(alive or 0, reached[Relax.REACH]))
    rest = max(0, cached - ended - reached[Relax.REACH])
    appended = case.divergence is None
    return {
        # Only the API's own counters can say that it did otherwise than its rules.
        Part.PROVIDER: reached[Relax.NOTHING] - read if case.measured else 0,
        Part.VISIBILITY: reached[Relax.VISIBILITY] - reached[Relax.NOTHING],
        Part.EXPIRY: reached[Relax.EXPIRY] - reached[Relax.VISIBILITY] + ended,
        Part.PLACE: reached[Relax.SCOPE] - reached[Relax.EXPIRY],
        Part.REACH: reached[Relax.REACH] - reached[Relax.SCOPE] + (rest if appended else 0),
        Part.DIVERGENCE: 0 if appended else rest,
    }


def _main_part(case: Case) -> Part:
    """What explains most of a loss, or what there is where nothing was lost."""
    parts = case.parts
    if not case.cached and not case.counters.cache_read:
        if case.sharable or case.unread:
            return Part.WASTE
        return Part.NEVER_CACHED if _never_caches(case) else Part.COLD
    part = max(parts, key=parts.__getitem__)
    if (case.sharable or case.unread) and not case.is_loss:
        return Part.WASTE
    return part if parts[part] and case.is_loss else Part.NOTHING


def _settled(case: Case, worth: dict[Part, int]) -> Case:
    """The parts of a loss where what is known goes before what the model says: a twin that was sent
    before the first answer began, a setting whose reach is not documented."""
    parts = NO_PARTS | worth
    provider = parts[Part.PROVIDER]
    if provider and _is_twin(case):
        parts |= {Part.PROVIDER: 0, Part.VISIBILITY: parts[Part.VISIBILITY] + provider}
    elif provider and _may_reach_further(case):
        parts |= {Part.PROVIDER: 0, Part.DIVERGENCE: parts[Part.DIVERGENCE] + provider}
        # The equal start is what the cache took for one.
        case = replace(case, beyond_setting=True)
    change = case.divergence
    if change is not None and case.measured and is_reach_unknown(change):
        # The equal start is what the cache took for one.
        identical = min(case.identical, _as_read(case.identical, case.counters.cache_read))
        identical = min(identical, case.counters.cache_read)
        case = replace(case, identical=identical)
    return replace(case, parts=parts)


TWIN_SECONDS = 10.0
"""Seconds within which a first answer may not have begun, where the log has no time of it."""


def _is_twin(case: Case) -> bool:
    """Whether two requests wrote the same prefix side by side: the later one began while the first
    was answered, or within some seconds where nothing tells how long that took."""
    if case.gap is None or case.gap < 0 or not case.measured:
        return False
    one, two = case.before.usage, case.counters
    if one is None or not two.cache_write or one.cache_read > TOLERANCE_TOKENS + two.cache_read:
        return False
    took = case.before.request.duration
    return case.gap < (TWIN_SECONDS if took is None else took) or both_of_a_batch(case)


REACH_UNKNOWN = ("thinking", "effort", "output_format", "task_budget")
"""Settings that the messages are cached under at least; on some models, nobody says which, tools and
system prompt are too (facts 1.7)."""


def _may_reach_further(case: Case) -> bool:
    return any(map(is_reach_unknown, case.changes))


def is_reach_unknown(change: Change) -> bool:
    """Whether a change is one of a setting whose reach nobody documents."""
    segment = change.after or change.before
    return segment is not None and segment.rank[0] in map(AT.get, REACH_UNKNOWN)


def _first_read(case: Case) -> int:
    """Tokens that the first pass over the prompt read."""
    listed = listed_passes(case.after.request)
    return listed[0].cache_read if listed and case.measured else case.counters.cache_read


ELSEWHERE_SHARE = 0.05
"""Share of the equal start by which its computed size may be off."""


def _reads_another(case: Case, read: int) -> bool:
    """Whether more was read than both requests share: then it goes on from another one, whose entry
    it read, and missed nothing of this one's."""
    if not case.measured or case.divergence is None or case.by_server:
        return False
    slack = max(2 * TOLERANCE_TOKENS, ELSEWHERE_SHARE * case.identical)
    if case.after.sizes.origin is Origin.ESTIMATED or case.after.passes:
        slack = max(slack, ERROR_SHARE * case.identical)
    return read > case.identical + slack


def _as_read(tokens: int, read: int) -> int:
    """A computed size that is the reported one but for the rounding inside its interval."""
    return read if abs(tokens - read) <= max(TOLERANCE_TOKENS, TOLERANCE_SHARE * read) else tokens


def _never_caches(case: Case) -> bool:
    """Whether the later request leaves nothing in the cache either."""
    if not case.after.prefix.rule.rules.charges_writes:
        return not case.after.cached
    return not case.counters.cache_write


def _sharable(case: Case) -> tuple[bool, int]:
    """Whether the later request should share the earlier one's prefix, and how much of it was
    cached."""
    before, change = case.before, case.divergence
    reach = case.outcome.could_read[Relax.REACH]
    if change is None and before.prefix.row:
        return True, _cached_by(before, None)
    if change is not None and _ends_within(change, case.after.prefix):
        # It ends where the earlier one goes on: what lies behind its end is none of its prefix.
        return True, reach
    if asks_anew(case) and len(case.changes) == 1:
        if reach or not _marks_too_late(case):
            return True, reach
        volatile = case.asked and not case.was_read
        return (True, _cached_by(before, None)) if volatile else (False, 0)
    if before.prefix.root != case.after.prefix.root:
        # Entries belong to one model: a side call of another one could share nothing.
        return (True, _cached_by(before, None)) if _goes_on_elsewhere(case) else (False, reach)
    if _continues(case):
        return True, _cached_by(before, None)
    if _same_agent(case):
        return True, _cached_by(before, Section.MESSAGES)
    if _is_said(case) and quoted_history(case) is not None:
        return True, _cached_by(before, None)
    return False, reach


def _goes_on_elsewhere(case: Case) -> bool:
    """Whether a conversation goes on with another model: the same tools and system prompt, and more
    messages than before."""
    longer = message_count(case.after) > message_count(case.before)
    return longer and _are_one_agent(case) and (_extends(case) or _continues(case))


def _is_said(case: Case) -> bool:
    """Whether the log, or the person who asks, says that two requests belong together."""
    one, two = case.before.request, case.after.request
    return case.asked or bool(one.session and one.session == two.session)


def _ends_within(change: Change, after: Prefix) -> bool:
    """Whether the later prompt is over where the earlier one goes on with messages."""
    gone = change.before
    over = change.index == len(after.segments) and change.after is None
    return over and gone is not None and gone.section is Section.MESSAGES


def _is_unread(case: Case) -> bool:
    """Whether two calls that ask anew share what could be cached, and each writes it where no other reads
    it."""
    if case.was_read or len(case.changes) != 1 or case.outcome.could_read[Relax.REACH]:
        return False
    return case.counters.cache_write > 0 and _marks_too_late(case)


def _equal_ahead(case: Case) -> int:
    """Tokens of what both have ahead of their first difference, the start of its block included; 0 where
    they are fewer than the model caches."""
    change = case.divergence
    tokens = float(case.identical)
    if change is not None and change.before is not None and change.after is not None:
        one, two = text_of(change.before), text_of(change.after)
        sizes = case.after.sizes
        if one and two:
            share = common_length(one, two) / len(two)
            tokens += share * (sizes.at(change.index) - sizes.at(change.index - 1))
    return round(tokens) if tokens >= case.after.prefix.rule.minimum else 0


def _is_volatile(case: Case) -> bool:
    """Whether two calls of one form share enough to be cached, mark only what they do not share, and
    nobody read what they wrote."""
    one, two = case.before.prefix.as_sent, case.after.prefix.as_sent
    change = case.divergence
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
    if case.identical >= case.after.prefix.rule.minimum:
        return True
    texts = [_opening_text(e.prefix) for e in (case.before, case.after)]
    return min(map(len, texts)) >= LONG_TEXT and similarity(*texts) >= SIMILAR


def _goes_on(case: Case) -> bool:
    """Whether two requests are of one conversation, as the log or their messages tell."""
    one, two = case.before.request, case.after.request
    if case.before.prefix.root != case.after.prefix.root:
        return _goes_on_elsewhere(case)
    if one.session and one.session == two.session:
        return True
    if has_other_user(case):
        return False
    blocks = [_blocks(exchange.prefix.as_sent) for exchange in (case.before, case.after)]
    if case.asked and all(blocks) and blocks[0][0].digest == blocks[1][0].digest:
        return True
    return _continues(case, said=False)


LONG_MESSAGE = 400
"""Bytes from which on one equal message is enough to tell a conversation by."""
EQUAL_MESSAGES = 2
"""Shorter ones that tell it."""


def _continues(case: Case, *, said: bool | None = None) -> bool:
    """Whether both requests hold the same conversation: the log or the person who asks says so, or they
    share more than the minimum of the prompt, or more than one short message. With `said` that is given,
    and not asked of the case."""
    before, after = (_blocks(e.prefix.as_sent) for e in (case.before, case.after))
    if not before or not after:
        return False
    one, two = case.before.request, case.after.request
    said = _is_said(case) if said is None else said
    known = {s.digest: s for s in before}
    shared = [known[s.digest] for s in after if s.digest in known and _is_said_once(s)]
    if are_apart(one, two):
        # Many conversations begin with the same words.
        shared = [segment for segment in shared if segment is not before[0]]
        return _are_telling(shared)
    if said and (shared or before[0].digest == after[0].digest):
        return True
    answered = any(segment.role == "assistant" for segment in after)
    if answered and shared and case.identical >= case.after.prefix.rule.minimum:
        return True
    if answered and _are_telling(shared):
        return True
    if not said and (has_other_user(case) or not _are_one_agent(case)):
        return False
    if looks_like_summary(case) or _extends(case):
        return True
    # Two questions of one form are two conversations; one that changed goes on with an answer.
    if not said and len(after) <= len(before):
        return False
    texts = [_opening_text(e.prefix) for e in (case.before, case.after)]
    return min(map(len, texts)) >= LONG_TEXT and similarity(*texts) >= SIMILAR


def _extends(case: Case) -> bool:
    """Whether the later request has all messages of the earlier one at its start, and more."""
    one, two = case.before.prefix.as_sent.row, case.after.prefix.as_sent.row
    return len(two) > len(one) and two[: len(one)] == one


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
    return len(text) >= SHORT_TEXT and not INJECTED.fullmatch(text)


def _blocks(prefix: Prefix) -> list[Segment]:
    return [s for s in prefix.segments if s.section is Section.MESSAGES and s.is_block]


def _opening_text(prefix: Prefix) -> str:
    return next((text_of(segment) for segment in _blocks(prefix)), "")


def _same_agent(case: Case) -> bool:
    """Whether model, tools and system are those of one agent, though the last two may have changed."""
    return case.before.prefix.root == case.after.prefix.root and _are_one_agent(case)


def _are_one_agent(case: Case) -> bool:
    """Whether tools and system are those of one agent."""
    before, after = case.before.prefix, case.after.prefix
    if not similar_systems(before, after):
        return False
    names = [set(tool_names(e)) for e in (case.before, case.after)]
    systems = [
        [s.digest for s in p.segments if s.section is Section.SYSTEM] for p in (before, after)
    ]
    if systems[0] and systems[0] == systems[1]:
        return names[0].isdisjoint(names[1]) is False or names[0] == names[1]
    return 2 * len(names[0] & names[1]) >= len(names[0] | names[1])


def _cached_by(before: MeasuredRequest, end: Section | None) -> int:
    """Tokens up to the last breakpoint of a request that was in the cache after it, ahead of
    `end`."""
    prefix, known = before.prefix, before.cached
    if before.request.refused:
        return 0
    if known is not None and (not known or end is None):
        return known
    marks = [
        i
        for i in prefix.breakpoints
        if prefix.segments[i].section is not end and before.sizes.at(i) >= prefix.rule.minimum
    ]
    size = before.sizes.at(marks[-1]) if marks else 0
    return size if known is None else min(size, known)
