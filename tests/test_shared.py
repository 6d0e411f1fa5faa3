"""Samples, client logs and recordings that stand beside the project; skipped where they do not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ctxdoc.diagnose import diagnose_pair, iter_cases, iter_misses
from ctxdoc.load import read_log, read_request
from ctxdoc.model import Request
from ctxdoc.pricing import price, tariff_of
from ctxdoc.sessions import part

SHARED = Path(__file__).parent.parent.parent / "shared"
CLIENTS = SHARED / "clients"
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(not CLIENTS.exists(), reason="no ../shared beside the project"),
]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("samples")
    maker = str(SHARED / "tools" / "gen_logs.py")
    subprocess.run([sys.executable, maker, "samples", str(out)], check=True, timeout=60)
    return out


@pytest.mark.parametrize(
    ("pair", "cause", "state"),
    [
        ("ok", "none", "alive"),
        ("timestamp", "timestamp_in_prefix", "dead"),
        ("keyorder", "json_key_order", "dead"),
        ("toolorder", "tool_order", "dead"),
        ("tooldesc", "tool_definition_changed", "dead"),
        ("edit", "history_rewritten", "partial"),
        ("model", "model_changed", "dead"),
        ("choice", "tool_choice_changed", "partial"),
        ("unicode", "text_normalization", "dead"),
    ],
)
def test_each_plain_pair_is_right(samples: Path, pair: str, cause: str, state: str) -> None:
    before, after = (read_request(str(samples / f"pair_{pair}_{x}.json"))[0] for x in "ab")
    found = diagnose_pair(before, after, always_diff=True)
    assert (found.finding.cause.id, str(found.state)) == (cause, state)


@pytest.mark.parametrize(
    "pair", ["timestamp", "keyorder", "toolorder", "tooldesc", "edit", "unicode"]
)
def test_the_three_bytes_are_those_of_the_samples(samples: Path, pair: str) -> None:
    """The samples' sorted prompt has no difference where ours is null: it ends there."""
    before, after = (read_request(str(samples / f"pair_{pair}_{x}.json"))[0] for x in "ab")
    found = diagnose_pair(before, after, always_diff=True).comparison
    truth = json.loads((samples / "truth.json").read_text())["pairs"][pair]["first_diff"]
    assert found is not None
    assert found.sorted_body_byte == truth["whole_body_sorted_keys"]
    assert found.prompt_byte == truth["wire_order_as_sent"]
    assert found.sorted_prompt_byte in (truth["wire_order_sorted_keys"], None)


def test_the_six_events_of_the_thirty_turns_are_found_and_priced(samples: Path) -> None:
    log = read_log([str(samples / "conv30_log.jsonl")])
    found = {d.case.after.request.line: d.finding.cause.id for d in iter_misses(log.requests)}
    assert found == {
        8: "timestamp_in_prefix",
        12: "ttl_expired",
        16: "tool_order",
        20: "json_key_order",
        24: "history_rewritten",
        28: "model_changed",
    }
    total = sum(price(r.usage, tariff_of(r)) or 0 for r in log.requests if r.usage)
    truth = json.loads((samples / "truth.json").read_text())["conv30"]["total_cost"]
    assert round(float(total), 6) == truth


@pytest.mark.parametrize("folder", ["cc", "cc_clean"])
def test_transcripts_have_the_counters_and_the_money_of_the_samples(
    samples: Path, folder: str
) -> None:
    """A session with its sub-agent, and a long one without a rebuild; nothing is counted twice."""
    log = read_log([str(samples / folder)])
    paid = [price(r.usage, tariff_of(r)) or 0 for r in log.requests if r.usage]
    truth = json.loads((samples / "truth.json").read_text())
    if folder == "cc_clean":
        clean = truth["claude_code_clean"]
        assert (len(paid), round(float(sum(paid)), 6)) == (clean["calls"], clean["cost"])
        return
    main, side = part(log.requests)
    truth = truth["claude_code"]
    assert len(paid) == truth["api_calls"]
    assert sum(request.records for request in log.requests) == truth["raw_assistant_records"]
    assert (main.id, main.parent, side.parent) == (truth["session"], None, truth["session"])
    assert [counters(log.requests[n]) for n in main.requests] == [
        tuple(row[name] for name in COUNTERS) for row in truth["calls"]
    ]
    assert round(float(sum(paid[n] for n in main.requests)), 6) == truth["main_cost"]
    assert round(float(sum(paid[n] for n in side.requests)), 6) == truth["subagent_cost"]


COUNTERS = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)


def counters(request: Request) -> tuple[int, ...]:
    """In the order of `COUNTERS`."""
    usage = request.usage
    assert usage is not None
    return usage.uncached, usage.cache_write, usage.cache_read, usage.output


@pytest.mark.parametrize(
    ("client", "causes"),
    [
        ("langchain_plain", {}),
        ("deepagents_plain", {}),
        ("pydantic_ai_static", {"breakpoint_missing_on_history"}),
        ("pydantic_ai_clock", {"timestamp_in_prefix"}),
        ("litellm_shuffle", {"tool_order"}),
        ("langchain_clear", {"history_rewritten"}),
    ],
)
def test_a_client_log_shows_its_own_fault_and_no_other(client: str, causes: set[str]) -> None:
    log = read_log([str(CLIENTS / f"{client}.jsonl.gz")])
    found = Counter(d.finding.cause.id for d in iter_misses(log.requests))
    assert set(found) == set(causes)


@pytest.mark.parametrize("path", sorted(CLIENTS.glob("*.gz")), ids=lambda path: path.name)
def test_every_request_of_a_client_log_is_reproduced(path: Path) -> None:
    """Within 3 % or 20 tokens of what was billed: read, written and uncached."""
    for case in iter_cases(read_log([str(path)]).requests):
        right = case.after.usage
        assert right is not None
        for name in ("cache_read", "cache_write", "uncached"):
            number = getattr(right, name)
            assert abs(getattr(case.outcome.usage, name) - number) <= max(20, 0.03 * number)
