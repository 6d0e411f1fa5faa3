"""The lookback: which beginnings of a prompt the provider looks for from a breakpoint back.

Every rule is from the prompt-caching page as of 2026-10-08.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxdoc.prompt.prefix import Breakpoint, Prefix


def iter_reached(prefix: Prefix, marks: Sequence[Breakpoint]) -> Iterator[int]:
    """The segments in reach of the breakpoints, the last one first, each once."""
    lowest = len(prefix.segments)
    # The last breakpoint is asked first; windows overlap, and what one covered was not found there.
    for mark in reversed(marks):
        for index in _window(prefix, mark.index):
            if index < lowest:
                lowest = index
                yield index


def _window(prefix: Prefix, start: int) -> Iterator[int]:
    """The segments from a breakpoint back, as far as the provider looks; the breakpoint is the first
    position."""
    segments, rules = prefix.segments, prefix.rule.rules
    runs, most = rules.run_kinds, rules.lookback
    seen, last = 0, ""
    for index in range(start, -1, -1):
        kind = segments[index].kind
        if kind == "setting":
            # No position of its own: it has that of the block before it, which is one too far here.
            if seen == most:
                return
        elif kind != last or kind not in runs:
            # A run of calls, and a run of results, is one position however long it is.
            if seen == most:
                return
            seen += 1
            last = kind
        yield index


def positions(prefix: Prefix) -> tuple[int, ...]:
    """The lookback position of each segment, from the start; a setting has that of the block before
    it."""
    runs = prefix.rule.rules.run_kinds
    out: list[int] = []
    position, last = 0, ""
    for segment in prefix.segments:
        if segment.is_block:
            # A run of calls, or of results, is one position.
            if segment.kind != last or segment.kind not in runs:
                position += 1
            last = segment.kind
        out.append(position)
    return tuple(out)
