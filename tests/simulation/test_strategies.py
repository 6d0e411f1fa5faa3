"""Strategies by laws and by arithmetic on sessions whose sizes are given."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxdoc.errors import InputError
from ctxdoc.request.codec import Json
from ctxdoc.simulation.compare import compare
from ctxdoc.simulation.emit import iter_lines
from ctxdoc.simulation.history.edit import made_message
from ctxdoc.simulation.history.from_numbers import Shape, made_session, plain_head
from ctxdoc.simulation.history.messages import Session
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.defer_tools import never_called
from ctxdoc.simulation.strategies.spec import parse_specs
from tests.simulation.test_run import recorded, weigh

START = datetime(2026, 11, 2, 9, tzinfo=UTC)
SHAPE = Shape(
    prefix=4_000, per_turn=1_000, turns=12, tool_share=0.8, output=150, model="claude-sonnet-4-6"
)
"""Turn k sends 4,000 + 1,000·k tokens: an answer of 150, a result of 800, text of 50."""


def row_of(session: Session, text: str, placement: str = "rolling") -> Result:
    return Simulation(session).rows(parse_specs(text), [PLACEMENTS[placement]])[0]


def paused(session: Session, gaps: list[int]) -> Session:
    """The session with seconds between its requests, counted from the first."""
    at, calls = START, []
    for call, gap in zip(session.calls, [0, *gaps], strict=False):
        at += timedelta(seconds=gap)
        calls.append(replace(call, at=at, began=None))
    return replace(session, calls=tuple(calls))


GAPS = st.lists(st.sampled_from([5, 60, 299, 300, 301, 1_000, 4_000]), min_size=11, max_size=11)


@settings(max_examples=40, deadline=None)
@given(
    GAPS,
    st.sampled_from(["clear", "trim"]),
    st.integers(0, 5),
    st.sampled_from(["rolling", "recorded", "automatic", "spare"]),
)
def test_when_cold_is_never_dearer_than_keep(
    gaps: list[int], edit: str, keep: int, placement: str
) -> None:
    session = paused(made_session(SHAPE), gaps)
    row = row_of(session, f"when_cold:edit={edit},keep={keep},low=6000", placement)
    kept = row_of(session, "keep", placement)
    assert row.cost is not None
    assert kept.cost is not None
    assert row.cost <= kept.cost
    # And it is the same where nobody paused for so long.
    if max(gaps) < 300:
        assert row.is_idle


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 60), st.booleans(), GAPS)
def test_when_cold_is_never_dearer_on_sessions_with_forks_and_thinking(
    seed: int, think: bool, gaps: list[int]
) -> None:
    session = paused(recorded(12, seed=seed, think=think), gaps)
    for text in ("when_cold:keep=1", "when_cold:edit=trim,low=1500"):
        row = Simulation(session, weigh).rows(parse_specs(text), [PLACEMENTS["rolling"]])[0]
        keep = Simulation(session, weigh).rows(parse_specs("keep"), [PLACEMENTS["rolling"]])[0]
        assert row.cost is not None
        assert keep.cost is not None
        assert row.cost <= keep.cost


def test_when_cold_clears_at_the_very_second_the_entry_ends() -> None:
    """Request 6 follows after a pause: 4 results of 800 tokens stand there, 3 of them old."""
    base = [20] * 11
    for seconds, cleared in ((299, 0), (300, 3)):
        gaps = [*base[:4], seconds, *base[5:]]
        row = row_of(paused(made_session(SHAPE), gaps), "when_cold:keep=2")
        assert len(row.lost) == cleared
        if cleared:
            keep = row_of(paused(made_session(SHAPE), gaps), "keep")
            # What is cleared is gone from then on: no request is longer than it was, and none rewrites.
            assert row.prompts[:5] == keep.prompts[:5]
            assert all(a < b for a, b in zip(row.prompts[5:], keep.prompts[5:], strict=True))


def test_another_model_or_head_is_a_cache_of_its_own() -> None:
    """The last three requests have another system prompt: its cache is empty, and clearing is free there."""
    session = made_session(SHAPE)
    other = plain_head(4_000, "another")
    calls = tuple(
        replace(call, head=other if number >= 9 else call.head)
        for number, call in enumerate(session.calls)
    )
    row = row_of(replace(session, calls=calls), "when_cold:keep=3")
    keep = row_of(replace(session, calls=calls), "keep")
    # At request 10 there are nine results of 800 tokens.
    assert len(row.lost) == 9 - 3
    assert row.cost is not None
    assert keep.cost is not None
    assert row.cost < keep.cost


def test_truncate_saves_what_it_leaves_out_in_every_later_turn() -> None:
    """Results of 800 tokens are cut to 300, with a note of 12: eleven turns have one."""
    row, keep = (
        row_of(made_session(SHAPE), "truncate:tokens=300"),
        row_of(made_session(SHAPE), "keep"),
    )
    left_out = 800 - 300 - 12
    assert keep.usage.input - row.usage.input == left_out * sum(range(1, 12))
    assert row.lost_tokens == 11 * 500
    assert row.rewrites == keep.rewrites == 0
    read, written = Decimal("0.1"), Decimal("1.25")
    saved = sum((written + read * later) * left_out for later in range(11))
    assert keep.cost is not None
    assert row.cost is not None
    # 3 USD for a million tokens of input.
    assert keep.cost - row.cost == saved * 3 / 10**6


@pytest.mark.parametrize(("tokens", "cut"), [(788, False), (787, True)])
def test_truncate_cuts_where_something_is_left_out_behind_its_note(tokens: int, cut: bool) -> None:
    """800 tokens less a note of 12 are 788: nothing shorter is worth it."""
    assert row_of(made_session(SHAPE), f"truncate:tokens={tokens}").is_idle is not cut


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("head", "0123\n[60 tokens left out]"),
        ("tail", "[60 tokens left out]\n6789"),
        ("both", "01\n[60 tokens left out]\n89"),
    ],
)
def test_truncate_keeps_the_part_that_is_asked_for(part: str, text: str) -> None:
    """Of ten characters in 100 tokens, 40 tokens are four characters."""
    result: Json = {"type": "tool_result", "tool_use_id": "t1", "content": "0123456789"}
    sent = _last_sent(result, f"truncate:tokens=40,part={part}")
    assert sent == text


def test_truncate_leaves_what_is_not_of_text_alone() -> None:
    image: Json = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    result: Json = {"type": "tool_result", "tool_use_id": "t1", "content": [image]}
    assert _last_sent(result, "truncate:tokens=40") == [image]


def _last_sent(result: Json, text: str) -> object:
    """The content of a tool result of 100 tokens as a strategy sends it."""
    session = _with_results([result])
    (sending,) = list(Simulation(session).iter_sent(parse_specs(text), PLACEMENTS["rolling"]))[-1:]
    value = sending.prompt.messages[-1].segments[0].value
    assert isinstance(value, dict)
    return value["content"]


def _with_results(results: list[Json]) -> Session:
    """A session of as many turns, of which each ends with a result of 100 tokens."""
    session = made_session(replace(SHAPE, turns=len(results) + 1))
    line = [session.calls[0].line[0]]
    calls = [replace(session.calls[0], line=line, count=1)]
    for number, result in enumerate(results, start=1):
        call: Json = {"type": "tool_use", "id": f"t{number}", "name": "read", "input": {}}
        line.append(made_message({"role": "assistant", "content": [call]}, [20]))
        line.append(made_message({"role": "user", "content": [result]}, [100]))
        calls.append(replace(session.calls[number], line=line, count=len(line)))
    return replace(session, calls=tuple(calls))


def read(number: int, content: str) -> Json:
    return {"type": "tool_result", "tool_use_id": f"t{number}", "content": content}


def test_dedupe_sends_one_copy_of_what_is_read_twice() -> None:
    """The same file thrice, another once: two pointers of 15 tokens, in the turn they come and after it."""
    session = _with_results([read(1, "a"), read(2, "b"), read(3, "a"), read(4, "a")])
    later, keep = row_of(session, "dedupe:over=50"), row_of(session, "keep")
    assert keep.usage.input - later.usage.input == (100 - 15) * (2 + 1)
    assert (later.rewrites, later.lost) == (0, ())
    first = row_of(session, "dedupe:over=50,which=first")
    # The newest copy stays: the first becomes the pointer at turn 4, the third at turn 5.
    assert keep.usage.input - first.usage.input == (100 - 15) * (1 + 2)
    assert (first.rewrites, first.lost) == (2, ())
    assert first.cost is not None
    assert later.cost is not None
    assert first.cost > later.cost


def test_dedupe_has_nothing_to_do_where_all_results_differ() -> None:
    session = _with_results([read(1, "a"), read(2, "b")])
    assert row_of(session, "dedupe:over=0").is_idle
    assert row_of(_with_results([read(1, "a"), read(2, "a")]), "dedupe:over=100").is_idle
    assert not row_of(_with_results([read(1, "a"), read(2, "a")]), "dedupe:over=99").is_idle


def test_the_table_has_what_applies() -> None:
    names = {row.name for row in compare(Simulation(made_session(SHAPE))).rows}
    assert "dedupe" not in names
    assert {"when_cold", "truncate"} <= names


def test_a_summary_by_another_model_is_paid_in_full_at_its_rates() -> None:
    """At request 6 the prompt has 10,000 tokens: of its messages, 6,000, and the question of 200 the summary is
    made, by Haiku 4.5 for 1 and 5 USD a million tokens."""
    session = made_session(SHAPE)
    own = row_of(session, "compact:at=6,summary_tokens=400,call=separate")
    other = row_of(session, "compact:at=6,summary_tokens=400,model=claude-haiku-4-5")
    assert (own.extra_calls, other.extra_calls) == (1, 1)
    assert other.usage == own.usage
    assert own.cost is not None
    assert other.cost is not None
    # Sonnet 4.6 costs 3 and 15 for the same tokens.
    assert own.cost - other.cost == Decimal(6_200 * (3 - 1) + 400 * (15 - 5)) / 10**6


@pytest.mark.parametrize(
    "text", ["compact:at=x", "compact:at=0", "handoff:at=3.5", "handoff:at=-1"]
)
def test_what_is_no_number_of_a_request_is_a_mistake(text: str) -> None:
    with pytest.raises(InputError, match="no numbers of requests"):
        row_of(made_session(SHAPE), text)


def test_a_handoff_sends_the_fixed_part_the_summary_and_what_is_said_from_then_on() -> None:
    """Twelve requests of 4,000 + 1,000·k: from the eighth on 4,000, 400 and 1,000 for each later turn."""
    row = row_of(made_session(SHAPE), "handoff:at=8,summary_tokens=400")
    assert row.prompts[:7] == tuple(4_000 + 1_000 * k for k in range(1, 8))
    assert row.prompts[7:] == tuple(4_000 + 400 + 1_000 * k for k in range(5))
    assert row.extra_calls == 1
    assert row.usage.output == 12 * 150 + 400


def test_what_a_new_session_begins_with_anew_is_written_again() -> None:
    """Of 4,000 fixed tokens the last 1,500 are another text: 2,500 are read, in two sessions out of three."""
    session = made_session(SHAPE)
    same = row_of(session, "handoff:at=4|8,summary_tokens=400")
    fresh = row_of(session, "handoff:at=4|8,summary_tokens=400,fresh=1500")
    assert same.prompts == fresh.prompts
    assert fresh.usage.cache_write - same.usage.cache_write == 2 * 1_500
    assert fresh.usage.cache_read - same.usage.cache_read == -2 * 1_500


@pytest.mark.parametrize(
    ("pause", "calls"),
    [(299, 0), (300, 1), (560, 1), (561, 2), (1_200, 4), (3_081, 11), (9_000, 11)],
)
def test_keep_alive_reads_the_last_prompt_before_each_end_of_its_entry(
    pause: int, calls: int
) -> None:
    """Request 6 follows after a pause; the prompt before it has 4,000 + 5 · 1,000 tokens. Calls are made each
    280 seconds, eleven at most: they bridge 11 · 280 + 300 seconds less one."""
    gaps = [20] * 4 + [pause] + [20] * 6
    session = paused(made_session(SHAPE), gaps)
    row, keep = row_of(session, "keep_alive"), row_of(session, "keep")
    assert row.extra_calls == calls
    bridged = calls > 0 and pause < 11 * 280 + 300
    read = 9_000 * (calls + (1 if bridged else 0))
    assert row.usage.cache_read - keep.usage.cache_read == read
    assert keep.usage.cache_write - row.usage.cache_write == (9_000 if bridged else 0)
    assert row.usage.output == keep.usage.output
    assert row.cost is not None
    assert keep.cost is not None
    # Writing costs 12.5 reads: eleven calls and the request itself are twelve.
    assert (row.cost < keep.cost) is bridged


def test_keep_alive_has_nothing_to_do_without_pauses() -> None:
    assert row_of(made_session(SHAPE), "keep_alive").is_idle


def test_deferred_definitions_leave_the_head_and_stay_in_the_body() -> None:
    """Five tools, of which the session calls one: the head loses the other four, and has the search tool."""
    session = recorded()
    names = never_called(session)
    assert names == ["list_files", "search", "write_file", "run_tests"]
    head = session.calls[0].head
    sizes = {s.name: t for s, t in zip(head.segments, head.tokens, strict=True) if s.kind == "tool"}
    text = f"defer_tools:tools={'|'.join(names)},search_tokens=200"
    simulation = Simulation(session, weigh)
    row, keep = (
        simulation.rows(parse_specs(each), [PLACEMENTS["rolling"]])[0] for each in (text, "keep")
    )
    gone = sum(sizes[name] for name in names) - 200
    assert [a - b for a, b in zip(keep.prompts, row.prompts, strict=True)] == [gone] * len(
        row.prompts
    )
    assert (row.lost, row.rewrites) == ((), keep.rewrites)
    line = next(iter_lines(simulation, parse_specs(text), PLACEMENTS["rolling"]))
    tools = json.loads(line)["request"]["tools"]
    assert [tool["name"] for tool in tools if tool.get("defer_loading")] == names
    assert tools[-1]["type"] == "tool_search_tool_regex_20251119"
    # In the prompt that is rendered of that body none of them is left.
    (name,) = (tool["name"] for tool in tools[:-1] if not tool.get("defer_loading"))
    assert name == "read_file"


def test_the_table_defers_what_nobody_called() -> None:
    rows = {row.name: row for row in compare(Simulation(recorded(), weigh)).rows}
    (spec,) = rows["defer_tools"].specs
    assert dict(spec.given)["tools"] == "list_files|search|write_file|run_tests"
    assert row_of(made_session(SHAPE), "defer_tools:tools=read").is_idle


def test_what_is_read_again_goes_on_from_the_head_that_has_the_reader() -> None:
    """A definition of 500 tokens for reading files again stands in every prompt, those of the rereads too."""
    session = made_session(SHAPE)
    text = "offload:over=300,reread=1,tool_tokens=500"
    sent = list(Simulation(session).iter_sent(parse_specs(text), PLACEMENTS["rolling"]))
    assert sum(sending.order > 0 for sending in sent) == 11
    assert {sending.prompt.head.size for sending in sent} == {4_000 + 500}


def test_a_summary_is_asked_for_in_the_old_session() -> None:
    """Of 4,000 fixed tokens 1,500 are another text in the new session, and not in the call before it."""
    session = made_session(SHAPE)
    text = "handoff:at=4|8,summary_tokens=400,fresh=1500"
    sent = list(Simulation(session).iter_sent(parse_specs(text), PLACEMENTS["rolling"]))
    heads = [sending.prompt.head for sending in sent if sending.order < 0]
    assert heads[0] is session.calls[0].head
    assert heads[1] is sent[4].prompt.head
    assert heads[1] is not heads[0]
