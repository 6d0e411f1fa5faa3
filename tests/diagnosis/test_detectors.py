"""Tables of the detectors: what each one takes for its own, and what is one step short of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ctxdoc.diagnosis.attribution import case_of_pair
from ctxdoc.diagnosis.case import Case
from ctxdoc.diagnosis.causes import CAUSES
from ctxdoc.diagnosis.conversation import LONG_MESSAGE, continues
from ctxdoc.diagnosis.history_edits import asks_anew, is_continued, replaced_by_few
from ctxdoc.diagnosis.injected_text import injected_difference
from ctxdoc.diagnosis.quotes import quoted_history
from ctxdoc.diagnosis.reordered import Order, find_order
from tests.diagnosis.test_comparison import Body, said
from tests.prompt.test_server_edits import body, line, requests_of

ASKED = "Please look at the meters of the north wing and say which one is broken."
ANSWER = "The third one shows nothing since Tuesday; its fuse may be gone. " * 2
NEXT = "And now the meters of the south wing, please."
REMINDER = "<system-reminder>Keep the list of tasks up to date.</system-reminder>"


def pair(folder: Path, before: list[Body], after: list[Body], **more: Body) -> Case:
    """Two requests of which nothing but the bodies is known."""
    rows = line(body(before), 0, None), line(body(after, **more), 30, None, 2)
    return case_of_pair(*requests_of(folder, *rows))


def user(*texts: str) -> list[Body]:
    return [{"role": "user", "content": [{"type": "text", "text": text} for text in texts]}]


@pytest.mark.parametrize(
    ("after", "anew"),
    [
        # another question at the end, with nothing or the same answers ahead of it
        (said(ASKED, ANSWER, "Which fuse is it?"), True),
        # the conversation goes on behind the changed question: that one is history
        (said(ASKED, ANSWER, "Which fuse is it?", "The red one.", "Thanks."), False),
        # an earlier question changed
        (said(f"{ASKED} Soon.", ANSWER, NEXT), False),
        # the last question is a summary that stands for the history
        (said(ASKED, ANSWER, "Summary of the conversation so far: one fuse is gone."), False),
    ],
)
def test_another_question_is_asked_at_the_end_only(
    tmp_path: Path, after: list[Body], *, anew: bool
) -> None:
    case = pair(tmp_path, said(ASKED, ANSWER, NEXT), after)
    assert asks_anew(case) is anew


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [
        (user(ASKED, REMINDER), user(ASKED), "is missing now"),
        (user(ASKED, REMINDER), user(REMINDER, ASKED), "stands in another order"),
        (user(f"{ASKED}\n{REMINDER}"), user(ASKED), "is missing now"),
        # text that nobody wrapped is another wording
        (user(f"{ASKED} Soon."), user(ASKED), None),
        # of two messages that share no block one is another message
        (user(ASKED, REMINDER), user(NEXT), None),
    ],
)
def test_injected_text_is_a_block_or_wrapped(
    tmp_path: Path, before: list[Body], after: list[Body], what: str | None
) -> None:
    rest = said("x", ANSWER, NEXT)[1:]
    found = injected_difference(pair(tmp_path, [*before, *rest], [*after, *rest]))
    assert (found.what if found is not None else None) == what


def test_a_reminder_that_moved_to_the_last_message_is_found_there(tmp_path: Path) -> None:
    rest = said("x", ANSWER)[1:]
    before = [*user(ASKED, REMINDER), *rest, *user(NEXT)]
    after = [*user(ASKED), *rest, *user(NEXT, REMINDER)]
    found = injected_difference(pair(tmp_path, before, after))
    assert found is not None
    assert found.what == "stands in another message now"


MESSAGES = [f"Meter {n} of the {where} wing was read by the guard, and {n}5 litres were left in it; all well."
            for n, where in enumerate(("north", "south", "east", "west"))]  # fmt: skip


@pytest.mark.parametrize(
    ("quoted", "whole"),
    [
        (MESSAGES, 4),
        (MESSAGES[:3], 3),
        # two short ones may stand there by chance
        (MESSAGES[:2], None),
        ([], None),
    ],
)
def test_three_whole_messages_are_a_quote(
    tmp_path: Path, quoted: list[str], whole: int | None
) -> None:
    text = "\n".join([*quoted, "Give this talk a title of three words, and nothing else. " * 9])
    assert quoted_history(pair(tmp_path, said(*MESSAGES), said(text))) == whole


@pytest.mark.parametrize(("size", "quoted"), [(499, None), (500, 0), (501, 0)])
def test_five_hundred_characters_in_a_row_are_a_quote(
    tmp_path: Path, size: int, quoted: int | None
) -> None:
    """Digits in no order that comes again: each row of them stands at one place only."""
    told = "".join(f"{number * 7919 % 10007:05}" for number in range(300))
    text = f"Sum this up. {told[100 : 100 + size]} That was it." + " Be short." * 3
    assert quoted_history(pair(tmp_path, said(told), said(text))) == quoted


@pytest.mark.parametrize(("size", "one"), [(LONG_MESSAGE - 100, False), (LONG_MESSAGE + 50, True)])
def test_one_long_message_tells_a_conversation_and_one_short_does_not(
    tmp_path: Path, size: int, *, one: bool
) -> None:
    """Bodies of two agents: no log and no person says that they belong together."""
    shared = ("The pump of the cellar runs day and night since the flood. " * 20)[:size]
    after = said("Something else came up meanwhile.", "I see.", shared)
    case = pair(tmp_path, said(shared), after, system=[{"type": "text", "text": "Be short."}])
    assert continues(replace(case, asked=False)) is one


@pytest.mark.parametrize(
    ("after", "few"),
    [
        # two for six, and less than half of their size
        (said("Fuse gone.", "Yes.", "Go on."), True),
        # as many as before
        (said(*["Other words, as many as before, of the same length as the old ones."] * 7), False),
    ],
)
def test_a_history_gave_way_to_fewer_messages(
    tmp_path: Path, after: list[Body], *, few: bool
) -> None:
    before = said(ASKED, ANSWER, NEXT, ANSWER, ASKED, ANSWER, NEXT)
    assert replaced_by_few(pair(tmp_path, before, after)) is few


TOOLS = [{"name": n, "description": n, "input_schema": {"type": "object"}} for n in "abcdef"]


@pytest.mark.parametrize(
    ("before", "after", "said_of_it"),
    [
        ("ab", "a", "removed b"),
        ("a", "ab", "added b"),
        ("ab", "ac", "removed b; added c"),
        # four are named on each side
        ("a", "abcdef", "added b, c, d, e)"),
        # the same ones in another order are another cause's
        ("ab", "ba", None),
    ],
)
def test_tools_that_came_and_went_are_named(
    tmp_path: Path, before: str, after: str, said_of_it: str | None
) -> None:
    rows = [
        line(body(said(ASKED), tools=[t for n in names for t in TOOLS if t["name"] == n]), at, None)
        for at, names in enumerate((before, after))
    ]
    match = CAUSES["tool_set_changed"].match(case_of_pair(*requests_of(tmp_path, *rows)))
    assert (match is not None) is (said_of_it is not None)
    assert match is None or (said_of_it or "") in match.explanation


NAMES = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8).filter(
        lambda name: name not in ("and", "or")
    ),
    min_size=2,
    max_size=8,
    unique=True,
)


@given(names=NAMES, data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_list_in_any_other_order_is_found(names: list[str], data: st.DataObject) -> None:
    """Whatever cheap question is asked first: it must not hide a list."""
    other = data.draw(st.permutations(names))
    told = find_order(f"Use: {', '.join(names)}.", f"Use: {', '.join(other)}.")
    assert told is (None if other == names else Order.NAMES)


@given(lines=NAMES, data=st.data())
@settings(max_examples=100, deadline=None)
def test_numbered_lines_in_any_other_order_are_found(lines: list[str], data: st.DataObject) -> None:
    """The numbers are counted anew, and belong to no line."""
    other = data.draw(st.permutations(lines))
    one, two = (
        "Rules:\n"
        + "\n".join(f"{n}. {line}" for n, line in enumerate(each, 1))
        + "\n\nThat is all."
        for each in (lines, other)
    )
    assert find_order(one, two) is (None if other == lines else Order.LINES)


@given(names=NAMES, new=st.text("0123456789", min_size=1, max_size=4))
@settings(max_examples=100, deadline=None)
def test_a_list_with_another_name_is_no_other_order(names: list[str], new: str) -> None:
    other = [new, *names[:0:-1]]
    assert find_order(f"Use: {', '.join(names)}.", f"Use: {', '.join(other)}.") is None


def test_a_conversation_goes_on_from_its_own_beginning(tmp_path: Path) -> None:
    case = pair(tmp_path, said(ASKED), said(ASKED, ANSWER, NEXT))
    assert (continues(case), is_continued(case), case.related) == (True, True, True)


@pytest.mark.parametrize(
    "joined", ["alpha, beta and gamma", "alpha or beta; gamma", "alpha|beta, or gamma"]
)
def test_words_that_part_names_are_no_names(joined: str) -> None:
    """The same names in another order, joined otherwise: the cheap question counts no letter of and, or."""
    assert find_order(f"Use: {joined}.", "Use: gamma, beta, alpha.") is Order.NAMES
