"""What was sent, billed and simulated: the line that every strategy is held against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from msgspec import Struct

from ctxdoc.pricing.cost import dollars, meter_of
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.history.messages import Call, Session
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation

AGREES = Decimal("0.01")
"""Share of the bill up to which the simulation of what was sent needs no explanation."""
CLOSE = 0.02
"""The same of one request."""

OLDER = "read what was cached before the log begins"
LESS = "read less than the rules give: ctxdoc replay says why"
MORE = "read more than the rules give"
SIZED = "sent another number of tokens than the sizes add up to"
WRITTEN = "wrote more or less than the rules give, or for another time"
BESIDE = "searches and further passes of the API, which no row has"


class Reason(Struct, frozen=True):
    """Why the bill is another than the simulation of the same requests."""

    text: str
    requests: int
    cost: Decimal
    """USD that were billed more, or less where it is negative."""


class Baseline(Struct, frozen=True, kw_only=True):
    """Everything kept, with the breakpoints and lifetimes as they were sent."""

    row: Result
    billed: Decimal | None
    """USD by the reported counters; None where some are missing."""
    reasons: tuple[Reason, ...] = ()
    """Where both are further apart than `AGREES`, the dearest first."""

    @property
    def difference(self) -> Decimal | None:
        """USD that were billed more than the simulation comes to."""
        if self.billed is None or self.row.cost is None:
            return None
        return self.billed - self.row.cost


def baseline_of(simulation: Simulation, row: Result, billed: Decimal | None) -> Baseline:
    """The baseline of a session that was recorded, from its row as sent."""
    found = Baseline(row=row, billed=billed)
    difference = found.difference
    if difference is None or billed is None or abs(difference) <= AGREES * billed:
        return found
    return Baseline(row=row, billed=billed, reasons=tuple(_reasons(simulation, row)))


def billed_of(session: Session) -> Decimal | None:
    """What the priced requests cost by their counters, with all that is billed beside them; None where one
    has none."""
    total, known = 0, False
    for call in session.calls:
        if call.reported is None:
            return None
        cost = meter_of(call.tariff).cost(call.reported)
        total, known = total + (cost or 0), known or cost is not None
    return dollars(total) + beside_of(session) if known else None


def beside_of(session: Session) -> Decimal:
    """USD of what is billed and in no row: compaction passes of the API, searches."""
    return sum((call.beside or Decimal(0) for call in session.calls), Decimal(0))


def _reasons(simulation: Simulation, row: Result) -> Iterator[Reason]:
    """What sets the bill apart, request by request."""
    calls = simulation.session.calls
    usages = simulation.usages(row.specs, PLACEMENTS["recorded"])
    found: dict[str, list[int]] = {}
    begun: set[int] = set()
    for call, usage in zip(calls, usages, strict=True):
        text, apart = _apart(call, usage, begins=call.thread not in begun)
        begun.add(call.thread)
        if text:
            found.setdefault(text, []).append(apart)
    reasons = [Reason(text, len(each), dollars(sum(each))) for text, each in found.items()]
    beside = [call for call in calls if call.beside]
    if beside:
        reasons.append(Reason(BESIDE, len(beside), beside_of(simulation.session)))
    yield from sorted(reasons, key=lambda each: -abs(each.cost))


def _apart(call: Call, usage: Usage, *, begins: bool) -> tuple[str, int]:
    """Why a request was billed otherwise, and by how much as a meter counts; no text where it was not."""
    meter, reported = meter_of(call.tariff), call.reported
    paid, simulated = (meter.cost(each) if each else None for each in (reported, usage))
    if reported is None or paid is None or simulated is None:
        return "", 0
    if abs(paid - simulated) <= CLOSE * paid:
        return "", 0
    return _why(reported, usage, begins), paid - simulated


def _why(reported: Usage, usage: Usage, begins: bool) -> str:
    if abs(reported.input - usage.input) > CLOSE * max(reported.input, usage.input):
        return SIZED
    more = reported.cache_read - usage.cache_read
    if abs(more) > CLOSE * reported.input:
        return LESS if more < 0 else OLDER if begins else MORE
    return WRITTEN


def has_been_sent(calls: Sequence[Call]) -> bool:
    """Whether a log says of any request how it was sent or what it was billed."""
    return any(call.marks or call.reported is not None for call in calls)
