"""What is worth a piece of advice, at both sides of each threshold."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from ctxdoc.ledger import advice as rules
from ctxdoc.ledger.advice import Advice, advise
from ctxdoc.ledger.ledger import Ledger
from ctxdoc.ledger.totals import totals_of
from tests.ledger.test_ledger import LONG, plain, replayed
from tests.support.sessions import Body, session

MILLION = Decimal(1_000_000)


def piece(name: str, cost: Decimal, *, is_lost: bool = True) -> Advice:
    return Advice(id=name, what="", why="", cost=cost, is_lost=is_lost)


def advised(
    patch: pytest.MonkeyPatch, found: Ledger, *pieces: Advice
) -> list[str]:  # fmt: skip
    """What is left of some pieces."""

    def source(replay: Ledger) -> Iterator[Advice]:
        del replay
        return iter(pieces)

    patch.setattr(rules, "SOURCES", (source,))
    return [item.id for item in advise(found)]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return replayed(tmp_path_factory.mktemp("log"), session({}, turns=3))


def test_a_hundredth_of_the_cost_is_worth_saying(
    found: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    total = totals_of(found.rows).priced.amount
    assert total is not None
    least = total / 100
    just, less = piece("just", least), piece("less", least - Decimal("1e-12"))
    assert advised(monkeypatch, found, just, less) == ["just"]


def test_what_was_lost_comes_before_what_is_dear(
    found: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each by its money, and of the same money by name; five at most."""
    given = (
        piece("dear", Decimal(9), is_lost=False),
        piece("b", Decimal(1)),
        piece("a", Decimal(1)),
        piece("most", Decimal(5)),
    )
    assert advised(monkeypatch, found, *given) == ["most", "a", "b", "dear"]
    six = [piece(f"n{n}", Decimal(n)) for n in range(1, 7)]
    assert advised(monkeypatch, found, *six) == ["n6", "n5", "n4", "n3", "n2"]


def hourly(seconds: float, written: int) -> Body:
    """A request whose system prompt is written for an hour."""
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 0,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written},
        "output_tokens": 10,
    }
    row = plain(f"go {seconds}", usage, seconds, LONG)
    row["request"]["system"][0]["cache_control"]["ttl"] = "1h"
    # One session: a pause is one between two requests of it.
    return {**row, "session_id": "one"}


@pytest.mark.parametrize(("pause", "unused"), [(299, True), (300, False)])
def test_an_hour_is_of_use_from_a_pause_of_five_minutes_on(
    pause: int, unused: bool, tmp_path: Path
) -> None:
    """Two writes of 6,000 at 6 instead of 3.75 a million: 0.027 too much."""
    found = replayed(tmp_path, [hourly(0, 6_000), hourly(pause, 6_000)])
    costs = [item.cost for item in advise(found) if item.id == "hour_writes_unused"]
    premium = 12_000 * (Decimal(6) - Decimal("3.75")) / MILLION
    assert costs == ([premium] if unused else [])


def test_nobody_knows_of_pauses_where_a_time_is_missing(tmp_path: Path) -> None:
    rows = [hourly(0, 6_000), hourly(20, 6_000)]
    del rows[1]["timestamp"]
    found = replayed(tmp_path, rows)
    assert not [item for item in advise(found) if item.id == "hour_writes_unused"]
