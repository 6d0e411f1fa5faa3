"""What two prompts share: a common start, a common end, a run of messages that has moved as a whole.

Messages are compared by identity, so that a slice against a slice is one call that costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ctxdoc.simulation.history.messages import Message


def common_start(one: Sequence[Message], two: Sequence[Message]) -> int:
    """How many leading messages are the same."""
    low, high = 0, min(len(one), len(two))
    if not high or one[0] is not two[0]:
        # A window begins with another message each time: nothing has to be copied to tell.
        return 0
    if one[:high] == two[:high]:
        return high
    # Lists of the same messages are compared in a moment: halving is quicker than looking at each.
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle
    return low


def common_end(one: Sequence[Message], two: Sequence[Message]) -> int:
    """How many messages at the end are the same."""
    return common_start(one[::-1], two[::-1])


def moved_run(old: list[Message], new: list[Message], shared: int) -> tuple[int, range]:
    """The first message that stood elsewhere in the prompt before, at most one behind the shared ones,
    and the run of that one's messages that stands from there on."""
    # A strategy puts at most one message, a summary, ahead of what it keeps.
    for at in (shared, shared + 1):
        if at < len(new):
            try:
                start = old.index(new[at], shared)
            except ValueError:
                continue
            count = common_start(old[start:], new[at:])
            return at, range(start, start + count)
    return len(new), range(0)
