"""What was sent, simulated, beside what was billed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from ctxdoc.request.log import Log, Trait
from ctxdoc.request.request import Request
from ctxdoc.request.response import Response
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.baseline import LESS, OLDER
from ctxdoc.simulation.compare import Comparison, compare
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs

START = datetime(2026, 11, 2, 9, tzinfo=UTC)


def counted(
    rows: Sequence[tuple[int, int, int, int]], ttl: str = "1h", session: str = "s"
) -> list[Request]:
    """Requests of which counters are known: minute, read, written, answered."""
    return [
        Request(
            source="log",
            line=number,
            body=None,
            model="claude-sonnet-4-6",
            session=session,
            at=START + timedelta(minutes=minute),
            response=Response(
                id=f"msg_{session}_{number}",
                usage=Usage(
                    uncached=0,
                    cache_read=read,
                    cache_write_5m=written if ttl == "5m" else 0,
                    cache_write_1h=written if ttl == "1h" else 0,
                    output=output,
                ),
            ),
        )
        for number, (minute, read, written, output) in enumerate(rows, start=1)
    ]


def compared(requests: Sequence[Request]) -> Comparison:
    log = Log(requests=tuple(requests), traits=frozenset({Trait.TIME, Trait.USAGE}))
    return compare(Simulation(recorded_session(log)), [parse_specs("keep")])


GROWS = [(0, 0, 10_000, 100), (1, 10_000, 1_000, 100), (2, 11_000, 1_000, 100)]


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_a_transcript_costs_what_was_billed(ttl: str) -> None:
    """Sonnet 4.6: read 0.30, write 3.75 or 6, output 15 USD per million."""
    comparison = compared(counted(GROWS, ttl))
    write = Decimal("3.75") if ttl == "5m" else Decimal(6)
    bill = (Decimal(21_000) * Decimal("0.3") + 12_000 * write + 300 * Decimal(15)) / 10**6
    assert comparison.billed == bill
    assert comparison.recorded is not None
    assert comparison.recorded.cost == bill
    assert comparison.baseline is not None
    assert comparison.baseline.reasons == ()


@pytest.mark.parametrize("ttl", ["5m", "1h"])
def test_the_other_lifetime_alone_is_a_way_of_its_own(ttl: str) -> None:
    comparison = compared(counted(GROWS, ttl))
    sent, other = comparison.as_sent
    assert (sent.placement.id, other.placement.id) == (
        "recorded", "recorded_1h" if ttl == "5m" else "recorded_5m",
    )  # fmt: skip
    assert sent.cost is not None
    assert other.cost is not None
    # Nobody paused: all that differs is what 12,000 written tokens cost.
    apart = 12_000 * (Decimal(6) - Decimal("3.75")) / 10**6
    assert other.cost - sent.cost == (apart if ttl == "5m" else -apart)


def test_what_was_read_of_a_changed_prompt_is_read_as_sent() -> None:
    """The third request reads the start that the first one of another session had, and writes the rest."""
    other = counted([(0, 0, 8_000, 50), (1, 6_000, 3_000, 50)], session="t")
    changed = [*GROWS[:2], (2, 6_000, 6_500, 100), (3, 12_500, 500, 100)]
    comparison = compared([*counted(changed), *other])
    assert comparison.recorded is not None
    assert comparison.recorded.cost == comparison.billed


def test_a_pause_beyond_the_lifetime_is_no_change() -> None:
    """After 90 minutes nothing is left of an hour; with the lifetime of a second hour it would be read."""
    paused = [*GROWS[:2], (92, 0, 12_000, 100), (93, 12_000, 500, 100)]
    comparison = compared(counted(paused))
    assert comparison.recorded is not None
    assert comparison.recorded.cost == comparison.billed
    # Within the lifetime the same counters are a change of the prompt, which no lifetime mends.
    soon = [*GROWS[:2], (3, 0, 12_000, 100), (4, 12_000, 500, 100)]
    comparison = compared(counted(soon))
    assert comparison.recorded is not None
    assert comparison.recorded.cost == comparison.billed
    assert comparison.keep.rewrites == 1


def test_a_difference_from_the_bill_is_named() -> None:
    """The first request reads what no request of the log wrote."""
    comparison = compared(counted([(0, 9_000, 1_000, 100), *GROWS[1:]]))
    assert comparison.baseline is not None
    assert [(each.text, each.requests) for each in comparison.baseline.reasons] == [(OLDER, 1)]
    (reason,) = comparison.baseline.reasons
    assert reason.cost == 9_000 * (Decimal("0.3") - Decimal(6)) / 10**6
    assert comparison.baseline.difference == reason.cost
    assert LESS != OLDER
