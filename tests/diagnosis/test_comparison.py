"""Which requests are compared, and what is never called a miss: logs that look alike and have nothing to do
with each other (design 13)."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from ctxdoc.ledger.ledger import Ledger, replay
from ctxdoc.prompt.render import render
from ctxdoc.providers.rules import short_model_id
from ctxdoc.reading.load import read_log
from tests.prompt.test_server_edits import LONG, body, diagnosed, line, requests_of, usage

Body = dict[str, Any]


def said(*texts: str) -> list[Body]:
    """Turns of user and assistant."""
    roles = ("user", "assistant")
    return [
        {"role": roles[place % 2], "content": [{"type": "text", "text": text}]}
        for place, text in enumerate(texts)
    ]


def replayed(folder: Path, *rows: Body, name: str = "log.jsonl") -> Ledger:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return replay(read_log([str(path)]))


def causes(found: Ledger) -> list[str | None]:
    """Of each request the cause of its miss."""
    return [row.miss.cause if row.miss else None for row in found.rows]


def test_a_side_call_of_another_model_could_share_nothing(tmp_path: Path) -> None:
    """A guard sees the whole conversation; entries belong to one model (facts 1.1)."""
    first = said("Please look at the meters of the north wing and say which one is broken. " * 8)
    later = [*first, *said("x", "Done.", "Now the south wing.")[1:]]
    guard = {"system": [{"type": "text", "text": "Is this safe?"}], "model": "claude-haiku-4-5"}
    rows = (
        line(body(first), 0, {"usage": usage(write=1500)}),
        line(body(first, **guard), 3, {"usage": usage(rest=200)}, 2),
        line(body(later), 20, {"usage": usage(read=1500, write=40)}, 3),
        line(body(later, **guard), 23, {"usage": usage(rest=240)}, 4),
    )
    assert causes(replayed(tmp_path, *rows)) == [None] * 4


def test_a_conversation_that_goes_on_with_another_model_is_paid_again(tmp_path: Path) -> None:
    """Also after a pause: no lifetime could have helped."""
    first, later = said("Look."), said("Look.", "Done.", "And now?")
    for gap in (20, 400):
        rows = (
            line(body(first), 0, {"usage": usage(write=1500)}),
            line(body(later, model="claude-opus-4-8"), gap, {"usage": usage(write=1540)}, 2),
        )
        assert causes(replayed(tmp_path, *rows)) == [None, "model_changed"]


def test_one_prompt_on_two_models_is_no_switch(tmp_path: Path) -> None:
    rows = (
        line(body(said("Look.")), 0, {"usage": usage(write=1500)}),
        line(body(said("Look."), model="claude-opus-4-8"), 9, {"usage": usage(write=1500)}, 2),
    )
    assert causes(replayed(tmp_path, *rows)) == [None, None]


def test_tenants_have_caches_of_their_own(tmp_path: Path) -> None:
    """Equal texts of two accounts: each reads what its own account wrote."""
    rows = []
    turns = (
        said("Look."),
        said("Look.", "Done.", "And?"),
        said("Look.", "Done.", "And?", "Ok.", "?"),
    )
    for number, messages in enumerate(turns):
        for account in ("one", "two"):
            read = 1500 + 40 * (number - 1) if number else 0
            answer = {"usage": usage(read=read, write=40 if number else 1500)}
            at = 30 * number + (8 if account == "two" else 0)
            rows.append(line(body(messages), at, answer, len(rows), headers={"x-account": account}))
    found = replayed(tmp_path, *rows)
    assert causes(found) == [None] * 6
    assert [row.compared for row in found.rows[2:]] == [1, 2, 3, 4]


def test_of_two_runs_of_one_scenario_each_goes_on_by_itself(tmp_path: Path) -> None:
    """An hour apart: the second run wrote its own entries, and read them."""
    turns = (
        said("Look."),
        said("Look.", "Done.", "And?"),
        said("Look.", "Done.", "And?", "Ok.", "?"),
    )
    rows = []
    for start in (0, 4000):
        for number, messages in enumerate(turns):
            read = 1500 + 40 * (number - 1) if number else 0
            answer = {"usage": usage(read=read, write=40 if number else 1500)}
            rows.append(line(body(messages), start + 20 * number, answer, len(rows)))
    assert causes(replayed(tmp_path, *rows))[4:] == [None, None]


def test_text_that_differs_at_its_end_shares_nothing_behind_it(tmp_path: Path) -> None:
    rows = []
    for number, name in enumerate(("Ann", "Bob")):
        sent = body(said(f"I am {name}."))
        sent["system"][0]["text"] = LONG + f"You help {name}."
        rows.append(line(sent, 20 * number, {"usage": usage(write=1500)}, number))
    found = replayed(tmp_path, *rows)
    assert [row.waste for row in found.rows] == [None, None]
    assert causes(found) == [None, None]


def test_another_mode_of_another_conversation_is_no_miss(tmp_path: Path) -> None:
    rows = []
    for number, mode in enumerate(("plan", "act")):
        sent = body(said(f"Question {number}, which is another one."))
        sent["system"][0]["text"] = f"Mode: {mode}\n" + LONG
        rows.append(line(sent, 20 * number, {"usage": usage(write=1500)}, number))
    assert causes(replayed(tmp_path, *rows)) == [None, None]


def test_an_answer_that_is_given_back_had_begun(tmp_path: Path) -> None:
    """A fast loop: 0.8 s are less than the assumed time to the first token, and the answer is there."""
    rows = (
        line(body(said("Look.")), 0, None),
        line(body(said("Look.", "Done.", "And?")), 0.8, None, 2),
    )
    found = replayed(tmp_path, *rows)
    assert causes(found) == [None, None]
    assert found.rows[1].simulated is not None
    assert found.rows[1].simulated.cache_read > 1000


def test_thinking_that_is_kept_by_request_is_a_part_of_the_prompt(tmp_path: Path) -> None:
    """An older model strips it behind a new user text, unless context management keeps all."""
    messages = said("Look.", "Done.", "And?")
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    messages[1]["content"].insert(0, thought)
    asked = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    plain, kept = (
        requests_of(tmp_path, line(body(messages, **more), 0, None))[0]
        for more in ({}, {"context_management": asked})
    )
    assert "thinking" not in [s.kind for s in render(plain).segments]
    assert "thinking" in [s.kind for s in render(kept).segments]


@pytest.mark.parametrize(
    ("model", "minimum"),
    [("claude-opus-4-7", 2048), ("us.anthropic.claude-opus-4-7-v1:0", 4096)],
)
def test_bedrock_has_a_minimum_of_its_own(tmp_path: Path, model: str, minimum: int) -> None:
    """Facts 7.1."""
    (request,) = requests_of(tmp_path, line(body(said("Look."), model=model), 0, None))
    assert render(request).rule.minimum == minimum


@pytest.mark.parametrize(
    ("spelled", "short"),
    [
        ("anthropic/claude-4.5-haiku-20251001", "claude-haiku-4-5"),
        ("anthropic/claude-4-sonnet", "claude-sonnet-4"),
        ("anthropic/claude-3.5-sonnet", "claude-3-5-sonnet"),
        ("claude-haiku-4-5", "claude-haiku-4-5"),
    ],
)
def test_a_router_spells_the_version_first(spelled: str, short: str) -> None:
    assert short_model_id(spelled) == short


def test_one_id_of_two_files_with_other_counters_names_two_responses(tmp_path: Path) -> None:
    """Test doubles count their ids from 1 in each file."""
    for number, name in enumerate(("a.jsonl", "b.jsonl")):
        row = line(body(said(f"Question {number}.")), number, {"usage": usage(write=1500 + number)})
        (tmp_path / name).write_text(json.dumps(row) + "\n", encoding="utf-8")
    found = replay(read_log([str(tmp_path)]))
    assert [row.repeated for row in found.rows] == [False, False]


def test_the_place_that_a_log_names_does_not_outweigh_the_counters(tmp_path: Path) -> None:
    rows = (
        line(body(said("Look.")), 0, {"usage": usage(write=1500)}, headers={"x-upstream": "a"}),
        line(
            body(said("Look.", "Done.", "And?")),
            20,
            {"usage": usage(read=1500, write=40)},
            2,
            headers={"x-upstream": "b"},
        ),
    )
    found = replayed(tmp_path, *rows)
    assert causes(found) == [None, None]
    assert found.rows[1].simulated is not None
    assert found.rows[1].simulated.cache_read == 1500


def test_a_shuffled_tool_is_named_though_an_older_entry_was_read(tmp_path: Path) -> None:
    """The third request has the tools of the first again and reads what that one wrote; the turn
    between them is lost."""
    tools = [{"name": name, "description": LONG[:900], "input_schema": {}} for name in "abc"]
    other = [tools[1], tools[0], tools[2]]
    turns = (
        said("Look."),
        said("Look.", "Done.", "And?"),
        said("Look.", "Done.", "And?", "Ok.", "?"),
    )
    rows = (
        line(body(turns[0], tools=tools), 0, {"usage": usage(write=2200)}),
        line(body(turns[1], tools=other), 20, {"usage": usage(write=2900)}, 2),
        line(body(turns[2], tools=tools), 40, {"usage": usage(read=2200, write=1400)}, 3),
    )
    assert causes(replayed(tmp_path, *rows)) == [None, "tool_order", "tool_order"]


def test_a_question_after_the_same_head_is_a_branch_and_no_loss(tmp_path: Path) -> None:
    rows = (
        line(body(said("Look at this.", "Done.", "First.")), 0, {"usage": usage(write=1600)}),
        line(body(said("Look at this.", "Done.", "Second.")), 20, {"usage": usage(read=1350)}, 2),
    )
    assert causes(replayed(tmp_path, *rows)) == [None, None]


def test_a_prompt_that_ends_within_an_earlier_one_lost_nothing_behind_its_end(
    tmp_path: Path,
) -> None:
    first, later = said("Look."), said("Look.", "Done. " * 300, "And?")
    marked, unmarked = copy.deepcopy(body(later)), copy.deepcopy(body(first))
    del unmarked["messages"][-1]["content"][-1]["cache_control"]
    for sent in (marked, unmarked):
        del sent["system"][0]["cache_control"]
    rows = (
        line(marked, 0, {"usage": usage(write=2100)}),
        line(unmarked, 20, {"usage": usage(rest=1500)}, 2),
    )
    assert causes(replayed(tmp_path, *rows)) == [None, None]


def test_a_side_call_that_quotes_the_conversation_is_a_fork(tmp_path: Path) -> None:
    """It sends in one message what the parent had cached in many; asked for, it is named."""
    told = [
        f"Meter {n} of the north wing shows a value that nobody had seen before, and twice."
        for n in range(9)
    ]
    quoted = "Summarise:\n" + "\n".join(told)
    aside = {"system": [{"type": "text", "text": "You write summaries."}]}
    found = diagnosed(
        tmp_path,
        line(body(said(*told)), 0, {"usage": usage(write=1700)}),
        line(body(said(quoted), **aside), 20, {"usage": usage(rest=150)}, 2),
    )
    assert found.finding.cause.id == "fork_prefix_mismatch"
