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


def counters_of(path: Path) -> list[tuple[int, ...]]:
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
        right = [
            (r["uncached"], r["cache_read"], r["cache_write"], r["write_1h"] or 0, r["output"])
            for r in rows
        ]
        if counters_of(REAL / file) != right:
            wrong.append(file)
    assert wrong == []
