"""Strategies that are compared where none is asked for, with parameters that fit the session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.search import room_of
from ctxdoc.simulation.strategies import STRATEGIES, Measure, Parameter, Spec, made
from ctxdoc.simulation.strategies.offload import PAYLOADS
from ctxdoc.simulation.strategies.spec import parse_specs

JOINED = ("offload+compact",)
"""Strategies that are compared together, where nothing is asked for."""


SUMMARY_SHARE = 0.1
"""What a summary has, of what the largest prompt of a small session has beyond tools and system prompt."""


def usual_for(session: Session) -> Iterator[tuple[Spec, ...]]:
    """The usual strategies. Where the session is too small for their marks, these are set anew."""
    texts = [
        f"{definition.id}:{parameters}"
        for definition in STRATEGIES
        for parameters in definition.usual
        if definition.applies(session)
    ]
    yield from fitted_all(session, map(parse_specs, (*texts, *JOINED)))


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
