"""Sizes of prompts: they grow, counters are kept to the token, and weights share out the rest."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.segments import Segment
from ctxdoc.providers import ModelRule
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.estimate import weight_of
from ctxdoc.tokens.fingerprint import locked, marked_count, stable_count
from ctxdoc.tokens.ledger import TokenLedger
from tests.support.prompts import counters, prompt, said

MARK = {"type": "ephemeral"}
TEXTS = st.lists(st.text("ab ", min_size=1, max_size=60), min_size=2, max_size=8)


def by_letter(segment: Segment, _: ModelRule) -> float:
    """A weight that a test can add up: ten for each letter z."""
    return 10.0 * segment.data.count(b"z")


def ledger() -> TokenLedger:
    return TokenLedger(by_letter)


def marked(*texts: str, at: int) -> Prefix:
    """A prompt of one message, with a breakpoint on a block."""
    message = said("user", *texts)
    message["content"][at]["cache_control"] = MARK
    return prompt([message])


def test_without_counters_the_weights_are_the_sizes() -> None:
    found = ledger().measure(prompt([said("user", "z", "zz", "zzz")]), None)
    assert found.upto == (10, 30, 60)
    assert (found.total, found.origin, found.ends) == (60, Origin.ESTIMATED, ())


def test_counters_are_kept_and_blocks_share_what_lies_between() -> None:
    """Ends at 90 and 100: the first two blocks share 90 as 1 to 2, the last has what is left."""
    found = ledger().measure(marked("z", "zz", "zzz", at=1), counters(0, 90, 10))
    assert found.upto == (30, 90, 100)
    assert found.ends == ((2, 90), (3, 100))
    assert (found.total, found.origin) == (100, Origin.CALIBRATED)


def test_what_counters_show_at_a_breakpoint_is_known_in_a_later_prompt() -> None:
    known = ledger()
    known.measure(marked("z", "zz", at=1), counters(0, 90, 0))
    later = known.measure(marked("z", "zz", "z", at=2), None)
    assert later.upto[1] == 90
    # Three weights of ten had 90 tokens: one more has 30.
    assert later.upto[2] == 120


def test_sizes_of_the_request_before_are_taken_over_up_to_the_last_exact_one() -> None:
    known = ledger()
    one = marked("z", "zz", at=1)
    first = known.measure(one, counters(0, 90, 0))
    two = marked("z", "zz", "z", at=2)
    second = known.measure(two, counters(90, 40, 0), (one, first))
    assert second.upto == (30, 90, 130)
    assert second.ends == ((2, 90), (3, 130))


def test_a_size_that_the_own_counters_contradict_is_left_out() -> None:
    """Another request's 90 leaves no room in a prompt of 80 altogether."""
    known = ledger()
    known.measure(marked("z", "zz", at=1), counters(0, 90, 0))
    found = known.measure(prompt([said("user", "z", "zz", "z")]), counters(0, 0, 80))
    assert found.ends == ((3, 80),)
    assert found.upto == (20, 60, 80)


def test_a_prompt_that_was_counted_afterwards_is_exact_at_its_end() -> None:
    found = ledger().measure(prompt([said("user", "z", "zzz")]), None, counted=80)
    assert (found.upto, found.ends) == ((20, 80), ((2, 80),))


@pytest.mark.parametrize(("tokens", "scale"), [(2, 1.0), (1, None), (41, 4.1), (42, None)])
def test_a_ratio_beyond_what_text_can_have_teaches_nothing(
    tokens: int, scale: float | None
) -> None:
    """A fifth of a token, or a token a byte (4.1 characters a token), for one that is estimated."""
    known = ledger()
    found = known.measure(marked("z", at=0), counters(0, tokens, 0))
    assert found.upto == (tokens,)
    assert found.ratio == (tokens / 10 if scale else None)


def test_a_copy_learns_for_itself() -> None:
    known = ledger()
    one = marked("z", "zz", at=1)
    copy = known.copied()
    copy.measure(one, counters(0, 90, 0))
    assert known.known == {}
    assert copy.known == {one.keys[1]: 90}


def test_sizes_before_the_first_segment_are_nothing() -> None:
    found = ledger().measure(prompt([said("user", "z")]), None)
    assert (found.at(None), found.at(-1), found.at(0)) == (0, 0, 10)


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.data())
def test_sizes_grow_and_reported_ends_are_kept(texts: list[str], data: st.DataObject) -> None:
    known = TokenLedger()
    before = None
    read = 0
    # A conversation that only appends, and counters that read what the last request cached.
    for count in range(1, len(texts) + 1):
        mark = data.draw(st.integers(max(0, count - 2), count - 1))
        written = data.draw(st.integers(1, 50))
        rest = data.draw(st.integers(1, 50)) if mark < count - 1 else 0
        stated: Usage | None = counters(read, written, rest)
        if data.draw(st.booleans()):
            stated = None
        one = marked(*texts[:count], at=mark)
        found = known.measure(one, stated, before)
        assert list(found.upto) == sorted(found.upto)
        assert all(found.upto[end - 1] == tokens for end, tokens in found.ends)
        assert all(a < b for a, b in pairwise(end for end, _ in found.ends))
        if stated is not None:
            assert found.total == stated.input
            assert found.at(mark) == stated.cache_read + stated.cache_write
            read = stated.cache_read + stated.cache_write
        before = (one, found)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80), st.text(min_size=1, max_size=20))
def test_more_text_never_weighs_less(text: str, more: str) -> None:
    one, two = (prompt([said("user", part)]) for part in (text, text + more))
    assert weight_of(one.segments[0], one.rule) <= weight_of(two.segments[0], two.rule) + 1e-9


def test_newer_models_take_more_tokens_for_the_same_text() -> None:
    """From 4.7 on about 30 % more (facts 8, 31)."""
    older, newer = (
        TokenLedger().measure(prompt([said("user", "word " * 400)], model=model), None).total
        for model in ("claude-sonnet-4-5", "claude-opus-5")
    )
    assert newer > 1.2 * older


def test_a_fingerprint_holds_hashes_and_sizes_and_no_text() -> None:
    tools = [{"name": "read", "description": "secret words", "input_schema": {}}]
    one = prompt([said("user", "a")], tools=tools, system="more secret words")
    assert stable_count(one) == marked_count(one) == 2
    found = locked(one, stable_count(one))
    assert [block.at for block in found.blocks] == ["$.tools[0]", "$.system"]
    assert "secret" not in repr(found)
    assert found.tokens == sum(block.tokens for block in found.blocks)


def test_a_fingerprint_changes_with_its_block_alone() -> None:
    def blocks(*names: str) -> list[str]:
        tools = [{"name": name, "input_schema": {}} for name in names]
        one = prompt([said("user", "a")], tools=tools)
        return [block.hash for block in locked(one, 2).blocks]

    (one, two), (same, other) = blocks("a", "b"), blocks("a", "c")
    assert one == same
    assert two != other


def test_the_marked_part_ends_with_the_last_breakpoint() -> None:
    assert marked_count(marked("a", "b", "c", at=1)) == 2
    assert stable_count(marked("a", "b", at=1)) == 0
