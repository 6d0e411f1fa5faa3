"""The rules of the cache, row by row (facts 1.3, 1.4, 1.6, 1.9), each on both sides of its limit."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.cache.simulator import Cache, Lookup, Outcome, Relax, scopes_differ
from ctxdoc.prompt.prefix import Breakpoint
from ctxdoc.request.usage import Usage
from tests.support.prompts import prompt, said, sizes
from tests.support.sessions import START

HERE = (("workspace", "one"),)
ELSEWHERE = (("workspace", "two"),)


def lookup(
    upto: tuple[int, ...],
    *marks: int | tuple[int, str],
    at: float | None = 0,
    began: float | None = None,
    model: str = "claude-sonnet-4-5",
    scope: tuple[tuple[str, str], ...] = (),
    last: str = "",
) -> Lookup:
    """A request of one message with a block for each size, marked at these blocks; with `last` its last
    block is another one."""
    texts = [f"text {index}" for index in range(len(upto))]
    texts[-1] += last
    return Lookup(
        prefix=prompt([said("user", *texts)], model=model),
        sizes=sizes(*upto),
        marks=tuple(Breakpoint(*((m, "5m") if isinstance(m, int) else m)) for m in marks),
        at=None if at is None else START + timedelta(seconds=at),
        began=None if began is None else START + timedelta(seconds=began),
        scope=scope,
    )


def in_order(*lookups: Lookup) -> list[Outcome]:
    cache = Cache()
    return [cache.send(each) for each in lookups]


def read_after(*lookups: Lookup) -> int:
    """What the last of some requests reads."""
    return in_order(*lookups)[-1].usage.cache_read


STEPS = tuple(range(2000, 2000 + 40 * 100, 100))
"""Sizes of a prompt of 40 blocks, each end of them above every minimum but 4,096."""


@pytest.mark.parametrize(("entry", "read"), [(14, 0), (15, STEPS[15]), (34, STEPS[34])])
def test_a_breakpoint_at_block_35_looks_at_blocks_35_to_16(entry: int, read: int) -> None:
    """The worked example of the page: an entry at block 15 is missed, one at 16 is found."""
    assert read_after(lookup(STEPS, entry), lookup(STEPS, 34, at=10)) == read


def test_the_next_breakpoint_looks_on_where_the_last_one_found_nothing() -> None:
    assert read_after(lookup(STEPS, 5), lookup(STEPS, 20, 39, at=10)) == STEPS[5]


def test_stable_text_is_not_enough_where_nothing_was_written() -> None:
    """An entry is at a breakpoint only: one block less was never written."""
    assert read_after(lookup(STEPS, 10), lookup(STEPS, 9, at=10)) == 0


def test_the_longest_entry_in_reach_wins() -> None:
    assert read_after(lookup(STEPS, 20, 30), lookup(STEPS, 35, at=10)) == STEPS[30]


@pytest.mark.parametrize(("size", "written"), [(1023, 0), (1024, 1024)])
def test_the_minimum_is_that_of_the_beginning_up_to_the_breakpoint(size: int, written: int) -> None:
    first, again = in_order(lookup((size, 3000), 0), lookup((size, 3000), 0, at=10))
    assert first.usage.cache_write == written
    assert again.usage.cache_read == written
    assert first.usage.uncached == 3000 - written


@pytest.mark.parametrize(
    ("model", "least"),
    [("claude-opus-5", 512), ("claude-opus-4-8", 1024), ("claude-opus-4-7", 2048),
     ("claude-opus-4-6", 4096)],
)  # fmt: skip
def test_each_model_has_its_own_minimum(model: str, least: int) -> None:
    below, at = (lookup((n,), 0, model=model) for n in (least - 1, least))
    assert Cache().send(below).usage.cache_write == 0
    assert Cache().send(at).usage.cache_write == least


@pytest.mark.parametrize(
    ("ttl", "gap", "alive"),
    [("5m", 299, True), ("5m", 300, False), ("1h", 3599, True), ("1h", 3600, False)],
)
def test_an_entry_lives_from_the_start_of_its_request(ttl: str, gap: float, alive: bool) -> None:
    late = lookup(STEPS, (30, ttl), began=200)
    assert bool(read_after(late, lookup(STEPS, (30, ttl), at=gap))) is alive


@pytest.mark.parametrize(("gap", "alive"), [(299, True), (300, False)])
def test_each_read_renews_the_entry_for_its_own_lifetime(gap: float, alive: bool) -> None:
    """Read at 250, it lives to 550 and not to 300."""
    read = [lookup(STEPS, 30), lookup(STEPS, 30, at=250), lookup(STEPS, 30, at=250 + gap)]
    assert bool(read_after(*read)) is alive


def test_a_read_renews_no_shorter_entry() -> None:
    """Not said to be (facts 8): the shorter one ends on its own clock."""
    first = lookup(STEPS, 5, 30)
    renewed = lookup(STEPS, 30, at=250)
    assert read_after(first, renewed, lookup(STEPS, 5, at=301)) == 0


@pytest.mark.parametrize(("began", "at", "seen"), [(None, 0.9, False), (None, 1, True),
                                                   (8, 7.9, False), (8, 8, True)])  # fmt: skip
def test_an_entry_is_readable_once_its_response_has_begun(
    began: float | None, at: float, seen: bool
) -> None:
    """Where the log has no time for it, a second is assumed."""
    assert bool(read_after(lookup(STEPS, 30, began=began), lookup(STEPS, 30, at=at))) is seen


def test_parallel_twins_both_pay_the_write() -> None:
    one, two = in_order(lookup(STEPS, 30), lookup(STEPS, 30, at=0.2))
    assert one.usage == two.usage
    assert one.usage.cache_write == STEPS[30]


def test_an_entry_is_shown_sooner_where_a_later_request_proves_it() -> None:
    cache, first = Cache(), lookup(STEPS, 30, began=60)
    cache.send(first)
    cache.show([first.prefix.keys[30]], START + timedelta(seconds=5))
    assert cache.send(lookup(STEPS, 30, at=4)).usage.cache_read == 0
    assert cache.send(lookup(STEPS, 30, at=5)).usage.cache_read == STEPS[30]


def test_another_scope_reads_nothing_and_keeps_an_entry_of_its_own() -> None:
    mine, yours = lookup(STEPS, 30, scope=HERE), lookup(STEPS, 30, at=10, scope=ELSEWHERE)
    again = lookup(STEPS, 30, at=20, scope=HERE)
    assert [each.usage.cache_read for each in in_order(mine, yours, again)] == [0, 0, STEPS[30]]


def test_another_model_reads_nothing() -> None:
    assert read_after(lookup(STEPS, 30), lookup(STEPS, 30, at=9, model="claude-opus-4-8")) == 0


def test_scopes_differ_only_where_both_name_the_same_thing() -> None:
    assert scopes_differ(HERE, ELSEWHERE)
    assert not scopes_differ(HERE, (("host", "two"),))
    assert not scopes_differ((), ELSEWHERE)


def test_mixed_lifetimes_are_billed_in_three_stretches() -> None:
    """A: what is read. B: the last one-hour mark. C: the last mark. Read A, B-A for an hour, C-B for
    five minutes, the rest plain (facts 1.4)."""
    upto = (2000, 3000, 4500, 5000)
    first = lookup(upto, (0, "1h"))
    again = lookup(upto, (0, "1h"), (1, "1h"), 2, at=10)
    assert in_order(first, again)[1].usage == Usage(
        uncached=5000 - 4500, cache_read=2000, cache_write_1h=3000 - 2000,
        cache_write_5m=4500 - 3000,
    )  # fmt: skip


def test_a_mark_below_the_minimum_takes_no_part_in_the_bill() -> None:
    assert in_order(lookup((1000, 1500), (0, "1h"), 1))[0].usage == Usage(
        uncached=0, cache_read=0, cache_write_1h=0, cache_write_5m=1500
    )


def test_a_request_that_stores_nothing_leaves_nothing() -> None:
    cache = Cache()
    cache.send(lookup(STEPS, 30), stores=False)
    assert cache.send(lookup(STEPS, 30, at=9)).usage.cache_read == 0


def test_each_rule_left_aside_reaches_what_it_hid() -> None:
    """The entry is in another scope, gone, and out of the lookback: only all together show it."""
    hidden = [lookup(STEPS, 5, scope=HERE), lookup(STEPS, 39, at=900, scope=ELSEWHERE)]
    found = in_order(*hidden)[1].could_read
    assert found == (0, 0, 0, 0, STEPS[5])
    expired = in_order(lookup(STEPS, 30), lookup(STEPS, 39, at=900))[1].could_read
    assert expired[Relax.VISIBILITY] == 0
    assert expired[Relax.EXPIRY] == STEPS[30]


def test_an_entry_is_used_once_it_was_read() -> None:
    cache, first = Cache(), lookup(STEPS, 30)
    cache.send(first)
    assert not cache.is_used(first.prefix.keys[30])
    cache.send(lookup(STEPS, 30, at=9))
    assert cache.is_used(first.prefix.keys[30])


MARKS = st.lists(
    st.tuples(st.integers(0, 7), st.sampled_from(["5m", "1h"])), max_size=4,
    unique_by=lambda mark: mark[0],
).map(lambda marks: sorted(marks, key=lambda mark: (mark[1] == "5m", mark[0])))  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(MARKS, st.integers(1, 400)), min_size=1, max_size=8))
def test_the_parts_of_a_bill_add_up_and_fewer_rules_never_read_less(
    requests: list[tuple[list[tuple[int, str]], int]],
) -> None:
    cache, at, upto = Cache(), 0, (500, 1000, 1500, 2000, 2500, 3000, 3500, 4000)
    for marks, gap in requests:
        at += gap
        found = cache.send(lookup(upto, *sorted(marks), at=at))
        usage = found.usage
        assert usage.input == upto[-1]
        assert min(usage.uncached, usage.cache_write_5m, usage.cache_write_1h) >= 0
        assert list(found.could_read) == sorted(found.could_read)
        assert usage.cache_read == found.could_read[Relax.NOTHING]
