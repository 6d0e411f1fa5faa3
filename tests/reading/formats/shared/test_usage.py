"""Counters of the providers: parts that do not overlap, whatever each provider counts inside."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.reading.formats.shared import tracked_usage
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.request.usage import Usage

COUNT = st.integers(0, 10**6)
PARTS = st.tuples(COUNT, COUNT, COUNT, COUNT)
"""Uncached, read, written, output."""


def parts(found: Usage | None) -> tuple[int, int, int, int]:
    assert found is not None
    return found.uncached, found.cache_read, found.cache_write, found.output


def spelled(uncached: int, read: int, written: int, output: int) -> list[dict[str, Any]]:
    """The same request as each provider that tells of writes counts it (facts 7)."""
    whole = uncached + read + written
    return [
        {
            "input_tokens": uncached,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": output,
        },
        {
            "inputTokens": uncached,
            "cacheReadInputTokens": read,
            "cacheWriteInputTokens": written,
            "outputTokens": output,
        },
        {
            "prompt_tokens": whole,
            "completion_tokens": output,
            "prompt_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        },
        {
            "input_tokens": whole,
            "output_tokens": output,
            "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        },
        {
            "inputTokens": whole,
            "outputTokens": output,
            "inputTokenDetails": {"cacheReadTokens": read, "cacheWriteTokens": written},
        },
    ]


@given(PARTS)
def test_each_provider_says_the_same_of_one_request(of: tuple[int, int, int, int]) -> None:
    for stated in spelled(*of):
        assert parts(counters.any_of(stated)) == of


@given(PARTS)
def test_a_null_is_the_same_as_no_counter(of: tuple[int, int, int, int]) -> None:
    for stated in spelled(*of):
        assert counters.any_of({**stated, "unheard_of": None}) == counters.any_of(stated)


@given(COUNT, COUNT, COUNT, COUNT, st.none() | COUNT)
def test_a_prompt_smaller_than_its_parts_is_flagged_and_never_negative(
    total: int, read: int, written: int, output: int, hour: int | None
) -> None:
    found = counters.inside(total, read, written, hour, output)
    assert min(parts(found)) >= 0
    assert (found.cache_read, found.cache_write, found.output) == (read, written, output)
    assert bool(found.contradiction) is (total < read + written)
    if not found.contradiction:
        assert found.input == total


@given(COUNT, st.none() | COUNT)
def test_the_split_by_lifetime_adds_up_to_what_was_written(written: int, hour: int | None) -> None:
    found = counters.beside(0, 0, written, hour, 0)
    assert found.cache_write == written
    assert found.cache_write_1h == min(hour or 0, written)
    assert found.split_known is (hour is not None or written == 0)


@pytest.mark.parametrize("good", [0, 1, counters.MOST, 1.0, 12.0])
def test_a_whole_number_is_a_count(good: float) -> None:
    assert counters.count({"a": good}, "a") == good
    assert type(counters.count({"a": good}, "a")) is int


@pytest.mark.parametrize(
    "bad", [-1, counters.MOST + 1, 0.5, -1.0, 1e300, float("inf"), True, False, "1", [], {}]
)
def test_anything_else_is_refused_by_its_name(bad: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match="'a' is no whole number from 0 up"):
        counters.count({"a": bad}, "a")


def test_the_first_name_that_is_there_counts() -> None:
    stated = {"a": None, "b": 2, "c": -1}
    assert counters.count(stated, "a", "b", "c") == 2
    assert counters.count(stated, "x") == 0


@pytest.mark.parametrize("usage", [{}, {"tokens": {}}, {"total": 1}, {"duration": 1.5}])
def test_counters_of_unknown_names_are_none(usage: dict[str, Any]) -> None:
    assert counters.any_of(usage) is None


@pytest.mark.parametrize(
    ("five", "hour", "written", "several"),
    [(2, 3, 5, False), (2, 2, 5, True), (0, 0, 0, False), (None, 5, 5, False), (None, None, 5, False)],
)  # fmt: skip
def test_a_split_that_is_not_of_the_total_shows_several_passes(
    five: int | None, hour: int | None, written: int, several: bool
) -> None:
    split = {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour}
    usage = {"cache_creation_input_tokens": written, "cache_creation": split}
    assert counters.has_server_tools(usage) is several


@pytest.mark.parametrize(("times", "ran"), [(1, True), (0, False), (True, False), ("1", False)])
def test_server_tools_are_told_by_their_number(times: Any, ran: bool) -> None:
    usage = {"server_tool_use": {"web_search_requests": times}}
    assert counters.has_server_tools(usage) is ran
    assert counters.searches(usage) == (1 if ran else 0)


@pytest.mark.parametrize(
    ("details", "hour"),
    [
        ([{"ttl": "1h", "inputTokens": 4}, {"ttl": "5m", "inputTokens": 3}], 4),
        ([{"ttl": "5m", "inputTokens": 7}], 0),
        ([{"ttl": "1h", "inputTokens": 3}, {"ttl": "1h", "inputTokens": 4}], 7),
        ([], None),
        (["1h"], None),
        (None, None),
    ],
)
def test_bedrock_lists_what_it_wrote_by_lifetime(details: Any, hour: int | None) -> None:
    found = counters.converse({"cacheWriteInputTokens": 7, "cacheDetails": details})
    assert found.cache_write_1h == (hour or 0)
    assert found.split_known is (hour is not None)


@given(COUNT, COUNT, COUNT, COUNT, COUNT)
def test_a_total_tells_what_the_input_of_a_tracker_holds(
    uncached: int, read: int, written: int, output: int, reasoning: int
) -> None:
    """Whichever reading gives the total, the parts add up to it."""
    stated = counters.beside(uncached + read + written, read, written, None, output)
    total = uncached + read + written + output + reasoning
    found = tracked_usage.told_by_total(stated, total, reasoning)
    assert not found.contradiction
    if total:
        assert found.input + found.output == total


@given(PARTS, st.integers(1, 10**6))
def test_a_total_that_nothing_adds_up_to_is_a_contradiction(
    of: tuple[int, int, int, int], more: int
) -> None:
    stated = counters.beside(*of[:3], None, of[3])
    found = tracked_usage.told_by_total(stated, sum(of) + more)
    assert bool(found.contradiction)
    assert parts(found) == of


@given(PARTS)
def test_a_span_holds_the_cached_parts_inside_of_its_input(of: tuple[int, int, int, int]) -> None:
    uncached, read, written, output = of
    for name_in, name_out, name_read, name_written in zip(
        tracked_usage.OTEL_INPUT[:3],
        tracked_usage.OTEL_OUTPUT[:3],
        tracked_usage.OTEL_READ[:3],
        tracked_usage.OTEL_WRITTEN[:3],
        strict=True,
    ):
        stated = {
            name_in: uncached + read + written,
            name_out: output,
            name_read: read,
            name_written: written,
        }
        assert parts(tracked_usage.otel(stated)) == of


@pytest.mark.parametrize(
    ("buckets", "of"),
    [
        ({"input": 5, "output": 2}, (5, 0, 0, 2)),
        ({"input": 5, "input_cached_tokens": 3, "output": 2, "total": 10}, (5, 3, 0, 2)),
        # 5 + 2 = 7: the input holds the cached part.
        ({"input": 5, "input_cached_tokens": 3, "output": 2, "total": 7}, (2, 3, 0, 2)),
        # Buckets of one's own count to the side of their name.
        ({"input": 5, "input_audio": 4, "output": 2, "output_reasoning": 1}, (9, 0, 0, 3)),
        ({"input": 5, "output": 2, "output_reasoning": 1, "total": 7}, (5, 0, 0, 2)),
        ({"input": 5, "input_cache_creation_1h": 6, "output": 2, "total": 13}, (5, 0, 6, 2)),
    ],
)
def test_buckets_of_langfuse(buckets: dict[str, int], of: tuple[int, ...]) -> None:
    assert parts(tracked_usage.langfuse(buckets)) == of
