"""The three steps on a pair of requests, cheapest first, and every miss of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc import canonical
from ctxdoc.cache import (
    FIRST_RESPONSE_SECONDS,
    Cache,
    Outcome,
    Refusal,
    Relax,
    Step,
    find_refusal,
)
from ctxdoc.causes import CAUSES, Case, Cause, Match, Part
from ctxdoc.causes.base import Exchange
from ctxdoc.causes.changed_text import similarity
from ctxdoc.causes.content import (
    INJECTED,
    asks_anew,
    looks_like_summary,
    similar_systems,
    tool_names,
)
from ctxdoc.diff import (
    Change,
    Place,
    body_difference,
    common_segments,
    find_divergence,
    find_unrendered,
    iter_changes,
    prompt_difference,
    structural_changes,
)
from ctxdoc.errors import NoRequestError
from ctxdoc.model import NULL, Log, Origin, Request, Section, Skipped, Usage
from ctxdoc.pricing import price, tariff_of
from ctxdoc.render import Prefix, Segment, render
from ctxdoc.tokens import Ledger, Sizes

TOLERANCE_TOKENS = 20
"""A difference of so few tokens is no loss."""
TOLERANCE_SHARE = 0.03
"""Relative error of a computed size."""
SHORT_TEXT = 16
LONG_TEXT = 64
"""Characters or bytes from which on equal text is no chance."""
SIMILAR = 0.5
"""Share of equal text from which on two texts are one text that was changed."""


class State(StrEnum):
    """What the cache did for the later request."""

    ALIVE = "alive"
    PARTIAL = "partial"
    DEAD = "dead"
    BELOW_MINIMUM = "below_minimum"
    COLD = "cold"
    UNKNOWN = "unknown"


class Finding(Struct, frozen=True, kw_only=True):
    """One cause in one request."""

    cause: Cause
    match: Match


class DoubleSend(Struct, frozen=True):
    """Step 1: what the second sending of one request reads."""

    how: str
    """live, recorded, replayed or none."""
    verdict: str


class Comparison(Struct, frozen=True):
    """Step 3: the first differing byte by the three comparisons; None where nothing differs."""

    sorted_body_byte: int | None
    sorted_prompt_byte: int | None
    prompt_byte: int | None
    more: tuple[str, ...]
    """What else changed, one line each."""


class Cost(Struct, frozen=True):
    """USD for the later request; None where the model is unpriced."""

    paid: Decimal | None
    if_hit: Decimal | None

    @property
    def lost(self) -> Decimal | None:
        """What the miss cost."""
        if self.paid is None or self.if_hit is None:
            return None
        return self.paid - self.if_hit


class Diagnosis(Struct, frozen=True, kw_only=True):
    """Everything that is known about one request compared with an earlier one."""

    case: Case
    state: State
    finding: Finding
    also: tuple[Finding, ...]
    double_send: DoubleSend
    comparison: Comparison | None
    """None where the diff was not needed."""
    first_difference: Place | None
    invalidates_from: Section
    cost: Cost
    cost_origin: Origin
    notes: tuple[str, ...]
    """What could not be checked, and why."""
    chosen: str = ""
    """Which of a log's requests this is, and how to see the others."""

    @property
    def survives(self) -> int | None:
        """Tokens that were read; None for a refused or repeated record."""
        return None if self._no_lookup else self.case.counters.cache_read

    @property
    def lost(self) -> int | None:
        """Tokens that had been cached and were not read; None as above."""
        return None if self._no_lookup else self.case.lost

    @property
    def _no_lookup(self) -> bool:
        return self.case.part in (Part.REFUSAL, Part.RECORD)


class Replayer:
    """Feeds requests to the cache one by one and keeps what a comparison needs."""

    def __init__(self) -> None:
        self.cache = Cache()
        self.ledger = Ledger()

    def measure(self, request: Request, before: Exchange | None = None) -> Exchange:
        """Renders a request and sizes its prompt."""
        prefix = render(request)
        usage = request.usage
        assumed = bool(usage and usage.cache_read + usage.cache_write and not prefix.breakpoints)
        if assumed:
            prefix = _with_assumed_breakpoints(prefix)
        corrected = _corrected(prefix, usage)
        if before is not None and corrected is not None:
            self._note_read(before, prefix, corrected.cache_read)
        return Exchange(
            request=request,
            prefix=prefix,
            sizes=self.ledger.measure(prefix, corrected),
            usage=corrected,
            double_counted=corrected is not usage,
            markers_assumed=assumed,
        )

    def _note_read(self, before: Exchange, prefix: Prefix, tokens: int) -> None:
        """What was read ends at the earlier request's breakpoint of the nearest size."""
        shared = common_segments(before.prefix, prefix)
        marks = [m for m in before.prefix.breakpoints if m < shared]
        if not tokens or not marks:
            return
        nearest = min(marks, key=lambda m: abs(before.sizes.at(m) - tokens))
        if prefix.keys[nearest] not in self.ledger.known:
            self.ledger.note(prefix, tokens, nearest)

    def send(self, exchange: Exchange) -> Outcome:
        """Looks the request up and stores what it writes; a refused one writes nothing."""
        step = _step(exchange)
        if exchange.request.refused or (find_refusal(exchange.prefix) and not exchange.usage):
            return Cache().send(
                replace(step, prefix=replace(step.prefix, segments=()), sizes=NO_SIZES)
            )
        return self.cache.send(step)


NO_SIZES = Sizes(upto=(), total=0, origin=Origin.NONE)


def _step(exchange: Exchange) -> Step:
    request = exchange.request
    return Step(
        prefix=exchange.prefix,
        sizes=exchange.sizes,
        at=request.at,
        began=_began(request),
        place=request.place,
    )


def _began(request: Request) -> datetime | None:
    """Start of the response: not known better than by the assumption, or by the end if sooner."""
    if request.at is None:
        return None
    seconds = FIRST_RESPONSE_SECONDS
    if request.duration is not None:
        seconds = min(seconds, request.duration)
    return request.at + timedelta(seconds=seconds)


def _corrected(prefix: Prefix, usage: Usage | None) -> Usage | None:
    """Counters without the cached part that some loggers count in input_tokens as well.

    The evidence: input_tokens is at least as large as reads and writes together, although next to
    nothing stands behind the last breakpoint.
    """
    if usage is None or not prefix.breakpoints:
        return usage
    cached = usage.cache_read + usage.cache_write
    rest = usage.uncached - cached
    if not cached or rest < 0:
        return usage
    behind = prefix.segments[prefix.breakpoints[-1] + 1 :]
    share = sum(len(s.data) for s in behind) / max(1, prefix.data_length)
    if share > 0.5 * usage.uncached / (usage.uncached + cached):
        return usage
    return replace(usage, uncached=rest)


def _with_assumed_breakpoints(prefix: Prefix) -> Prefix:
    """Breakpoints at the ends of tools, system and messages, for a body that lost them in the log."""
    ends = {s.section: i for i, s in enumerate(prefix.segments) if s.is_block and not s.mark_fault}
    segments = tuple(
        replace(s, ttl="5m") if ends.get(s.section) == i else s
        for i, s in enumerate(prefix.segments)
    )
    return replace(prefix, segments=segments)


def diagnose_pair(before: Request, after: Request, *, always_diff: bool = False) -> Diagnosis:
    """The diagnosis of two requests of which nothing earlier is known."""
    replayer = Replayer()
    one = replayer.measure(before)
    replayer.send(one)
    two = replayer.measure(after, one)
    case = _case(one, two, replayer.send(two))
    return _diagnosis(case, always_diff=always_diff)


def diagnose_log(
    log: Log, pair: tuple[int, int] | None = None, *, always_diff: bool = False
) -> Diagnosis:
    """The diagnosis of a request of a log, with everything before it replayed.

    `pair` names the two requests, counted from 1; without it the costliest miss is taken, or the
    last request when there is none. Raises ValueError for a pair outside of the log.
    """
    if pair is not None:
        before, after = pair
        if not 1 <= before < after <= len(log.requests):
            raise ValueError(f"--pair takes two numbers from 1 to {len(log.requests)}, in order")
        cases = list(iter_cases(log.requests[:after], {after - 1: before - 1}))
        return _diagnosis(cases[-1], always_diff=always_diff)
    worst: Diagnosis | None = None
    unusable: list[Skipped] = []
    faults: list[int] = []
    for number, case in enumerate(iter_cases(log.requests, unusable=unusable), start=1):
        found = _diagnosis(case, always_diff=always_diff, quick=True)
        if found.finding.cause.group != "healthy":
            faults.append(number)
        if worst is None or _rank_of_miss(found) >= _rank_of_miss(worst):
            worst = found
    if worst is None:
        raise NoRequestError(f"no usable request: {unusable[0].reason}")
    found = _diagnosis(worst.case, always_diff=always_diff)
    found = replace(found, chosen=_choice(faults, len(log.requests)))
    if not unusable:
        return found
    note = f"{len(unusable)} requests cannot be rendered, the first: {unusable[0].reason}"
    return replace(found, notes=(*found.notes, note))


def _choice(faults: list[int], count: int) -> str:
    if not faults:
        return f"the last of {count} requests; none of them shows a fault"
    named = ", ".join(str(number) for number in faults[:8]) + (", …" if len(faults) > 8 else "")
    return f"the costliest of {len(faults)} requests with a fault, of {count} (numbers {named})"


def _rank_of_miss(found: Diagnosis) -> tuple[bool, Decimal, int]:
    return (
        found.finding.cause.group != "healthy",
        found.cost.lost or Decimal(0),
        found.case.lost,
    )


def iter_misses(requests: Sequence[Request]) -> Iterator[Diagnosis]:
    """The diagnosis of every request in which something is wrong."""
    for case in iter_cases(requests):
        found = _diagnosis(case, quick=True)
        if found.finding.cause.group != "healthy":
            yield found


def iter_cases(
    requests: Sequence[Request],
    chosen: dict[int, int] | None = None,
    unusable: list[Skipped] | None = None,
) -> Iterator[Case]:
    """Each request of a log compared with the right earlier one; `chosen` picks it by index.

    A request that cannot be rendered is passed over and added to `unusable`. Raises NoRequestError
    when `chosen` names it.
    """
    replayer = Replayer()
    index = _Earlier()
    exchanges: dict[int, Exchange] = {}
    for number, request in enumerate(requests):
        try:
            draft = render(request)
        except NoRequestError as error:
            if chosen and number in {*chosen, *chosen.values()}:
                raise
            if unusable is not None:
                unusable.append(Skipped(request.source, request.line, error.message))
            continue
        earlier = (chosen or {}).get(number, index.find(draft))
        before = exchanges[earlier] if earlier is not None else None
        exchange = replayer.measure(request, before)
        outcome = replayer.send(exchange)
        if before is None:
            before = replace(exchange, usage=None)
            yield _case(before, exchange, outcome, first=True)
        else:
            yield _case(before, exchange, outcome, whole_log=True)
        exchanges[number] = exchange
        if not request.refused:
            index.add(draft, number)


class _Earlier:
    """Finds the request that another one continues: it holds the same messages in a row, or else
    the longest equal prefix."""

    def __init__(self) -> None:
        self._pairs: dict[bytes, int] = {}
        self._prefixes: dict[bytes, int] = {}
        self._last: int | None = None

    def find(self, prefix: Prefix) -> int | None:
        for key in reversed(self._row(prefix)):
            if key in self._pairs:
                return self._pairs[key]
        for key in reversed(prefix.keys):
            if key in self._prefixes:
                return self._prefixes[key]
        return self._last

    def add(self, prefix: Prefix, number: int) -> None:
        self._last = number
        for key in self._row(prefix):
            self._pairs[key] = number
        for key in prefix.keys:
            self._prefixes[key] = number

    def _row(self, prefix: Prefix) -> list[bytes]:
        """Each message block together with the one before it."""
        found, last = [], b""
        for segment in prefix.segments:
            if segment.section is Section.MESSAGES and segment.is_block:
                found.append(last + b"\0" + segment.data)
                last = segment.data
        return found


def _case(
    before: Exchange,
    after: Exchange,
    outcome: Outcome,
    *,
    first: bool = False,
    whole_log: bool = False,
) -> Case:
    usage = after.usage
    if usage is not None and usage.input == 0 and after.request.refused:
        usage = None
    same = not first and bool(after.request.id) and after.request.id == before.request.id
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
        parts=dict.fromkeys(Part, 0),
        part=Part.COLD,
        gap=None if first else _gap(before.request, after.request),
        refusal=_refusal(after),
        same_response=same,
        related=False,
        cost_right=(_cost_of(before, before.usage), _cost_of(after, usage)),
        whole_log=whole_log,
    )
    return replace(case, part=_first_part(case)) if first else _attributed(case)


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
    count = common_segments(before.prefix, after.prefix)
    blocks = [i for i in range(count) if after.prefix.segments[i].is_block]
    return after.sizes.at(blocks[-1]) if blocks else 0


def _gap(before: Request, after: Request) -> float | None:
    if before.at is None or after.at is None:
        return None
    return (after.at - before.at).total_seconds()


def _refusal(after: Exchange) -> Refusal | None:
    if after.usage is not None and not after.request.refused:
        return None
    return find_refusal(after.prefix)


def _cost_of(exchange: Exchange, usage: Usage | None) -> Decimal | None:
    return price(usage, tariff_of(exchange.request)) if usage else None


def _attributed(case: Case) -> Case:
    """Adds what had been cached, what was lost, and which rule each lost token is due to."""
    if case.same_response:
        return replace(case, part=Part.RECORD)
    if case.refusal is not None or case.after.request.refused:
        return replace(case, part=Part.REFUSAL)
    related, cached = _sharable(case)
    could = case.outcome.could_read
    read = case.counters.cache_read
    # Entries of other requests that go on differently are no part of this comparison.
    reached = [max(read, min(_as_read(tokens, read), case.identical)) for tokens in could]
    parts = dict.fromkeys(Part, 0)
    parts[Part.PROVIDER] = reached[Relax.NOTHING] - read
    parts[Part.VISIBILITY] = reached[Relax.VISIBILITY] - reached[Relax.NOTHING]
    parts[Part.EXPIRY] = reached[Relax.EXPIRY] - reached[Relax.VISIBILITY]
    parts[Part.PLACE] = reached[Relax.PLACE] - reached[Relax.EXPIRY]
    parts[Part.REACH] = reached[Relax.REACH] - reached[Relax.PLACE]
    parts[Part.DIVERGENCE] = max(0, cached - reached[Relax.REACH])
    parts = {part: tokens if tokens > TOLERANCE_TOKENS else 0 for part, tokens in parts.items()}
    if related:
        cached = max(cached, reached[Relax.REACH])
    lost = max(0, cached - read)
    part = max(parts, key=lambda name: parts[name])
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
    known = {s.data for s in before}
    if any(s.data in known and _is_said_once(s) for s in after):
        return True
    if before[0].data == after[0].data or looks_like_summary(case):
        return True
    texts = [_opening_text(e.prefix) for e in (case.before, case.after)]
    return min(map(len, texts)) >= LONG_TEXT and similarity(*texts) >= SIMILAR


def _is_said_once(segment: Segment) -> bool:
    """Whether a block is so long, and so much the user's own, that two conversations do not share
    it by chance."""
    if segment.kind != "text":
        return True
    text = _text(segment)
    return len(text) >= SHORT_TEXT and not INJECTED.fullmatch(text)


def _blocks(prefix: Prefix) -> list[Segment]:
    return [s for s in prefix.segments if s.section is Section.MESSAGES and s.is_block]


def _opening_text(prefix: Prefix) -> str:
    return next((_text(segment) for segment in _blocks(prefix)), "")


def _text(segment: Segment) -> str:
    value = segment.value
    return str(value.get("text", "")) if isinstance(value, dict) else ""


def _same_agent(case: Case) -> bool:
    """Whether tools and system are those of one agent, though they may have changed."""
    before, after = case.before.prefix, case.after.prefix
    if before.root != after.root or not similar_systems(before, after):
        return False
    names = [set(tool_names(e)) for e in (case.before, case.after)]
    systems = [[s.data for s in p.segments if s.section is Section.SYSTEM] for p in (before, after)]
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


def _diagnosis(case: Case, *, always_diff: bool = False, quick: bool = False) -> Diagnosis:
    finding, also = _find(case)
    state = _state(case)
    healthy = finding.cause.group == "healthy" and state in (State.ALIVE, State.COLD)
    needed = always_diff or (not healthy and case.divergence is not None)
    return Diagnosis(
        case=case,
        state=state,
        finding=finding,
        also=also,
        double_send=_double_send(case),
        comparison=_compare(case) if needed and not quick else None,
        first_difference=_first_difference(case),
        invalidates_from=_invalidates_from(case),
        cost=_cost(case),
        cost_origin=_cost_origin(case),
        notes=_notes(case),
    )


def _find(case: Case) -> tuple[Finding, tuple[Finding, ...]]:
    """The cause that explains the largest part of the loss at the first difference, and the other
    true ones."""
    found: list[Finding] = []
    for cause in CAUSES:
        if cause.parts.isdisjoint(_open_parts(case)):
            continue
        match = cause.match(case)
        if match is not None:
            found.append(Finding(cause=cause, match=match))
    primary = next(finding for finding in found if _explains(finding, case))
    also = [f for f in found if f is not primary and _worth_saying(f, primary)]
    return primary, tuple(also)


def _open_parts(case: Case) -> set[Part]:
    """The parts of the loss that are there to be explained, and the accounting beside it."""
    if case.part in (Part.RECORD, Part.REFUSAL, Part.COLD, Part.NEVER_CACHED):
        return {case.part, Part.ACCOUNTING, *(() if case.part is Part.RECORD else LAST)}
    lost = {part for part, tokens in case.parts.items() if tokens}
    return {*lost, Part.WASTE, Part.ACCOUNTING, *LAST}


LAST = (Part.NOTHING,)


def _explains(finding: Finding, case: Case) -> bool:
    cause = finding.cause
    if case.part is Part.NOTHING:
        return bool(cause.parts & {Part.WASTE, Part.ACCOUNTING, Part.NOTHING})
    if cause.id == "unexplained":
        return True
    if case.part not in cause.parts:
        return False
    match = finding.match
    return case.part is not Part.DIVERGENCE or (match.leading and match.pointer == case.where)


def _worth_saying(finding: Finding, primary: Finding) -> bool:
    cause = finding.cause
    if cause.group == "healthy" or cause.id == "unexplained":
        return False
    return not (cause.general and finding.match.pointer == primary.match.pointer)


def _state(case: Case) -> State:
    read = case.counters.cache_read
    if case.part is Part.RECORD:
        return State.COLD if not read else State.ALIVE
    if case.part is Part.REFUSAL:
        return State.DEAD if case.refusal is not None else State.UNKNOWN
    if read:
        return State.PARTIAL if case.lost > TOLERANCE_TOKENS else State.ALIVE
    if case.part is Part.NEVER_CACHED:
        return State.BELOW_MINIMUM if _too_short(case) else State.DEAD
    if case.part in (Part.COLD, Part.VISIBILITY):
        return State.COLD
    return State.DEAD


def _too_short(case: Case) -> bool:
    return CAUSES["no_breakpoint"].match(case) is None


def _first_difference(case: Case) -> Place | None:
    if case.part is Part.RECORD:
        return None
    if case.divergence is not None:
        return case.divergence.place
    return find_unrendered(case.before.prefix, case.after.prefix)


def _invalidates_from(case: Case) -> Section:
    if case.lost <= TOLERANCE_TOKENS or case.part is Part.VISIBILITY:
        return Section.NONE
    if case.divergence is not None and case.parts[Part.DIVERGENCE]:
        return case.divergence.level
    sizes, segments = case.after.sizes, case.after.prefix.segments
    for segment, upto in zip(segments, sizes.upto, strict=True):
        if upto > case.counters.cache_read + TOLERANCE_TOKENS:
            return segment.level
    return Section.NONE


def _double_send(case: Case) -> DoubleSend:
    """Step 1 from the record, or from the cache model."""
    before, after = case.before, case.after
    if case.part is Part.REFUSAL:
        return DoubleSend("none", "the API refuses the request, so a second sending reads nothing")
    if before.prefix.keys == after.prefix.keys and before is not after and case.measured:
        read = f"{case.counters.cache_read:,} of {case.counters.input:,} tokens"
        return DoubleSend(
            "recorded", f"the log holds the same prompt twice; the second read {read}"
        )
    step = replace(_step(after), at=None, began=None)
    cache = Cache()
    cache.send(step)
    again = cache.send(step).usage
    if again.cache_read:
        text = (
            f"sent again at once, the request would read {again.cache_read:,} of "
            f"{again.input:,} tokens: it can be cached"
        )
    elif not after.prefix.breakpoints:
        text = "sent again at once, the request would read nothing: it has no breakpoint"
    else:
        text = "sent again at once, the request would read nothing: it is below the minimum"
    return DoubleSend("replayed", text)


def _compare(case: Case) -> Comparison:
    before, after = case.before, case.after
    one, two = before.request.raw, after.request.raw
    return Comparison(
        sorted_body_byte=body_difference(one or NULL, two or NULL),
        sorted_prompt_byte=prompt_difference(before.prefix, after.prefix, in_order=False),
        prompt_byte=prompt_difference(before.prefix, after.prefix, in_order=True),
        more=tuple(_what_else(case)),
    )


def _what_else(case: Case) -> Iterator[str]:
    """The other differences, with what changed inside blocks that have a structure."""
    for change in case.changes:
        place = change.place
        one, two = change.before, change.after
        if place.pointer != case.where:
            yield f"{place.pointer}: {_kind_of_change(place)}"
        structured = isinstance(place.before, dict | list) or isinstance(place.after, dict | list)
        if structured and one is not None and two is not None:
            yield from structural_changes(canonical.plain(one.value), canonical.plain(two.value))


def _kind_of_change(place: Place) -> str:
    if place.before is None:
        return "added"
    return "removed" if place.after is None else "changed"


def _cost(case: Case) -> Cost:
    if case.part in (Part.RECORD, Part.REFUSAL):
        return Cost(None, None)
    tariff = tariff_of(case.after.request)
    paid = price(case.counters, tariff)
    return Cost(paid, price(_if_hit(case.counters, case.lost), tariff))


def _if_hit(usage: Usage, lost: int) -> Usage:
    """The same request, had the lost tokens been read; never more than were written or uncached."""
    left = lost
    taken = {}
    for name in ("cache_write_5m", "cache_write_1h", "uncached"):
        part = min(left, getattr(usage, name))
        taken[name] = getattr(usage, name) - part
        left -= part
    return replace(usage, **taken, cache_read=usage.cache_read + lost - left)


def _cost_origin(case: Case) -> Origin:
    return Origin.REPORTED if case.measured else case.after.sizes.origin


def _notes(case: Case) -> tuple[str, ...]:
    """What the numbers rest on and what could not be checked."""
    notes = []
    before, after = case.before, case.after
    if case.gap is None and before is not after:
        notes.append("no times in the log: lifetimes and parallel starts are not checked")
    if case.gap is not None and case.gap < 0:
        notes.append("the later request is dated before the earlier one")
    if not case.measured:
        notes.append("no counters of the later request: reads and writes are simulated")
    if after.sizes.origin is Origin.ESTIMATED:
        notes.append("token counts are estimated from characters (±25 %)")
    if not after.prefix.rule.known:
        name = after.prefix.model or "(no model)"
        notes.append(f"model '{name}' is not known: minimum {after.prefix.rule.minimum:,} assumed")
    elif after.prefix.rule.minimum_assumed:
        notes.append(f"the minimum of {after.prefix.rule.id} is not documented; assumed")
    if after.markers_assumed:
        notes.append(
            "the recorded body has no breakpoint, yet the API cached: they were added behind the "
            "recorder; assumed at the ends of tools, system and messages"
        )
    if price(after.usage or case.counters, tariff_of(after.request)) is None:
        notes.append("this model is unpriced: no amounts are given")
    if after.usage is not None and not after.usage.split_known:
        notes.append("lifetimes of the writes are not logged: priced as 5m")
    return (*notes, *before.request.notes, *after.request.notes)
