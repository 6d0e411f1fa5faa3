"""Breakpoints that the API refuses."""

from __future__ import annotations

from msgspec import Struct

from ctxdoc.prompt.prefix import Prefix


class Refusal(Struct, frozen=True):
    """Why the API would answer a request with 400, as far as breakpoints go."""

    cause: str
    pointer: str
    text: str


def find_refusal(prefix: Prefix) -> Refusal | None:
    """The first rule on breakpoints that a request breaks."""
    rules = prefix.rule.rules
    everything = [*prefix.segments, *prefix.unrendered]
    marked = [s for s in everything if s.ttl]
    for segment in marked:
        if segment.mark_fault:
            return Refusal("breakpoint_invalid_target", segment.pointer, segment.mark_fault)
    if len(marked) > rules.max_breakpoints:
        fifth = marked[rules.max_breakpoints]
        return Refusal("breakpoint_over_limit", fifth.pointer, f"{len(marked)} breakpoints")
    seen_short = ""
    for segment in marked:
        if seen_short and rules.seconds(segment.ttl) > rules.shortest:
            return Refusal("ttl_order_invalid", segment.pointer, seen_short)
        if rules.seconds(segment.ttl) == rules.shortest:
            seen_short = segment.pointer
    return None
