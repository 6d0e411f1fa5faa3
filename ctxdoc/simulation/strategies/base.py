"""What a context strategy is: recorded history in, what would have been sent out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

import msgspec
from msgspec import Meta, Struct

from ctxdoc.errors import InputError, UnknownNameError
from ctxdoc.prompt.segments import Segment
from ctxdoc.request.codec import Json
from ctxdoc.simulation.closed_forms import Figures, Law
from ctxdoc.simulation.history.edit import Maker
from ctxdoc.simulation.history.messages import Call, Head, Message, Session, size_of
from ctxdoc.simulation.recipe import Recipe


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
    at: datetime | None = None
    """When it is made, where that is neither right ahead of the request nor right behind it."""
    model: str = ""
    """The model that it is sent to, where that is another one."""
    head: Head | None = None
    """What it goes on from; None: the head of the request."""


class Outgoing(Struct, frozen=True, eq=False, kw_only=True, gc=False):
    """A request as a strategy sends it."""

    messages: list[Message]
    memory: object = None
    """What it keeps for the next request of the thread."""
    head: Head | None = None
    """None: as it came."""
    extra: tuple[Extra, ...] = ()
    passing: int = 0
    """Blocks at the end that are sent once: no breakpoint should cover them."""
    warnings: tuple[str, ...] = ()
    seen: tuple[Segment, ...] = ()
    """Recorded blocks that are not sent as they were, and yet shown to the model."""
    partly: tuple[tuple[Segment, int], ...] = ()
    """Recorded blocks of which only so many tokens are sent."""


class Strategy(Protocol):
    """A strategy with its parameters; a pure function over the history and its own memory."""

    def send(self, history: History, memory: object) -> Outgoing:
        """What is sent for one request; `memory` is what it kept of the one before, None at first."""


MOST = 10**12
"""Of any number of tokens, blocks or pixels: far more than there are."""


class Measure(StrEnum):
    """What a parameter is a number of: from it follow its range, and its value for a small session."""

    PROMPT = "tokens of a prompt"
    PAYLOAD = "tokens of a payload"
    SUMMARY = "tokens of a summary"
    PIXELS = "pixels"
    SECONDS = "seconds"
    COUNT = "count"


def prompt(share: float | None = None) -> Meta:
    """Tokens of a prompt. `share` sets the mark of a session too small for the default: of what its
    largest prompt has beyond tools and system prompt."""
    return Meta(ge=0, le=MOST, extra={"measure": Measure.PROMPT, "share": share})


def payload(share: float) -> Meta:
    """Tokens of a payload; `share` of the largest one where none of a session reaches the default."""
    return Meta(ge=0, le=MOST, extra={"measure": Measure.PAYLOAD, "share": share})


PAYLOAD = Meta(ge=0, le=MOST, extra={"measure": Measure.PAYLOAD})
SUMMARY = Meta(ge=0, le=MOST, extra={"measure": Measure.SUMMARY})
PIXELS = Meta(ge=0, le=MOST, extra={"measure": Measure.PIXELS})
COUNT = Meta(ge=0, le=MOST, extra={"measure": Measure.COUNT})
SECONDS = Meta(ge=0, le=MOST, extra={"measure": Measure.SECONDS})
SHARE = Meta(ge=0, le=1)


class Parameter(Struct, frozen=True):
    """A parameter of a strategy."""

    name: str
    default: object
    measure: Measure | None = None
    """None for what is no number of anything."""
    share: float | None = None


def _always(session: Session) -> bool:
    del session
    return True


ApplyEdit: TypeAlias = Callable[
    [Any, Sequence[Message], Sequence[Message]], dict[str, object] | None
]
"""From a strategy, the messages of a request and what the API leaves of them, one for one: the entry of
`applied_edits`; None where it took nothing out."""


LawOf: TypeAlias = Callable[[Any, Figures], Law | None]
"""From a strategy and what a session came to under it: its closed form, where it did what that is about."""


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
    withholds: bool = False
    """Whether the model lacks something that is no part of the history, and so not counted as unseen."""
    server_edit: Callable[[Any], dict[str, Json]] | None = None
    """The entry of `context_management` that asks the API for it; None where the API has none."""
    applied_edit: ApplyEdit | None = None
    """What the answer to a request says of it, where the API only takes something out and the body stays
    as it is; None where the next body gives back what the API put in."""
    as_written: bool = False
    """Whether it is kept as people write it, though the API may refuse what it sends."""
    recipe: Callable[[Any], Recipe] | None = None
    """From a strategy, what to write so that it is in force; None where nobody should."""
    usual: tuple[str, ...] = ("",)
    """The parameters with which it is compared where nothing is asked for, a text for each row."""
    applies: Callable[[Session], bool] = _always
    """Whether a session has what it works on."""
    law: LawOf | None = None
    """Its closed form; None where it has none."""
    best_laws: Mapping[str, LawOf] = {}
    """The closed forms of the best values of its parameters, by their names."""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters in their order."""
        fields = msgspec.structs.fields(self.make)  # type: ignore[arg-type]
        return tuple(_parameter(field) for field in fields)

    def parameter(self, name: str) -> Parameter:
        """A parameter by its name, in which a dash may stand for an underscore.

        Raises UnknownNameError with the nearest names.
        """
        key = name.strip().replace("-", "_")
        every = [each.name for each in self.parameters]
        if key not in every:
            near = get_close_matches(key, every, n=3)
            raise UnknownNameError(f"parameter of {self.id}", name, near, every)
        return self.parameters[every.index(key)]


def _parameter(field: msgspec.structs.FieldInfo) -> Parameter:
    extra: dict[str, Any] = next(
        (meta.extra for meta in getattr(field.type, "__metadata__", ()) if meta.extra), {}
    )
    return Parameter(field.name, field.default, extra.get("measure"), extra.get("share"))


def numbers_of(text: str, what: str) -> frozenset[int]:
    """Numbers joined by |, as a parameter has them.

    Raises InputError for what is none.
    """
    parts = [part.strip() for part in text.split("|") if part.strip()]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise InputError(f"{what}={text} are no numbers of requests", f"write {what}=10|25")
    return frozenset(map(int, parts))


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
    if starts:
        yield from iter_inner_cuts(messages, starts[-1])


def iter_inner_cuts(messages: Sequence[Message], opening: int, first: int = 0) -> Iterator[Cut]:
    """The places to cut inside of the turn that a message opens, from a message on."""
    # The answer right behind the opening drops nothing.
    for index in range(max(opening + 2, first), len(messages)):
        if is_reply(messages, index):
            yield Cut(index, opening=opening)


def is_reply(messages: Sequence[Message], index: int) -> bool:
    """Whether a message is the model's answer to the user's: ahead of it no call waits for its result."""
    return messages[index].role == "assistant" and messages[index - 1].role == "user"


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
    values = {
        definition.parameter(typed).name: as_number(text.strip()) for typed, text in given.items()
    }
    for name, value in values.items():
        if value.lstrip("+-").lower() in ("nan", "inf", "infinity"):
            raise InputError(f"{definition.id}: {name}={value} is no number", f"write {name}=5")
    try:
        return msgspec.convert(values, definition.make, strict=False)  # type: ignore[no-any-return]
    except msgspec.ValidationError as error:
        reason = str(error).replace(" - at `$.", " for `").replace("`$`", "")
        raise InputError(
            f"{definition.id}: {reason}", f"'ctxdoc explain {definition.id}' lists the parameters"
        ) from error


def as_number(text: str) -> str:
    """The text as JSON has numbers: 60k and 1.5M are numbers of tokens too."""
    unit = {"k": 1_000, "K": 1_000, "m": 1_000_000, "M": 1_000_000}.get(text[-1:])
    if unit is not None:
        try:
            return str(round(float(text[:-1]) * unit))
        except (ValueError, OverflowError):
            return text
    digits = text.replace("_", "")
    return digits if digits.isdecimal() else text
