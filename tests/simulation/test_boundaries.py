"""Each strategy on both sides of its parameters, and numbers that nobody means."""

from __future__ import annotations

import json
import math
import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.errors import InputError
from ctxdoc.simulation.closed_forms import (
    Factors,
    bare,
    best_batch,
    compaction,
    dead,
    pays_after,
    saved_by_offload,
    warm,
    window_loses_until,
)
from ctxdoc.simulation.compare import compare
from ctxdoc.simulation.history.from_numbers import Shape, made_session
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies import STRATEGIES
from ctxdoc.simulation.strategies.spec import parse_specs
from tests.simulation.test_run import (
    bodies_of,
    of_shape,
    read_session,
    recorded,
    simulated,
    weigh,
    with_images,
)
from tests.support.sessions import START, first_body, record

TEN: dict[str, Any] = {"prefix": 1_000, "per_turn": 100, "turns": 10}
"""Prompts of 1,100, 1,200 … 2,000 tokens: an opening of 100 and nine rounds, each an answer of 20 and a tool
result of 80. 19 messages in the last one, 10 of them the user's."""

EDGES = [
    ("trim:high=2000,low=0", "trim:high=1999,low=0"),
    ("trim:high=10,low=1,unit=turns", "trim:high=9,low=1,unit=turns"),
    ("window:max_tokens=2000", "window:max_tokens=1999"),
    ("window:turns=10", "window:turns=9"),
    ("clear:trigger=2000,keep=1", "clear:trigger=1999,keep=1"),
    ("clear:trigger=0,keep=9", "clear:trigger=0,keep=8"),
    ("clear:tool_uses=9,keep=1", "clear:tool_uses=8,keep=1"),
    ("compact:at=11", "compact:at=10"),
    ("handoff:at=11", "handoff:at=10"),
    ("compact:trigger=2000", "compact:trigger=1999"),
    ("offload:over=80", "offload:over=79"),
    ("when_cold:after=21,keep=0", "when_cold:after=20,keep=0"),
    ("last_messages:keep=19", "last_messages:keep=18"),
    ("budget_window:max_tokens=2000", "budget_window:max_tokens=1999"),
]


@pytest.mark.parametrize(("idle", "active"), EDGES)
def test_a_strategy_acts_from_one_number_on(idle: str, active: str) -> None:
    """`TEN` ends at 2,000 tokens: the last request alone, or every one with a payload, is over the edge."""
    keep = of_shape("keep", **TEN)
    still, moved = of_shape(idle, **TEN), of_shape(active, **TEN)
    assert still.is_idle
    assert (still.usage, still.cost, still.prompts) == (keep.usage, keep.cost, keep.prompts)
    assert moved.changed > 0
    assert moved.prompts[-1] != 2_000
    if not active.startswith(("offload", "when_cold")):
        # An edge that the last prompt alone passes leaves all others as they were.
        assert moved.prompts[:-1] == keep.prompts[:-1]


def test_every_strategy_that_has_an_edge_is_on_both_sides_of_it() -> None:
    """Keeping, and facts, have none; images and thinking are tested where there are some."""
    named = {text.partition(":")[0] for pair in EDGES for text in pair}
    others = {
        "keep",
        "inject_memory",
        "drop_images",
        "shrink_images",
        "clear_thinking",
        "reread",
        "truncate",
        "dedupe",
        "handoff",
        "keep_alive",
        "defer_tools",
    }
    assert named | others == set(STRATEGIES.names)


def test_images_stay_up_to_the_number_that_is_kept() -> None:
    """Ten requests, of which five results hold an image of 560 by 336 pixels."""
    session = with_images(10)
    keep = simulated(session, "keep")
    for idle, active in (("keep=5", "keep=4"), ("keep=0,batch=6", "keep=0,batch=5")):
        assert simulated(session, f"drop_images:{idle}").usage == keep.usage
        assert simulated(session, f"drop_images:{active}").changed == 1
    assert simulated(session, "shrink_images:max_edge=533").usage == keep.usage
    # 533 pixels are 20 patches of 28 like 560, and 532 are 19.
    assert simulated(session, "shrink_images:max_edge=532").usage != keep.usage


def test_thinking_stays_in_as_many_turns_as_are_kept() -> None:
    """Twelve requests, of which each fifth is followed by a question: three turns."""
    session = recorded(12, think=True)
    assert simulated(session, "clear_thinking:keep=3").is_idle
    assert not simulated(session, "clear_thinking:keep=2").is_idle
    # One turn at least keeps its thinking: the API takes no less.
    assert simulated(session, "clear_thinking:keep=0").usage == (
        simulated(session, "clear_thinking:keep=1").usage
    )


NEVER = (
    "trim:high={most}", "window:max_tokens={most}", "window:turns={most}", "clear:trigger={most}",
    "clear:trigger=0,clear_at_least={most}", "clear:trigger=0,keep={most}", "compact:trigger={most}",
    "offload:over={most}", "drop_images:keep={most}", "drop_images:keep=0,batch={most}",
    "shrink_images:max_edge=0", "shrink_images:max_edge={most}", "clear_thinking:keep={most}",
    "last_messages:keep={most}", "budget_window:max_tokens={most}",
)  # fmt: skip


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 99), st.integers(1, 9), st.booleans())
def test_what_never_triggers_is_keeping_everything(seed: int, turns: int, think: bool) -> None:
    session = recorded(turns, seed=seed, think=think)
    keep = simulated(session, "keep")
    for text in NEVER:
        row = simulated(session, text.format(most=10**12))
        assert (row.usage, row.costs, row.rewrites, row.lost) == (keep.usage, keep.costs, 0, ())
        assert (row.is_idle, row.warnings) == (True, {}), text


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 99),
    st.integers(1, 12),
    st.dictionaries(st.integers(2, 12), st.sampled_from([1, 299, 301, 3_700])),
)
def test_keeping_everything_as_it_was_marked_costs_what_was_billed(
    seed: int, turns: int, gaps: dict[int, int]
) -> None:
    """The bill is a stand-in's, which shares no code; nothing of the session is unseen."""
    found = compare(Simulation(recorded(turns, seed=seed, gaps=gaps), weigh), [parse_specs("keep")])
    assert found.recorded is not None
    assert found.recorded.cost == found.billed
    assert found.recorded.lost_tokens == 0


NUMBERS = st.integers(0, 3_000)


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_nothing_is_cheaper_than_the_bound_whatever_the_numbers(data: st.DataObject) -> None:
    shape = Shape(
        prefix=data.draw(NUMBERS), per_turn=data.draw(st.integers(0, 400)),
        turns=data.draw(st.integers(1, 12)), gap=data.draw(st.sampled_from([0.0, 20.0, 400.0])),
        seed=data.draw(st.none() | st.integers(0, 9)),
    )  # fmt: skip
    name = data.draw(st.sampled_from(STRATEGIES.names))
    given = {each.name: data.draw(NUMBERS) for each in STRATEGIES[name].parameters if each.measure}
    text = f"{name}:" + ",".join(f"{key}={value}" for key, value in given.items())
    simulation = Simulation(made_session(shape))
    bound, *rows = simulation.rows(
        parse_specs(text), [PLACEMENTS[each] for each in ("oracle", "rolling", "automatic", "none")]
    )
    for row in rows:
        assert row.cost is not None
        assert row.cost >= (bound.cost or 0)
        assert row.usage.input == bound.usage.input


BY = Factors(read=0.1, write=1.25, write_1h=2.0, output=5.0)


def test_the_closed_forms_by_arithmetic() -> None:
    """P = 8,000, a = 1,500, n = 60: 480,000 + 1,500·1,830 = 3,225,000 tokens in all; warm reads
    59·8,000 + 1,500·1,770 = 3,127,000 and writes 98,000."""
    assert bare(8_000, 1_500, 60) == 480_000 + 2_745_000
    assert warm(8_000, 1_500, 60, BY) == pytest.approx(1.25 * 98_000 + 0.1 * 3_127_000)
    assert dead(8_000, 1_500, 60, BY) == 1.25 * 3_225_000
    # w·(W − a)/(r·a) = 1.25·9,000/100
    assert window_loses_until(10_000, 1_000, BY) == pytest.approx(112.5)
    # (w − r)·T/(r·d) = 1.15·10,000/(0.1·1,000)
    assert pays_after(10_000, 1_000, BY) == pytest.approx(115)
    # r·P + output·s + w·(s + again) = 800 + 10,000 + 1.25·3,200
    once = compaction(8_000, 2_000, 1_200, BY)
    assert once == pytest.approx(14_800)
    # √(2·14,800/(0.1·1,000)) = √296
    assert best_batch(1_000, once, BY) == pytest.approx(math.sqrt(296))
    # (w + r·9)·(1,000 − 15) = 2.15·985
    assert saved_by_offload(1_000, 15, 9, BY) == pytest.approx(2_117.75)


def test_a_closed_form_of_what_does_not_grow_is_none() -> None:
    free = Factors(read=0.0, write=1.25, write_1h=2.0, output=5.0)
    assert window_loses_until(10_000, 0, BY) is window_loses_until(10_000, 1, free) is None
    assert pays_after(10_000, 0, BY) is pays_after(10_000, 1, free) is None
    assert best_batch(0, 9, BY) is best_batch(1, 9, free) is None


def test_a_strategy_is_put_beside_its_own_law() -> None:
    """200 requests of 1,000 tokens behind P = 4,000; several that are joined have no law."""
    numbers = {"prefix": 4_000, "per_turn": 1_000, "turns": 200, "model": "claude-sonnet-4-6"}
    texts = ("window:max_tokens=9000", "offload:over=700", "clear:trigger=150000", "trim", "keep")
    chosen = [parse_specs(text) for text in (*texts, "offload:over=700+clear_thinking")]
    found = compare(Simulation(made_session(Shape(**numbers))), chosen).forms
    by = {form.row.name: form for form in found if form.row}
    # The default marks trim more than once, which has no law; keeping has none of its own.
    assert {name: form.name for name, form in by.items()} == {
        "window": "costs more a turn",
        "offload": "saves",
        "clear": "has paid",
    }
    # W = 9,000 − 4,000 = 5,000 and a = 1,000: 1.25·4,000/100.
    assert by["window"].value == pytest.approx(50)
    # 199 results of 800 tokens, that of request k with 200 − k later ones: Σ (1.25 + 0.1·m)·785.
    saved = sum((1.25 + 0.1 * later) * (800 - 15) for later in range(199))
    assert by["offload"].value == pytest.approx(saved)
    assert by["offload"].difference == pytest.approx(0, abs=1e-6)


HOSTILE = (
    "nan",
    "inf",
    "-inf",
    "1e400",
    "10000000000001",
    "-1",
    "²",
    "٣x",
    "0x10",
    "1_",
    "",
    " ",
    "9" * 400,
)


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "key", ["trim.high", "clear.keep", "inject_memory.change", "offload.reread"]
)
def test_what_is_no_number_of_anything_is_refused(key: str, value: str) -> None:
    """A number in other digits is one; whatever else is not gets told in one line, and never runs."""
    name, parameter = key.split(".")
    if value == "1_":
        assert parse_specs(f"{name}:{parameter}={value}")[0].parameters[parameter] == 1
        return
    with pytest.raises(InputError, match=name):
        parse_specs(f"{name}:{parameter}={value}")


@pytest.mark.parametrize("name", STRATEGIES.names)
@pytest.mark.parametrize("value", [0, 1, 10**12])
def test_the_least_and_the_most_of_every_parameter_can_be_run(name: str, value: int) -> None:
    given = ",".join(f"{p.name}={value}" for p in STRATEGIES[name].parameters if p.measure)
    row = of_shape(f"{name}:{given}", prefix=500, per_turn=90, turns=4)
    assert row.requests == 4
    assert row.usage.input == row.usage.cache_read + row.usage.cache_write + row.usage.uncached
    assert min(row.prompts) >= 0


@pytest.mark.parametrize(
    ("numbers", "most"),
    [
        ({"prefix": 10**12}, {"prefix": 10**12 + 1}),
        ({"per_turn": 0}, {"per_turn": -1}),
        ({"turns": 1}, {"turns": 0}),
        ({"turns": 3}, {"turns": 20_001}),
        ({"tool_share": 1.0}, {"tool_share": 1.0000001}),
        ({"tool_share": 0.0}, {"tool_share": -0.0000001}),
        ({"gap": 10**6}, {"gap": 10**6 + 1}),
        ({"gap": 0}, {"gap": math.nan}),
        ({"output": 20}, {"output": 21}),
        ({"payload": 0}, {"payload": -1}),
    ],
)
def test_the_numbers_of_a_made_up_session_have_ends(
    numbers: dict[str, Any], most: dict[str, Any]
) -> None:
    """A turn of 100 tokens, 80 of them tool results, has room for an answer of 20."""
    base = {"prefix": 100, "per_turn": 100, "turns": 2}
    assert made_session(Shape(**{**base, **numbers})).calls
    with pytest.raises(InputError):
        made_session(Shape(**{**base, **most}))


def test_a_request_that_only_warms_the_cache_asks_for_no_answer() -> None:
    """`max_tokens: 0` is a number, and not a missing one (prompt-caching page, 2026-10-08)."""
    body = first_body(random.Random(4), "claude-sonnet-4-6")
    bodies = []
    for most in (0, 77, None):
        own = json.loads(json.dumps(body))
        own.pop("max_tokens", None)
        own |= {} if most is None else {"max_tokens": most}
        bodies.append(record(own, START, {"input_tokens": 900, "output_tokens": 0}, len(bodies)))
    for one, most in zip(bodies, (0, 77, 4_096), strict=True):
        ((_, sent),) = bodies_of(read_session([one]), "keep")
        assert sent["max_tokens"] == most


def test_what_is_not_priced_costs_nothing_that_is_shown() -> None:
    row = of_shape("keep", model="claude-of-tomorrow-9", **TEN)
    assert (row.cost, row.cost_without_cache, row.unpriced) == (None, None, 10)
    assert of_shape("keep", **TEN).cost > Decimal(0)  # type: ignore[operator]
