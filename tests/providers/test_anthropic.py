"""The rows of the Claude API's models beside the pages that they are from."""

from __future__ import annotations

import pytest

from ctxdoc.providers import PROVIDERS, are_rules_known, find_model, provider_of

MINIMA = {
    512: ("fable-5-1", "mythos-5-1", "fable-5", "mythos-5", "opus-5-5", "opus-5", "sonnet-5-5", "haiku-5-5"),
    1_024: ("opus-4-8", "opus-4-1", "sonnet-5", "sonnet-4-6", "sonnet-4-5"),
    2_048: ("opus-4-7",),
    4_096: ("opus-4-6", "opus-4-5", "haiku-4-5"),
}  # fmt: skip
"""Prompt-caching page, 2026-10-08."""
LARGE = (
    "fable-5-2",
    "fable-5",
    "mythos-5",
    "opus-4-8",
    "opus-4-6",
    "sonnet-4-6",
    "haiku-5-5",
    "opus-5-5",
)
SMALL = ("sonnet-4-5", "opus-4-5", "haiku-4-5")
"""Context-windows page, 2026-10-08: a million without a header, or 200,000."""
TOOL_PROMPTS = {
    "opus-5-5": 286, "opus-5": 286, "opus-4-8": 290, "opus-4-7": 675, "opus-4-6": 497, "opus-4-5": 496,
    "sonnet-5-5": 286, "sonnet-5": 354, "sonnet-4-6": 497, "sonnet-4-5": 496, "haiku-5-5": 286,
    "haiku-4-5": 496,
}  # fmt: skip
"""Pricing page: tokens that tool use adds with a free choice."""
BOUND = ("fable-5-1", "opus-5-5", "sonnet-5-5", "haiku-5-5", "fable-5-2")
"""Preserved-thinking page, 2026-10-08, and articles of 2026-11-09."""


@pytest.mark.parametrize(
    ("model", "minimum"), [(model, size) for size, models in MINIMA.items() for model in models]
)
def test_a_minimum_is_the_pages(model: str, minimum: int) -> None:
    row = find_model(f"claude-{model}")
    assert (row.minimum, row.minimum_assumed) == (minimum, False)


def test_the_minimum_of_5_2_is_an_assumption() -> None:
    for model in ("claude-fable-5-2", "claude-mythos-5-2"):
        assert (find_model(model).minimum, find_model(model).minimum_assumed) == (512, True)


def test_windows_are_a_million_or_200k() -> None:
    for model in LARGE:
        assert (find_model(f"claude-{model}").window, model) == (1_000_000, model)
    for model in SMALL:
        assert (find_model(f"claude-{model}").window, model) == (200_000, model)


@pytest.mark.parametrize("model", TOOL_PROMPTS)
def test_what_tool_use_adds_is_the_pages(model: str) -> None:
    assert find_model(f"claude-{model}").tool_prompt == TOOL_PROMPTS[model]


def test_thinking_is_bound_to_its_prefix_on_the_models_that_are_named() -> None:
    for model in BOUND:
        assert find_model(f"claude-{model}").binds_thinking, model
    for model in ("opus-4-8", "sonnet-4-6", "haiku-4-5"):
        assert not find_model(f"claude-{model}").binds_thinking, model


def test_the_newer_tokenizer_begins_with_4_7() -> None:
    older = {
        find_model(f"claude-{name}").tokenizer for name in ("sonnet-4-6", "opus-4-6", "haiku-4-5")
    }
    newer = {
        find_model(f"claude-{name}").tokenizer for name in ("opus-4-7", "opus-4-8", "sonnet-5-5")
    }
    assert len(older) == len(newer) == 1
    assert older != newer


def test_every_row_says_where_it_is_from() -> None:
    for provider in PROVIDERS:
        for model in provider.models:
            row = provider.find_model(model)
            assert row.source, model
            assert row.date.startswith("2026-"), model
            assert row.known, model


@pytest.mark.parametrize(
    "name",
    [
        "claude-opus-4-8", "anthropic/claude-opus-4-8", "us.anthropic.claude-opus-4-8",
        "claude-opus-4-8[1m]", "claude-opus-4-8-20260601",
    ],
)  # fmt: skip
def test_each_spelling_of_a_model_is_that_model(name: str) -> None:
    assert find_model(name).id == find_model("claude-opus-4-8").id
    assert are_rules_known(name)


def test_a_model_that_nobody_states_has_no_known_rules() -> None:
    # A body without a model is looked at by the rules of its form.
    assert are_rules_known("")
    for name in ("kimi-k3", "gpt-6", "<synthetic>"):
        assert not are_rules_known(name)
        assert provider_of(name).id == "anthropic"
        assert not find_model(name).known
