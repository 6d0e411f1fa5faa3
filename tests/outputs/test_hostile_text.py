"""Text of a log steers no program that reads a report, in any output and at any width."""

from __future__ import annotations

import json
import re
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from ctxdoc.outputs import OUTPUTS, TAKES, Style, Takes
from ctxdoc.outputs.printable import STEERING, harmless, one_line, visible
from ctxdoc.outputs.report import (
    Annotation,
    CheckResult,
    Checks,
    Fields,
    Headline,
    Notes,
    Records,
    Report,
    Row,
    Rule,
    Snippet,
    Table,
)

HOSTILE = (
    "\x1b[31mred",
    "\x9b2J",
    "a\u202eb",
    "\u2066x\u2069",
    "\x00\x07\x08",
    "<script>alert(1)</script>",
    "a|b`c``d",
    "::error::taken",
    "=1+1",
)


def report_of(text: str) -> Report:
    rule = Rule(id="r", title=text, help=text)
    return Report(
        make_parts=lambda: (
            Headline("W", "bad", text, text),
            Fields((Row("L", text), Row("", text, is_command=True))),
            Snippet("s", text, text, 0),
            Table(text, ("a", "b"), ((text, "1"),)),
            Notes(text, (text,)),
        ),
        make_data=lambda: {"schema": "x/1", "text": text},
        make_records=lambda: Records(("a", "n"), ((text, 1),)),
        make_checks=lambda: Checks(
            verdict="broken",
            summary=text,
            tested=(CheckResult(name="n", verdict="broken", text=text or "-"),),
            annotations=(Annotation(rule=rule, level="error", message=text, file="f"),),
        ),
    )


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("name", OUTPUTS.names)
def test_no_output_holds_a_character_that_steers(name: str, text: str) -> None:
    written = OUTPUTS[name].write(report_of(text), Style())
    steering = {c for c in written if c != "\n" and unicodedata.category(c) in STEERING}
    assert steering == set()


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_without_colour_no_escape_and_no_line_over_the_width_but_commands(width: int) -> None:
    words = "some words of a sentence " * 12
    report = Report(
        make_parts=lambda: (
            Headline("W", "bad", words),
            Fields((Row("L", words), Row("", "c" * 300, is_command=True))),
            Table("t", ("a", "b"), ((words, "1,000"),)),
            Notes("n", (words,)),
        ),
        make_data=dict,
    )
    lines = OUTPUTS["text"].write(report, Style(width=width)).splitlines()
    over = [line for line in lines if len(line) > width]
    assert [line.strip() for line in over] == ["c" * 300]
    assert "\x1b" not in "".join(lines)


def test_the_page_makes_no_element_of_a_text() -> None:
    found: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            del attrs
            found.append(tag)

    Tags().feed(OUTPUTS["html"].write(report_of("<script>x</script><img src=x>"), Style()))
    assert "script" not in found
    assert "img" not in found


@pytest.mark.parametrize("text", HOSTILE)
def test_json_keeps_the_text_as_it_was(text: str) -> None:
    """What is escaped is only how it is written."""
    assert json.loads(OUTPUTS["json"].write(report_of(text), Style()))["text"] == text


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@a", "\tx", "\rx"])
def test_a_cell_of_csv_begins_with_no_sign_of_a_formula(text: str) -> None:
    cell = OUTPUTS["csv"].write(report_of(text), Style()).splitlines()[1]
    assert not cell.lstrip('"').startswith(("=", "+", "-", "@", "\t", "\r"))


@pytest.mark.parametrize("text", ["-13.43", "-0.0012", "7.50"])
def test_a_number_in_a_cell_of_csv_is_a_number(text: str) -> None:
    assert OUTPUTS["csv"].write(report_of(text), Style()).splitlines()[1] == f"{text},1"


@pytest.mark.parametrize("text", HOSTILE)
def test_junit_is_read_by_an_xml_parser(text: str) -> None:
    root = ElementTree.fromstring(
        OUTPUTS["junit"].write(report_of(text), Style()).split("\n", 1)[1]
    )
    assert root.get("failures") == "1"


def test_a_message_begins_no_workflow_command_of_its_own() -> None:
    written = OUTPUTS["github"].write(report_of("a\n::error::taken"), Style())
    assert [line for line in written.splitlines() if line.startswith("::error::")] == []


@pytest.mark.parametrize("ticks", [1, 3, 5])
def test_no_run_of_backticks_ends_the_fence_around_it(ticks: int) -> None:
    inside = "`" * ticks
    written = OUTPUTS["markdown"].write(
        Report(make_parts=lambda: (Snippet("s", inside, "x", 0),), make_data=dict), Style()
    )
    fence = re.match("`+", written)
    assert fence is not None
    assert len(fence[0]) > ticks


def test_what_is_seen_stays_and_what_is_not_is_named() -> None:
    assert harmless("plain é 漢 \n") == "plain é 漢 \n"
    assert harmless("a\u200bb") == "a<U+200B>b"
    assert visible("a\tb\nc d\u00a0e") == "a⇥b⏎c d<U+00A0>e"
    assert one_line("a\r\nb") == "a␍⏎b"


def test_every_output_says_what_it_takes() -> None:
    assert set(TAKES) == set(OUTPUTS.names)
    assert TAKES["text"] is Takes.ALL
