"""Which earlier request one goes on from, at the limits of time, of place and of reach."""

from __future__ import annotations

from typing import Any

import pytest

from ctxdoc.replay.link import DAY, REACH_BACK, Candidate, Earlier, are_apart, in_time, may_follow
from ctxdoc.replay.walk import Walk
from ctxdoc.request.request import Request
from tests.support.prompts import prompt, said, sent, talk


def pair(**after: Any) -> tuple[Request, Request]:
    """Two requests of one file, ten seconds apart but for what is said of the later one."""
    return sent(talk("a")), sent(talk("a", "b", "c"), **{"seconds": 10, **after})


@pytest.mark.parametrize(
    ("gap", "may"), [(DAY - 1, True), (DAY, False), (1 - DAY, True), (-DAY, False)]
)
def test_a_day_apart_nothing_goes_on(gap: float, may: bool) -> None:
    assert may_follow(*pair(seconds=gap)) is may


def test_a_session_of_the_log_goes_on_after_a_day_and_with_another_client() -> None:
    before = sent(talk("a"), session="s", agent="one/1")
    after = sent(talk("b"), session="s", agent="two/2", seconds=3 * DAY, source="other")
    assert may_follow(before, after)


@pytest.mark.parametrize(
    ("after", "may"),
    [({"source": "other"}, True), ({"source": "other", "seconds": None}, False),
     ({"seconds": None}, True)],
)  # fmt: skip
def test_files_without_times_are_no_conversation(after: dict[str, Any], may: bool) -> None:
    assert may_follow(*pair(**after)) is may


@pytest.mark.parametrize(("one", "two", "may"), [("a/1", "a/1", True), ("a/1", "a/2", False),
                                                 ("", "a/1", True), ("a/1", "", True)])  # fmt: skip
def test_another_version_of_a_client_builds_another_prompt(one: str, two: str, may: bool) -> None:
    assert may_follow(sent(talk("a"), agent=one), sent(talk("a"), agent=two)) is may


@pytest.mark.parametrize(
    ("one", "two", "apart"),
    [("s", "s", False), ("s", "t", True), ("s", "", False), ("", "", False)],
)
def test_two_sessions_of_the_log_are_apart(one: str, two: str, apart: bool) -> None:
    assert are_apart(sent(talk("a"), session=one), sent(talk("a"), session=two)) is apart


@pytest.mark.parametrize(("added", "by_end"), [(REACH_BACK - 1, True), (REACH_BACK, False)])
def test_the_end_of_an_earlier_prompt_is_found_so_many_blocks_back(
    added: int, by_end: bool
) -> None:
    """A single message is no proof by itself; a whole prompt is, as far as its end is looked for."""
    index, one = Earlier(), prompt(talk("a"))
    index.add(one, (), "", (), 0)
    longer = prompt([*talk("a"), said("assistant", *map(str, range(added)))])
    first = next(index.iter_found(longer, "", ()))
    assert first == Candidate(0, shares_much=by_end)


def test_of_two_runs_of_one_scenario_the_later_one_goes_on() -> None:
    index = Earlier()
    for number in (7, 3):
        index.add(prompt(talk("a")), (), "", (), number)
    assert next(index.iter_found(prompt(talk("a", "b", "c")), "", ())).number == 3


def test_where_nothing_is_shared_the_last_request_is_named() -> None:
    index = Earlier()
    for number, text in enumerate("ab"):
        index.add(prompt(talk(text)), (), "", (), number)
    assert list(index.iter_found(prompt(talk("c")), "", ()))[-1] == Candidate(1, shares_much=False)
    assert list(Earlier().iter_found(prompt(talk("c")), "", ())) == []


def test_a_breakpoint_is_found_by_the_longest_beginning_that_shares_it() -> None:
    index, long = Earlier(), prompt(talk("a", "b", "c", "d"))
    index.add(prompt(talk("a")), (0,), "", (), 0)
    index.add(prompt(talk("a", "b", "c")), (2,), "", (), 1)
    assert index.marked_as_long(long, 0) == 1
    assert index.marked_as_long(long, 2) == 1
    assert index.marked_as_long(long, 3) is None


def test_requests_without_a_time_stay_behind_the_one_before_them() -> None:
    """Their starts in seconds: 30, none, 10, and none in another file, which comes first."""
    rows = [sent([], seconds=30), sent([], seconds=None), sent([], seconds=10),
            sent([], seconds=None, source="other")]  # fmt: skip
    assert in_time(rows) == [3, 2, 0, 1]


def compared(*requests: Request) -> list[int | None]:
    return [step.earlier for step in Walk(requests).steps()]


def test_two_conversations_in_turn_are_each_compared_with_their_own() -> None:
    one, two = talk("a", "b", "c", "d", "e"), talk("u", "v", "w", "x", "y")
    rows = [sent(row[:n], seconds=n + at) for n in (1, 3, 5) for at, row in enumerate((one, two))]
    assert compared(*rows)[2:] == [0, 1, 2, 3]


def test_an_edited_history_is_found_by_its_last_two_messages() -> None:
    before, after = talk("a", "b", "c"), talk("a", "cut", "c2", "b", "c", "d")
    after[3:5] = before[1:3]
    rows = [sent(before), sent(talk("q"), seconds=1), sent(after, seconds=2)]
    assert compared(*rows)[2] == 0
