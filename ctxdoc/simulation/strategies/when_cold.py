"""The history is shortened only while the cache is cold anyway.

What it does
    After a pause beyond the lifetime, and where another model or another system prompt begins a cache of its
    own, the whole prompt is written anew whatever it holds: that is when old tool results are cleared, or old
    turns dropped. In between nothing is touched, so that no edit costs a rewrite.
Parameters
    edit=clear      clear: all tool results but the newest are replaced; trim: the oldest turns are dropped
    after=300       seconds of pause from which the cache counts as cold; 3600 where entries live for an hour
    at=             numbers of the requests at which alone it may act, joined by |; empty: all
    keep=3          tool results that stay, with edit=clear
    low=50000       tokens of the prompt down to which turns are dropped, with edit=trim
Rewrites the prefix
    only where it is written anew anyway: never dearer than keeping everything
What the model no longer sees
    what is cleared or dropped. A summary instead is no free edit, since it has to be written: see compact
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Literal

from msgspec import Struct

from ctxdoc.simulation.history.messages import Head, Session, size_of
from ctxdoc.simulation.recipe import Recipe
from ctxdoc.simulation.strategies.base import (
    COUNT,
    MOST,
    SECONDS,
    Definition,
    History,
    Outgoing,
    numbers_of,
    prompt,
)
from ctxdoc.simulation.strategies.clear import Clear
from ctxdoc.simulation.strategies.trim import Trim

Lane = tuple[str, Head]
"""What entries belong to: a model, and all that stands ahead of the messages."""


class WhenCold(Struct, frozen=True):
    """Shortens the history where that costs no rewrite."""

    edit: Literal["clear", "trim"] = "clear"
    after: Annotated[int, SECONDS] = 300
    keep: Annotated[int, COUNT] = 3
    low: Annotated[int, prompt(0.3)] = 50_000
    at: str = ""

    def send(self, history: History, memory: object) -> Outgoing:
        """The history with what was taken out while the cache was cold."""
        known: dict[Lane, object] = memory if isinstance(memory, dict) else {}
        lane = (history.call.root, history.head)
        held = known.get(lane)
        sent = self._edited(history, held, cold=False)
        # A first request has nothing behind it: whether its beginning is in the cache is not known.
        if self._is_cold(history, lane) and history.number > 1 and self._may_act(history):
            shorter = self._edited(history, held, cold=True)
            if _is_worth_it(history, sent, shorter):
                sent = shorter
        return Outgoing(messages=sent.messages, memory={**known, lane: sent.memory})

    def _may_act(self, history: History) -> bool:
        return not self.at or history.number in numbers_of(self.at, "when_cold:at")

    def _edited(self, history: History, memory: object, *, cold: bool) -> Outgoing:
        """The history as it was left, or shortened now."""
        if self.edit == "trim":
            return Trim(high=self.low if cold else MOST, low=self.low).send(history, memory)
        trigger = 0 if cold else MOST
        return Clear(trigger=trigger, keep=self.keep, by="client").send(history, memory)

    def _is_cold(self, history: History, lane: Lane) -> bool:
        """Whether no request of this lane that begins alike was sent for so long; notes this one."""
        line = history.call.line
        # Conversations that part from each other keep warm what they share.
        times = history.maker.once(("times", line[0] if line else None), _no_times)
        last, times[lane] = times.get(lane), history.call.at
        if lane not in times or last is None:
            return bool(times.keys() - {lane})
        at = history.call.at
        return at is not None and at - last >= timedelta(seconds=self.after)


def _no_times() -> dict[Lane, datetime | None]:
    return {}


def _is_worth_it(history: History, sent: Outgoing, shorter: Outgoing) -> bool:
    """Whether less is left, and still enough to be cached."""
    left = history.head.size + size_of(shorter.messages)
    return history.call.rule.minimum <= left < history.head.size + size_of(sent.messages)


def _has_times(session: Session) -> bool:
    return any(call.at is not None for call in session.calls)


def _recipe(strategy: WhenCold) -> Recipe:
    what = f"clear all tool results but the last {strategy.keep}"
    if strategy.edit == "trim":
        what = f"drop the oldest turns down to {strategy.low:,} tokens"
    return Recipe(
        do=f"{what} when the last request is more than {strategy.after:,} seconds ago, and never in between",
        proof="requests behind a pause write less than the prompt before it had; no other one rewrites",
    )


STRATEGY = Definition(
    recipe=_recipe,
    id="when_cold",
    title="shortens the history only while the cache is cold",
    make=WhenCold,
    usual=("", "edit=trim"),
    applies=_has_times,
)
