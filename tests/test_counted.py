"""What counters, times and models alone prove: transcripts, which have no bodies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ctxdoc.causes import CAUSES, Confidence
from ctxdoc.counted import Counted, Rewrite
from ctxdoc.model import Event, Request, Response, Usage

START = datetime(2026, 11, 20, 9, tzinfo=UTC)
SONNET, HAIKU = "claude-sonnet-4-5-20250929", "claude-haiku-4-5-20251001"


def call(
    seconds: int,
    read: int,
    written: int,
    *,
    model: str = SONNET,
    hour: bool = False,
    event: Event | tuple[Event, ...] = (),
    said: str = "",
    error: str = "",
) -> Request:
    usage = Usage(
        uncached=4,
        cache_read=read,
        cache_write_5m=0 if hour else written,
        cache_write_1h=written if hour else 0,
    )
    return Request(
        source="-",
        line=1,
        model=model,
        body=None,
        at=START + timedelta(seconds=seconds),
        events=(event,) if isinstance(event, Event) else event,
        response=Response(usage=usage, miss_reason=said, error=error),
    )


def last_of(*calls: Request) -> Rewrite | None:
    session = Counted()
    heard = [session.next(number, each) for number, each in enumerate(calls)]
    settled = dict(session.settled())
    last = heard[-1]
    return settled.get(len(calls) - 1) or (last.rewrite if last else None)


FIRST = call(0, 0, 20_000)


@pytest.mark.parametrize(
    ("calls", "cause", "tokens"),
    [
        # read what was read and written before: nothing again
        ((FIRST, call(20, 20_000, 800)), None, 0),
        # 4 tokens behind the breakpoint become a part of the prefix: they had not been cached
        ((FIRST, call(20, 20_000, 804)), None, 0),
        # seven minutes; the 20,000 that were cached are written again
        ((FIRST, call(420, 0, 20_800)), "ttl_expired", 20_000),
        # the same pause with entries of an hour: the lifetime does not explain it
        (
            (call(0, 0, 20_000, hour=True), call(420, 0, 20_800, hour=True)),
            "prefix_changed",
            20_000,
        ),
        # over an hour
        ((call(0, 0, 20_000, hour=True), call(3700, 0, 20_800, hour=True)), "ttl_expired", 20_000),
        # one second less than five minutes
        ((FIRST, call(299, 0, 20_800)), "prefix_changed", 20_000),
        # a part is read: something behind it changed
        ((FIRST, call(20, 18_000, 2_800)), "prefix_changed", 2_000),
        # another model cannot read
        ((FIRST, call(20, 0, 20_800, model=HAIKU)), "model_changed", 20_000),
        # back on the first one, which reads its own entries
        ((FIRST, call(20, 0, 20_800, model=HAIKU), call(40, 20_000, 1_600)), None, 0),
        # the same model in another spelling
        ((FIRST, call(20, 20_000, 800, model="claude-sonnet-4-5")), None, 0),
        # the log notes a compaction; min(20,000, 19,504) − 18,000 was paid again
        ((FIRST, call(20, 18_000, 1_500, event=Event.COMPACTION)), "history_compacted", 1_504),
        # the prompt falls under 70 %
        ((FIRST, call(20, 0, 9_000)), "history_compacted", 9_004),
        # and after a pause too: it would have been written anyway
        ((FIRST, call(420, 0, 9_000)), "history_compacted", 9_004),
        # it falls a little: a part was taken out
        ((FIRST, call(20, 10_000, 8_000)), "history_rewritten", 8_004),
        ((FIRST, call(20, 0, 20_800, event=Event.THINKING)), "thinking_settings_changed", 20_000),
        # nothing is cached before: nothing can be lost
        ((call(0, 0, 0), call(20, 0, 20_000)), None, 0),
        # a side call among large prompts is no compaction: the large one goes on
        ((FIRST, call(20, 0, 3_000), call(40, 20_000, 800)), None, 0),
        # a call that failed leaves the one before it to compare with
        ((FIRST, call(10, 0, 0, error="overloaded"), call(20, 20_000, 800)), None, 0),
    ],
)
def test_a_rewrite_has_the_cause_that_the_log_proves(
    calls: tuple[Request, ...], cause: str | None, tokens: int
) -> None:
    found = last_of(*calls)
    assert (found.cause, found.tokens) == (cause, tokens) if found else cause is None


def test_a_side_call_is_a_thread_of_its_own_and_a_compaction_is_not_known_until_the_end() -> None:
    """Three small calls between large ones: nothing is written again, and there are two threads."""
    session, read = Counted(), 20_000
    heard = [session.next(0, FIRST)]
    for number in range(1, 7):
        side = number % 2
        heard.append(
            session.next(number, call(20 * number, 0 if side else read, 3_000 if side else 800))
        )
        read += 0 if side else 800
    assert [h.thread for h in heard if h] == [0, 1, 0, 1, 0, 1, 0]
    assert list(session.settled()) == []
    assert not any(h.rewrite for h in heard[::2] if h)


def test_the_word_of_the_api_makes_a_change_likely() -> None:
    plain = last_of(FIRST, call(20, 0, 20_800))
    told = last_of(FIRST, call(20, 0, 20_800, said="tools_changed"))
    assert plain is not None
    assert told is not None
    assert (plain.confidence, told.confidence) == (Confidence.POSSIBLE, Confidence.LIKELY)
    assert "tools_changed" in told.explanation


def test_a_compaction_is_not_avoidable_and_an_expiry_is() -> None:
    assert not CAUSES["history_compacted"].avoidable
    assert CAUSES["ttl_expired"].avoidable


def test_only_the_counters_cause_is_never_found_by_bodies() -> None:
    assert [cause.id for cause in CAUSES if cause.by_counters] == ["prefix_changed"]


def test_a_session_that_was_compacted_and_grew_back_is_compared_with_itself() -> None:
    """150k tokens fall to 30k without a word in the log, and grow to 150k again; after a pause the
    last request is compared with the one before it, and the fall was a compaction."""
    session, sizes = Counted(), [50_000, 100_000, 150_000, 30_000, 50_000, 80_000, 120_000, 149_000]
    read = 0
    for number, size in enumerate(sizes):
        fell = number == 3
        session.next(
            number, call(20 * number, 0 if fell else read, size - 4 - (0 if fell else read))
        )
        read = size - 4
    last = session.next(8, call(2000, 0, 150_000))
    assert last is not None
    assert (last.before, last.rewrite and last.rewrite.cause) == (7, "ttl_expired")
    assert [(key, fall.cause) for key, fall in session.settled()] == [(3, "history_compacted")]


def test_what_was_written_for_five_minutes_ends_after_five() -> None:
    """20k for an hour and 40k for five minutes; ten minutes later the 20k are read."""
    usage = Usage(uncached=4, cache_read=0, cache_write_5m=40_000, cache_write_1h=20_000)
    first = call(0, 0, 0)
    first = Request(
        source="-", line=1, model=SONNET, body=None, at=START, response=Response(usage=usage)
    )
    found = last_of(first, call(600, 20_000, 41_000))
    assert found is not None
    assert (found.cause, found.tokens) == ("ttl_expired", 40_000)
