"""What had been cached, what was lost, and which rule each lost token is due to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ctxdoc.cache import Outcome, Refusal, Relax, find_refusal
from ctxdoc.causes.base import TOLERANCE_SHARE, TOLERANCE_TOKENS, Case, Part
from ctxdoc.causes.changed_text import similarity
from ctxdoc.causes.content import similar_systems, tool_names
from ctxdoc.causes.history import INJECTED, asks_anew, looks_like_summary, text_of
from ctxdoc.diff import Change, common_segments, find_divergence, iter_changes
from ctxdoc.errors import NoRequestError
from ctxdoc.exchange import Exchange, Replayer
from ctxdoc.matching import Matcher, are_apart, gap_between, in_time
from ctxdoc.model import Origin, Request, Section, Skipped
from ctxdoc.prefix import Prefix
from ctxdoc.render import Renderer
from ctxdoc.segments import Segment

NO_PARTS: dict[Part, int] = dict.fromkeys(Part, 0)
SHORT_TEXT = 16
LONG_TEXT = 64
"""Characters or bytes from which on equal text is no chance."""
SIMILAR = 0.5
"""Share of equal text from which on two texts are one text that was changed."""


def case_of_pair(before: Request, after: Request) -> Case:
    """Two requests of which nothing earlier is known."""
    replayer = Replayer()
    one = replayer.measure(before, replayer.render(before))
    replayer.send(one)
    two = replayer.measure(after, replayer.render(after), one)
    alive = replayer.alive_for(one, two)
    return _case(one, two, replayer.send(two), alive=alive)


def iter_cases(
    requests: Sequence[Request],
    chosen: dict[int, int] | None = None,
    unusable: list[Skipped] | None = None,
) -> Iterator[Case]:
    """Each request of a log compared with the right earlier one; `chosen` picks it by index.

    A request that cannot be rendered is passed over and added to `unusable`. Raises NoRequestError
    when `chosen` names it.
    """
    cases = Cases(requests)
    for number, request in enumerate(requests):
        try:
            yield cases.next(number, (chosen or {}).get(number))[0]
        except NoRequestError as error:
            if chosen and number in {*chosen, *chosen.values()}:
                raise
            if unusable is not None:
                unusable.append(Skipped(request.source, request.line, error.message))


def iter_in_time(
    requests: Sequence[Request], unusable: list[Skipped]
) -> Iterator[tuple[int, Case]]:
    """The place and the case of each request in the order of their starts; one that cannot be
    rendered is passed over and added to `unusable`."""
    cases = Cases(requests)
    for place in in_time(requests):
        try:
            yield place, cases.next(place)[0]
        except NoRequestError as error:
            request = requests[place]
            unusable.append(Skipped(request.source, request.line, error.message))


class Cases:
    """Compares the requests of a log, one after the other, with the right earlier one."""

    def __init__(
        self,
        requests: Sequence[Request],
        renderer: Renderer | None = None,
        *,
        consume: bool = False,
    ) -> None:
        """With `consume` a body is taken out of `requests`, a list, once a later request holds all
        of it."""
        self._replayer = Replayer(renderer)
        self._matcher = Matcher(requests, self._replayer, consume=consume)

    def next(self, number: int, chosen: int | None = None) -> tuple[Case, int | None]:
        """The case of a request, and the number of the one that it is compared with.

        Every number is asked for once, in the order of replay.

        Raises NoRequestError for a request that cannot be rendered.
        """
        exchange, before, earlier = self._matcher.next(number, chosen)
        alive = self._replayer.alive_for(before, exchange) if before is not None else None
        outcome = self._replayer.send(exchange)
        if before is None:
            return _case(replace(exchange, usage=None), exchange, outcome, first=True), None
        return _case(before, exchange, outcome, alive=alive, whole_log=True), earlier


def _case(
    before: Exchange,
    after: Exchange,
    outcome: Outcome,
    *,
    first: bool = False,
    alive: int | None = None,
    whole_log: bool = False,
) -> Case:
    usage = after.usage
    if usage is not None and usage.input == 0 and after.request.refused:
        usage = None
    same = not first and after.request.is_same_response(before.request)
    divergence = None if first else find_divergence(before.prefix, after.prefix)
    case = Case(
        before=before,
        after=after,
        outcome=outcome,
        counters=usage or outcome.usage,
        origin=Origin.REPORTED if usage else Origin.SIMULATED,
        divergence=divergence,
        changes=() if first else _all_changes(divergence, before, after),
        identical=0 if first else _identical(before, after),
        cached=0,
        lost=0,
        parts=NO_PARTS,
        part=Part.COLD,
        gap=None if first else gap_between(before.request, after.request),
        refusal=_refusal(after),
        same_response=same,
        related=False,
        whole_log=whole_log,
    )
    return replace(case, part=_first_part(case)) if first else _attributed(case, alive)


def _first_part(case: Case) -> Part:
    """What can be said of a request that has none before it."""
    if case.refusal is not None or case.after.request.refused:
        return Part.REFUSAL
    return Part.COLD if case.counters.cache_write or case.counters.cache_read else Part.NEVER_CACHED


def _all_changes(
    divergence: Change | None, before: Exchange, after: Exchange
) -> tuple[Change, ...]:
    return tuple(iter_changes(before.prefix, after.prefix)) if divergence else ()


def _identical(before: Exchange, after: Exchange) -> int:
    index = common_segments(before.prefix, after.prefix) - 1
    while index >= 0 and not after.prefix.segments[index].is_block:
        index -= 1
    return after.sizes.at(index)


def _refusal(after: Exchange) -> Refusal | None:
    if after.usage is not None and not after.request.refused:
        return None
    return find_refusal(after.prefix)


def _attributed(case: Case, alive: int | None) -> Case:
    """Adds what had been cached, what was lost, and which rule each lost token is due to.

    `alive` are the tokens of the earlier prompt whose entries had not ended, where some had.
    """
    if case.same_response:
        return replace(case, part=Part.RECORD)
    if case.refusal is not None or case.after.request.refused:
        return replace(case, part=Part.REFUSAL)
    related, cached = _sharable(case)
    could = case.outcome.could_read
    read = case.counters.cache_read
    # Entries of other requests that go on differently are no part of this comparison.
    reached = [max(read, min(_as_read(tokens, read), case.identical)) for tokens in could]
    # What had ended would have been lost without a difference too.
    ended = 0 if alive is None else max(0, cached - max(alive, reached[Relax.REACH]))
    rest = max(0, cached - ended - reached[Relax.REACH])
    appended = case.divergence is None
    due = {
        Part.PROVIDER: reached[Relax.NOTHING] - read,
        Part.VISIBILITY: reached[Relax.VISIBILITY] - reached[Relax.NOTHING],
        Part.EXPIRY: reached[Relax.EXPIRY] - reached[Relax.VISIBILITY] + ended,
        Part.PLACE: reached[Relax.PLACE] - reached[Relax.EXPIRY],
        Part.REACH: reached[Relax.REACH] - reached[Relax.PLACE] + (rest if appended else 0),
        Part.DIVERGENCE: 0 if appended else rest,
    }
    worth = {part: tokens for part, tokens in due.items() if tokens > TOLERANCE_TOKENS}
    parts = NO_PARTS | worth if worth else NO_PARTS
    if related:
        cached = max(cached, reached[Relax.REACH])
    lost = max(0, cached - read)
    part = max(worth, key=worth.__getitem__) if worth else Part.NOTHING
    if not cached and not read:
        part = Part.NEVER_CACHED if _never_caches(case) else Part.COLD
    elif not parts[part] or lost <= TOLERANCE_TOKENS:
        part = Part.NOTHING
    return replace(case, cached=cached, lost=lost, parts=parts, part=part, related=related)


def _as_read(tokens: int, read: int) -> int:
    """A computed size that is the reported one but for the rounding inside its interval."""
    return read if abs(tokens - read) <= max(TOLERANCE_TOKENS, TOLERANCE_SHARE * read) else tokens


def _never_caches(case: Case) -> bool:
    """Whether the later request leaves nothing in the cache either."""
    return not case.counters.cache_write


def _sharable(case: Case) -> tuple[bool, int]:
    """Whether the later request should share the earlier one's prefix, and how much of it was
    cached."""
    before = case.before
    reach = case.outcome.could_read[Relax.REACH]
    if case.divergence is None and before.prefix.row:
        return True, _cached_by(before, None)
    if asks_anew(case) and len(case.changes) == 1:
        if reach or not _marks_too_late(case):
            return True, reach
        return True, _cached_by(before, None)
    if _continues(case):
        return True, _cached_by(before, None)
    if _same_agent(case):
        return True, _cached_by(before, Section.MESSAGES)
    return False, reach


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


def _continues(case: Case) -> bool:
    """Whether both requests hold the same conversation."""
    before, after = (_blocks(e.prefix) for e in (case.before, case.after))
    if not before or not after:
        return False
    if are_apart(case.before.request, case.after.request):
        # Many conversations begin with the same words.
        known = {s.digest for s in before[1:]}
        return any(s.digest in known and _is_said_once(s) for s in after[1:])
    known = {s.digest for s in before}
    if any(s.digest in known and _is_said_once(s) for s in after):
        return True
    if before[0].digest == after[0].digest or looks_like_summary(case):
        return True
    texts = [_opening_text(e.prefix) for e in (case.before, case.after)]
    return min(map(len, texts)) >= LONG_TEXT and similarity(*texts) >= SIMILAR


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
    """Whether tools and system are those of one agent, though they may have changed."""
    before, after = case.before.prefix, case.after.prefix
    if before.root != after.root or not similar_systems(before, after):
        return False
    names = [set(tool_names(e)) for e in (case.before, case.after)]
    systems = [
        [s.digest for s in p.segments if s.section is Section.SYSTEM] for p in (before, after)
    ]
    if systems[0] and systems[0] == systems[1]:
        return names[0].isdisjoint(names[1]) is False or names[0] == names[1]
    return 2 * len(names[0] & names[1]) >= len(names[0] | names[1])


def _cached_by(before: Exchange, end: Section | None) -> int:
    """Tokens up to the last breakpoint of a request that was in the cache after it, ahead of
    `end`."""
    prefix, usage = before.prefix, before.usage
    if before.request.refused:
        return 0
    marks = [
        i
        for i in prefix.breakpoints
        if prefix.segments[i].section is not end and before.sizes.at(i) >= prefix.rule.minimum
    ]
    if usage is not None:
        whole = usage.cache_read + usage.cache_write
        if not whole or end is None:
            return whole
    return before.sizes.at(marks[-1]) if marks else 0
