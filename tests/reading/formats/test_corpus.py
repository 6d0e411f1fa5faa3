"""Every recorded request of the corpus beside the project, with exactly its counters."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ctxdoc.errors import NoRequestError
from ctxdoc.reading.load import read_log

REAL = Path(__file__).parents[4] / "shared" / "corpus" / "real"
Row = dict[str, Any]
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not REAL.exists(), reason="no ../shared/corpus beside the project"),
]


def rows_by_source() -> dict[str, dict[str, list[Row]]]:
    """Source → file → rows of the index."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    if REAL.exists():
        with (REAL / "index.jsonl").open(encoding="utf-8") as stream:
            for line in stream:
                row = json.loads(line)
                found[row["source"]][row["file"]].append(row)
    return found


INDEX = rows_by_source()
Counters = tuple[int, ...]


OTHERWISE: dict[tuple[str, Counters], Counters] = {
    # Gemini: thoughtsTokenCount is output too: 24 + 70, 17 + 56, 24 + 61, 25 + 79, 82 + 159.
    ("gemini", (620, 0, 0, 0, 24)): (620, 0, 0, 0, 94),
    ("gemini", (145, 0, 0, 0, 17)): (145, 0, 0, 0, 73),
    ("gemini", (261, 0, 0, 0, 24)): (261, 0, 0, 0, 85),
    ("gemini", (376, 0, 0, 0, 25)): (376, 0, 0, 0, 104),
    ("gemini", (343, 0, 0, 0, 82)): (343, 0, 0, 0, 241),
    # OpenRouter: cache_write_tokens are inside of the prompt; the index has them as uncached.
    ("openrouter", (2572, 0, 0, 0, 63)): (3, 0, 2569, 0, 63),
    ("openrouter", (80, 2569, 0, 0, 100)): (1, 2569, 79, 0, 100),
    ("openrouter", (332, 2240, 0, 0, 100)): (3, 2240, 329, 0, 100),
    ("openrouter", (3214, 0, 0, 0, 100)): (3, 0, 3211, 0, 100),
    ("openrouter", (118, 3211, 0, 0, 53)): (3, 3211, 115, 0, 53),
    # An input of 24 below its own cached part of 161: flagged, not negative.
    ("other", (-137, 161, 0, 0, 2)): (0, 161, 0, 0, 2),
}
"""Eleven of the 3,046 rows: what the index has, and what ctxdoc reads (facts 7.3 to 7.5)."""


def is_same(found: Counters, row: Row) -> bool:
    """Whether the counters are the row's.

    Three kinds of rows are told otherwise by what the providers document; see `OTHERWISE`.
    """
    right = (
        row["uncached"],
        row["cache_read"],
        row["cache_write"],
        row["write_1h"] or 0,
        row["output"],
    )
    return found == OTHERWISE.get((row["provider"], right), right)


def counters_of(path: Path) -> list[Counters]:
    """Uncached, read, written, written for an hour where stated, and output of every request."""
    try:
        log = read_log([str(path)])
    except NoRequestError:
        return []
    return [
        (
            u.uncached,
            u.cache_read,
            u.cache_write,
            u.cache_write_1h if u.split_known else 0,
            u.output,
        )
        for request in log.requests
        if (u := request.usage) is not None
    ]


@pytest.mark.parametrize("source", sorted(INDEX))
def test_every_pair_has_the_counters_of_the_index(source: str) -> None:
    wrong = []
    for file, rows in INDEX[source].items():
        found = counters_of(REAL / file)
        if len(found) != len(rows) or not all(map(is_same, found, rows)):
            wrong.append(file)
    assert wrong == []
