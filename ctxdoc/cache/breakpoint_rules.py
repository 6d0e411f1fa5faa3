"""Breakpoints that the API refuses."""

from __future__ import annotations

from msgspec import Struct

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.providers import RULES


class Refusal(Struct, frozen=True):
    """Why the API would answer a request with 400, as far as breakpoints go."""

    cause: str
    pointer: str
    text: str


def find_refusal(prefix: Prefix) -> Refusal | None:
    """The first rule on breakpoints that a request breaks."""
    everything = [*prefix.segments, *prefix.unrendered]
    marked = [s for s in everything if s.ttl]
    for segment in marked:
        if segment.mark_fault:
            return Refusal("breakpoint_invalid_target", segment.pointer, segment.mark_fault)
    if len(marked) > RULES.max_breakpoints:
        fifth = marked[RULES.max_breakpoints]
        return Refusal("breakpoint_over_limit", fifth.pointer, f"{len(marked)} breakpoints")
    seen_short = ""
    for segment in marked:
        if segment.ttl == "1h" and seen_short:
            return Refusal("ttl_order_invalid", segment.pointer, seen_short)
        if segment.ttl == "5m":
            seen_short = segment.pointer
    return None
