"""The recorded cases: cause, cache state, place and tokens, all of them right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxdoc.diagnosis.diagnose import Diagnosis, diagnose_pair
from ctxdoc.reading.load import read_request

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
NAMES = sorted(path.parent.name for path in CASES.glob("*/expect.json"))

Expected = dict[str, Any]


@pytest.fixture(params=NAMES)
def case(request: pytest.FixtureRequest) -> tuple[Diagnosis, Expected]:
    folder = CASES / request.param
    expected = json.loads((folder / "expect.json").read_text("utf-8"))
    before, after = (read_request(str(folder / name))[0] for name in expected["pair"])
    return diagnose_pair(before, after), expected


def test_the_cause_is_the_recorded_one(case: tuple[Diagnosis, Expected]) -> None:
    found, expected = case
    assert found.finding.cause.id in [expected["kind"], *expected.get("also_accept_kinds", [])]


def test_the_cache_state_is_the_recorded_one(case: tuple[Diagnosis, Expected]) -> None:
    found, expected = case
    assert found.state == expected["cache"]


def test_the_first_difference_stands_where_it_was_seen(case: tuple[Diagnosis, Expected]) -> None:
    found, expected = case
    right, also = expected["first_difference"], expected.get("also_accept", {})
    place = found.first_difference
    section = str(place.section) if place else "none"
    assert section in [right["section"], *also.get("section", [])]
    assert (place.pointer if place else None) in [right["json_path"], *also.get("json_path", [])]
    assert (place.byte if place else None) == right["byte"]
    assert found.invalidates_from == expected["invalidates_from"]


@pytest.mark.parametrize("name", ["survives_tokens", "lost_tokens", "identical_prefix_tokens"])
def test_tokens_are_right_within_three_percent_or_twenty(
    case: tuple[Diagnosis, Expected], name: str
) -> None:
    """A number that is null there is one that nothing tells: it is none here either."""
    found, expected = case
    numbers = {
        "survives_tokens": found.survives,
        "lost_tokens": found.lost,
        "identical_prefix_tokens": found.case.identical,
    }
    if expected[name] is None:
        assert numbers[name] is None
    else:
        assert numbers[name] == pytest.approx(expected[name], rel=0.03, abs=20)
