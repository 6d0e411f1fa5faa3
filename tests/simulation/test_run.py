"""Simulated strategies beside an independent Messages API, and beside arithmetic by hand."""

from __future__ import annotations

import io
import json
import math
import random
import re
import tempfile
from base64 import b64decode
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ctxdoc.errors import InputError, UnknownNameError
from ctxdoc.prompt.segments import Segment
from ctxdoc.providers import ModelRule
from ctxdoc.reading.load import read_log
from ctxdoc.request.log import Log
from ctxdoc.simulation.baseline import OLDER
from ctxdoc.simulation.compare import compare
from ctxdoc.simulation.emit import iter_lines
from ctxdoc.simulation.history.from_log import recorded_session
from ctxdoc.simulation.history.from_numbers import Shape, made_session
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.search import base_of, optimum, parse_optimum, parse_sweep, sweep
from ctxdoc.simulation.strategies import STRATEGIES
from ctxdoc.simulation.strategies.spec import parse_specs
from tests.images.test_images import picture
from tests.support.sessions import MARK, START, first_body, lines, prose, record
from tests.support.stand_in import StandIn, text_of

Body = dict[str, Any]
POINTER, SUMMARY, FACTS, ASKED, READ_CALL = 15, 130, 70, 200, 60
DECLARED = (
    (" tokens stored in ", POINTER),
    ("[summary of ", SUMMARY),
    ("[long-term facts", FACTS),
    ("[write a summary", ASKED),
    ('"name":"read_offloaded"', READ_CALL),
)
"""Sizes that are parameters or constants of a strategy, by a word of the block's text."""


IMAGE = '{"type":"image","source":{"type":"base64","media_type":"image/png","data":""}}'
DROPPED = '{"type":"text","text":"[image dropped]"}'
DATA = re.compile(r'"data":"([A-Za-z0-9+/=]+)"')


def quarter(text: str) -> int:
    """The stand-in's own count, or the stated size of a block that a strategy makes up. An image counts
    by its patches (vision page, 2026-08-22), a note in its place 8 beside what was around it."""
    if '"type":"image"' in text or DROPPED in text:
        patches = 0
        for data in DATA.findall(text):
            with Image.open(io.BytesIO(b64decode(data))) as image:
                patches += math.ceil(image.width / 28) * math.ceil(image.height / 28)
        rest = DATA.sub('"data":""', text).replace(DROPPED, IMAGE)
        return math.ceil(len(rest) / 4) + patches + 8 * text.count(DROPPED)
    for words, tokens in DECLARED:
        if words in text:
            return tokens
    return math.ceil(len(text) / 4)


def weigh(segment: Segment, rule: ModelRule) -> float:
    """The same count for a rendered block."""
    del rule
    if segment.kind == "setting":
        return 0.0
    return quarter(segment.role + segment.data.decode())


def call_id(number: int, call: int) -> str:
    """As long as the ids that strategies make, so that a result read again has its old size."""
    return f"toolu_{number:013d}{call:03d}"


def steps(rng: random.Random, number: int, calls: int, size: int, think: bool) -> list[Body]:
    """An answer with tool calls, and their results."""
    ids = [call_id(number, call) for call in range(calls)]
    said: list[Body] = [{"type": "text", "text": prose(rng, 90)}]
    if think:
        said.insert(0, {"type": "thinking", "thinking": prose(rng, 200), "signature": f"s{number}"})
    uses = [
        {"type": "tool_use", "id": i, "name": "read_file", "input": {"path": f"src/{i}.py"}}
        for i in ids
    ]
    results = [{"type": "tool_result", "tool_use_id": i, "content": prose(rng, size)} for i in ids]
    return [{"role": "assistant", "content": said + uses}, {"role": "user", "content": results}]


def recorded(
    turns: int = 14,
    *,
    seed: int = 5,
    calls: Callable[[int], int] = lambda _: 1,
    user_every: int = 5,
    think: bool = False,
    gaps: dict[int, int] | None = None,
) -> Session:
    """A session of an agent as the stand-in bills it: sometimes the user says something new."""
    rng = random.Random(seed)
    body, cache, now = first_body(rng, "claude-sonnet-4-6"), StandIn(count=quarter), 0
    if think:
        body["thinking"] = {"type": "enabled", "budget_tokens": 2000}
    records = []
    for number in range(1, turns + 1):
        now += (gaps or {}).get(number, 20)
        sent = json.loads(json.dumps(body))
        sent["system"][-1]["cache_control"] = dict(MARK)
        sent["messages"][-1]["content"][-1]["cache_control"] = dict(MARK)
        at = datetime.fromtimestamp(START.timestamp() + now, START.tzinfo)
        records.append(record(sent, at, cache.answer(sent, now), number))
        if number % user_every == 0:
            answer = {"role": "assistant", "content": [{"type": "text", "text": prose(rng, 160)}]}
            asked = {"role": "user", "content": [{"type": "text", "text": prose(rng, 240)}]}
            body["messages"] += [answer, asked]
        else:
            body["messages"] += steps(
                rng, number, calls(number), rng.choice([300, 1500, 4800]), think
            )
    return read_session(records)


def read_session(records: list[Body]) -> Session:
    """The records as the command line reads them: every part held once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_text(lines(records))
        return recorded_session(read_log([str(path)], condense=True), weigh=weigh)


def simulated(session: Session, text: str, placement: str = "rolling") -> Result:
    """The row of a strategy."""
    return Simulation(session, weigh).rows(parse_specs(text), [PLACEMENTS[placement]])[0]


def bodies_of(session: Session, text: str, placement: str = "rolling") -> list[tuple[float, Body]]:
    """The bodies that a strategy sends, each with its second."""
    lines = iter_lines(Simulation(session, weigh), parse_specs(text), PLACEMENTS[placement])
    rows = [json.loads(line) for line in lines]
    return [(datetime.fromisoformat(row["timestamp"]).timestamp(), row["request"]) for row in rows]


def with_images(turns: int = 10) -> Session:
    """A session with a screenshot every other turn, as the stand-in bills it."""
    rng = random.Random(8)
    body, cache = first_body(rng, "claude-sonnet-4-6"), StandIn(count=quarter)
    records = []
    for number in range(1, turns + 1):
        sent = json.loads(json.dumps(body))
        sent["system"][-1]["cache_control"] = dict(MARK)
        sent["messages"][-1]["content"][-1]["cache_control"] = dict(MARK)
        at = datetime.fromtimestamp(START.timestamp() + 20 * number, START.tzinfo)
        records.append(record(sent, at, cache.answer(sent, 20 * number), number))
        said, heard = steps(rng, number, 1, 300, think=False)
        if number % 2:
            shot = {"type": "base64", "media_type": "image/png", "data": picture(560, 336, number)}
            heard["content"][0]["content"] = [{"type": "image", "source": shot}]
        body["messages"] += [said, heard]
    return read_session(records)


WITH_IMAGES = (
    "drop_images",
    "drop_images:keep=0",
    "drop_images:keep=1,batch=3",
    "shrink_images:max_edge=280",
    "shrink_images:max_edge=0,max_tokens=100",
    "shrink_images:max_edge=400+drop_images:keep=2",
    # An image that goes, or comes back, with what others take out.
    "clear:trigger=0,keep=1,by=client",
    "clear:trigger=0,keep=0,by=client+reread:share=0.5",
    f"compact:at=4|8,summary_tokens={SUMMARY}",
    f"handoff:at=5,summary_tokens={SUMMARY}",
    "trim:high=2600,low=1900",
    "window:turns=2",
    "offload:over=100",
)


@pytest.mark.parametrize("text", WITH_IMAGES)
@pytest.mark.parametrize("placement", ["recorded", "none", "rolling", "automatic"])
def test_a_stand_in_bills_images_as_simulated(text: str, placement: str) -> None:
    session = with_images()
    row, cache = simulated(session, text, placement), StandIn(count=quarter)
    usages = [cache.answer(body, now) for now, body in bodies_of(session, text, placement)]
    found = row.usage
    assert (
        sum(usage["input_tokens"] for usage in usages),
        sum(usage["cache_read_input_tokens"] for usage in usages),
        sum(usage["cache_creation_input_tokens"] for usage in usages),
    ) == (found.uncached, found.cache_read, found.cache_write)
    assert simulated(session, "keep", placement).usage != found


CHECKED = (
    "keep",
    "trim:high=5200,low=3600",
    "trim:high=7,low=3,unit=turns",
    "window:max_tokens=4500",
    f"window:turns=4,summary_tokens={SUMMARY}",
    "clear:trigger=4000,keep=2,by=client",
    "clear:trigger=4000,keep=1,by=client,mode=rolling",
    "clear:trigger=4000,keep=1,by=client,clear_tool_inputs=true",
    "clear:trigger=4000,keep=0,by=client,clear_at_least=900",
    "clear_thinking:by=client",
    f"compact:trigger=5000,summary_tokens={SUMMARY}",
    f"compact:trigger=5000,summary_tokens={SUMMARY},call=separate,keep_recent=3",
    "offload:over=300",
    "offload:over=300,reread=0.4",
    f"inject_memory:tokens={FACTS},change=0.3",
    f"inject_memory:tokens={FACTS},at=end",
    f"last_messages:keep=6,summary_tokens={SUMMARY}",
    f"last_messages:keep=5,summary_tokens={SUMMARY},call=separate",
    "budget_window:max_tokens=4200",
    f"offload:over=300,reread=0.4+compact:trigger=3600,summary_tokens={SUMMARY}",
    "clear_thinking:by=client+trim:high=5200,low=3600",
    "clear:trigger=4000,keep=2,by=client+reread:share=0.6",
    "when_cold:keep=1,after=0",
    f"compact:at=6|10,summary_tokens={SUMMARY}",
    "keep_alive:after=18,margin=6,most=2",
    f"handoff:at=5|11,summary_tokens={SUMMARY}",
    "clear:tool_uses=5,keep=2,by=client",
    "when_cold:edit=trim,low=4500,after=0",
    "truncate:tokens=120",
    "truncate:tokens=60,part=tail+dedupe",
    "dedupe:over=20,which=first",
    f"offload:over=300+compact:trigger=3600,summary_tokens={SUMMARY}+reread:share=0.5",
)


def test_every_strategy_is_checked() -> None:
    every = (*CHECKED, *WITH_IMAGES)
    checked = {spec.definition.id for text in every for spec in parse_specs(text)}
    # The stand-in knows no deferred tools: tests/simulation/test_strategies.py looks at the body.
    checked |= {"defer_tools"}
    assert checked == set(STRATEGIES.names)


@pytest.mark.parametrize("text", CHECKED)
@pytest.mark.parametrize("placement", [name for name in PLACEMENTS.names if name != "oracle"])
def test_a_stand_in_that_gets_the_bodies_bills_what_is_simulated(text: str, placement: str) -> None:
    """Two calls at once, thinking, a pause beyond 5 minutes; the stand-in shares no code."""
    session = recorded(calls=lambda n: 1 + n % 2, think=True, gaps={7: 400, 11: 200})
    row = simulated(session, text, placement)
    cache = StandIn(count=quarter)
    total = {"input_tokens": 0, "cache_read_input_tokens": 0, "5m": 0, "1h": 0}
    for now, body in bodies_of(session, text, placement):
        usage = cache.answer(body, now)
        total["input_tokens"] += usage["input_tokens"]
        total["cache_read_input_tokens"] += usage["cache_read_input_tokens"]
        total["5m"] += usage["cache_creation"]["ephemeral_5m_input_tokens"]
        total["1h"] += usage["cache_creation"]["ephemeral_1h_input_tokens"]
    found = row.usage
    assert total == {
        "input_tokens": found.uncached,
        "cache_read_input_tokens": found.cache_read,
        "5m": found.cache_write_5m,
        "1h": found.cache_write_1h,
    }


@pytest.mark.parametrize("keep", [1, 2, 4])
@pytest.mark.parametrize("mode", ["sticky", "rolling"])
def test_parallel_results_are_cleared_one_by_one(keep: int, mode: str) -> None:
    """Three results a message: a message that is cleared in part is cleared further later, and the
    stand-in bills the same."""
    session = recorded(calls=lambda _: 3, user_every=99)
    text = f"clear:trigger=3000,keep={keep},by=client,mode={mode}"
    row, cache = simulated(session, text), StandIn(count=quarter)
    read = written = 0
    for now, body in bodies_of(session, text):
        usage = cache.answer(body, now)
        read += usage["cache_read_input_tokens"]
        written += usage["cache_creation_input_tokens"]
    assert (row.usage.cache_read, row.usage.cache_write) == (read, written)
    results = [
        part["content"]
        for message in body["messages"]
        for part in message["content"]
        if part["type"] == "tool_result"
    ]
    full = [content for content in results if content != "[old tool result cleared]"]
    assert full[-keep:] == results[-keep:]
    if mode == "rolling":
        assert len(full) == keep


def refusals(body: Body) -> list[str]:
    """What the Messages API would refuse; written for this test (Messages API reference)."""
    found = []
    messages = body["messages"]
    if messages[0]["role"] != "user":
        found.append("first message")
    merged: list[tuple[str, list[Body]]] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            found.append("empty message")
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((message["role"], list(blocks)))
    for (_, before), (_, after) in pairwise([("", []), *merged]):
        calls = {b["id"] for b in before if b["type"] == "tool_use"}
        answers = {b["tool_use_id"] for b in after if b["type"] == "tool_result"}
        if calls != answers:
            found.append("pairs")
    marks = [
        block["cache_control"].get("ttl", "5m")
        for part in (body.get("tools", []), body.get("system", []), *(b for _, b in merged))
        for block in part
        if "cache_control" in block
    ]
    if len(marks) + ("cache_control" in body) > 4:
        found.append("marks")
    if (
        "1h" in marks
        and marks.index("1h") > 0
        and "5m" in marks[: len(marks) - marks[::-1].index("1h")]
    ):
        found.append("ttl order")
    return found


LEGAL = [text for text in CHECKED if "last_messages" not in text and "budget" not in text]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_the_api_takes_every_body(data: st.DataObject) -> None:
    session = recorded(
        data.draw(st.integers(2, 16)),
        seed=data.draw(st.integers(0, 99)),
        calls=lambda n: 1 + n % data.draw(st.just(3)),
        user_every=data.draw(st.sampled_from([3, 5, 99])),
        think=data.draw(st.booleans()),
    )
    text = data.draw(st.sampled_from(LEGAL))
    placement = data.draw(st.sampled_from(["recorded", "rolling", "rolling_1h", "automatic"]))
    for _, body in bodies_of(session, text, placement):
        assert refusals(body) == []


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_placement_is_cheaper_than_the_bound(data: st.DataObject) -> None:
    session = recorded(
        data.draw(st.integers(1, 14)),
        seed=data.draw(st.integers(0, 99)),
        gaps=data.draw(st.dictionaries(st.integers(2, 14), st.sampled_from([1, 299, 301, 4000]))),
    )
    text = data.draw(st.sampled_from(CHECKED))
    places = ["oracle", "recorded", "none", "rolling", "rolling_1h", "automatic"]
    rows = Simulation(session, weigh).rows(parse_specs(text), [PLACEMENTS[p] for p in places])
    costs = [row.cost for row in rows]
    assert all(cost is not None and cost >= (costs[0] or 0) for cost in costs)
    assert len({row.usage.input for row in rows}) == 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 99), st.integers(1, 14))
def test_a_strategy_with_nothing_to_do_equals_keep(seed: int, turns: int) -> None:
    session = recorded(turns, seed=seed)
    keep = simulated(session, "keep")
    for text in ("offload:over=9999999", "trim:high=9999999", "window:max_tokens=9999999"):
        row = simulated(session, text)
        assert (row.usage, row.cost, row.rewrites, row.lost) == (keep.usage, keep.cost, 0, ())


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(LEGAL), st.integers(0, 99))
def test_what_a_strategy_keeps_is_the_record_to_the_byte(text: str, seed: int) -> None:
    session = recorded(12, seed=seed, think=True)
    known = {
        text_of(block)
        for call in session.calls
        for message in call.messages
        for block in json.loads(message.raw)["content"]
    }
    made = (
        "[summary",
        "[long-term",
        "[write a",
        "read_offloaded",
        " stored in ",
        "[old tool",
        '"input":{}',
        " tokens left out]",
        "[the same as ",
    )
    for _, body in bodies_of(session, text):
        for message in body["messages"]:
            for block in message["content"]:
                own = text_of(block)
                again = own.replace(str(block.get("tool_use_id")), "")
                assert (
                    own in known
                    or any(words in own for words in made)
                    or any(again in other for other in _without_ids(known))
                )


def _without_ids(known: set[str]) -> list[str]:
    return [
        text.replace(json.loads(text)["tool_use_id"], "")
        for text in known
        if '"tool_result"' in text
    ]


def of_shape(text: str, placement: str = "rolling", **numbers: Any) -> Result:
    """The row of a strategy on a made-up session."""
    session = made_session(Shape(**numbers))
    return Simulation(session).rows(parse_specs(text), [PLACEMENTS[placement]])[0]


def test_twenty_turns_of_three_hundred_tokens() -> None:
    """Design 7: 300·(1 + … + 20) = 63,000; a window of 5 turns with a summary of 200 sends
    300·(1 + … + 5) + 15·(1,500 + 200) = 4,500 + 25,500 = 30,000."""
    shape = {"prefix": 0, "per_turn": 300, "turns": 20, "tool_share": 0.0, "output": 0}
    assert of_shape("keep", **shape).usage.input == 63_000
    assert of_shape("window:turns=5,summary_tokens=200", **shape).usage.input == 30_000


def test_sixty_turns_always_warm() -> None:
    """Reads (n−1)·P + a·n(n−1)/2 = 59·8,000 + 1,500·1,770 = 3,127,000; writes P + a·n = 98,000."""
    row = of_shape("keep", prefix=8_000, per_turn=1_500, turns=60)
    assert (row.usage.cache_read, row.usage.cache_write, row.usage.uncached) == (
        3_127_000,
        98_000,
        0,
    )


def test_sixty_turns_always_dead_are_dearer_than_no_breakpoints() -> None:
    """Pauses of 400 s: every prompt is written, 1.25 times n·P + a·n(n+1)/2 = 3,225,000."""
    numbers = {"prefix": 8_000, "per_turn": 1_500, "turns": 60, "gap": 400.0, "output": 0}
    dead = of_shape("keep", **numbers)
    bare = of_shape("keep", "none", **numbers)
    assert dead.usage.cache_write == 3_225_000
    assert dead.cost == bare.cost * Decimal("1.25")  # type: ignore[operator]


def test_a_file_of_sixty_thousand_tokens() -> None:
    """60,000 / 15 = 4,000 times a turn at the margin; with P = 300, 60,300 / 315 = 191.4."""
    for prefix, times in ((0, 4_000.0), (300, 60_300 / 315)):
        numbers = {"prefix": prefix, "per_turn": 0, "turns": 10, "payload": 60_000}
        kept, off = of_shape("keep", **numbers), of_shape("offload", **numbers)
        assert kept.usage.input / off.usage.input == pytest.approx(times)


def test_clearing_pays_back_by_the_formula() -> None:
    """One clearing: (w−r)·T/(r·d) turns, with T behind the cut and d freed (design 7)."""
    numbers = {"prefix": 4_000, "per_turn": 1_000, "turns": 100, "tool_share": 0.8}
    model = "claude-sonnet-4-6"
    keep = of_shape("keep", model=model, **numbers)
    row = of_shape("clear:trigger=64000,keep=3", model=model, **numbers)
    first, behind = row.rewrote[0]
    freed = keep.prompts[first] - row.prompts[first]
    # Request 61 is the first over 64,000: the results of requests 2 to 58 go, 800 tokens each less
    # the placeholder; behind the first of them lie 57 answers of 200 and what is newer.
    assert first == 60
    pays = (1.25 - 0.1) * behind / (0.1 * freed)
    assert row.rewrites == 1
    assert row.overtaken_at(keep) == pytest.approx(first + 1 + pays, abs=2)


def test_a_sliding_window_costs_more_a_turn_until_the_stated_turn() -> None:
    """W = 10,000, a = 1,000, r = 0.1, w = 1.25: until turn 1.25·9,000 / (0.1·1,000) = 112.5."""
    numbers = {
        "prefix": 0, "per_turn": 1_000, "turns": 160, "tool_share": 0.0, "output": 0,
        "model": "claude-sonnet-4-6",
    }  # fmt: skip
    keep = of_shape("keep", **numbers)
    row = of_shape("window:max_tokens=10000", **numbers)
    dearer = [own > theirs for own, theirs in zip(row.costs, keep.costs, strict=True)]  # type: ignore[operator]
    assert dearer[10:112] == [True] * 102
    assert dearer[113:] == [False] * 47


def test_keeping_is_cheaper_than_sliding_with_a_cache_and_dearer_without() -> None:
    numbers = {"prefix": 8_000, "per_turn": 1_500, "turns": 60, "model": "claude-sonnet-4-6"}
    keep, window = of_shape("keep", **numbers), of_shape("window:max_tokens=40k", **numbers)
    assert window.cost > keep.cost  # type: ignore[operator]
    assert window.cost_without_cache < keep.cost_without_cache  # type: ignore[operator]


def test_the_server_compacts_with_a_pass_over_the_same_prompt() -> None:
    """Request 5 of P = 40,000 and a = 4,000 is the first over 56,000: 60,000 tokens and 200 that
    ask; then the prompt is P and the summary, and grows again."""
    numbers = {"prefix": 40_000, "per_turn": 4_000, "turns": 6, "tool_share": 0.5}
    row = of_shape("compact:trigger=56000,by=server,summary_tokens=3500", **numbers)
    assert row.extra_calls == 1
    assert row.prompts == (44_000, 48_000, 52_000, 56_000, 43_500, 47_500)
    assert row.usage.input == sum(row.prompts) + 60_200


@pytest.mark.parametrize(
    ("prefix", "per_turn", "turns", "summary"),
    [(8_000, 1_000, 1_000, 2_000), (20_000, 2_000, 1_000, 3_500), (5_000, 500, 1_000, 1_000)],
)
def test_the_best_compaction_is_within_a_turn_of_the_closed_form(
    prefix: int, per_turn: int, turns: int, summary: int
) -> None:
    """m = √(2·C/(r·a)), C = r·P + output·s + w·(s + a + 200); r = 0.1, w = 1.25, output 5. A pause of
    2 s keeps the tools and the system prompt alive between two compactions; in so long a session a last
    batch that is not full weighs little."""
    once = 0.1 * prefix + 5 * summary + 1.25 * (summary + per_turn + 200)
    best = math.sqrt(2 * once / (0.1 * per_turn))
    model = "claude-sonnet-4-6"
    simulation = Simulation(
        made_session(Shape(prefix=prefix, per_turn=per_turn, turns=turns, gap=2.0, model=model))
    )
    base = prefix + summary
    target, ends = parse_optimum(f"compact.trigger={base + per_turn}..{base + 40 * per_turn}")
    specs = parse_specs(f"compact:summary_tokens={summary}")
    found = optimum(simulation, specs, target, ends, PLACEMENTS["rolling"])
    assert found.best is not None
    turns_between = (int(found.best.values[0]) - base) / per_turn
    assert abs(turns_between - best) <= 1
    form = next(
        f for f in compare(simulation, [specs], (), [found]).forms if f.name == "is cheapest"
    )
    assert form.value == pytest.approx(base + per_turn * best, rel=1e-6)


def test_a_sweep_is_a_grid_of_rows_as_simulated_one_by_one() -> None:
    simulation = Simulation(recorded(), weigh)
    sweeps = [parse_sweep("clear.trigger=4000,5k"), parse_sweep("clear.keep=1,3")]
    base = base_of([parse_specs("clear:by=client")], [each.target for each in sweeps])
    found = sweep(simulation, base, sweeps, PLACEMENTS["rolling"])
    assert [point.values for point in found.points] == [
        ("4000", "1"), ("4000", "3"), ("5k", "1"), ("5k", "3"),
    ]  # fmt: skip
    for point in found.points:
        trigger, keep = point.values
        alone = parse_specs(f"clear:by=client,trigger={trigger},keep={keep}")
        assert point.row.cost == simulation.rows(alone, [PLACEMENTS["rolling"]])[0].cost
    assert found.best is not None
    assert found.best.row.cost == min(point.row.cost for point in found.points)  # type: ignore[type-var]


def test_searches_that_make_no_sense_say_so() -> None:
    for text in ("clear.trigger", "clear", "clear.mode=sideways", "clear.trigger="):
        with pytest.raises(InputError):
            parse_sweep(text)
    for text in ("clear.mode", "offload.reread", "clear.trigger=9..3", "clear.trigger=9"):
        with pytest.raises(InputError):
            parse_optimum(text)
    with pytest.raises(UnknownNameError):
        parse_optimum("clear.trigge")
    many = ",".join(map(str, range(1, 30)))
    wide = [parse_sweep(f"clear.trigger={many}"), parse_sweep(f"clear.keep={many}")]
    with pytest.raises(InputError, match="swept twice"):
        sweep(Simulation(recorded(2)), parse_specs("clear"), wide[:1] * 2, PLACEMENTS["rolling"])
    with pytest.raises(InputError, match="841 combinations"):
        sweep(Simulation(recorded(2)), parse_specs("clear"), wide, PLACEMENTS["rolling"])


def test_every_checked_strategy_changes_something() -> None:
    session = recorded(calls=lambda n: 1 + n % 2, think=True)
    keep = simulated(session, "keep")
    # No result of this session comes twice.
    for text in (each for each in CHECKED[1:] if not each.startswith("dedupe")):
        assert simulated(session, text).usage != keep.usage, text


def test_warnings_say_what_the_api_refuses() -> None:
    session = recorded(think=True)
    budget = simulated(session, "budget_window:max_tokens=4200")
    assert any("without its" in text for text in budget.warnings)
    assert not simulated(session, "trim:high=5200,low=3600").warnings
    numbers = {"prefix": 190_000, "per_turn": 2_000, "turns": 8, "model": "claude-haiku-4-5"}
    row = of_shape("keep", **numbers)
    assert row.warnings == {"the prompt is larger than the model's window": 3}
    assert not row.fits


def test_cutting_ahead_of_thinking_is_refused_where_it_is_bound_to_its_prefix() -> None:
    session = recorded(think=True)
    log = Simulation(session, weigh)
    for model, refused in (("claude-sonnet-5-5", True), ("claude-sonnet-4-6", False)):
        calls = tuple(_of_model(call, model) for call in log.session.calls)
        found = Simulation(Session(calls=calls), weigh).rows(
            parse_specs("clear:trigger=4000,keep=1,by=client"), [PLACEMENTS["rolling"]]
        )[0]
        assert any("thinking" in text for text in found.warnings) is refused
        server = Simulation(Session(calls=calls), weigh).rows(
            parse_specs("clear:trigger=4000,keep=1"), [PLACEMENTS["rolling"]]
        )[0]
        assert not server.warnings


def _of_model(call: Any, model: str) -> Any:
    from msgspec.structs import replace

    from ctxdoc.providers import find_model

    return replace(call, rule=find_model(model), root=model)


def test_lost_content_is_counted_once() -> None:
    """Results of 4 sizes go to disk: their tokens are what the model does not see."""
    session = recorded(10)
    row = simulated(session, "offload:over=300")
    results = {
        (id(message), place): message.tokens[place]
        for call in session.calls
        for message in call.messages
        for place in message.results
        if message.tokens[place] > 300
    }
    assert row.lost_tokens == sum(results.values())
    assert simulated(session, "keep").lost == ()


def transcript(name: str, first: int, minute: int = 0) -> list[Body]:
    """Ten answers of a session without bodies: a first prompt, and 1,000 tokens more each time."""
    rows = []
    for number in range(10):
        usage = {
            "input_tokens": 0, "output_tokens": 150,
            "cache_read_input_tokens": first + 1_000 * (number - 1) if number else 0,
            "cache_creation_input_tokens": 1_000 if number else first,
        }  # fmt: skip
        message = {
            "id": f"msg_{name}{number}", "type": "message", "role": "assistant", "content": [],
            "model": "claude-sonnet-4-5", "usage": usage,
        }  # fmt: skip
        rows.append(
            {
                "type": "assistant", "sessionId": name, "uuid": f"{name}{number}", "parentUuid": None,
                "isSidechain": False, "timestamp": f"2026-11-02T09:{minute + 2 * number:02d}:00Z",
                "requestId": f"r{name}{number}", "version": "2.1.0", "message": message,
            }
        )  # fmt: skip
    return rows


def test_sessions_without_bodies_share_nothing(tmp_path: Path) -> None:
    """Nothing tells that their prompts begin alike: together they cost what each costs alone."""
    paths = []
    for name, first in (("a", 20_000), ("b", 90_000)):
        paths.append(str(tmp_path / f"{name}.jsonl"))
        Path(paths[-1]).write_text(lines(transcript(name, first, minute=len(paths))))
    costs = []
    for chosen in ([paths[0]], [paths[1]], paths):
        session = recorded_session(read_log(chosen))
        rows = compare(Simulation(session), [parse_specs("keep")], [PLACEMENTS["oracle"]]).rows
        costs.append([row.cost for row in rows])
        assert rows[1].usage.uncached >= 0
        assert rows[1].cost <= rows[0].cost  # type: ignore[operator]
    assert [one + two for one, two in zip(costs[0], costs[1], strict=True)] == costs[2]  # type: ignore[operator]
    with pytest.raises(InputError, match="needs bodies"):
        compare(Simulation(session), (), [PLACEMENTS["recorded"]])


def test_summaries_of_two_sessions_are_two() -> None:
    sessions = [recorded(seed=seed, user_every=3) for seed in (5, 6)]
    told = [
        json.dumps(body)
        for session in sessions
        for _, body in bodies_of(session, "compact:trigger=5000,summary_tokens=130")
    ]
    names = {
        name for text in told for name in re.findall(r"\[summary of \d+ messages, (\w+)", text)
    }
    assert len(names) >= 2


def test_one_session_of_a_log_finds_what_the_others_have_cached() -> None:
    """B begins with the head that A has written: as recorded it costs what was billed."""
    rng, cache, records = random.Random(3), StandIn(count=quarter), []
    first = first_body(rng, "claude-sonnet-4-6")
    bodies = {}
    for name in "ab":
        bodies[name] = json.loads(json.dumps(first))
        bodies[name]["messages"][0]["content"][0]["text"] += prose(random.Random(name), 400)
    for number in range(1, 13):
        name = "ab"[number % 2]
        sent = json.loads(json.dumps(bodies[name]))
        sent["system"][-1]["cache_control"] = dict(MARK)
        sent["messages"][-1]["content"][-1]["cache_control"] = dict(MARK)
        at = datetime.fromtimestamp(START.timestamp() + 20 * number, START.tzinfo)
        row = record(sent, at, cache.answer(sent, 20 * number), number)
        records.append({**row, "session_id": name})
        bodies[name]["messages"] += steps(rng, number, 1, 700, think=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.jsonl")
        path.write_text(lines(records))
        session = recorded_session(read_log([str(path)], condense=True), only="a", weigh=weigh)
    assert len(session.calls) == 6
    found = compare(Simulation(session, weigh), [parse_specs("keep")])
    assert found.recorded is not None
    assert found.recorded.cost == found.billed
    assert found.recorded.usage.cache_read == sum(
        row["response"]["usage"]["cache_read_input_tokens"]
        for row in records
        if row["session_id"] == "a"
    )


def test_lost_breakpoints_live_as_long_as_the_counters_say() -> None:
    """Writes for an hour, read after a quarter of one; the bodies have no breakpoints left."""
    body, records = first_body(random.Random(4), "claude-sonnet-4-6"), []
    cache = StandIn(count=quarter)
    for number in range(1, 7):
        sent = json.loads(json.dumps(body))
        for block in (sent["system"][-1], sent["messages"][-1]["content"][-1]):
            block["cache_control"] = {"type": "ephemeral", "ttl": "1h"}
        at = datetime.fromtimestamp(START.timestamp() + 900 * number, START.tzinfo)
        records.append(
            record(json.loads(json.dumps(body)), at, cache.answer(sent, 900 * number), number)
        )
        body["messages"] += steps(random.Random(number), number, 1, 900, think=False)
    session = read_session(records)
    found = compare(Simulation(session, weigh), [parse_specs("keep")])
    assert found.recorded is not None
    assert found.recorded.cost == found.billed
    assert any("lost their breakpoints" in text for text in session.assumptions)


def test_what_is_billed_beside_the_counters_is_in_what_was_billed() -> None:
    """A compaction pass of 30,000 in and 1,000 out, and three searches at a cent; Sonnet 4.6."""
    body, cache = first_body(random.Random(4), "claude-sonnet-4-6"), StandIn(count=quarter)
    usage = cache.answer(body, 0)
    usage["iterations"] = [{"type": "compaction", "input_tokens": 30_000, "output_tokens": 1_000}]
    usage["server_tool_use"] = {"web_search_requests": 3}
    session = read_session([record(body, START, usage, 1)])
    found = compare(Simulation(session, weigh), [parse_specs("keep")])
    assert found.beside == Decimal("0.03") + (30_000 * Decimal(3) + 1_000 * Decimal(15)) / 10**6
    own = (usage["input_tokens"] * Decimal(3) + usage["output_tokens"] * Decimal(15)) / 10**6
    assert found.billed == own + found.beside


ODD = (
    {"role": "user", "content": []},
    {"role": "user"},
    {"role": "user", "content": None},
    {"role": "user", "content": [5]},
    {"role": "user", "content": {"type": "text", "text": "hi"}},
    {"type": "thinking"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": True}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": 7}]},
)


@pytest.mark.parametrize("message", ODD, ids=range(len(ODD)))
def test_a_request_of_no_known_shape_is_left_out_and_counted(message: Body) -> None:
    body, cache = first_body(random.Random(4), "claude-sonnet-4-6"), StandIn(count=quarter)
    good = json.loads(json.dumps(body))
    body["messages"] += [message]
    rows = [
        record(good, START, cache.answer(good, 0), 1),
        record(body, START, {"input_tokens": 900, "output_tokens": 5}, 2),
    ]
    session = read_session(rows)
    assert len(session.calls) == 1
    assert sum(session.left_out.values()) == 1
    for text in CHECKED:
        assert simulated(session, text).requests == 1


def test_facts_at_the_end_take_nothing_from_the_model() -> None:
    """The block that carried them is sent without them next time, and is no less seen."""
    for text in (
        "inject_memory:at=end",
        "inject_memory",
        "offload:over=99999",
        "window:max_tokens=9m",
    ):
        assert simulated(recorded(), text).lost == (), text
    assert of_shape("inject_memory:at=end", prefix=8_000, per_turn=1_500, turns=60).lost == ()


def test_a_fault_of_the_log_is_not_the_strategys() -> None:
    """A recorded call without its result: a window that sends everything, and another list, is not blamed."""
    body, records = first_body(random.Random(1), "claude-sonnet-4-6"), []
    body["messages"] += [
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": call_id(1, 1), "name": "read_file", "input": {}}]},
        {"role": "user", "content": [{"type": "text", "text": "never mind"}]},
    ]  # fmt: skip
    cache = StandIn(count=quarter)
    for number in range(1, 4):
        records.append(record(json.loads(json.dumps(body)), START, cache.answer(body, 0), number))
        body["messages"] += steps(random.Random(number), number + 1, 1, 900, think=False)
    session = read_session(records)
    assert simulated(session, "window:max_tokens=9m").warnings == {}
    assert (
        "a tool result stands without its call"
        in simulated(session, "last_messages:keep=1,call=separate").warnings
    )


def test_an_unpriced_value_wins_no_search() -> None:
    simulation = Simulation(
        made_session(Shape(prefix=9_000, per_turn=900, turns=9, model="claude-of-tomorrow-9"))
    )
    target, ends = parse_optimum("clear.trigger")
    with pytest.raises(InputError, match="needs a price"):
        optimum(simulation, parse_specs("clear"), target, ends, PLACEMENTS["rolling"])
    found = sweep(
        simulation, parse_specs("clear"), [parse_sweep("clear.keep=1,2")], PLACEMENTS["rolling"]
    )
    assert found.best is None


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("clear.trigger", 9_000, 9_000 + 40 * 900),
        ("offload.over", 0, 900),
        ("compact.summary_tokens", 0, 40 * 900 // 2),
        ("clear.keep", 0, 20),
        ("shrink_images.max_edge", 28, 2_576),
    ],
)
def test_a_search_looks_where_something_changes(text: str, low: int, high: int) -> None:
    """A prompt's mark between the fixed part and the largest prompt; a payload's up to the largest block,
    which is the task of the first request."""
    session = made_session(Shape(prefix=9_000, per_turn=900, turns=40))
    target, ends = parse_optimum(text)
    found = optimum(
        Simulation(session), parse_specs(target.strategy), target, ends, PLACEMENTS["rolling"]
    )
    tried = [int(point.values[0]) for point in found.points]
    assert tried[0] == low
    # The last step of the coarse pass may end ahead of the end of the range.
    assert high - max(1, -(-(high - low) // 24)) < tried[-1] <= high


def test_a_value_that_changes_nothing_is_not_called_cheapest() -> None:
    simulation = Simulation(made_session(Shape(prefix=9_000, per_turn=900, turns=5)))
    found = sweep(
        simulation,
        parse_specs("clear"),
        [parse_sweep("clear.trigger=1m,2m")],
        PLACEMENTS["rolling"],
    )
    assert found.is_flat


def test_the_best_is_something_that_can_be_done() -> None:
    """40 requests up to 350,000 tokens on a window of 200,000: keeping everything is no choice."""
    shape = Shape(prefix=150_000, per_turn=5_000, turns=40, model="claude-haiku-4-5")
    simulation = Simulation(made_session(shape))
    specs = [parse_specs("keep"), parse_specs("compact:trigger=180k")]
    comparison = compare(simulation, specs, [PLACEMENTS["oracle"]])
    assert comparison.best is not None
    assert (comparison.best.name, comparison.best.placement.id) == ("compact", "rolling")
    assert not comparison.keep.fits


def test_the_cheapest_of_a_search_stands_among_the_rows() -> None:
    simulation = Simulation(recorded(), weigh)
    found = sweep(
        simulation, parse_specs("trim"), [parse_sweep("trim.high=4000,6000")], PLACEMENTS["rolling"]
    )
    comparison = compare(simulation, [parse_specs("clear:trigger=100000")], (), [found])
    assert [row.text for row in comparison.rows] == [
        "keep", "clear:trigger=100000", f"trim:high={found.best.values[0]}",  # type: ignore[union-attr]
    ]  # fmt: skip


def test_a_prefix_that_breaks_all_the_time_is_to_be_mended_first() -> None:
    body, records, cache = (
        first_body(random.Random(1), "claude-sonnet-4-6"),
        [],
        StandIn(count=quarter),
    )
    for number in range(1, 9):
        body["system"][0]["text"] = f"It is 10:{number:02d}. " + body["system"][0]["text"][-900:]
        body["messages"] += steps(random.Random(number), number, 1, 900, think=False)
        sent = json.loads(json.dumps(body))
        records.append(record(sent, START, cache.answer(sent, 0), number))
    assert compare(Simulation(read_session(records), weigh)).is_dead
    assert not compare(Simulation(recorded(), weigh)).is_dead


@pytest.mark.parametrize("name", STRATEGIES.names)
def test_no_parameter_takes_less_than_nothing(name: str) -> None:
    for parameter in STRATEGIES[name].parameters:
        if parameter.measure is not None or isinstance(parameter.default, float):
            with pytest.raises(InputError, match=name):
                parse_specs(f"{name}:{parameter.name}=-1")


def test_parameters_are_typed() -> None:
    (spec,) = parse_specs("clear:trigger=60k,keep=2,clear-tool-inputs=true")
    assert spec.parameters["trigger"] == 60_000
    assert spec.parameters["clear_tool_inputs"] is True
    with pytest.raises(UnknownNameError, match="no parameter of clear named 'triger'") as wrong:
        parse_specs("clear:triger=5")
    assert "trigger" in wrong.value.hint
    with pytest.raises(InputError, match="clear"):
        parse_specs("clear:trigger=soon")
    with pytest.raises(InputError, match="no key=value"):
        parse_specs("clear:trigger")
    with pytest.raises(UnknownNameError, match="no strategy named 'cleer'"):
        parse_specs("cleer")


def test_counters_alone_make_a_session() -> None:
    """A transcript has no bodies: growth is answers and tool results, and all costs are as billed."""
    rows = []
    for number in range(1, 9):
        usage = {
            "input_tokens": 0, "cache_read_input_tokens": 9_000 + 1_000 * (number - 1),
            "cache_creation_input_tokens": 1_000, "output_tokens": 150,
        }  # fmt: skip
        message = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "content": [],
            "model": "claude-sonnet-4-5", "usage": usage,
        }  # fmt: skip
        rows.append(
            {
                "type": "assistant", "sessionId": "s", "uuid": f"u{number}", "parentUuid": None,
                "isSidechain": False, "timestamp": f"2026-11-02T09:{number:02d}:00Z",
                "requestId": f"r{number}", "version": "2.1.0", "message": message,
            }
        )  # fmt: skip
    from io import BytesIO

    from ctxdoc.reading.formats import FORMATS
    from ctxdoc.reading.source import Source
    from ctxdoc.request.request import Request

    found = FORMATS["claude_code"].read(Source("-", BytesIO(lines(rows).encode())))
    session = recorded_session(
        Log(requests=tuple(item for item in found if isinstance(item, Request)))
    )
    assert [call.head.size + sum(m.size for m in call.messages) for call in session.calls] == [
        10_000 + 1_000 * n for n in range(8)
    ]
    # Every answer of 150 is in the next prompt, and 850 of a tool result with it.
    comparison = compare(Simulation(session), [parse_specs("offload:over=800")])
    assert comparison.rows[1].lost_tokens == 7 * 850
    # Kept as it was sent, it costs what was billed, but for the 9,000 tokens that were cached before.
    assert comparison.recorded is not None
    (reason,) = comparison.baseline.reasons  # type: ignore[union-attr]
    assert (reason.text, reason.requests) == (OLDER, 1)
    assert reason.cost == Decimal(9_000) * (Decimal("0.3") - Decimal("3.75")) / 10**6
    assert comparison.recorded.cost == comparison.billed - reason.cost  # type: ignore[operator]
    assert comparison.billed == sum(
        (Decimal(9_000 + 1_000 * n) * Decimal("0.3") + 1_000 * Decimal("3.75") + 150 * 15) / 10**6
        for n in range(8)
    )


def test_totals_are_what_the_rows_add_up_to() -> None:
    session = recorded()
    comparison = compare(Simulation(session, weigh))
    for row in comparison.rows:
        parts = row.usage
        extra = parts.input - sum(row.prompts)
        assert (extra > 0) == (row.extra_calls > 0)
        assert row.cost is not None
        assert row.cost == sum(cost or 0 for cost in row.costs) / Decimal(10**15)
