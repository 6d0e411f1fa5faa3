"""What a placement is: where a prompt's breakpoints stand, and how long their entries live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from msgspec import Struct

from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.prompt.segments import AT
from ctxdoc.simulation.history.assemble import Prompt
from ctxdoc.simulation.history.messages import Head
from ctxdoc.simulation.recipe import Recipe


class Placement(Struct, frozen=True, kw_only=True):
    """A way to place breakpoints."""

    id: str
    title: str
    place: Callable[[Prompt], tuple[Breakpoint, ...]]
    """The breakpoints of a prompt, from the first block to the last."""
    top_level: bool = False
    """Whether the body asks for it as a whole, and no block is marked."""
    recipe: Recipe | None = None
    """What to write so that breakpoints stand so; None where nobody should."""
    as_sent: bool = False
    """Whether breakpoints stand where the log has them."""
    bound: bool = False
    """Whether it is no placement but the bound of what any can reach."""


def last_block(prompt: Prompt, stop: int | None = None) -> int | None:
    """The last block ahead of `stop` that can carry a breakpoint; ahead of what passes by default."""
    segments = prompt.prefix.segments
    stop = len(segments) - prompt.passing if stop is None else stop
    for index in range(stop - 1, -1, -1):
        segment = segments[index]
        if segment.is_block and not segment.mark_fault and segment.kind != "empty":
            return index
    return None


def stable_ends(prompt: Prompt) -> Iterator[int]:
    """The last tool definition and the last block of the system prompt; where a strategy has put blocks behind
    the recorded ones, which may change, the last recorded one too."""
    yield from _stable_ends(prompt.head, prompt.call.head)


@lru_cache(maxsize=4096)
def _stable_ends(head: Head, recorded_head: Head) -> tuple[int, ...]:
    """The same of a head, beside the one that was recorded."""
    return tuple(_ends_of(head, recorded_head))


def _ends_of(head: Head, recorded_head: Head) -> Iterator[int]:
    own = recorded_head.segments
    for part in ("tools", "system"):
        found = [
            index
            for index, segment in enumerate(head.segments)
            if segment.rank[0] == AT[part] and segment.is_block and not segment.mark_fault
        ]
        recorded = [index for index in found if any(head.segments[index] is each for each in own)]
        if recorded and recorded[-1] != found[-1]:
            yield recorded[-1]
        if found:
            yield found[-1]


def marks_at(places: Iterator[tuple[int | None, str]]) -> tuple[Breakpoint, ...]:
    """Breakpoints at those places, each once."""
    found = {index: ttl for index, ttl in places if index is not None}
    return tuple(Breakpoint(index, found[index]) for index in sorted(found))
