"""The options of `ctxdoc diagnose` by what they change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.support.api_server import ApiServer
from tests.support.options import (
    ALIVE,
    DEAD,
    LOG,
    at,
    document,
    shows,
)
from tests.support.program import call


@pytest.fixture
def api() -> Iterator[ApiServer]:
    with ApiServer().running() as server:
        yield server


@shows("--pair", "diagnose")
def test_pair_chooses_two_requests_of_a_log() -> None:
    for text in ("4,5", " 4 - 5", "4:5"):
        found = document("diagnose", LOG, "--pair", text)
        assert (found["before"]["line"], found["after"]["line"]) == (4, 5)


@shows("--diff", "diagnose")
def test_diff_compares_where_it_is_not_needed() -> None:
    assert document("diagnose", *ALIVE)["steps"]["diff"]["ran"] is False
    assert document("diagnose", *ALIVE, "--diff")["steps"]["diff"]["ran"] is True


@shows("--exit-code", "diagnose")
def test_exit_code_tells_whether_the_cache_is_alive() -> None:
    assert [call("diagnose", *pair).code for pair in (DEAD, ALIVE)] == [0, 0]
    assert [call("diagnose", *pair, "--exit-code").code for pair in (DEAD, ALIVE)] == [1, 0]


@shows("--live", "diagnose")
@shows("--yes", "diagnose")
def test_live_sends_after_asking_or_a_yes(api: ApiServer, tmp_path: Path) -> None:
    where = at(api, tmp_path)
    refused = call("diagnose", *DEAD, "--live", **where)
    assert (refused.code, refused.out, api.calls) == (2, "", 0)
    assert "at most $" in refused.err
    assert "say --yes where nobody can be asked" in refused.err
    sent = call("diagnose", *DEAD, "--live", "--yes", "--quiet", **where)
    assert sent.code == 0
    # What costs money is told all the same.
    assert "--live sends " in sent.err
    assert "double send, live" in sent.out
    assert api.calls in (2, 3)


@pytest.mark.parametrize(("answer", "code", "calls"), [(b"n\n", 1, {0}), (b"y\n", 0, {2, 3})])
def test_a_person_is_asked(
    answer: bytes, code: int, calls: set[int], api: ApiServer, tmp_path: Path
) -> None:
    with mock.patch("tests.support.program.Piped.isatty", return_value=True):
        ended = call("diagnose", *DEAD, "--live", stdin=answer, **at(api, tmp_path))
    assert ended.code == code
    assert "Send it?" in ended.err
    assert api.calls in calls


@shows("--diagnostics", "diagnose")
def test_diagnostics_asks_for_the_word_of_the_api(api: ApiServer, tmp_path: Path) -> None:
    for words, asked in (((), False), (("--diagnostics",), True)):
        api.bodies.clear()
        call("diagnose", *DEAD, "--live", "--yes", *words, **at(api, tmp_path))
        assert any(b'"diagnostics"' in body for body in api.bodies) is asked
