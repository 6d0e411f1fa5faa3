"""What had been cached, what was lost, and which rule each lost token is due to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ctxdoc.cache.simulator import Relax
from ctxdoc.diagnosis.api_word import api_word
from ctxdoc.diagnosis.case import TOLERANCE_SHARE, TOLERANCE_TOKENS, Case, Part
from ctxdoc.diagnosis.conversation import continues, goes_on, is_same_agent
from ctxdoc.diagnosis.expectation import expected
from ctxdoc.diagnosis.undocumented import both_of_a_batch
from ctxdoc.errors import NoRequestError
from ctxdoc.prompt.diff import Change, common_segments, find_divergence, iter_changes
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import AT
from ctxdoc.replay.link import gap_between
from ctxdoc.replay.measure import MeasuredRequest, listed_passes
from ctxdoc.replay.walk import ReplayedRequest, Step, Walk, replayed_pair
from ctxdoc.request.log import Skipped
from ctxdoc.request.request import Request
from ctxdoc.request.usage import Origin
from ctxdoc.tokens.estimate import ERROR_SHARE

NO_PARTS: dict[Part, int] = dict.fromkeys(Part, 0)


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
    return (
        sent.index > divergence.index and sent.difference.pointer != divergence.difference.pointer
    )


def written_keys(case: Case) -> tuple[bytes, ...]:
    """The prefixes of which both requests write entries."""
    return tuple(
        each.prefix.keys[mark]
        for each in (case.before, case.after)
        for mark in each.prefix.breakpoints
    )


def _first_part(case: Case) -> Part:
    """What can be said of a request that has none before it."""
    return Part.REFUSAL if _is_refused(case) else _cold_part(case)


def _cold_part(case: Case) -> Part:
    """Whether nothing is there to be read yet, or nothing ever will be."""
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
    if _is_refused(case):
        return replace(case, part=Part.REFUSAL)
    read = _first_read(case)
    if _goes_on_from_another(case, read):
        return replace(case, part=Part.NOTHING)
    case, cached = expected(case)
    if case.unread and not case.asked:
        return replace(case, part=Part.WASTE if not read else Part.NOTHING)
    return _accounted(case, _Reading(read, cached, alive))


def _is_refused(case: Case) -> bool:
    """Whether the API refused the later request, or would."""
    return case.refusal is not None or bool(case.after.request.refused)


class _Reading(NamedTuple):
    """What the later request read, beside what it could have."""

    read: int
    cached: int
    """Tokens of the earlier prompt that were cached, as far as the sizes tell."""
    alive: int | None

    def reached(self, case: Case) -> list[int]:
        """What could be read with each of `Relax`, at least what was read."""
        # Entries of other requests that go on differently are no part of this comparison.
        found = (min(as_read(each, self.read), case.identical) for each in case.outcome.could_read)
        return [max(self.read, tokens) for tokens in found]


def _accounted(case: Case, reading: _Reading) -> Case:
    """The loss, and the rules that it is due to."""
    read, reached = reading.read, reading.reached(case)
    # The rules are asked before counters bound what was cached: what they forgive is no loss of anyone's.
    due = _due(case, reading, reached)
    cached = _bounded(case, reading, reached[Relax.REACH])
    lost = max(0, cached - read)
    if _is_tolerated(case, read, lost):
        lost = 0
    worth = {part: tokens for part, tokens in due.items() if tokens > TOLERANCE_TOKENS}
    case = _settled(replace(case, cached=cached, lost=lost), worth if lost else {})
    return replace(case, part=_main_part(case))


def _bounded(case: Case, reading: _Reading, reach: int) -> int:
    """Tokens that were cached, as far as what is known of them goes."""
    read, cached = reading.read, reading.cached
    if case.related:
        cached = max(cached, reach)
    if case.before.cached is not None:
        # What its counters say goes before what the model has of earlier requests.
        cached = min(cached, max(case.before.cached, read))
    if case.divergence is None:
        # A prompt that only goes on has the earlier one's start, and no more of it.
        cached = min(cached, max(as_read(case.identical, read), read))
    return cached


def _is_tolerated(case: Case, read: int, lost: int) -> bool:
    """Whether so many tokens are no loss: more of them are none where what was cached is no counted size."""
    # Most requests lost nothing: what is dear to find out is asked of the others.
    if lost <= TOLERANCE_TOKENS or lost > TOLERANCE_SHARE * read:
        return lost <= TOLERANCE_TOKENS
    counted = case.before.cached is not None and case.divergence is None
    return not (counted or case.asked or goes_on(case))


def _due(case: Case, reading: _Reading, reached: Sequence[int]) -> dict[Part, int]:
    """Tokens that each rule accounts for; `reached` is what could be read with each of `Relax`."""
    cached, reach = reading.cached, reached[Relax.REACH]
    # What had ended would have been lost without a difference too.
    ended = _ended(case, reading, reach)
    rest = max(0, cached - ended - reach)
    appended = case.divergence is None
    # Each rule that is let go of gives more to read: what it gives is what it had cost.
    return {
        # Only the API's own counters can say that it did otherwise than its rules.
        Part.PROVIDER: reached[Relax.NOTHING] - reading.read if case.measured else 0,
        Part.VISIBILITY: reached[Relax.VISIBILITY] - reached[Relax.NOTHING],
        Part.EXPIRY: reached[Relax.EXPIRY] - reached[Relax.VISIBILITY] + ended,
        Part.PLACE: reached[Relax.SCOPE] - reached[Relax.EXPIRY],
        # Where nothing differs, what no rule gives back stood out of reach of every breakpoint.
        Part.REACH: reach - reached[Relax.SCOPE] + (rest if appended else 0),
        Part.DIVERGENCE: 0 if appended else rest,
    }


def _ended(case: Case, reading: _Reading, reach: int) -> int:
    """Tokens whose entries had ended; to another model no time matters."""
    if reading.alive is None or case.before.prefix.root != case.after.prefix.root:
        return 0
    return max(0, reading.cached - max(reading.alive, reach))


def _main_part(case: Case) -> Part:
    """What explains most of a loss, or what there is where nothing was lost."""
    if case.is_loss:
        part = max(case.parts, key=case.parts.__getitem__)
        return part if case.parts[part] else Part.NOTHING
    if case.sharable or case.unread:
        return Part.WASTE
    return Part.NOTHING if case.cached or case.counters.cache_read else _cold_part(case)


def _settled(case: Case, worth: dict[Part, int]) -> Case:
    """The parts of a loss where what is known goes before what the model says: a twin that was sent
    before the first answer began, a setting whose reach is not documented."""
    parts = NO_PARTS | worth
    unexplained = parts[Part.PROVIDER]
    if unexplained:
        part = _better_known(case)
        parts[Part.PROVIDER] = 0
        parts[part] += unexplained
        case = replace(case, beyond_setting=part is Part.DIVERGENCE)
    change = case.divergence
    if change is not None and case.measured and is_reach_unknown(change):
        # The equal start is what the cache took for one.
        read = case.counters.cache_read
        case = replace(case, identical=min(case.identical, as_read(case.identical, read), read))
    return replace(case, parts=parts)


def _better_known(case: Case) -> Part:
    """What explains a read that fell short of the rules; the provider, where nothing is known."""
    if _is_twin(case):
        return Part.VISIBILITY
    return Part.DIVERGENCE if _may_reach_further(case) else Part.PROVIDER


TWIN_SECONDS = 10.0
"""Seconds within which a first answer may not have begun, where the log has no time of it."""


def _is_twin(case: Case) -> bool:
    """Whether two requests wrote the same prefix side by side: the later one began while the first
    was answered, or within some seconds where nothing tells how long that took."""
    if case.gap is None or case.gap < 0 or not _wrote_both(case):
        return False
    took = case.before.request.duration
    return case.gap < (TWIN_SECONDS if took is None else took) or both_of_a_batch(case)


def _wrote_both(case: Case) -> bool:
    """Whether counters show that both requests wrote, and that the first one read no more than the other."""
    one, two = case.before.usage, case.counters
    if one is None or not case.measured or not two.cache_write:
        return False
    # A first one that read more had another entry to go on from.
    return one.cache_read <= TOLERANCE_TOKENS + two.cache_read


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


def _goes_on_from_another(case: Case, read: int) -> bool:
    """Whether the later request goes on from a third one."""
    # What a conversation of one agent read beyond the equal start is an error of the sizes.
    return _reads_another(case, read) and not (is_same_agent(case) and continues(case))


def _reads_another(case: Case, read: int) -> bool:
    """Whether more was read than both requests share: then it goes on from another one, whose entry
    it read, and missed nothing of this one's."""
    if not case.measured or case.divergence is None or case.by_server:
        return False
    slack = max(2 * TOLERANCE_TOKENS, ELSEWHERE_SHARE * case.identical)
    if case.after.sizes.origin is Origin.ESTIMATED or case.after.passes:
        slack = max(slack, ERROR_SHARE * case.identical)
    return read > case.identical + slack


def as_read(tokens: int, read: int) -> int:
    """A computed size that is the reported one but for the rounding inside its interval."""
    return read if abs(tokens - read) <= max(TOLERANCE_TOKENS, TOLERANCE_SHARE * read) else tokens


def _never_caches(case: Case) -> bool:
    """Whether the later request leaves nothing in the cache either."""
    if not case.after.prefix.rule.rules.charges_writes:
        return not case.after.cached
    return not case.counters.cache_write
