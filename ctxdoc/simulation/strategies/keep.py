"""Everything is sent as it was recorded.

What it does
    Nothing. Every other strategy is compared with it.
Parameters
    none
Rewrites the prefix
    no
What the model no longer sees
    nothing
"""

from __future__ import annotations

from msgspec import Struct

from ctxdoc.simulation.strategies.base import Definition, History, Outgoing


class Keep(Struct, frozen=True):
    """Sends the history as it is."""

    def send(self, history: History, memory: object) -> Outgoing:
        """The history."""
        del memory
        return Outgoing(messages=history.messages)


STRATEGY = Definition(id="keep", title="everything as recorded", make=Keep, edits=False)
