"""Every recorded request of the corpus beside the project, with exactly its counters."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from ctxdoc.errors import NoRequestError
from ctxdoc.load import read_log

REAL = Path(__file__).parent.parent.parent.parent / "shared" / "corpus" / "real"
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


def is_same(found: Counters, row: Row) -> bool:
    """Whether the counters are the row's.

    Three kinds of rows are told otherwise by what the providers document: Gemini's thoughts are
    output; OpenRouter's cache_write_tokens are a part of the input that the index has as uncached;
    and an input below its own cached part is flagged instead of being negative.
    """
    uncached, read, written, hour, output = found
    right = (
        row["uncached"],
        row["cache_read"],
        row["cache_write"],
        row["write_1h"] or 0,
        row["output"],
    )
    if row["provider"] == "gemini":
        return found[:4] == right[:4] and output >= row["output"]
    if row["provider"] == "openrouter":
        return (uncached + written, read, output) == (right[0] + right[2], right[1], right[4])
    return found == (max(right[0], 0), *right[1:]) and hour <= written


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
