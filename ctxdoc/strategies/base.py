"""What a context strategy is: recorded history in, what would have been sent out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ctxdoc.errors import InputError, UnknownNameError
from ctxdoc.history import Call, Head, Maker, Message


class History(Struct, frozen=True, eq=False, gc=False):
    """One request as it was recorded, or as the strategy before this one would have sent it."""

    call: Call
    head: Head
    messages: list[Message]
    number: int
    """Which request of its thread it is, from 1."""
    maker: Maker

    @property
    def size(self) -> int:
        """Tokens of the whole prompt."""
        return self.head.size + size_of(self.messages)


class Extra(Struct, frozen=True, eq=False, kw_only=True, gc=False):
    """A further call that a strategy needs."""

    messages: list[Message]
    output: int
    """Tokens of its answer."""
    cached: bool = True
    """Whether it goes on from the same prefix; else it is paid in full."""
    after: bool = False
    """Whether it follows the request instead of preceding it."""


class Sent(Struct, frozen=True, eq=False, kw_only=True, gc=False):
    """What a strategy sends for one request."""

    messages: list[Message]
    memory: object = None
    """What it keeps for the next request of the thread."""
    head: Head | None = None
    """None: as it came."""
    extra: tuple[Extra, ...] = ()
    passing: int = 0
    """Blocks at the end that are sent once: no breakpoint should cover them."""
    warnings: tuple[str, ...] = ()


class Strategy(Protocol):
    """A strategy with its parameters; a pure function over the history and its own memory."""

    def send(self, history: History, memory: object) -> Sent:
        """What is sent for one request; `memory` is what it kept of the one before, None at first."""


class Definition(Struct, frozen=True, kw_only=True):
    """A strategy as it is chosen by name."""

    id: str
    title: str
    make: Callable[..., Strategy]
    """A frozen struct: its fields are the parameters, with their defaults."""
    edits: bool = True
    """Whether it takes something out of a prompt that was sent before."""
    coarsens: bool = False
    """Whether it sends images in less detail, which does not count as unseen."""
    server_edit: Callable[[Any], dict[str, object]] | None = None
    """The entry of `context_management` that asks the API for it; None where the API has none."""
    as_written: bool = False
    """Whether it is kept as people write it, though the API may refuse what it sends."""


def size_of(messages: Sequence[Message]) -> int:
    """Tokens of some messages."""
    return sum([message.size for message in messages])


class Cut(Struct, frozen=True, gc=False):
    """A place where the beginning of a history may be cut off."""

    index: int
    """The first message that stays."""
    opening: int | None = None
    """The message that opens the turn, where the cut is inside of it: it stays too."""

    def kept(self, messages: list[Message]) -> list[Message]:
        """What stays."""
        rest = messages[self.index :]
        return rest if self.opening is None else [messages[self.opening], *rest]


WHOLE = Cut(0)


def iter_cuts(messages: Sequence[Message]) -> Iterator[Cut]:
    """The places to cut, those that drop the least first: where a user's turn begins, and inside of
    the last one ahead of each answer of the model, whose tool results then stay with their calls."""
    starts = [index for index, message in enumerate(messages) if message.starts_turn]
    yield from (Cut(index) for index in starts if index)
    last = starts[-1] if starts else None
    if last is None:
        return
    for index in range(last + 2, len(messages)):
        if messages[index].role == "assistant" and messages[index - 1].role == "user":
            yield Cut(index, opening=last)


def users_in(messages: Sequence[Message], cut: Cut) -> int:
    """The user's messages behind a cut: what the model was told in so many requests."""
    return sum(message.role == "user" for message in messages[cut.index :])


class Spec(Struct, frozen=True):
    """A chosen strategy: its name, its parameters as they were given, and itself."""

    definition: Definition
    given: tuple[tuple[str, str], ...]
    strategy: Strategy

    @property
    def parameters(self) -> dict[str, object]:
        """Every parameter with its value."""
        found: dict[str, object] = msgspec.structs.asdict(self.strategy)  # type: ignore[arg-type]
        return found


def made(definition: Definition, given: dict[str, str]) -> Strategy:
    """A strategy with parameters as they are typed.

    Raises UnknownNameError for a name that it does not have, InputError for a value that it does not
    take.
    """
    every = [field.name for field in msgspec.structs.fields(definition.make)]  # type: ignore[arg-type]
    values = {}
    for typed, text in given.items():
        name = typed.strip().replace("-", "_")
        if name not in every:
            near = get_close_matches(name, every, n=3)
            raise UnknownNameError(f"parameter of {definition.id}", typed, near, every)
        values[name] = _number(text.strip())
    try:
        return msgspec.convert(values, definition.make, strict=False)  # type: ignore[no-any-return]
    except msgspec.ValidationError as error:
        reason = str(error).replace(" - at `$.", " for `").replace("`$`", "")
        raise InputError(
            f"{definition.id}: {reason}", f"'ctxdoc explain {definition.id}' lists the parameters"
        ) from error


def _number(text: str) -> str:
    """60k and 1.5M are numbers of tokens too."""
    unit = {"k": 1_000, "K": 1_000, "m": 1_000_000, "M": 1_000_000}.get(text[-1:])
    if unit is not None:
        try:
            return str(round(float(text[:-1]) * unit))
        except ValueError:
            return text
    digits = text.replace("_", "")
    return digits if digits.isdecimal() else text
