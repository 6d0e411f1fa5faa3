"""Where breakpoints stand, by arithmetic on sessions whose sizes are given."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from ctxdoc.request.codec import Json
from ctxdoc.request.usage import Usage
from ctxdoc.simulation.history.edit import made_message, text_block
from ctxdoc.simulation.history.from_numbers import Shape, made_session
from ctxdoc.simulation.history.messages import BreakpointAt, Message, Session
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.run import Simulation
from ctxdoc.simulation.strategies.spec import parse_specs
from tests.simulation.test_run import recorded, weigh

SHAPE = Shape(prefix=4_000, per_turn=1_000, turns=3, tool_share=0.0, output=100)
START = datetime(2026, 11, 2, 9, tzinfo=UTC)


def kept(session: Session, placement: str) -> Usage:
    """All of a session, everything kept."""
    return Simulation(session).rows(parse_specs("keep"), [PLACEMENTS[placement]])[0].usage


def at_minutes(*minutes: int) -> Session:
    """Three requests of 5,000, 6,000 and 7,000 tokens at those minutes."""
    session = made_session(SHAPE)
    times = [START + timedelta(minutes=minute) for minute in minutes]
    calls = [replace(call, at=at) for call, at in zip(session.calls, times, strict=True)]
    return replace(session, calls=tuple(calls))


def test_all_1h_reads_after_a_pause_that_rolling_does_not() -> None:
    paused = at_minutes(0, 30, 60)
    hour, five = kept(paused, "all_1h"), kept(paused, "rolling")
    assert (hour.cache_read, hour.cache_write_1h, hour.cache_write_5m) == (5_000 + 6_000, 7_000, 0)
    assert (five.cache_read, five.cache_write_5m) == (0, 5_000 + 6_000 + 7_000)
    # An hour is an hour: at its end nothing is left.
    late = kept(at_minutes(0, 60, 120), "all_1h")
    assert (late.cache_read, late.cache_write_1h) == (0, 18_000)


def test_recorded_5m_and_recorded_1h_change_the_lifetime_alone() -> None:
    session = at_minutes(0, 4, 34)
    marks = (BreakpointAt(0, 0, "1h"), BreakpointAt(1, 0, "5m"))
    session = replace(session, calls=tuple(replace(c, marks=marks) for c in session.calls))
    sent = kept(session, "recorded")
    # 4,000 tokens of the fixed part live for an hour, the rest of the second prompt ended at minute 9.
    assert (sent.cache_read, sent.cache_write_1h) == (5_000 + 4_000, 4_000)
    five, hour = kept(session, "recorded_5m"), kept(session, "recorded_1h")
    assert (five.cache_read, five.cache_write_5m, five.cache_write_1h) == (5_000, 13_000, 0)
    assert (hour.cache_read, hour.cache_write_5m, hour.cache_write_1h) == (11_000, 0, 7_000)


def wide(blocks: int) -> Session:
    """Two requests of which the second adds an answer, and a message of so many blocks of 100 tokens."""
    session = made_session(SHAPE)
    one, two = session.calls[:2]
    texts: list[Json] = [text_block(f"part {number}") for number in range(blocks)]
    last = made_message({"role": "user", "content": texts}, [100] * blocks)
    line: list[Message] = [*two.line[: two.count - 1], last]
    return replace(
        session,
        calls=(replace(one, line=line), replace(two, line=line, count=len(line))),
    )


def test_spare_breakpoints_reach_what_a_long_turn_leaves_behind() -> None:
    """The entry of the first request ends ahead of the answer: a breakpoint 20 blocks behind it is out of its
    reach, and the spare one is not."""
    fixed, opening, answer = 4_000, 1_000, 100
    for blocks in (18, 19, 20, 38):
        first = fixed + opening
        all_of_second = first + answer + 100 * blocks
        spare, rolling = kept(wide(blocks), "spare"), kept(wide(blocks), "rolling")
        assert spare.cache_read == first, blocks
        assert spare.cache_write_5m == all_of_second, blocks
        reached = blocks + 1 < 20
        assert rolling.cache_read == (first if reached else fixed), blocks
        assert spare.input == rolling.input == first + all_of_second


def test_facts_that_change_leave_the_recorded_head_readable() -> None:
    """Facts of 300 tokens stand behind a head of 4,000, in another version each time: the head is read, and all
    behind it is written."""
    row = Simulation(made_session(SHAPE)).rows(
        parse_specs("inject_memory:tokens=300,change=1"), [PLACEMENTS["rolling"]]
    )[0]
    assert row.usage.cache_read == 2 * 4_000
    assert row.usage.cache_write == 4_000 + sum(300 + 1_000 * turn for turn in (1, 2, 3))


def test_a_call_that_is_made_up_without_thinking_is_warned_of() -> None:
    """With thinking on, the turn that calls a tool begins with it."""
    for think in (True, False):
        for text in ("offload:over=300,reread=0.5", "offload:over=300+reread:share=0.5"):
            row = Simulation(recorded(think=think), weigh).rows(
                parse_specs(text), [PLACEMENTS["rolling"]]
            )[0]
            assert any("carry no thinking" in warning for warning in row.warnings) is think
