"""The README's check: what it renews, and what it leaves alone."""

from __future__ import annotations

from tests.readme import renewed, typed_again


def test_an_example_of_the_program_is_made_anew() -> None:
    old = "```console\n$ ctxdoc --version\nctxdoc 0.0\n```"
    assert renewed(old).startswith("```console\n$ ctxdoc --version\nctxdoc 0.")
    assert renewed(renewed(old)) == renewed(old) != old


def test_one_that_was_cut_stays_as_long_as_it_was() -> None:
    old = "```\n$ ctxdoc explain clear\nold\n\nold\n...\n```"
    shown = renewed(old).splitlines()
    assert shown[2] == "clear (strategy)"
    assert len(shown) == len(old.splitlines())
    assert shown[-2] == "..."


def test_python_is_run_as_one_session() -> None:
    old = "```python\n>>> a = 2\n>>> a + 1\n5\n```\ntext\n```python\n>>> a * 2\n```"
    new = "```python\n>>> a = 2\n>>> a + 1\n3\n```\ntext\n```python\n>>> a * 2\n4\n```"
    assert renewed(old) == new


def test_a_statement_of_several_lines_keeps_them() -> None:
    session = ">>> for each in (1, 2):\n...     print(each)\n1\n2\n"
    assert typed_again(session, {}) == session


def test_python_that_is_no_session_is_left_alone() -> None:
    text = "```python\nfrom ctxdoc.record import recorder\n1 / 0\n```"
    assert renewed(text) == text


def test_a_frame_is_there_without_pandas() -> None:
    session = '>>> import pandas\n>>> pandas.DataFrame([{"a": 1}]).shape\n'
    assert typed_again(session, {}) == session + "(1, 1)\n"
