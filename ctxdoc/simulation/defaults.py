"""Strategies that are compared where none is asked for, with parameters that fit the session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from msgspec import Struct

from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.search import room_of
from ctxdoc.simulation.strategies import STRATEGIES, Measure, Parameter, Spec, made
from ctxdoc.simulation.strategies.defer_tools import never_called
from ctxdoc.simulation.strategies.offload import PAYLOADS
from ctxdoc.simulation.strategies.spec import parse_specs

JOINED = ("offload+compact",)
"""Strategies that are compared together, where nothing is asked for."""


SUMMARY_SHARE = 0.1
"""What a summary has, of what the largest prompt of a small session has beyond tools and system prompt."""


def usual_for(session: Session, limit: float) -> Iterator[tuple[Spec, ...]]:
    """The usual strategies. Where the session is too small for their marks, these are set anew. Those that hide
    parts of what they find stand there once more, set so that they hide no more than a share of the history."""
    texts = [
        f"{definition.id}:{parameters}"
        for definition in STRATEGIES
        for parameters in definition.usual
        if definition.applies(session)
    ]
    idle = [name for name in never_called(session) if not set(name) & set("|,+:=")]
    deferred = (f"defer_tools:tools={'|'.join(idle)}",) if idle else ()
    every = (*texts, *deferred, *JOINED, *_within(session, limit))
    yield from fitted_all(session, map(parse_specs, every))


def _within(session: Session, limit: float) -> Iterator[str]:
    """Strategies with the least mark at which they hide at most a share of the history."""
    most = limit * sum(message.size for message in session.messages)
    sizes = sorted(_payloads(session), reverse=True)
    over = _least_over(sizes, most)
    if over is not None:
        yield f"offload:over={over}"
    tokens = _least_tokens(sizes, most)
    if tokens is not None:
        yield f"truncate:tokens={tokens}"


def _least_over(sizes: Sequence[int], most: float) -> int | None:
    """The size above which payloads have at most so many tokens together; None where the largest has more."""
    total = 0
    for index, size in enumerate(sizes):
        total += size
        if total > most:
            # Those of the same size stay together.
            return size if index and sizes[0] > size else None
    return None


def _least_tokens(sizes: Sequence[int], most: float) -> int | None:
    """The size that payloads are cut to when so many tokens are left out of them; None where nothing is."""
    total = 0
    for count, size in enumerate(sizes, start=1):
        total += size
        following = sizes[count] if count < len(sizes) else 0
        if total - count * following > most:
            # All of the first ones are cut to one size, which leaves out just as much.
            found = ceil((total - most) / count)
            return found if found < sizes[0] else None
    return None


def fitted_all(
    session: Session, asked: Iterable[tuple[Spec, ...]], but: str = ""
) -> list[tuple[Spec, ...]]:
    """Strategies with marks that the session reaches, where none was given; the parameter `but` is searched,
    and left as it is."""
    marks = _Marks.of(session)
    return [tuple(marks.fitted(spec, but) for spec in specs) for specs in asked]


class _Marks(Struct, frozen=True, kw_only=True):
    """What the marks of the usual strategies are measured by."""

    is_small: bool
    head: int
    """Tokens of tools and system prompt."""
    room: int
    """What the largest prompt has beyond them."""
    payload: int
    """Tokens of the largest one."""

    @classmethod
    def of(cls, session: Session) -> _Marks:
        """Those of a session."""
        head, peak = room_of(session)
        payload = max(_payloads(session), default=0)
        return cls(is_small=peak <= SMALL, head=head, room=peak - head, payload=payload)

    def fitted(self, spec: Spec, but: str = "") -> Spec:
        """A strategy with marks that the session reaches."""
        given = dict(spec.given)
        for parameter in spec.definition.parameters:
            value = self._value(parameter)
            searched = f"{spec.definition.id}.{parameter.name}" == but
            if value is not None and parameter.name not in given and not searched:
                given[parameter.name] = str(value)
        return Spec(spec.definition, tuple(given.items()), made(spec.definition, given))

    def _value(self, parameter: Parameter) -> int | None:
        """What a parameter is set to; None where its default will do."""
        default = parameter.default if isinstance(parameter.default, int) else 0
        match parameter.measure:
            case Measure.PROMPT if self.is_small and parameter.share is not None:
                return rounded(self.head + parameter.share * self.room)
            case Measure.SUMMARY if self.is_small and default:
                fits = rounded(SUMMARY_SHARE * self.room)
                return fits if fits < default else None
            case Measure.PAYLOAD if parameter.share is not None and 0 < self.payload <= default:
                return rounded(parameter.share * self.payload)
            case _:
                return None


def is_small(session: Session) -> bool:
    """Whether a session stays under what the defaults of most strategies begin at."""
    return room_of(session)[1] <= SMALL


SMALL = 150_000
"""Tokens of a prompt: the largest of the usual marks."""


def rounded(value: float) -> int:
    """Two digits that matter."""
    whole = max(1, round(value))
    unit = 10 ** max(0, len(str(whole)) - 2)
    return int(round(whole / unit) * unit)


def _payloads(session: Session) -> Iterator[int]:
    for message in session.messages:
        for segment, tokens in zip(message.segments, message.tokens, strict=True):
            if segment.kind in PAYLOADS:
                yield tokens
