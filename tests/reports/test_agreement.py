"""One replay, written in several ways: they say the same."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast

import pytest

from ctxdoc.ledger.ledger import replay
from ctxdoc.outputs import OUTPUTS, Style
from ctxdoc.outputs.report import Fields, Headline, Notes, Report, Table
from ctxdoc.reading.load import read_log
from ctxdoc.reports.replay import replay_report
from tests.support.sessions import SESSION


@pytest.fixture(scope="module")
def report() -> Report:
    return replay_report(replay(read_log([str(SESSION)])))


def said(report: Report) -> Iterator[str]:
    """Every text of a report for people."""
    for part in report.parts:
        match part:
            case Headline():
                yield part.text
            case Fields():
                yield from (row.text for row in part.rows)
            case Notes():
                yield from part.lines
            case Table():
                yield from (cell for row in part.rows for cell in row)
            case _:
                pass


def plain(text: str) -> str:
    """Words alone: lines are broken and aligned in ways of each output's own."""
    return "".join(text.split())


def of_markdown(text: str) -> str:
    return re.sub(r"\\([\\`*_<>|\[\]])", r"\1", text)


def of_html(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", text))


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_every_output_for_people_says_all_of_it(report: Report, form: str) -> None:
    written = OUTPUTS[form].write(report, Style(width=400))
    bare = {"text": str, "markdown": of_markdown, "html": of_html}[form](written)
    left_out = [text for text in said(report) if plain(text) not in plain(bare)]
    assert left_out == []


def test_rows_add_up_to_the_totals_of_the_document(report: Report) -> None:
    """The table for other programs is the same requests."""
    rows = list(csv.DictReader(io.StringIO(OUTPUTS["csv"].write(report, Style()))))
    totals = cast("dict[str, Any]", report.data["totals"])
    for column, key in (
        ("cost", "cost"),
        ("cost_without_cache", "cost_without_cache"),
        ("cost_oracle", "cost_oracle"),
        ("lost_cost", "lost_cost"),
    ):
        assert sum(Decimal(row[column]) for row in rows) == Decimal(totals[key]), column
    for name in ("uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output"):
        assert sum(int(row[f"reported_{name}"]) for row in rows) == totals[name], name


def test_the_headline_has_the_money_of_the_document(report: Report) -> None:
    totals = cast("dict[str, Any]", report.data["totals"])
    headline = next(part for part in report.parts if isinstance(part, Headline))
    assert f"cost ${Decimal(totals['cost']):.4f};" in headline.text
    assert f"${Decimal(totals['avoidable_cost']):.4f} in 3 avoidable misses" in headline.text


def test_the_share_read_is_what_the_counters_say(report: Report) -> None:
    """Of four places, of all input."""
    totals = cast("dict[str, Any]", report.data["totals"])
    share = Decimal(totals["cache_read"]) / Decimal(totals["input"])
    assert totals["hit_ratio"] == f"{share:.4f}"
    assert f"read {share:.0%}" in " ".join(said(report))
