"""How far a breakpoint reaches back, beside a model that counts positions (facts 1.3)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxdoc.cache.lookback import iter_reached, positions
from ctxdoc.prompt.prefix import Breakpoint, Prefix
from tests.support.prompts import block, prompt, talk

PROMPT = prompt(talk("a"))
KINDS = st.lists(
    st.sampled_from(["text", "tool_use", "tool_result", "setting", "image"]), min_size=1,
    max_size=90,
)  # fmt: skip


def of(kinds: list[str]) -> Prefix:
    """A prompt of blocks of these kinds."""
    segments = tuple(block(kind, index) for index, kind in enumerate(kinds))
    return replace(PROMPT, segments=segments, keys=tuple(s.digest for s in segments))


def reached(kinds: list[str], *marks: int) -> list[int]:
    return list(iter_reached(of(kinds), [Breakpoint(mark, "5m") for mark in marks]))


@pytest.mark.parametrize("kind", ["tool_use", "tool_result"])
def test_a_run_of_calls_or_results_is_one_position(kind: str) -> None:
    kinds = ["text", *[kind] * 100, *["text"] * 18]
    assert reached(kinds, len(kinds) - 1)[-1] == 0
    assert reached([*kinds, "text"], len(kinds))[-1] == 1


def test_a_run_of_texts_counts_each() -> None:
    assert reached(["text"] * 40, 39) == list(range(39, 19, -1))


def test_calls_and_results_in_turn_count_each() -> None:
    assert reached(["tool_use", "tool_result"] * 20, 39)[-1] == 20


def test_a_breakpoint_looks_at_nothing_behind_itself() -> None:
    assert reached(["text"] * 40, 3) == [3, 2, 1, 0]


def test_windows_that_overlap_give_each_segment_once() -> None:
    assert reached(["text"] * 40, 25, 39) == list(range(39, 5, -1))


def test_settings_have_no_position_of_their_own() -> None:
    assert positions(of(["setting", "text", "setting", "setting", "text"])) == (0, 1, 1, 1, 2)


@settings(max_examples=150, deadline=None)
@given(KINDS, st.data())
def test_what_is_reached_is_less_than_twenty_positions_back(
    kinds: list[str], data: st.DataObject
) -> None:
    """An independent model: positions counted from the start, and their difference."""
    blocks = [index for index, kind in enumerate(kinds) if kind != "setting"]
    marks = sorted(data.draw(st.sets(st.sampled_from(blocks), max_size=4))) if blocks else []
    at, last, counted = 0, "", []
    for kind in kinds:
        if kind != "setting":
            at += kind in ("text", "image") or kind != last
            last = kind
        counted.append(at)
    near = {
        index for mark in marks for index in range(mark + 1) if counted[mark] - counted[index] < 20
    }
    assert positions(of(kinds)) == tuple(counted)
    assert reached(kinds, *marks) == sorted(near, reverse=True)
