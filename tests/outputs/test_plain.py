"""Plain text is what rich writes without colour: the same lines, where a part is laid out without it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.outputs.base import Style
from ctxdoc.outputs.plain import plain_lines
from ctxdoc.outputs.report import Fields, Headline, Notes, Part, Row, Snippet, Table
from ctxdoc.outputs.styled import styled_lines

WIDTHS = st.integers(20, 120)
WORDS = st.text("ab -→…€ü⏎⇥1%$.\n", max_size=9) | st.text("abc", min_size=20, max_size=130)
TEXTS = st.lists(WORDS | st.sampled_from(["日本", "\x1b[31m", "e\u0301", "\u00ad"]), max_size=30)
SAID = TEXTS.map(" ".join)
LABELS = st.text("abc d", max_size=12)
CELLS = st.text("ab c", max_size=20) | st.integers(0, 10**6).map("{:,}".format) | SAID
ROWS = st.builds(Row, LABELS, SAID, st.booleans(), st.booleans())
HEADLINES = st.builds(Headline, st.just("dead"), st.just("bad"), SAID, st.just("") | SAID)
FIELDS = st.lists(ROWS, min_size=1, max_size=4).map(tuple).map(Fields)
SNIPPETS = st.builds(
    Snippet,
    st.just("x"),
    st.text("ab c", max_size=60) | st.just("(not there)"),
    st.text("ab c", max_size=130) | SAID,
    st.integers(0, 130),
)
NOTES = st.builds(Notes, st.just("") | SAID, st.lists(SAID, max_size=3).map(tuple))
TABLES = st.integers(1, 4).flatmap(
    lambda count: st.builds(
        Table,
        st.just("") | st.text("ab c", min_size=1, max_size=60),
        st.tuples(*[st.text("ab c", max_size=9)] * count),
        st.lists(st.tuples(*[CELLS] * count), max_size=4).map(tuple),
        st.lists(st.integers(0, count - 1), unique=True, max_size=count).map(tuple),
    )
)


@given(HEADLINES | FIELDS | SNIPPETS | NOTES | TABLES, WIDTHS)
def test_what_is_laid_out_without_rich_is_what_rich_writes(part: Part, width: int) -> None:
    found = plain_lines(part, width)
    assert found is None or found == styled_lines(part, Style(width=width))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a" * 40, ["a" * 40]),
        ("a" * 41, ["a" * 40, "a"]),
        ("a" * 39 + " b", ["a" * 39, "b"]),
        ("a" * 38 + " b", ["a" * 38 + " b"]),
        ("one\ntwo", ["one", "two"]),
        ("", [""]),
    ],
)
def test_a_text_is_broken_between_words_where_the_width_ends(text: str, lines: list[str]) -> None:
    assert plain_lines(Notes(text, ()), 40) == ([*lines, ""] if text else [""])


@pytest.mark.parametrize("text", ["日本", "e\u0301", "👍"])
def test_characters_of_another_width_are_left_to_rich(text: str) -> None:
    assert plain_lines(Notes("", (text,)), 80) is None
    assert styled_lines(Notes("", (text,)), Style(width=80)) == [f"  {text}", ""]


def test_a_table_that_is_wider_than_the_page_is_left_to_rich() -> None:
    # Two columns of 20, the gap behind each, and the indent of a table without a title: 53.
    table = Table("", ("a", "b"), (("x" * 20, "y" * 20),))
    assert plain_lines(table, 53) is not None
    assert plain_lines(table, 52) is None


def test_usual_parts_are_laid_out_without_rich() -> None:
    rows = (Row("cause", "a time → another"), Row("more", "ctxdoc explain x", is_command=True))
    for part in (Headline("dead", "bad", "why"), Fields(rows), Snippet("", "ab", "ac", 1)):
        assert plain_lines(part, 100) is not None


@pytest.mark.parametrize("width", [1, 39])
def test_a_page_of_few_columns_is_left_to_rich(width: int) -> None:
    assert plain_lines(Notes("", ("a text",)), width) is None
    assert plain_lines(Notes("", ("a text",)), 40) == ["  a text", ""]
