"""Breakpoints that the API refuses."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.providers.rules import Provider


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
    rules = prefix.rule.rules
    # Deferred tools and stripped thinking are no part of the prompt, but the API checks their marks.
    marked = [s for s in (*prefix.segments, *prefix.unrendered) if s.ttl]
    return (
        _on_wrong_block(marked)
        or _over_limit(marked, rules.max_breakpoints)
        or _out_of_order(marked, rules)
    )


def _on_wrong_block(marked: Sequence[Segment]) -> Refusal | None:
    """A breakpoint on a block that can carry none: thinking, an empty text, a deferred tool."""
    for segment in marked:
        if segment.mark_fault:
            return Refusal(RefusalCode.INVALID_TARGET, segment.pointer, segment.mark_fault)
    return None


def _over_limit(marked: Sequence[Segment], most: int) -> Refusal | None:
    """More breakpoints than a request may have; it points at the first that is too many."""
    if len(marked) <= most:
        return None
    return Refusal(RefusalCode.OVER_LIMIT, marked[most].pointer, f"{len(marked)} breakpoints")


def _out_of_order(marked: Sequence[Segment], rules: Provider) -> Refusal | None:
    """A longer lifetime behind a shorter one: the long ones have to come first (facts 1.4)."""
    seen_short = ""
    for segment in marked:
        seconds = rules.seconds(segment.ttl)
        if seen_short and seconds > rules.shortest:
            return Refusal(RefusalCode.LIFETIMES, segment.pointer, seen_short)
        if seconds == rules.shortest:
            seen_short = segment.pointer
    return None
