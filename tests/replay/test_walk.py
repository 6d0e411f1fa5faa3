"""The walk: every request once, in the order of time, with its session and what the cache did."""

from __future__ import annotations

import json
import random
from io import BytesIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.reading.formats import FORMATS
from ctxdoc.reading.source import Source
from ctxdoc.replay.thread import Threads
from ctxdoc.replay.walk import Walk, replayed_pair
from ctxdoc.request.request import Request
from tests.support.prompts import counters, sent, talk
from tests.support.sessions import START, first_body, lines, marked, prose, record

MARK = {"type": "ephemeral"}
LONG = "lorem ipsum dolor sit amet " * 300
"""About 2,000 tokens: above the minimum of the model."""


def conversation(start: float, name: str, turns: int, gap: float = 10) -> list[Request]:
    texts = [f"{name} {index} {LONG}" for index in range(2 * turns)]
    return [
        sent(talk(*texts[: 2 * turn + 1]), seconds=start + turn * gap, cache_control=MARK)
        for turn in range(turns)
    ]


LOGS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.one_of(st.none(), st.integers(0, 600))),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(LOGS, st.booleans())
def test_every_request_is_met_once_in_order_of_time(
    log: list[tuple[str, int, int | None]], consume: bool
) -> None:
    requests = [
        sent(talk(*[f"{name}{i}" for i in range(2 * turn - 1)]), seconds=at)
        for name, turn, at in log
    ]
    walk = Walk(requests, consume=consume)
    steps = list(walk.steps())
    assert sorted(step.index for step in steps) == list(range(len(requests)))
    times = [step.request.at for step in steps if step.request.at is not None]
    assert times == sorted(times)
    met: set[int] = set()
    for step in steps:
        # Only what was met can be gone on from.
        assert step.earlier is None or step.earlier in met
        met.add(step.index)
    members = [index for session in walk.sessions() for index in session.requests]
    assert sorted(members) == sorted(met)
    names = {index: s.id for s in walk.sessions() for index in s.requests}
    assert all(names[step.index] == step.session for step in steps)


def test_a_log_is_walked_the_same_whatever_is_let_go() -> None:
    log = [*conversation(0, "a", 4), *conversation(3, "b", 4)]
    kept, lean = (
        [
            (s.index, s.earlier, s.session, s.replayed.outcome.usage)
            for s in walk.steps()
            if s.replayed
        ]
        for walk in (Walk(log), Walk(log, consume=True))
    )
    assert kept == lean
    assert len(kept) == 8


@pytest.mark.parametrize(("gap", "reads"), [(299, True), (301, False)])
def test_each_step_reads_what_the_one_before_it_wrote(gap: float, reads: bool) -> None:
    first, second = (s.replayed for s in Walk(conversation(0, "a", 2, gap)).steps())
    assert first is not None
    assert second is not None
    written, read = first.outcome.usage.cache_write, second.outcome.usage.cache_read
    assert read == (written if reads else 0)
    # A request is compared with the other one either way: only its entry is gone.
    assert second.before is first.after


def test_one_session_is_chosen_by_its_name() -> None:
    log = [*conversation(0, "a", 2), *conversation(5, "b", 1)]
    assert Walk(log, only="s1").kept == {0, 1}
    assert Walk(log).kept is None


def test_a_request_without_a_body_or_with_unknown_rules_is_met_and_not_replayed() -> None:
    bare = Request(source="log", line=2, model="claude-opus-5", body=None)
    other = sent(talk("a"), model="gpt-4o")
    steps = list(Walk([bare, other]).steps())
    assert [step.replayed for step in steps] == [None, None]
    assert sorted(step.reason for step in steps) == [
        "",
        "the cache rules of 'gpt-4o' are not known",
    ]


def test_counters_of_one_request_size_the_prompt_of_the_next() -> None:
    log = conversation(0, "a", 2)
    first = sent(talk(f"a 0 {LONG}"), cache_control=MARK, usage=counters(0, 1700, 0))
    pair = replayed_pair(first, log[1])
    assert pair.before is not None
    assert pair.before.sizes.total == 1700
    assert pair.outcome.usage.cache_read == 1700


def test_a_thread_goes_on_in_its_session_only() -> None:
    threads = Threads()
    one, fresh = threads.go_on(0, "s", None)
    assert (one.number, one.session, fresh) == (0, "s", True)
    assert threads.go_on(1, "s", 0) == (one, False)
    other, fresh = threads.go_on(2, "t", 1)
    assert (other.number, other.session, fresh) == (1, "t", True)


def test_a_thread_begins_where_it_is_known_to() -> None:
    threads = Threads()
    one, _ = threads.go_on(0, "s", None)
    again, fresh = threads.go_on(1, "s", 0, begins=True)
    assert fresh
    assert again is not one
    assert threads.go_on(2, "s", 1) == (again, False)


def test_threads_by_counters_are_told_by_session_and_number() -> None:
    threads = Threads()
    found = [
        threads.counted(i, *row) for i, row in enumerate([("s", 0), ("s", 1), ("s", 0), ("t", 0)])
    ]
    assert [fresh for _, fresh in found] == [True, True, False, True]
    assert [thread.number for thread, _ in found] == [0, 1, 0, 2]
    # A request with a body may go on from one without.
    assert threads.go_on(4, "s", 2) == (found[0][0], False)


def test_an_answer_that_is_given_back_has_its_counted_tokens() -> None:
    """A token has three characters in what the model says and five in results, which no weight knows."""

    def tokens_of(block: dict[str, object]) -> int:
        return len(json.dumps(block)) // (5 if block["type"] == "tool_result" else 3)

    rng, total, cached, rows = random.Random(3), 2_000, 0, []
    body = first_body(rng)
    answers: list[int] = []
    for number in range(6):
        said = [
            {"type": "text", "text": prose(rng, 400)},
            {"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {"n": number}},
        ]
        heard = {
            "type": "tool_result",
            "tool_use_id": f"toolu_{number}",
            "content": prose(rng, 2_500),
        }
        output = sum(map(tokens_of, said))
        row = record(json.loads(json.dumps(marked(body))), START, None, number)
        row["response"] = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"],
            "content": said, "stop_reason": "tool_use",
            "usage": {
                "input_tokens": 0, "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": total - cached, "output_tokens": output,
            },
        }  # fmt: skip
        rows.append(row)
        cached, total = total, total + output + tokens_of(heard)
        answers.append(output)
        body["messages"] += [
            {"role": "assistant", "content": said},
            {"role": "user", "content": [heard]},
        ]
    found = FORMATS["native"].read(Source("-", BytesIO(lines(rows).encode())))
    requests = [item for item in found if isinstance(item, Request)]
    (*_, last) = Walk(requests).steps()
    assert last.replayed is not None
    after = last.replayed.after
    sizes: dict[int, int] = {}
    for index, segment in enumerate(after.prefix.segments):
        if segment.role == "assistant":
            size = after.sizes.at(index) - after.sizes.at(index - 1)
            sizes[segment.rank[1]] = sizes.get(segment.rank[1], 0) + size
    assert list(sizes.values()) == answers[:-1]
    assert after.sizes.total == cached
