"""A summary replaces the history.

What it does
    When the prompt is over `trigger`, a further call writes a summary, and from then on the summary
    stands in the place of all but the last messages.
Parameters
    trigger=150000      tokens of the prompt
    summary_tokens=3500 of the summary
    keep_recent=1       user messages that stay, tool results counted
    at=                 numbers of the requests ahead of which it compacts, joined by |, whatever their size
    model=              another model that writes the summary: paid in full, at its rates
    call=same           same: the summary is asked for behind the same prefix, which is read from the
                        cache; separate: a call of its own, paid in full
    by=client           client: the program does it; server: the API does (trigger at least 50000,
                        nothing recent stays, models from 4.6 on)
Rewrites the prefix
    behind the system prompt, at each compaction
What the model no longer sees
    everything that the summary stands for
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Struct

from ctxdoc.request.codec import Json
from ctxdoc.simulation.closed_forms import Figures, Law, best_batch, compaction
from ctxdoc.simulation.history.edit import text_block, told
from ctxdoc.simulation.history.messages import Message, size_of
from ctxdoc.simulation.recipe import Recipe, pasted
from ctxdoc.simulation.strategies.base import (
    COUNT,
    SUMMARY,
    Cut,
    Definition,
    Extra,
    History,
    Outgoing,
    is_reply,
    numbers_of,
    prompt,
    users_in,
)

ASKED_TOKENS = 200
"""Of the instruction that asks for the summary."""
ASKED = "[write a summary of this conversation]"
LEAST_SERVER_TRIGGER = 50_000
"""Compaction page, 2026-10-08."""


class Memory(Struct, frozen=True, eq=False, gc=False):
    """What the summary covers."""

    index: int
    """The first message that it does not cover."""
    before: Message
    """The last one that it covers: while it stands there the summary holds."""


class Compact(Struct, frozen=True):
    """Puts a summary in the place of the history."""

    trigger: Annotated[int, prompt(0.6)] = 150_000
    summary_tokens: Annotated[int, SUMMARY] = 3_500
    keep_recent: Annotated[int, COUNT] = 1
    call: Literal["same", "separate"] = "same"
    by: Literal["client", "server"] = "client"
    at: str = ""
    model: str = ""

    def send(self, history: History, memory: object) -> Outgoing:
        """The summary and what follows it."""
        messages = history.messages
        known = _held(memory, messages)
        sent = self._summed(history, known.index) if known else messages
        if not self._is_due(history, sent):
            return Outgoing(messages=sent, memory=known)
        index = self._index(messages)
        if index is None or (known is not None and index <= known.index):
            return Outgoing(messages=sent, memory=known)
        # The question goes behind the last message, so that all ahead of it is read from the cache.
        asked = text_block(ASKED)
        asking = [*sent[:-1], history.maker.with_block(sent[-1], asked, ASKED_TOKENS, last=True)]
        return Outgoing(
            messages=self._summed(history, index),
            memory=Memory(index, messages[index - 1]),
            extra=(
                Extra(
                    messages=asking,
                    output=self.summary_tokens,
                    cached=self.call == "same" and not self.model,
                    model=self.model,
                ),
            ),
            warnings=self._warnings(history),
        )

    def _is_due(self, history: History, sent: list[Message]) -> bool:
        """Whether the history is to be summed up now."""
        if self.at:
            return history.number in numbers_of(self.at, "compact:at")
        return history.head.size + size_of(sent) > self.trigger

    def _index(self, messages: list[Message]) -> int | None:
        """The first message that stays."""
        if self.by == "server":
            return len(messages)
        for index in range(len(messages) - 1, 0, -1):
            is_cut = messages[index].starts_turn or is_reply(messages, index)
            if is_cut and users_in(messages, Cut(index)) >= max(1, self.keep_recent):
                return index
        return None

    def _summed(self, history: History, index: int) -> list[Message]:
        """The summary ahead of the messages from one on."""
        messages, maker = history.messages, history.maker
        rest = messages[index:]
        block: dict[str, Json] = text_block(told(messages, index))
        role = "user"
        if self.by == "server":
            block = {"type": "compaction", "content": told(messages, index)}
            role = "assistant"
        if rest and rest[0].role == role and not rest[0].results:
            return [maker.with_block(rest[0], block, self.summary_tokens), *rest[1:]]
        return [maker.message(role, block, self.summary_tokens), *rest]

    def _warnings(self, history: History) -> tuple[str, ...]:
        if self.by == "client":
            return ()
        found = []
        if self.trigger < LEAST_SERVER_TRIGGER:
            found.append(f"the API takes no trigger under {LEAST_SERVER_TRIGGER:,} tokens")
        if not history.call.rule.has_large_window:
            # The models that compact are those with it (compaction and context-windows pages, 2026-10-08).
            found.append(f"{history.call.rule.id} has no compaction of the API's")
        return tuple(found)


def _held(memory: object, messages: list[Message]) -> Memory | None:
    """The summary of the request before, where the history still has what it covers."""
    if not isinstance(memory, Memory) or memory.index > len(messages):
        return None
    return memory if messages[memory.index - 1] is memory.before else None


def _edit(strategy: Compact) -> dict[str, Json]:
    """The API's own edit (compaction page, 2026-10-08)."""
    return {
        "type": "compact_20260112",
        "trigger": {"type": "input_tokens", "value": strategy.trigger},
    }


def _best_trigger(strategy: Compact, figures: Figures) -> Law | None:
    """The trigger at which a turn costs least; None where it is cheapest never to compact."""
    if figures.per_turn <= 0 or not figures.rewrote:
        return None
    summary, by = strategy.summary_tokens, figures.by
    again = strategy.keep_recent * figures.per_turn + ASKED_TOKENS
    once = compaction(figures.head, summary, again, by)
    turns = best_batch(figures.per_turn, once, by)
    if turns is None:
        return None
    return Law(
        name="is cheapest",
        formula="at P + summary + a·√(2·C/(r·a))",
        unit="tokens",
        value=figures.head + summary + figures.per_turn * turns,
        simulated=float(strategy.trigger),
    )


BETA = "compact-2026-01-12"


def _recipe(strategy: Compact) -> Recipe:
    if strategy.trigger < LEAST_SERVER_TRIGGER or strategy.at or strategy.model:
        return Recipe(
            do=f"put a summary of {strategy.summary_tokens:,} tokens in the place of all but the last "
            f"{strategy.keep_recent} messages once a prompt has {strategy.trigger:,} tokens",
            proof="prompts fall to tools, system prompt and summary, and grow from there",
        )
    return Recipe(
        do="ask the API to compact (send the compaction block back as it came)",
        code=pasted({"context_management": {"edits": [_edit(strategy)]}}),
        beta=BETA,
        proof="answers begin with a compaction block, and the next prompts are short",
    )


STRATEGY = Definition(
    recipe=_recipe,
    id="compact",
    title="a summary replaces the history",
    make=Compact,
    server_edit=_edit,
    best_laws={"trigger": _best_trigger},
)
