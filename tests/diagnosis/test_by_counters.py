"""What counters, times and models alone prove: transcripts, which have no bodies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxdoc.diagnosis.by_counters import Counted
from ctxdoc.diagnosis.causes import CAUSES, Confidence
from ctxdoc.diagnosis.counter_proofs import Rewrite
from ctxdoc.request.request import Event, Request
from ctxdoc.request.response import Response
from ctxdoc.request.usage import Pass, Usage

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


def passes(
    seconds: int, read: int, written: int, *each: tuple[int, int], several: bool = True
) -> Request:
    """A call whose counters add up passes over its prompt; those that it lists, as read and written."""
    listed = [Usage(uncached=4, cache_read=r, cache_write_5m=w, cache_write_1h=0) for r, w in each]
    plain = call(seconds, read, written)
    assert plain.response is not None
    response = replace(
        plain.response,
        several_passes=several,
        passes=tuple(Pass(kind="message", usage=usage) for usage in listed),
    )
    return replace(plain, response=response)


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


GPT = "gpt-5.4"
NOTED = {
    Event.MICRO_COMPACTION: "history_rewritten",
    Event.LOGIN: "routing_changed",
    Event.TOOLS: "tool_set_changed",
    Event.EFFORT: "effort_changed",
    Event.THINKING: "thinking_settings_changed",
}


@pytest.mark.parametrize("event", NOTED, ids=str)
def test_what_the_log_notes_is_a_likely_cause(event: Event) -> None:
    found = last_of(FIRST, call(20, 6_000, 14_800, event=(Event.USER_TURN, event)))
    assert found is not None
    assert (found.cause, found.tokens) == (NOTED[event], 14_000)
    assert found.confidence is Confidence.LIKELY
    assert NOTED[event] in CAUSES


@pytest.mark.parametrize("event", NOTED, ids=str)
def test_what_the_log_notes_is_no_miss_where_all_was_read(event: Event) -> None:
    assert last_of(FIRST, call(20, 20_000, 800, event=event)) is None


@pytest.mark.parametrize(
    ("calls", "cause", "confidence"),
    [
        # all of it, tools and system prompt too: nothing tells why
        (
            (FIRST, call(20, 0, 20_800, event=Event.USER_TURN)),
            "prefix_changed",
            Confidence.POSSIBLE,
        ),
        # the head is read, the history behind it is not
        (
            (FIRST, call(20, 6_000, 14_800, event=Event.USER_TURN)),
            "history_rewritten",
            Confidence.LIKELY,
        ),
        # the same within a turn
        ((FIRST, call(20, 6_000, 14_800)), "prefix_changed", Confidence.POSSIBLE),
        # a compaction is the stronger reason, and certain for it is noted
        (
            (FIRST, call(20, 6_000, 14_800, event=(Event.TOOLS, Event.COMPACTION))),
            "history_compacted",
            Confidence.CERTAIN,
        ),
        # after a pause the entries were gone, whatever was noted
        ((FIRST, call(420, 0, 20_800, event=Event.TOOLS)), "ttl_expired", Confidence.LIKELY),
        (
            (FIRST, call(420, 0, 18_000, event=Event.MICRO_COMPACTION)),
            "ttl_expired",
            Confidence.LIKELY,
        ),
        # the API says what changed
        (
            (FIRST, call(20, 0, 20_800, said="messages_changed")),
            "history_rewritten",
            Confidence.LIKELY,
        ),
        (
            (FIRST, call(20, 0, 20_800, said="tools_changed", event=Event.TOOLS)),
            "tool_set_changed",
            Confidence.LIKELY,
        ),
        # and where it has nothing to say, that proves nothing
        ((FIRST, call(20, 0, 20_800, said="unavailable")), "prefix_changed", Confidence.POSSIBLE),
    ],
)
def test_how_sure_a_cause_is(
    calls: tuple[Request, ...], cause: str, confidence: Confidence
) -> None:
    found = last_of(*calls)
    assert found is not None
    assert (found.cause, found.confidence) == (cause, confidence)


def test_an_uncached_tail_is_no_loss() -> None:
    """28,297 read and 2,338 written, 2,280 behind the breakpoint; then 30,635 are read."""
    tail = replace(call(0, 28_297, 2_338), response=Response(usage=TAIL))
    assert last_of(tail, call(5, 30_635, 2_691)) is None
    # 20 tokens less are within the tolerance, 21 are not
    assert last_of(tail, call(5, 30_615, 2_711)) is None
    lost = last_of(tail, call(5, 30_614, 2_712))
    assert lost is not None
    assert lost.tokens == 21


TAIL = Usage(uncached=2_280, cache_read=28_297, cache_write_5m=2_338, cache_write_1h=0)


def test_a_model_that_changed_behind_a_compaction_is_named() -> None:
    """150,000 fall to 30,000 and go to another model, which reads nothing."""
    first = call(0, 0, 150_000)
    found = last_of(first, call(20, 0, 30_000, model=HAIKU, event=Event.COMPACTION))
    assert found is not None
    assert (found.cause, found.tokens) == ("model_changed", 30_004)
    assert "compaction" in found.explanation
    # a title of another model without a breakpoint leaves the note to the next call
    title = replace(call(20, 0, 0, model=HAIKU, event=Event.COMPACTION))
    assert last_of(first, title) is None
    found = last_of(first, title, call(40, 12_000, 18_000))
    assert found is not None
    assert (found.cause, found.confidence) == ("history_compacted", Confidence.CERTAIN)


def test_a_note_of_a_call_that_failed_is_that_of_the_next() -> None:
    failed = call(10, 0, 0, error="overloaded", event=Event.COMPACTION)
    found = last_of(FIRST, failed, call(20, 6_000, 3_000))
    assert found is not None
    assert (found.cause, found.confidence) == ("history_compacted", Confidence.CERTAIN)


def test_a_short_prompt_that_reads_its_own_beginning_has_missed_nothing() -> None:
    """A side call, or a new history: of 9,000 tokens 6,000 are read."""
    assert last_of(FIRST, call(20, 6_000, 3_000)) is None
    assert last_of(FIRST, call(20, 0, 9_000)) is not None


def test_another_model_that_reads_its_own_cache_is_a_side_call_if_the_first_goes_on() -> None:
    side = call(20, 9_000, 11_800, model=HAIKU)
    found = last_of(FIRST, side)
    assert found is not None
    assert found.cause == "model_changed"
    session = Counted()
    for number, each in enumerate((FIRST, side, call(40, 20_000, 900))):
        session.next(number, each)
    assert list(session.settled()) == []


def test_a_request_sent_before_the_earlier_answer_may_not_read_what_that_one_wrote() -> None:
    earlier = replace(call(0, 12_000, 8_000), duration=30.0)
    assert last_of(earlier, call(10, 12_000, 8_400)) is None
    late = last_of(earlier, call(31, 12_000, 8_400))
    assert late is not None
    assert late.tokens == 8_000


class TestPasses:
    """Counters that add up several passes are no size of a prefix."""

    def test_the_last_listed_pass_says_what_was_cached(self) -> None:
        """20,000 read, then 20,800; the sums are 40,800 read and 1,600 written."""
        listed = passes(20, 40_800, 1_600, (20_000, 800), (20_800, 800))
        assert last_of(FIRST, listed) is None
        assert last_of(FIRST, listed, call(40, 21_600, 400)) is None
        lost = last_of(FIRST, listed, call(40, 20_000, 2_000))
        assert lost is not None
        assert lost.tokens == 1_600

    def test_the_first_listed_pass_says_what_was_read(self) -> None:
        lost = last_of(FIRST, passes(20, 20_800, 21_600, (0, 20_800), (20_800, 800)))
        assert lost is not None
        assert lost.tokens == 20_000

    @pytest.mark.parametrize("read", [20_000, 21_600, 42_000])
    def test_a_sum_proves_nothing_of_the_next_request(self, read: int) -> None:
        """What the request before it had cached, 20,000 tokens, is all that is certain."""
        summed = passes(20, 40_800, 1_600)
        assert last_of(FIRST, summed, call(40, read, 400)) is None

    def test_what_was_cached_before_a_sum_is_still_lost_behind_it(self) -> None:
        lost = last_of(FIRST, passes(20, 40_800, 1_600), call(40, 0, 22_000))
        assert lost is not None
        assert lost.tokens == 20_000

    def test_a_sum_that_is_the_first_request_proves_nothing(self) -> None:
        assert last_of(passes(0, 40_800, 1_600), call(20, 0, 22_000)) is None


class TestOtherProviders:
    """Nothing of theirs is judged by the rules of Claude's cache."""

    @pytest.mark.parametrize("pause", [20, 310, 740, 4_000])
    def test_no_pause_is_called_too_long(self, pause: int) -> None:
        found = last_of(
            call(0, 0, 20_000, model="gpt-6-sol"), call(pause, 0, 20_800, model="gpt-6-sol")
        )
        assert found is not None
        assert (found.cause, found.confidence) == ("prefix_changed", Confidence.POSSIBLE)
        assert "in time" not in found.explanation

    def test_a_fall_of_the_read_is_a_loss_where_no_writes_are_reported(self) -> None:
        """Reads 0, 39,936, 0, 40,960 of 40,000 and more: the third lost what the second read."""
        usages = [
            Usage(uncached=size - read, cache_read=read, cache_write_5m=0, cache_write_1h=0)
            for size, read in ((40_000, 0), (40_500, 39_936), (41_000, 0), (41_500, 40_960))
        ]
        calls = [
            replace(call(20 * n, 0, 0, model=GPT), response=Response(usage=usage))
            for n, usage in enumerate(usages)
        ]
        found = [last_of(*calls[:end]) for end in range(1, 5)]
        assert [each and each.tokens for each in found] == [None, None, 39_936, None]

    @pytest.mark.parametrize(
        ("read", "tokens"),
        # Gemini: 3,747, then 3,692; 5 % of 3,747 are 187, and 188 are a loss
        [(3_692, None), (3_560, None), (3_559, 188), (0, 3_747)],
    )
    def test_their_reads_may_waver(self, read: int, tokens: int | None) -> None:
        def one(seconds: int, read: int) -> Request:
            usage = Usage(
                uncached=4_500 - read, cache_read=read, cache_write_5m=0, cache_write_1h=0
            )
            plain = call(seconds, 0, 0, model="gemini-2.5-flash")
            return replace(plain, response=Response(usage=usage))

        found = last_of(one(0, 3_747), one(20, read))
        assert (found.tokens if found else None) == tokens

    def test_counters_that_contradict_themselves_prove_nothing(self) -> None:
        odd = Usage(
            uncached=0, cache_read=416, cache_write_5m=0, cache_write_1h=0, contradiction="odd"
        )
        calls = [replace(call(n, 0, 0, model="grok"), response=Response(usage=odd)) for n in (0, 9)]
        assert Counted().next(0, calls[0]) is None

    def test_a_model_that_changed_is_likely_only(self) -> None:
        found = last_of(call(0, 0, 20_000, model=GPT), call(20, 0, 20_800, model="gpt-6-sol"))
        assert found is not None
        assert (found.cause, found.confidence) == ("model_changed", Confidence.LIKELY)


COUNTS = st.integers(0, 60_000)


@given(
    st.lists(st.tuples(COUNTS, COUNTS, st.integers(0, 9_000), st.booleans()), max_size=8),
    st.sampled_from([SONNET, GPT]),
    st.sets(st.sampled_from(Event)),
)
def test_what_was_read_is_never_lost(
    rows: list[tuple[int, int, int, bool]], model: str, events: set[Event]
) -> None:
    """Lost tokens are at most what the request paid for, and there are none where it read as much as
    the one that it is compared with had read and written."""
    calls = []
    for number, (read, written, rest, hour) in enumerate(rows):
        usage = Usage(
            uncached=rest,
            cache_read=read,
            cache_write_5m=0 if hour else written,
            cache_write_1h=written if hour else 0,
        )
        plain = call(100 * number, 0, 0, model=model, event=tuple(events))
        calls.append(replace(plain, response=Response(usage=usage)))
    session = Counted()
    heard = {number: session.next(number, each) for number, each in enumerate(calls)}
    found = {n: h.rewrite for n, h in heard.items() if h and h.rewrite} | dict(session.settled())
    for number, rewrite in found.items():
        own, compared = calls[number].usage, heard[number]
        assert own is not None
        assert compared is not None
        assert compared.before is not None
        earlier = calls[compared.before].usage
        assert earlier is not None
        cached = earlier.cache_read + earlier.cache_write
        assert rewrite.tokens <= min(cached - own.cache_read, own.input - own.cache_read)
