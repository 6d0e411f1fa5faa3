"""Sessions that are made from numbers: P + a·k tokens a turn, or the counters of a log without bodies."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.pricing.tariff import Tariff
from ctxdoc.prompt.settings import system_block
from ctxdoc.providers import find_model
from ctxdoc.request.codec import Json
from ctxdoc.simulation.history.edit import made_message, text_block
from ctxdoc.simulation.history.messages import Call, Head, Message, Session

REPLY_SHARE = 0.2
"""Of what a turn adds is the model's answer, where it is not stated."""
MODEL = "claude-sonnet-5-5"


class Shape(Struct, frozen=True, kw_only=True):
    """A session by its numbers; tokens throughout."""

    prefix: int
    """P: tools and system prompt."""
    per_turn: int
    """a: what each turn adds, the answer before it included."""
    turns: int
    """n: requests."""
    tool_share: float = 0.8
    """Of what a turn adds is tool results; 0 is a plain conversation."""
    payload: int = 0
    """A tool result of that size in the first turn."""
    gap: float = 20.0
    """Seconds between two requests."""
    output: int | None = None
    """Tokens of each answer."""
    seed: int | None = None
    """Makes what a turn adds and the gaps vary by half."""
    model: str = MODEL


def made_session(shape: Shape) -> Session:
    """The session of a shape: turn k sends P + a·k tokens.

    Raises InputError for numbers that fit no session.
    """
    _check(shape)
    rng = None if shape.seed is None else random.Random(shape.seed)
    rule = find_model(shape.model)
    tariff = Tariff(model=shape.model, day=datetime.now(UTC).date())
    head = plain_head(shape.prefix)
    line: list[Message] = []
    calls, at = [], datetime(2026, 1, 1, tzinfo=UTC)
    for turn in range(1, shape.turns + 1):
        added = shape.per_turn if rng is None else round(shape.per_turn * rng.uniform(0.5, 1.5))
        result = round(added * shape.tool_share)
        reply = _reply(shape, added, result)
        if turn == 1:
            line += _opening(added, shape.payload)
        elif shape.tool_share > 0:
            line += exchange(turn, reply, result, added - reply - result)
        else:
            line += chat(turn, reply, added - reply)
        calls.append(
            Call(
                number=turn,
                thread=0,
                head=head,
                line=line,
                count=len(line),
                marks=(),
                root=rule.id,
                rule=rule,
                tariff=tariff,
                at=at,
                output=reply,
            )
        )
        at += timedelta(seconds=shape.gap * (1.0 if rng is None else rng.uniform(0.5, 1.5)))
    return Session(calls=tuple(calls), assumptions=tuple(_assumptions(shape)))


MOST_TURNS = 20_000
MOST_TOKENS = 10**12
MOST_GAP = 10**6


def _check(shape: Shape) -> None:
    _check_sizes(shape)
    if not 0 <= shape.tool_share <= 1:
        raise InputError("--tool-share is a share from 0 to 1", "0.8 is usual for coding agents")
    if not 0 <= shape.gap <= MOST_GAP:
        raise InputError(f"--gap is a number of seconds up to {MOST_GAP:,}")
    # An answer is a part of what a turn adds, beside its tool results.
    room = shape.per_turn - round(shape.per_turn * shape.tool_share)
    if shape.output is not None and not 0 <= shape.output <= room:
        raise InputError(
            f"--output-tokens {shape.output:,} do not fit: a turn adds {shape.per_turn:,} tokens, "
            f"{shape.per_turn - room:,} of them tool results",
            f"use at most {room:,}, or a smaller --tool-share",
        )


def _check_sizes(shape: Shape) -> None:
    tokens = (shape.prefix, shape.per_turn, shape.payload)
    if shape.turns < 1 or min(tokens) < 0:
        raise InputError("--prefix, --per-turn and --payload are tokens, --turns is 1 or more")
    if max(tokens) > MOST_TOKENS:
        raise InputError(f"--prefix, --per-turn and --payload are at most {MOST_TOKENS:,} tokens")
    if shape.turns > MOST_TURNS:
        raise InputError(f"--turns {shape.turns:,} is more than {MOST_TURNS:,}")


def _reply(shape: Shape, added: int, result: int) -> int:
    if shape.output is not None:
        return min(shape.output, added - result)
    return min(round(REPLY_SHARE * added), added - result)


def _assumptions(shape: Shape) -> Iterator[str]:
    share = f"{shape.tool_share:.0%} of what a turn adds are tool results"
    spread = "" if shape.seed is None else f"; each varies by half, seed {shape.seed}"
    yield (
        f"a made-up session: turn k sends {shape.prefix:,} + {shape.per_turn:,}·k tokens{spread}; "
        f"{share}; {shape.gap:g} s from one request to the next; prices of {shape.model}"
    )


def plain_head(tokens: int, name: str = "") -> Head:
    """A system prompt of that size; another one for another name."""
    text = " ".join(filter(None, ("[tools and system prompt", name))) + "]"
    return Head(
        segments=(system_block(text_block(text), 0),),
        tokens=(tokens,),
        size=tokens,
    )


def _opening(added: int, payload: int) -> Iterator[Message]:
    yield made_message({"role": "user", "content": [text_block("[task]")]}, [added])
    if payload:
        yield from exchange(0, 0, payload, 0)


def exchange(turn: int, reply: int, result: int, rest: int) -> Iterator[Message]:
    """An answer that calls a tool, and its result; `rest` is text of the user behind it."""
    name = f"toolu_{turn:06d}"
    call: Json = {"type": "tool_use", "id": name, "name": "tool", "input": {"turn": turn}}
    said = [text_block(f"[answer {turn}]"), call]
    yield made_message(
        {"role": "assistant", "content": [*said]}, [reply - reply // 2, reply // 2], 2 * turn
    )
    heard: list[Json] = [
        {"type": "tool_result", "tool_use_id": name, "content": f"[result {turn}]"}
    ]
    sizes = [result]
    if rest:
        heard.append(text_block(f"[text {turn}]"))
        sizes.append(rest)
    yield made_message({"role": "user", "content": heard}, sizes, 2 * turn + 1)


def chat(turn: int, reply: int, said: int) -> Iterator[Message]:
    """An answer, and what the user says next."""
    yield made_message(
        {"role": "assistant", "content": [text_block(f"[answer {turn}]")]}, [reply], 2 * turn
    )
    yield made_message(
        {"role": "user", "content": [text_block(f"[question {turn}]")]}, [said], 2 * turn + 1
    )
