"""The tree of prompts, beside a model that holds every beginning as a tuple."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.cache.prefix_tree import ROOT, PrefixTree

PROMPTS = st.lists(st.lists(st.sampled_from("abc"), max_size=7), max_size=25)


def keys_of(blocks: list[str]) -> list[bytes]:
    """A key of each beginning: its own text stands for the hash."""
    return ["".join(blocks[: end + 1]).encode() for end in range(len(blocks))]


@settings(max_examples=150, deadline=None)
@given(PROMPTS)
def test_a_node_is_a_beginning_and_what_is_known_is_the_longest_one(
    prompts: list[list[str]],
) -> None:
    tree, sent = PrefixTree(), set[bytes]()
    for blocks in prompts:
        keys = keys_of(blocks)
        known = tree.known(keys)
        assert known == sum(key in sent for key in keys)
        tree.grow(keys, known)
        sent.update(keys)
    assert len(tree) == len(sent)
    for key in sent:
        above = tree.parents[tree.node(key)]
        assert above == (tree.node(key[:-1]) if len(key) > 1 else ROOT)
        # Sums are pushed down from the end, which needs parents first.
        assert above < tree.node(key)


@settings(max_examples=100, deadline=None)
@given(PROMPTS)
def test_sums_count_the_prompts_that_go_through_a_node(prompts: list[list[str]]) -> None:
    tree = PrefixTree()
    ends: list[bytes] = []
    for blocks in filter(None, prompts):
        keys = keys_of(blocks)
        tree.grow(keys, tree.known(keys))
        ends.append(keys[-1])
    column = array("l", [0] * len(tree))
    for end in ends:
        column[tree.node(end)] += 1
    tree.sum_up(column)
    for key in {end[:size] for end in ends for size in range(1, len(end) + 1)}:
        assert column[tree.node(key)] == sum(end.startswith(key) for end in ends)


def test_a_closed_tree_answers_nothing() -> None:
    tree = PrefixTree()
    tree.grow([b"a"], 0)
    tree.close()
    with pytest.raises(KeyError):
        tree.node(b"a")
    assert tree.known([b"a"]) == 0
