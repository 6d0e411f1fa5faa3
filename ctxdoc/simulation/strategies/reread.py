"""What another strategy took from the model is asked for again.

What it does
    Behind other strategies: `share` of the tool results and documents that they take out are read again, each
    by a call of its own behind the request from which on it is gone. The call and what it gives back stay in
    the history from then on. `clear+reread:share=0.5` tells what clearing costs when half of it is needed
    after all.
Parameters
    share=1             share of what is gone that is read again
    over=100            tokens from which on a result is worth a call
Rewrites the prefix
    no: everything is appended
What the model no longer sees
    what is not read again
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Struct

from ctxdoc.prompt.segments import Segment
from ctxdoc.simulation.history.messages import Message
from ctxdoc.simulation.history.overlap import common_end, common_start
from ctxdoc.simulation.strategies.base import PAYLOAD, SHARE, Definition, Extra, History, Outgoing
from ctxdoc.simulation.strategies.offload import CALL_TOKENS, PAYLOADS, read_again, thinking_warning

GOLDEN = (5**0.5 - 1) / 2


class Memory(Struct, frozen=True, eq=False, gc=False):
    """What was gone so far, and what is read again."""

    recorded: list[Message] = []
    """The messages of the request before as they were recorded."""
    base: list[Message] = []
    """What the other strategies left of them."""
    put: dict[Message, tuple[Message, ...]] = {}
    """Calls and results by the message that they stand behind."""
    gone: frozenset[bytes] = frozenset()
    """Digests of all that was gone once."""
    count: int = 0
    """How many that were."""


class Reread(Struct, frozen=True):
    """Reads again what is gone."""

    share: Annotated[float, SHARE] = 1.0
    over: Annotated[int, PAYLOAD] = 100

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with what was read again, and the calls that do it now."""
        known = memory if isinstance(memory, Memory) else Memory()
        now = history.messages
        new = list(self._new(history, known))
        first = known.count + 1
        again = [pair for at, pair in enumerate(new, first) if self._is_read(at)]
        maker = history.maker
        made = [each for message, index in again for each in read_again(message, index, maker)]
        put = {**known.put, now[-1]: (*known.put.get(now[-1], ()), *made)} if made else known.put
        sent = _with_rereads(now, put)
        upto = len(sent) - len(made)
        digests = frozenset(message.segments[index].digest for message, index in new)
        return Outgoing(
            messages=sent[:upto],
            memory=Memory(
                history.call.messages, now, put, known.gone | digests, known.count + len(new)
            ),
            extra=tuple(
                Extra(messages=sent[: upto + count], output=CALL_TOKENS, after=True)
                for count in range(2, len(made) + 1, 2)
            ),
            seen=tuple(message.segments[index] for message, index in again),
            warnings=thinking_warning(history) if made else (),
        )

    def _is_read(self, number: int) -> bool:
        """Whether a payload is read again, by its number from 1. What a share reads a larger one reads too, so
        that more rereads never cost less; multiples of the golden ratio are spread evenly."""
        return number * GOLDEN % 1 < self.share

    def _new(self, history: History, known: Memory) -> Iterator[tuple[Message, int]]:
        """The payloads that are gone from this request on: recorded, and in no message that is sent."""
        recorded, now = history.call.messages, history.messages
        fresh = recorded[common_start(known.recorded, recorded) :]
        start = common_start(known.base, now)
        end = common_end(known.base[start:], now[start:])
        left = {s.digest for m in now[start : len(now) - end] for s in m.segments}
        for message in (*known.base[start : len(known.base) - end], *fresh):
            for index in self._payloads(message):
                digest = message.segments[index].digest
                if digest not in left and digest not in known.gone:
                    left.add(digest)
                    yield message, index

    def _payloads(self, message: Message) -> Iterator[int]:
        for index, segment in enumerate(message.segments):
            if segment.kind in PAYLOADS and message.tokens[index] > self.over:
                yield index


def _with_rereads(
    messages: list[Message], put: dict[Message, tuple[Message, ...]]
) -> list[Message]:
    """The messages with what was read again behind each."""
    if not put:
        return messages
    return [each for message in messages for each in (message, *put.get(message, ()))]


def payloads_of(lost: Sequence[tuple[Segment, int]], over: int = 100) -> int:
    """How many of the blocks that are gone could be read again."""
    return sum(segment.kind in PAYLOADS and tokens > over for segment, tokens in lost)


STRATEGY = Definition(
    id="reread",
    title="what is gone is read again",
    make=Reread,
    edits=False,
    usual=(),
)
