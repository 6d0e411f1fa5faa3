"""Running totals over the messages of a thread: what stands behind any of them is known without adding up."""

from __future__ import annotations

from bisect import bisect_left

from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.history.overlap import common_start


class Totals:
    """Totals of a history as it was sent last; a request that only adds messages costs only these."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self.tokens = [0]
        """Of the first messages, by their number."""
        self.users = [0]
        """The user's messages among the first ones, by their number."""
        self.starts: list[int] = []
        """Where a user's turn begins."""
        self.least = [0]
        """Tokens of the smallest of the first messages, by their number; 0 of none."""

    def go_on(self, messages: list[Message]) -> None:
        """Takes over what the history has in common with the one before, and adds the rest."""
        shared = common_start(self._messages, messages)
        # What a strategy ahead of this one has changed is counted anew from there on.
        for row in (self.tokens, self.users, self.least):
            del row[shared + 1 :]
        del self.starts[bisect_left(self.starts, shared) :]
        for index, message in enumerate(messages[shared:], start=shared):
            self.tokens.append(self.tokens[-1] + message.size)
            self.users.append(self.users[-1] + (message.role == "user"))
            self.least.append(min(self.least[-1], message.size) if index else message.size)
            if message.starts_turn:
                self.starts.append(index)
        self._messages = messages


def first_within(totals: list[int], room: int, end: int | None = None) -> int:
    """The first message that has room together with all behind it, up to an end; one too far where not
    even none has."""
    last = len(totals) - 1 if end is None else end
    return bisect_left(totals, totals[last] - room, 0, last + 1)
