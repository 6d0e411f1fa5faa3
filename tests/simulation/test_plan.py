"""The plan: which changes, in which order, what to write, and what they come to together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ctxdoc
from ctxdoc.simulation.compare import Comparison, compare
from ctxdoc.simulation.defaults import _least_over, _least_tokens
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.plan import WORTH, Plan, plan_of
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies import STRATEGIES
from ctxdoc.simulation.strategies.spec import parse_specs
from tests.simulation.test_baseline import GROWS, counted
from tests.simulation.test_run import recorded, weigh
from tests.support.program import call
from tests.support.sessions import SESSION


def planned(seed: int, limit: float) -> tuple[Simulation, Comparison, Plan]:
    simulation = Simulation(recorded(20, seed=seed), weigh)
    comparison = compare(simulation, max_unseen=limit)
    return simulation, comparison, plan_of(simulation, comparison)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 40), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_each_step_saves_a_hundredth_beside_those_ahead_of_it_within_the_limit(
    seed: int, limit: float
) -> None:
    simulation, comparison, plan = planned(seed, limit)
    cost, specs, placement = plan.sent, "", comparison.sent.placement
    assert cost is not None
    assert len(plan.steps) <= 3
    for step in (each for each in plan.steps if each.id != "mend"):
        if step.id in PLACEMENTS.names:
            placement = PLACEMENTS[step.id]
        else:
            specs = f"{specs}+{step.id}" if specs else step.id
        (row,) = simulation.rows(parse_specs(specs or "keep"), [placement])
        assert step.together == row.cost
        assert cost - (row.cost or 0) >= WORTH * (plan.sent or 0)
        assert step.unseen == comparison.unseen_share(row) <= limit
        cost = row.cost or cost
    assert plan.total == cost


def test_the_lifetime_comes_first_where_it_is_too_long() -> None:
    """12,000 tokens are written for an hour, and nobody pauses: 6 instead of 3.75 USD a million."""
    from ctxdoc.request.log import Log, Trait
    from ctxdoc.simulation.history.from_log import recorded_session

    log = Log(requests=tuple(counted(GROWS)), traits=frozenset({Trait.TIME, Trait.USAGE}))
    simulation = Simulation(recorded_session(log))
    plan = plan_of(simulation, compare(simulation))
    first = plan.steps[0]
    assert first.id in ("recorded_5m", "rolling")
    assert json.loads(first.recipe.code) == {"cache_control": {"type": "ephemeral"}}
    assert float(first.alone or 0) == pytest.approx(12_000 * (6 - 3.75) / 10**6)
    assert first.unseen == 0


def test_what_is_pasted_is_json_that_the_api_takes() -> None:
    """Members of context editing and compaction as facts 5.1 and 5.2 have them."""
    for name in STRATEGIES.names:
        recipe = STRATEGIES[name].recipe
        (spec,) = parse_specs(name)
        told = recipe(spec.strategy) if recipe else None
        if told is not None and told.beta:
            (edit,) = json.loads(told.code)["context_management"]["edits"]
            assert edit["type"] in ("clear_tool_uses_20250919", "compact_20260112")
            assert edit["trigger"]["value"] in (100_000, 150_000)
        assert told is None or (told.do[0].islower() and told.proof)


@given(st.lists(st.integers(1, 50), max_size=12), st.integers(0, 200))
def test_payloads_over_the_mark_are_within_the_limit_and_one_less_is_not(
    sizes: list[int], most: int
) -> None:
    ranked = sorted(sizes, reverse=True)
    over = _least_over(ranked, most)
    if over is not None:
        assert 0 < sum(size for size in sizes if size > over) <= most
        assert sum(size for size in sizes if size >= over) > most
    tokens = _least_tokens(ranked, most)
    if tokens is not None:
        assert sum(max(0, size - tokens) for size in sizes) <= most
        assert sum(max(0, size - tokens + 1) for size in sizes) > most


def document(*words: str) -> dict[str, Any]:
    ended = call("simulate", str(SESSION), "--plan", *words, "--format", "json")
    assert ended.code == 0, ended.err
    return json.loads(ended.out)  # type: ignore[no-any-return]


def test_the_document_of_a_plan() -> None:
    found = document("--max-unseen", "100%")
    assert list(found) == ["schema", "sent_cost", "cost", "steps"]
    assert found["schema"] == "ctxdoc/plan/1"
    mend, best = found["steps"][:2]
    assert mend["id"] == "mend"
    assert list(best) == [
        "id", "do", "code", "beta", "saved_alone", "cost_together", "unseen_share", "pays_below_share",
        "caution", "proof",
    ]  # fmt: skip
    assert found["cost"] == found["steps"][-1]["cost_together"]
    # Within no limit there is nothing but the prefix to mend.
    complete = document("--max-unseen", "0")["steps"]
    assert [step["id"] for step in complete] == ["mend", "keep_alive"]
    little = document()["steps"]
    assert little[1]["id"].startswith("defer_tools:tools=list_files|")
    assert "has to search" in little[1]["caution"]
    assert {step["unseen_share"] for step in complete} == {"0.0000"}


def test_the_first_screen_has_the_bill_the_two_ways_and_the_first_step() -> None:
    text = call("simulate", str(SESSION), "--max-unseen", "100%", COLUMNS="80").out
    screen = " ".join(" ".join(text.splitlines()[:23]).split())
    for words in ("as sent", "First mend the prefix", "Plan 1.", "Sent ", "Complete ", "Choice "):
        assert words in screen, words


def test_a_plan_from_python() -> None:
    found = ctxdoc.simulate(str(SESSION), max_unseen="100%", plan=True)
    assert found.to_dict()["schema"] == "ctxdoc/plan/1"
    assert found.plan.steps[0].id == "mend"
