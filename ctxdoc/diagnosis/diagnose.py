"""The three steps on a pair of requests, cheapest first, and every miss of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache.simulator import Cache
from ctxdoc.diagnosis.attribution import case_of_pair, iter_cases, iter_in_time
from ctxdoc.diagnosis.case import TOLERANCE_TOKENS
from ctxdoc.diagnosis.causes import Case, Group, Part
from ctxdoc.diagnosis.find import Finding, find_causes, first_difference
from ctxdoc.diagnosis.history_edits import refuses_thinking
from ctxdoc.diagnosis.loss import Cost, cost_of, wasted_tokens
from ctxdoc.errors import NoRequestError
from ctxdoc.pricing.cost import price
from ctxdoc.pricing.tariff import tariff_of
from ctxdoc.prompt.diff import (
    Difference,
    body_difference,
    prompt_difference,
    structural_changes,
)
from ctxdoc.replay.measure import MeasuredRequest, listed_passes, lookup_of
from ctxdoc.request import codec
from ctxdoc.request.log import Log, Skipped
from ctxdoc.request.request import Request, Section
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.estimate import ERROR_SHARE


class State(StrEnum):
    """What the cache did for the later request."""

    ALIVE = "alive"
    PARTIAL = "partial"
    DEAD = "dead"
    BELOW_MINIMUM = "below_minimum"
    COLD = "cold"
    UNKNOWN = "unknown"


class LiveSending(Struct, frozen=True, kw_only=True):
    """One live sending."""

    usage: Usage | None
    """None where it failed."""
    failure: str = ""
    reason: str = ""
    """The API's own word on a miss."""
    id: str = ""


class DoubleSend(Struct, frozen=True):
    """Step 1: what the second sending of one request reads."""

    how: str
    """live, recorded, replayed or none."""
    verdict: str
    sendings: tuple[LiveSending, ...] = ()
    """What each sending was answered, where it was live."""


NOT_SENT = DoubleSend("none", "not asked for")


class Comparison(Struct, frozen=True):
    """Step 3: the first differing byte by the three comparisons; None where nothing differs."""

    sorted_body_byte: int | None
    sorted_prompt_byte: int | None
    prompt_byte: int | None
    more: tuple[str, ...]
    """What else changed, one line each."""
    bodies_known: bool = True
    """Whether the log holds both bodies as they were sent."""


class Diagnosis(Struct, frozen=True, kw_only=True):
    """Everything that is known about one request compared with an earlier one."""

    case: Case
    state: State
    finding: Finding
    also: tuple[Finding, ...]
    double_send: DoubleSend
    comparison: Comparison | None
    """None where the diff was not needed."""
    first_difference: Difference | None
    invalidates_from: Section
    cost: Cost
    cost_origin: Origin
    notes: tuple[str, ...]
    """What could not be checked, and why."""
    chosen: str = ""
    """Which of a log's requests this is, and how to see the others."""

    @property
    def survives(self) -> int | None:
        """Tokens of the prompt that were read; None for a refused or repeated record, and where the
        counters add up passes that are not listed."""
        if self._no_lookup:
            return None
        after = self.case.after
        listed = listed_passes(after.request) if after.passes else ()
        if after.passes and self.case.measured and not listed:
            return None
        return listed[0].cache_read if listed else self.case.counters.cache_read

    @property
    def lost(self) -> int | None:
        """Tokens that had been cached and were not read; None as above."""
        return None if self._no_lookup else self.case.lost

    @property
    def tokens_origin(self) -> Origin:
        """Where what survived and what was lost come from: two counters, or the sizes of the model."""
        case = self.case
        one, two = case.before, case.after
        if case.measured and one.usage is not None and not (one.passes or two.passes):
            told = one.usage.cache_read + one.usage.cache_write - case.counters.cache_read
            if case.lost in (0, told):
                return Origin.REPORTED
        return two.sizes.origin

    @property
    def _no_lookup(self) -> bool:
        return self.case.part in (Part.REFUSAL, Part.RECORD)


def diagnose_pair(before: Request, after: Request, *, always_diff: bool = False) -> Diagnosis:
    """The diagnosis of two requests of which nothing earlier is known."""
    return _diagnosis(case_of_pair(before, after), always_diff=always_diff)


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
    # Each request is judged without the comparison of bodies; that is made for the one that is shown.
    worst: Diagnosis | None = None
    unusable: list[Skipped] = []
    faults: list[int] = []
    for index, case in iter_in_time(log.requests, unusable):
        number = index + 1
        found = _diagnosis(case, always_diff=always_diff, quick=True)
        if _is_fault(found):
            faults.append(number)
        if worst is None or _rank_of_miss(found) >= _rank_of_miss(worst):
            worst = found
    faults.sort()
    if worst is None:
        hint = "'ctxdoc replay' shows what the log tells without bodies"
        raise NoRequestError(f"no usable request: {unusable[0].reason}", hint)
    found = _diagnosis(worst.case, always_diff=always_diff)
    found = replace(found, chosen=_choice(faults, len(log.requests)))
    if not unusable:
        return found
    note = f"{len(unusable)} requests cannot be rendered, the first: {unusable[0].reason}"
    return replace(found, notes=(*found.notes, note))


def _is_fault(found: Diagnosis) -> bool:
    """Whether something is to be done about a request, or was lost in it."""
    cause, case = found.finding.cause, found.case
    if cause.group is Group.HEALTHY:
        return False
    if case.is_loss or case.part in (Part.REFUSAL, Part.RECORD):
        return True
    if cause.group is Group.ACCOUNTING:
        return found.finding.avoidable
    return found.finding.avoidable and wasted_tokens(case, cause.id) is not None


def _choice(faults: list[int], count: int) -> str:
    if not faults:
        return f"the last of {count} requests; none of them shows a fault"
    if len(faults) == 1:
        return f"the one request with a fault, of {count} (number {faults[0]})"
    named = ", ".join(str(number) for number in faults[:8]) + (", …" if len(faults) > 8 else "")
    return f"the costliest of {len(faults)} requests with a fault, of {count} (numbers {named})"


def _rank_of_miss(found: Diagnosis) -> tuple[bool, Decimal, int, bool]:
    return (
        _is_fault(found),
        found.cost.lost or Decimal(0),
        found.case.lost,
        found.case.related,
    )


def iter_misses(requests: Sequence[Request]) -> Iterator[Diagnosis]:
    """The diagnosis of every request in which something is wrong."""
    for _, case in iter_in_time(requests, []):
        found = _diagnosis(case, quick=True)
        if _is_fault(found):
            yield found


def _diagnosis(case: Case, *, always_diff: bool = False, quick: bool = False) -> Diagnosis:
    finding, also = find_causes(case)
    state = _state(case)
    healthy = finding.cause.group is Group.HEALTHY and state in (State.ALIVE, State.COLD)
    needed = always_diff or (not healthy and case.divergence is not None)
    return Diagnosis(
        case=case,
        state=state,
        finding=finding,
        also=also,
        double_send=NOT_SENT if quick else _double_send(case),
        comparison=_compare(case) if needed and not quick else None,
        first_difference=first_difference(case),
        invalidates_from=_invalidates_from(case),
        cost=cost_of(case),
        cost_origin=_cost_origin(case),
        notes=() if quick else _notes(case),
    )


def _state(case: Case) -> State:
    if case.part is Part.REFUSAL:
        known = case.refusal is not None or refuses_thinking(case.after.request.refused)
        # An error that may pass, such as an overload, says nothing of the cache.
        return State.DEAD if known else State.UNKNOWN
    if case.counters.cache_read:
        return State.PARTIAL if case.is_loss else State.ALIVE
    return _unread_state(case)


def _unread_state(case: Case) -> State:
    """The state where nothing was read."""
    if case.part is Part.NEVER_CACHED:
        return State.BELOW_MINIMUM if _too_short(case) else State.DEAD
    cold = case.part in (Part.RECORD, Part.COLD, Part.VISIBILITY)
    return State.COLD if cold else State.DEAD


def _too_short(case: Case) -> bool:
    """Whether a breakpoint would not help, or did not."""
    sizes, prefix = case.after.sizes, case.after.prefix
    return bool(prefix.breakpoints) or sizes.total < prefix.rule.minimum


def _invalidates_from(case: Case) -> Section:
    if case.divergence is not None and refuses_thinking(case.after.request.refused):
        return case.divergence.level
    if not case.is_loss or case.part is Part.VISIBILITY:
        return Section.NONE
    if case.divergence is not None and case.parts[Part.DIVERGENCE]:
        return case.divergence.level
    return _level_behind(case.after, case.counters.cache_read + TOLERANCE_TOKENS)


def _level_behind(after: MeasuredRequest, tokens: int) -> Section:
    """The part of the prompt that goes on behind so many tokens."""
    sized = zip(after.prefix.segments, after.sizes.upto, strict=True)
    return next((segment.level for segment, upto in sized if upto > tokens), Section.NONE)


def _double_send(case: Case) -> DoubleSend:
    """Step 1 from the record, or from the cache model."""
    before, after = case.before, case.after
    if case.part is Part.REFUSAL:
        return DoubleSend("none", "the API refuses the request, so a second sending reads nothing")
    if before.prefix.keys == after.prefix.keys and case.measured and not case.alone:
        read = f"{case.counters.cache_read:,} of {case.counters.input:,} tokens"
        return DoubleSend(
            "recorded", f"the log holds the same prompt twice; the second read {read}"
        )
    step = replace(lookup_of(after), at=None, began=None)
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
        sorted_body_byte=body_difference(one, two) if one and two else None,
        bodies_known=bool(one and two),
        sorted_prompt_byte=prompt_difference(before.prefix, after.prefix, in_order=False),
        prompt_byte=prompt_difference(before.prefix, after.prefix, in_order=True),
        more=tuple(_what_else(case)),
    )


def _what_else(case: Case) -> Iterator[str]:
    """The other differences, with what changed inside blocks that have a structure."""
    for change in case.changes:
        difference = change.difference
        one, two = change.before, change.after
        if difference.pointer != case.where:
            yield f"{difference.pointer}: {_kind_of_change(difference)}"
        structured = isinstance(difference.before, dict | list) or isinstance(
            difference.after, dict | list
        )
        if structured and one is not None and two is not None:
            yield from structural_changes(codec.plain(one.value), codec.plain(two.value))


def _kind_of_change(difference: Difference) -> str:
    if difference.before is None:
        return "added"
    return "removed" if difference.after is None else "changed"


def _cost_origin(case: Case) -> Origin:
    return Origin.REPORTED if case.measured else case.after.sizes.origin


def _notes(case: Case) -> tuple[str, ...]:
    """What the numbers rest on and what could not be checked."""
    own = (*_log_notes(case), *_size_notes(case.after), *_counter_notes(case))
    return (*own, *case.before.request.notes, *case.after.request.notes)


def _log_notes(case: Case) -> Iterator[str]:
    """What the log does not tell."""
    if not case.after.request.is_exact:
        yield "the log holds no exact bodies: key order and the spelling of numbers are not checked"
    if case.gap is None and not case.alone:
        yield "no times in the log: lifetimes and parallel starts are not checked"
    if case.gap is not None and case.gap < 0:
        yield "the later request is dated before the earlier one"
    if not case.measured:
        yield "no counters of the later request: reads and writes are simulated"


def _size_notes(after: MeasuredRequest) -> Iterator[str]:
    """What the sizes of the prompt and its breakpoints rest on."""
    rule = after.prefix.rule
    if after.sizes.origin is Origin.ESTIMATED:
        yield f"token counts are estimated from characters (±{ERROR_SHARE:.0%})"
    if not rule.known:
        name = after.prefix.model or "(no model)"
        yield f"model '{name}' is not known: minimum {rule.minimum:,} assumed"
    elif rule.minimum_assumed:
        yield f"the minimum of {rule.id} is not documented; assumed"
    if after.breakpoints_assumed:
        yield (
            "the recorded body has no breakpoint, yet the API cached: they were added behind the "
            "recorder; assumed at the ends of tools, system and messages"
        )


def _counter_notes(case: Case) -> Iterator[str]:
    """What the counters of the later request do not tell, or tell otherwise than its body."""
    after = case.after
    usage, right = after.usage, after.corrected
    if price(usage or case.counters, tariff_of(after.request)) is None:
        yield "this model is unpriced: no amounts are given"
    if right is not None:
        yield (
            f"the log counts cached tokens twice: input_tokens {right.uncached:,} without them; the reported "
            "counters stand as they are"
        )
    if after.hour_lost:
        yield "the body asks for entries of an hour; the counters show five-minute ones"
    if after.passes:
        yield (
            "the counters add up several passes over the prompt (tools that the API ran): they are no size of "
            "a prefix"
        )
    if usage is not None and not usage.split_known:
        yield "lifetimes of the writes are not logged: priced as 5m"
