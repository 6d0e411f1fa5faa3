"""Long-term facts are put into every request: into the system prompt, or behind the last breakpoint.

What it does
    Facts of `tokens` tokens are a part of every request. *system*: a block at the end of the system
    prompt; each time the facts change, everything behind them is written anew. *end*: behind the last
    breakpoint, paid in full each time, and never a part of the history.
Parameters
    tokens=500      of the facts
    change=0.1      share of the requests at which they change
    at=system       or end
Rewrites the prefix
    in the system prompt at each change; at the end never
What the model no longer sees
    nothing
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from ctxdoc.prompt.segments import AT
from ctxdoc.prompt.settings import system_block
from ctxdoc.simulation.history.edit import text_block, with_segment
from ctxdoc.simulation.history.messages import Head
from ctxdoc.simulation.strategies.base import PAYLOAD, SHARE, Definition, History, Outgoing


class InjectMemory(Struct, frozen=True):
    """Puts facts into every request."""

    tokens: Annotated[int, PAYLOAD] = 500
    change: Annotated[float, SHARE] = 0.1
    at: Literal["system", "end"] = "system"

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with the facts as they stand."""
        del memory
        version = int((history.number - 1) * self.change + 1e-9)
        block = text_block(f"[long-term facts, version {version}]")
        if self.at == "end":
            last = history.maker.with_block(history.messages[-1], block, self.tokens, last=True)
            return Outgoing(messages=[*history.messages[:-1], last], passing=1)
        # One head for each version: what stands behind it is then the same prompt.
        head = history.maker.once(
            ("facts", history.head, version),
            lambda: _with_facts(history.head, version, self.tokens),
        )
        return Outgoing(messages=history.messages, head=head)


def _with_facts(head: Head, version: int, tokens: int) -> Head:
    text = text_block(f"[long-term facts, version {version}]")
    last = max((s.rank[1] for s in head.segments if s.rank[0] == AT["system"]), default=-1)
    segment = system_block(text, last + 1)
    return with_segment(head, segment, tokens)


STRATEGY = Definition(
    id="inject_memory", title="facts in every request", make=InjectMemory, edits=False, usual=()
)
