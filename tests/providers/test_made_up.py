"""A provider that does not exist: one module and one data file are all that a new one needs."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ctxdoc import providers
from ctxdoc.ledger.ledger import Ledger, replay
from ctxdoc.ledger.totals import totals_of
from ctxdoc.pricing import rates
from ctxdoc.reading.load import read_log
from tests.support.sessions import START

MODULE = """
from ctxdoc.providers.rules import Provider

PROVIDER = Provider(
    id="acme",
    names="^acme-",
    automatic=True,
    granule=64,
    charges_writes=False,
    ttl_seconds={{"10m": 600}},
    data={data!r},
)
"""
DATA = """
[[model]]
id = "acme-large"
minimum = 256
window = 100000
image_tier = "standard"
tokenizer = "older"
keeps_thinking = true
source = "made up"
date = "2026-12-01"

[[price]]
model = "acme-large"
input = 2
cache_read = 0.5
output = 4
source = "made up"
read = 2026-12-01
"""


@pytest.fixture(autouse=True)
def _acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    data, module = tmp_path / "acme.toml", tmp_path / "acme.py"
    data.write_text(DATA, encoding="utf-8")
    module.write_text(MODULE.format(data=str(data)), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("ctxdoc.providers.acme", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    monkeypatch.setitem(sys.modules, "ctxdoc.providers.acme", loaded)
    monkeypatch.setattr(providers.PROVIDERS, "names", ("acme", *providers.PROVIDERS.names))
    _forget()
    yield
    monkeypatch.undo()
    providers.PROVIDERS._parts.pop("acme", None)
    _forget()


def _forget() -> None:
    for known in (
        providers.provider_of, providers.find_model, providers.are_rules_known,
        rates._own, rates._find_row,
    ):  # fmt: skip
        known.cache_clear()


def call(seconds: int, messages: int, usage: tuple[int, int] | None, system: str = "") -> Any:
    """A record: the first so many messages of one conversation, and (uncached, read)."""
    texts = [f"Message {number}: " + "weigh the parcels. " * 40 for number in range(messages)]
    body = {
        "model": "acme-large",
        "max_tokens": 100,
        "system": system or "You keep a harbour. " * 60,
        "messages": [
            {"role": "user" if n % 2 == 0 else "assistant", "content": text}
            for n, text in enumerate(texts)
        ],
    }
    counters = usage and {
        "input_tokens": usage[0],
        "cache_read_input_tokens": usage[1],
        "cache_creation_input_tokens": 0,
        "output_tokens": 10,
    }
    return {
        "timestamp": (START + timedelta(seconds=seconds)).isoformat(),
        "session_id": "one",
        "request": body,
        "response": {"id": f"r{seconds}", "model": "acme-large", "usage": counters}
        if counters
        else None,
    }


def replayed(tmp_path: Path, *records: Any) -> Ledger:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records), encoding="utf-8")
    return replay(read_log([str(path)], condense=True))


def test_reads_end_at_steps_of_the_granule(tmp_path: Path) -> None:
    # 1,000 tokens are sent before: 15 whole steps of 64 are 960.
    ledger = replayed(tmp_path, call(0, 1, (1000, 0)), call(20, 3, (240, 960)))
    one, two = ledger.rows
    assert (one.miss, two.miss) == (None, None)
    assert (one.waste, two.waste) == (None, None), "nobody sets a breakpoint where all is cached"
    assert two.simulated is not None
    assert (two.simulated.cache_read, two.simulated.cache_write) == (960, 0)


def test_the_bill_is_by_its_own_prices(tmp_path: Path) -> None:
    ledger = replayed(tmp_path, call(0, 1, (1000, 0)), call(20, 3, (240, 960)))
    # Input 2, read 0.5, output 4 dollars a million: 1000*2 + 10*4 and 240*2 + 960*0.5 + 10*4.
    assert [row.cost for row in ledger.rows] == [Decimal("0.00204"), Decimal("0.001")]
    assert totals_of(ledger.rows).without_cache.amount == Decimal("0.00204") + Decimal("0.00244")


@pytest.mark.parametrize(("seconds", "lost"), [(599, 0), (600, 960), (4000, 960)])
def test_entries_live_for_its_own_lifetime(tmp_path: Path, seconds: int, lost: int) -> None:
    usage = (240, 960) if lost == 0 else (1200, 0)
    ledger = replayed(tmp_path, call(0, 1, (1000, 0)), call(seconds, 3, usage))
    miss = ledger.rows[1].miss
    assert (miss.tokens if miss else 0) == lost
    assert (miss.cause if miss else "") == ("ttl_expired" if lost else "")


@pytest.mark.parametrize(("size", "cached"), [(255, 0), (256, 256)])
def test_its_minimum_is_the_smallest_prompt_that_is_cached(
    tmp_path: Path, size: int, cached: int
) -> None:
    ledger = replayed(tmp_path, call(0, 1, (size, 0)), call(20, 3, (size + 300, 0)))
    assert ledger.rows[1].simulated is not None
    assert ledger.rows[1].simulated.cache_read == cached


def test_without_counters_whole_steps_are_read(tmp_path: Path) -> None:
    ledger = replayed(tmp_path, call(0, 1, None), call(20, 3, None))
    one, two = (row.simulated for row in ledger.rows)
    assert one is not None
    assert two is not None
    assert one.cache_read == 0
    assert two.cache_read == one.input - one.input % 64
    assert two.cache_write == 0


def test_a_clock_ahead_of_all_is_its_cause_here_too(tmp_path: Path) -> None:
    long = "You keep a harbour. " * 60
    ledger = replayed(
        tmp_path,
        call(0, 1, (1000, 0), f"It is 2026-11-02 09:00:00. {long}"),
        call(20, 3, (1200, 0), f"It is 2026-11-02 09:00:20. {long}"),
    )
    miss = ledger.rows[1].miss
    assert miss is not None
    assert miss.cause == "timestamp_in_prefix"
    # At most what was cached: 15 steps of the 1,000 tokens.
    assert miss.tokens is not None
    assert 0 < miss.tokens <= 960
