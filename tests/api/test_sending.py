"""What the functions send where they are asked to: counting, and the double send."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anthropic
import pytest

import ctxdoc
from ctxdoc.errors import InputError
from ctxdoc.live.count_tokens import TokenCounter
from tests.support.api_server import ApiServer
from tests.support.sessions import ROOT, demo_session, lines

KEY = "sk-ant-api03-never-to-be-shown-000"
PAIR = [ROOT / "fixtures" / "cases" / "clock-at-head-of-system" / f"{name}.json" for name in "ab"]


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """A stand-in that the environment names as the API."""
    with ApiServer().running() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield server


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two requests of the demo session without counters."""
    path = tmp_path / "log.jsonl"
    path.write_text(lines([{**row, "response": None} for row in demo_session()[:2]]))
    return path


def test_prompts_are_counted_by_a_counter_of_its_own(api: ApiServer, log: Path) -> None:
    found = ctxdoc.read(log, count_tokens=True)
    assert all(request.counted for request in found.requests)
    assert api.calls == 2
    # Every function counts as the log is read, and what is known is not asked again.
    for function in (ctxdoc.replay, ctxdoc.simulate, ctxdoc.diagnose):
        assert function(log, count_tokens=True).to_json() == function(found).to_json()
    assert api.calls == 2


def test_a_counter_that_is_given_tells_what_it_did(
    api: ApiServer, log: Path, tmp_path: Path
) -> None:
    api.plan = [{"status": 401}]
    client = anthropic.Anthropic(base_url=api.url, api_key=KEY, max_retries=0)
    counter = TokenCounter(client, tmp_path / "counts.sqlite")
    ctxdoc.replay(log, count_tokens=counter)
    assert (counter.asked, counter.known) == (1, 0)
    assert "status 401" in counter.stopped
    counter.close()


def test_that_counting_stopped_is_a_warning(api: ApiServer, log: Path) -> None:
    api.plan = [{"status": 401}, {"status": 401}]
    with pytest.warns(UserWarning, match="counting stopped: the API answered with status 401"):
        ctxdoc.read(log, count_tokens=True)
    with pytest.warns(UserWarning, match="the rest is estimated"):
        assert ctxdoc.image("56x56", count_tokens=True).rows[0]["tokens_counted"] is None


def test_an_image_is_counted_less_the_message_around_it(api: ApiServer) -> None:
    """The stand-in counts a quarter of the characters of both messages: with the image, and without."""
    (row,) = ctxdoc.image("56x56", count_tokens=True).rows
    assert isinstance(row["tokens_counted"], int)
    assert row["tokens_counted"] > 0
    assert (row["tokens"], api.calls) == (4, 2)


@pytest.mark.usefixtures("api")
def test_nothing_is_asked_without_a_key(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(InputError, match="there is no key") as caught:
        ctxdoc.replay(log, count_tokens=True)
    assert caught.value.hint == "set ANTHROPIC_API_KEY"
    found = ctxdoc.diagnose(*PAIR)
    with pytest.raises(InputError, match="--live: there is no key"):
        found.send_live(found.plan_live())


def test_the_later_request_is_sent_twice_after_its_plan_was_seen(api: ApiServer) -> None:
    found = ctxdoc.diagnose(*PAIR)
    plan = found.plan_live()
    assert plan.most is not None
    assert api.calls == 0
    sent = found.send_live(plan)
    assert found.diagnosis.double_send.how == "replayed"
    assert sent.diagnosis.double_send.how == "live"
    assert api.calls == len(sent.diagnosis.double_send.sendings) <= plan.count
    assert "double send, live" in sent.to_text()


def test_a_condensed_log_cannot_be_sent() -> None:
    log = ctxdoc.read(PAIR[1], condense=True)
    with pytest.raises(InputError, match="the body as it was sent"):
        ctxdoc.diagnose(log).plan_live()
