"""The choice among strategies: limit, front, and the share of rereads at which one stops paying."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.simulation.choice import front_of, is_withholding
from ctxdoc.simulation.compare import Comparison, compare
from ctxdoc.simulation.history.from_numbers import Shape, made_session
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs
from tests.simulation.test_run import recorded, weigh

ROLLING = PLACEMENTS["rolling"]


def of(text: str, simulation: Simulation) -> Comparison:
    return compare(simulation, [parse_specs(text)])


@pytest.mark.parametrize(
    "text",
    ["offload:over=300", "trim:high=5200,low=3600", "clear:trigger=9000,keep=2", "window:turns=9"],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_row_is_cheaper_than_keep_below_the_printed_share_and_dearer_above_it(
    text: str, seed: int
) -> None:
    simulation = Simulation(recorded(24, seed=seed), weigh)
    comparison = of(text, simulation)
    keep, row = comparison.rows
    found = comparison.break_even(row)
    assert row.cost is not None
    assert keep.cost is not None
    assert found is not None

    def pays(share: float) -> bool:
        specs = parse_specs(f"{text}+reread:share={min(1.0, max(0.0, share)):.6f}")
        cost = simulation.rows(specs, [ROLLING])[0].cost
        assert cost is not None
        assert keep.cost is not None
        return cost < keep.cost

    # One payload more or less is the least step there is.
    step = 1 / found.payloads
    if found.share == 0:
        assert row.cost >= keep.cost
    elif found.share is None:
        assert pays(1.0)
    else:
        assert pays(found.share - step)
        assert found.share + step > 1 or not pays(found.share + step)


def test_all_read_again_is_every_payload_once() -> None:
    """Twelve tool results of 400 tokens, none under the mark: each is called for once, for 60 tokens."""
    shape = Shape(prefix=1_000, per_turn=500, turns=12, output=100)
    simulation = Simulation(made_session(shape))
    _, none, every = compare(
        simulation,
        [parse_specs("offload:over=300"), parse_specs("offload:over=300+reread:share=1")],
    ).rows
    # The first turn has no result: it opens the conversation.
    assert (none.extra_calls, every.extra_calls) == (0, 11)
    assert not every.lost
    assert every.usage.output - none.usage.output == 11 * 60
    half = compare(simulation, [parse_specs("offload:over=300+reread:share=0.5")]).rows[1]
    assert half.extra_calls == 5
    assert len(half.lost) == 6


def test_a_share_that_was_chosen_has_no_other_one() -> None:
    simulation = Simulation(recorded(), weigh)
    for text in ("offload:over=300,reread=0.2", "offload:over=300+reread:share=0.2", "keep"):
        comparison = of(text, simulation)
        assert comparison.break_even(comparison.rows[-1]) is None


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 50))
def test_the_front_runs_from_complete_to_cheapest(seed: int) -> None:
    comparison = compare(Simulation(recorded(20, seed=seed), weigh))
    front = comparison.front
    costs = [row.cost for row in front if row.cost is not None]
    assert costs == sorted(costs, reverse=True)
    assert len(set(costs)) == len(costs)
    unseen = [row.lost_tokens for row in front]
    assert unseen == sorted(set(unseen))
    assert front[0] is comparison.best_whole
    for row in comparison.possible:
        # Deferred definitions are no part of the history: what they hide has no place on this axis.
        if row.cost is not None and not is_withholding(row):
            assert any(
                other.cost is not None
                and other.cost <= row.cost
                and other.lost_tokens <= row.lost_tokens
                for other in front
            )


def test_nobody_stands_on_a_front_of_nothing() -> None:
    assert front_of([]) == []


def test_the_limit_holds_at_its_very_share() -> None:
    """Of ten turns of 500 tokens, two results of 400 are cleared: 800 of 5,000 tokens, 16 %."""
    shape = Shape(prefix=1_000, per_turn=500, turns=10, output=100)
    simulation = Simulation(made_session(shape))
    asked = [parse_specs("clear:trigger=0,keep=7")]
    at, under = (compare(simulation, asked, max_unseen=limit) for limit in (0.16, 0.1599))
    assert at.history_tokens == 5_000
    assert at.rows[1].lost_tokens == 800
    assert at.is_within(at.rows[1])
    assert not under.is_within(under.rows[1])
    assert under.is_within(under.keep)


def test_strategies_that_send_the_same_have_one_row() -> None:
    comparison = compare(Simulation(recorded(), weigh))
    names = [row.text for row in comparison.rows]
    told = [text for texts in comparison.same.values() for text in texts]
    assert not set(names) & set(told)
    sent = {(row.prompts, row.costs, row.lost_tokens) for row in comparison.rows if not row.is_idle}
    assert len(sent) == sum(not row.is_idle for row in comparison.rows)
    # Who asks for two gets two.
    twice = compare(Simulation(recorded(), weigh), [parse_specs("trim"), parse_specs("trim+keep")])
    assert len(twice.rows) == 3


def test_a_search_holds_what_the_table_has_and_says_so() -> None:
    """The marks of a small session are scaled in the table, for a strategy that is named, and in a search."""
    from ctxdoc.simulation.question import question_of

    simulation = Simulation(recorded(), weigh)
    table = {row.name: row for row in compare(simulation).rows}
    named = compare(simulation, [parse_specs("compact")]).rows[1]
    assert (named.text, named.cost) == (table["compact"].text, table["compact"].cost)
    (found,) = question_of(optimize=["compact.trigger"]).answer(simulation).found
    held = dict(spec.partition("=")[::2] for spec in found.held)
    given = dict(table["compact"].specs[0].given)
    assert held["compact.summary_tokens"] == given["summary_tokens"]
    assert found.best is not None
    assert table["compact"].cost is not None
    assert found.best.row.cost is not None
    # The value of the table is within the range: a search finds none that is dearer.
    assert found.best.row.cost <= table["compact"].cost


def test_a_best_at_the_end_of_its_range_is_called_that() -> None:
    from ctxdoc.simulation.question import question_of

    simulation = Simulation(recorded(), weigh)
    (edge,) = question_of(optimize=["offload.over=200..300"]).answer(simulation).found
    assert edge.best is not None
    assert edge.is_on_edge is (edge.best.values[0] in ("200", "300"))
    (empty,) = question_of(optimize=["last_messages.keep"]).answer(simulation).found
    assert empty.best is not None
    if empty.best.values[0] == "0":
        assert empty.is_empty
        assert empty.word == "cheapest, but the conversation is gone"
