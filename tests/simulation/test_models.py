"""What is taken over from request to request, beside models that look at every message each time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxdoc.providers import find_model
from ctxdoc.simulation.history.edit import Maker, made_message, text_block
from ctxdoc.simulation.history.from_numbers import Shape, made_session, plain_head
from ctxdoc.simulation.history.messages import Call, Message
from ctxdoc.simulation.history.overlap import common_end, common_start, moved_run
from ctxdoc.simulation.history.totals import Totals, first_within
from ctxdoc.simulation.history.validity import Checker
from ctxdoc.simulation.strategies import History
from ctxdoc.simulation.strategies.budget_window import BudgetWindow
from ctxdoc.simulation.strategies.window import Window
from ctxdoc.simulation.unseen import Unseen

HEAD = 50
(CALL,) = made_session(Shape(prefix=HEAD, per_turn=10, turns=1)).calls


def block(kind: str, name: str) -> dict[str, Any]:
    match kind:
        case "call":
            return {"type": "tool_use", "id": name, "name": "t", "input": {}}
        case "result":
            return {"type": "tool_result", "tool_use_id": name, "content": "r"}
        case _:
            return text_block(name)


def message(number: int, kind: str, size: int) -> Message:
    """A message of one block: an answer or a question, a call or its result."""
    role = "assistant" if kind in ("answer", "call") else "user"
    return made_message({"role": role, "content": [block(kind, f"t{number % 3}")]}, [size], number)


KINDS = st.sampled_from(["answer", "question", "call", "result"])
POOL = st.lists(st.tuples(KINDS, st.integers(0, 30)), min_size=1, max_size=14).map(
    lambda rows: [message(number, kind, size) for number, (kind, size) in enumerate(rows)]
)


@st.composite
def histories(draw: st.DrawFn) -> list[list[Message]]:
    """Requests of a thread: each goes on from the one before, with its beginning or its middle changed."""
    pool = draw(POOL)
    found: list[list[Message]] = []
    for _ in range(draw(st.integers(1, 6))):
        count = draw(st.integers(1, len(pool)))
        gone = draw(st.sets(st.integers(0, len(pool) - 1), max_size=3))
        kept = [each for index, each in enumerate(pool[:count]) if index not in gone]
        found.append(kept or pool[:1])
    return found


def history_of(messages: list[Message]) -> History:
    return History(CALL, plain_head(HEAD), messages, 1, Maker())


def in_budget(messages: list[Message], room: int) -> list[Message]:
    """From the newest back each that still fits, and the newest in any case."""
    kept: list[Message] = []
    for each in reversed(messages):
        if each.size <= room or not kept:
            kept.insert(0, each)
            room -= each.size
    return kept


def cuts_of(messages: list[Message]) -> list[tuple[int, int | None]]:
    """Where a history may be cut, and the message that stays in front: the beginnings of turns, and inside
    of the last one the model's answers to the user, but for the first."""
    starts = [i for i, each in enumerate(messages) if each.role == "user" and not each.results]
    inner = [
        (i, starts[-1])
        for i in range(starts[-1] + 2 if starts else len(messages), len(messages))
        if (messages[i - 1].role, messages[i].role) == ("user", "assistant")
    ]
    return [*((i, None) for i in starts if i), *inner]


def in_window(messages: list[Message], most: int, summary: int) -> list[Message]:
    """Behind the first cut where all has room; behind the last where it has none."""
    if HEAD + sum(each.size for each in messages) <= most:
        return messages
    kept = messages
    for index, opening in cuts_of(messages):
        kept = [*([] if opening is None else [messages[opening]]), *messages[index:]]
        if HEAD + summary + sum(each.size for each in kept) <= most:
            break
    return kept


@settings(max_examples=80, deadline=None)
@given(histories(), st.integers(0, 200))
def test_a_budget_is_filled_from_the_newest_back(requests: list[list[Message]], most: int) -> None:
    strategy, memory = BudgetWindow(max_tokens=most), None
    for messages in requests:
        sent = strategy.send(history_of(messages), memory)
        memory = sent.memory
        assert sent.messages == in_budget(messages, most - HEAD)


@settings(max_examples=80, deadline=None)
@given(histories(), st.integers(0, 300), st.sampled_from([0, 20]))
def test_a_window_drops_the_least_that_makes_it_fit(
    requests: list[list[Message]], most: int, summary: int
) -> None:
    strategy, memory = Window(max_tokens=most, summary_tokens=summary), None
    for messages in requests:
        sent = strategy.send(history_of(messages), memory)
        memory = sent.memory
        expected = in_window(messages, most, summary)
        told = bool(summary) and expected is not messages and len(cuts_of(messages)) > 0
        # The summary is a block ahead of the first message.
        assert sent.messages[told:] == expected[told:]
        assert sum(m.size for m in sent.messages) == sum(m.size for m in expected) + told * summary


@settings(max_examples=60, deadline=None)
@given(histories())
def test_totals_that_go_on_are_those_of_a_history_alone(requests: list[list[Message]]) -> None:
    totals = Totals()
    for messages in requests:
        totals.go_on(messages)
        sizes = [each.size for each in messages]
        assert totals.tokens == [sum(sizes[:n]) for n in range(len(sizes) + 1)]
        assert totals.users == [
            sum(each.role == "user" for each in messages[:n]) for n in range(len(sizes) + 1)
        ]
        assert totals.least[1:] == [min(sizes[: n + 1]) for n in range(len(sizes))]
        assert totals.starts == [i for i, each in enumerate(messages) if each.starts_turn]


@pytest.mark.parametrize(
    ("room", "first"), [(-1, 4), (0, 3), (4, 3), (5, 2), (9, 1), (10, 0), (11, 0)]
)
def test_what_has_room_is_counted_from_the_end(room: int, first: int) -> None:
    """Three messages of 1, 4 and 5 tokens: the last has room in 5, the last two in 9, all in 10."""
    assert first_within([0, 1, 5, 10], room) == first


@settings(max_examples=60, deadline=None)
@given(histories())
def test_a_checker_finds_the_same_as_one_that_has_seen_nothing(
    requests: list[list[Message]],
) -> None:
    """The rules in words: the first is the user's, a result follows its call, a call has its result."""
    checker = Checker()
    for messages in requests:
        found = list(checker.faults(messages))
        assert found == list(Checker().faults(messages))
        groups: list[tuple[str, set[str], set[str]]] = []
        for each in messages:
            if not groups or groups[-1][0] != each.role:
                groups.append((each.role, set(), set()))
            groups[-1][1].update(each.calls)
            groups[-1][2].update(each.answers)
        pairs = list(pairwise([("", set(), set()), *groups]))
        calls = [(one[1] if one[0] == "assistant" else set(), two[2]) for one, two in pairs]
        assert ("the first message is not the user's" in found) == (messages[0].role != "user")
        assert ("a tool result stands without its call" in found) == any(b - a for a, b in calls)
        assert ("a tool call stands without its result" in found) == any(a - b for a, b in calls)


@settings(max_examples=60, deadline=None)
@given(histories())
def test_overlaps_are_what_a_look_at_each_message_finds(requests: list[list[Message]]) -> None:
    for one, two in pairwise([[], *requests]):
        same = [a is b for a, b in zip(one, two, strict=False)]
        start = (*same, False).index(False)
        assert common_start(one, two) == start
        back = [a is b for a, b in zip(one[::-1], two[::-1], strict=False)]
        assert common_end(one, two) == (*back, False).index(False)
        at, run = moved_run(one, two, start)
        assert at >= start
        assert one[run.start : run.stop] == two[at : at + len(run)]


@settings(max_examples=60, deadline=None)
@given(histories())
def test_unseen_is_each_recorded_block_that_was_there_and_is_not(
    requests: list[list[Message]],
) -> None:
    """Sent is a part of what the log has; a block counts once, from the first request without it."""
    line = list(dict.fromkeys(each for messages in requests for each in messages))
    unseen, gone = Unseen(coarsens=False), {}
    before: list[Message] = line
    for number, messages in enumerate(requests, start=1):
        sent = [each for each in line if each in messages]
        call = _call(line, number)
        unseen.note(call, sent)
        fresh = {s.digest for each in sent if each not in before for s in each.segments}
        fresh |= {s.digest for each in sent if number == 1 for s in each.segments}
        for each in before:
            digest = each.segments[0].digest
            if each not in sent and digest not in fresh:
                gone.setdefault((each, digest), number)
        before = sent
    assert [(item.tokens, item.request) for item in unseen.lost] == [
        (each.size, number) for (each, _), number in gone.items()
    ]


def _call(line: list[Message], number: int) -> Call:
    rule = find_model("claude-sonnet-4-6")
    return Call(
        number=number, thread=0, head=plain_head(HEAD), line=line, count=len(line), marks=(),
        root=rule.id, rule=rule, tariff=CALL.tariff,
    )  # fmt: skip
