"""A history and what is sent for it, message for message.

What a strategy made of a message stands for every later request that holds it, so that a request costs
what is new in it, and not what it sends again.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ctxdoc.simulation.history.messages import Message, size_of
from ctxdoc.simulation.history.overlap import common_start

Change = Callable[[list[Message]], list[Message]]
"""What stands in the place of some messages: as many."""


class Mapped(Struct, frozen=True, eq=False, gc=False):
    """The messages of a request, and those that are sent in their place."""

    messages: list[Message] = []
    sent: list[Message] = []
    size: int = 0
    """Tokens of what is sent."""

    @property
    def differs(self) -> bool:
        """Whether anything else is sent than what came in."""
        return self.sent != self.messages

    def next(self, messages: list[Message], change: Change) -> Mapped:
        """The same of the request behind this one: only what that one does not share is changed."""
        shared = common_start(self.messages, messages)
        fresh = change(messages[shared:])
        size = self.size + size_of(fresh) - size_of(self.sent[shared:])
        return Mapped(messages, [*self.sent[:shared], *fresh], size)

    def changed(self, first: int, end: int, change: Change) -> Mapped:
        """The same with other messages in the place of some, counted from 0."""
        fresh = change(self.messages[first:end])
        size = self.size + size_of(fresh) - size_of(self.sent[first:end])
        return Mapped(self.messages, [*self.sent[:first], *fresh, *self.sent[end:]], size)
