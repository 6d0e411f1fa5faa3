"""Breakpoints that the API refuses."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment


class RefusalCode(StrEnum):
    """A rule for which the API answers a request with 400."""

    INVALID_TARGET = "invalid target"
    """A breakpoint on something that cannot carry one."""
    OVER_LIMIT = "over limit"
    """More breakpoints than the provider allows."""
    LIFETIMES = "lifetimes"
    """Lifetimes of breakpoints that contradict each other."""
    MESSAGE_SHAPE = "message shape"
    """A conversation that is cut between a call and its result."""


class Refusal(Struct, frozen=True):
    """Why the API would answer a request with 400, as far as its body shows it."""

    code: RefusalCode
    pointer: str
    text: str


def find_refusal(prefix: Prefix) -> Refusal | None:
    """The first rule on breakpoints that a request breaks."""
    # What the API drops from the prompt is checked all the same: a marked block of it is refused.
    marked = [s for s in (*prefix.segments, *prefix.unrendered) if s.ttl]
    for segment in marked:
        if segment.mark_fault:
            return Refusal(RefusalCode.INVALID_TARGET, segment.pointer, segment.mark_fault)
    most = prefix.rule.rules.max_breakpoints
    if len(marked) > most:
        text = f"{len(marked)} breakpoints"
        return Refusal(RefusalCode.OVER_LIMIT, marked[most].pointer, text)
    return _refused_order(prefix, marked)


def _refused_order(prefix: Prefix, marked: list[Segment]) -> Refusal | None:
    """A longer lifetime behind a shorter one: entries of the longer ones have to come first (facts 1.4)."""
    rules, seen_short = prefix.rule.rules, ""
    for segment in marked:
        if rules.seconds(segment.ttl) == rules.shortest:
            seen_short = segment.pointer
        elif seen_short:
            return Refusal(RefusalCode.LIFETIMES, segment.pointer, seen_short)
    return None
