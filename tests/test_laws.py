"""Laws that hold for every request: rendering, the diff and the cache."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from ctxdoc.diagnosis.diagnose import diagnose_log, iter_cases
from ctxdoc.diagnosis.find import find_causes
from ctxdoc.ledger.ledger import replay
from ctxdoc.prompt.diff import find_divergence, first_difference, prompt_difference
from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.render import render
from ctxdoc.reading.formats import FORMATS
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Log
from ctxdoc.request.request import Body, Request
from ctxdoc.request.usage import Origin
from tests.support.sessions import record
from tests.support.stand_in import StandIn

JsonBody = dict[str, Any]
MODEL = "claude-sonnet-4-5"
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = st.text("abcdefgh_", min_size=1, max_size=6)
FREE_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, FREE_JSON, max_size=4)
TEXT_BLOCKS = st.fixed_dictionaries({"type": st.just("text"), "text": TEXTS})
USES = st.fixed_dictionaries(
    {"type": st.just("tool_use"), "id": NAMES, "name": NAMES, "input": OBJECTS}
)
RESULTS = st.fixed_dictionaries(
    {
        "type": st.just("tool_result"),
        "tool_use_id": NAMES,
        "content": TEXTS | st.lists(TEXT_BLOCKS, max_size=2),
    }
)
BLOCKS = st.lists(TEXT_BLOCKS | USES | RESULTS, min_size=1, max_size=4)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": BLOCKS}),
    min_size=1,
    max_size=5,
)
TOOLS = st.lists(
    st.fixed_dictionaries({"name": NAMES, "description": TEXTS, "input_schema": OBJECTS}),
    max_size=3,
)
BODIES = st.fixed_dictionaries(
    {
        "model": st.just("claude-sonnet-4-5"),
        "tools": TOOLS,
        "system": st.lists(TEXT_BLOCKS, max_size=2),
        "messages": MESSAGES,
    }
)


def prefix_of(body: JsonBody, **dump: Any) -> Prefix:
    """The rendered prompt of a body, written as JSON in some way."""
    raw = Raw(json.dumps(body, **dump).encode())
    return render(
        Request(source="-", line=1, model=MODEL, body=msgspec.json.decode(raw, type=Body), raw=raw)
    )


def marked_blocks(body: JsonBody) -> list[JsonBody]:
    """Every place that can carry a breakpoint."""
    inside = [block for message in body["messages"] for block in message["content"]]
    return [*body["tools"], *body["system"], *inside]


@given(BODIES)
def test_segments_tile_the_prompt(body: JsonBody) -> None:
    prefix = prefix_of(body)
    rows = list(zip(prefix.heads, prefix.segments, strict=True))
    assert b"".join(head + s.data for head, s in rows) == prefix.data
    assert sum(len(head) + len(s.data) for head, s in rows) == prefix.data_length


@given(BODIES)
def test_the_prompt_is_unfinished_json(body: JsonBody) -> None:
    assert json.loads(prefix_of(body).data + b"]}]]") is not None


@given(BODIES, st.data())
def test_breakpoints_are_no_part_of_the_prompt(body: JsonBody, data: st.DataObject) -> None:
    other = copy.deepcopy(body)
    for block in data.draw(st.lists(st.sampled_from(marked_blocks(other)), max_size=4)):
        block["cache_control"] = {
            "type": "ephemeral",
            "ttl": data.draw(st.sampled_from(["5m", "1h"])),
        }
    assert prefix_of(other).data == prefix_of(body).data


@given(BODIES)
def test_white_space_escapes_and_sampling_fields_are_no_part_of_the_prompt(body: JsonBody) -> None:
    other = {
        "temperature": 0.3,
        "max_tokens": 7,
        "stream": True,
        "metadata": {"user_id": "u"},
        **body,
    }
    assert (
        prefix_of(other, indent=2, ensure_ascii=True).data
        == prefix_of(body, ensure_ascii=False).data
    )


@given(BODIES)
def test_a_string_is_one_text_block(body: JsonBody) -> None:
    one, two = copy.deepcopy(body), copy.deepcopy(body)
    one["messages"][0]["content"] = "hello"
    two["messages"][0]["content"] = [{"type": "text", "text": "hello"}]
    one["system"], two["system"] = "be kind", [{"type": "text", "text": "be kind"}]
    assert prefix_of(one).data == prefix_of(two).data


@given(BODIES)
def test_the_order_of_members_that_the_api_names_is_no_part_of_the_prompt(body: JsonBody) -> None:
    other = {
        **body,
        "messages": [
            {
                "content": [dict(reversed(block.items())) for block in message["content"]],
                "role": message["role"],
            }
            for message in body["messages"]
        ],
        "tools": [dict(reversed(tool.items())) for tool in body["tools"]],
    }
    assert prefix_of(other).data == prefix_of(body).data


@given(BODIES, st.data())
def test_any_change_of_a_text_changes_the_prompt(body: JsonBody, data: st.DataObject) -> None:
    other = copy.deepcopy(body)
    message = data.draw(st.sampled_from(other["messages"]))
    block = data.draw(st.sampled_from(message["content"]))
    name = {"text": "text", "tool_use": "id", "tool_result": "tool_use_id"}[block["type"]]
    block[name] = data.draw(TEXTS.filter(lambda text: text != block[name]))
    assert prefix_of(other).data != prefix_of(body).data


@given(BODIES, st.data())
def test_the_order_of_free_json_is_a_part_of_the_prompt(
    body: JsonBody, data: st.DataObject
) -> None:
    free = data.draw(st.dictionaries(NAMES, FREE_JSON, min_size=2, max_size=4))
    tool = {"name": "t", "description": "", "input_schema": free}
    other = {**tool, "input_schema": dict(reversed(free.items()))}
    one = prefix_of({**body, "tools": [tool]})
    two = prefix_of({**body, "tools": [other]})
    assert one.data != two.data
    assert one.sorted_data == two.sorted_data


@given(BODIES, st.sampled_from([("1.0", "1"), ("1e3", "1000.0"), ("0.10", "0.1")]))
def test_the_spelling_of_a_number_is_a_part_of_the_prompt(
    body: JsonBody, pair: tuple[str, str]
) -> None:
    call = {"type": "tool_use", "id": "i", "name": "n", "input": {"x": "@"}}
    other = {**body, "messages": [{"role": "assistant", "content": [call]}]}
    texts = [json.dumps(other).replace('"@"', number).encode() for number in pair]
    one, two = (
        render(Request(source="-", line=1, model=MODEL, body=msgspec.json.decode(t, type=Body)))
        for t in texts
    )
    assert one.data != two.data


@given(st.binary(max_size=9000), st.binary(max_size=9000), st.integers(0, 9000))
def test_the_first_differing_byte_is_the_true_one(one: bytes, two: bytes, shared: int) -> None:
    one = two[:shared] + one
    right = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), None)
    if right is None and len(one) != len(two):
        right = min(len(one), len(two))
    assert first_difference(one, two) == right


@given(BODIES, BODIES)
def test_the_diff_reports_the_first_byte_that_the_cache_sees(one: JsonBody, two: JsonBody) -> None:
    before, after = prefix_of(one), prefix_of(two)
    found = prompt_difference(before, after, in_order=True)
    assert (found is None) == after.data.startswith(before.data)
    if found is not None:
        assert before.data[:found] == after.data[:found]
        assert before.data[found : found + 1] != after.data[found : found + 1]
    assert (find_divergence(before, after) is None) == (found is None)


@given(BODIES, MESSAGES)
def test_appending_messages_keeps_the_earlier_prompt_as_a_prefix(
    body: JsonBody, more: list[JsonBody]
) -> None:
    longer = {**body, "messages": [*body["messages"], *more]}
    assert prefix_of(longer).data.startswith(prefix_of(body).data)


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[JsonBody], list[int]]:
    """Records of one or two conversations as the stand-in bills them, and the blocks it read."""
    cache, now, records = StandIn(minimum=1024), 0.0, []
    bodies = draw(st.lists(BODIES, min_size=1, max_size=2))
    for body in bodies:
        body["system"].append({"type": "text", "text": "lorem ipsum dolor " * 300})
    for number in range(draw(st.integers(2, 7))):
        body = draw(st.sampled_from(bodies))
        now += draw(st.sampled_from([0, 0.5, 20, 299, 301, 3700]))
        body["messages"] += draw(MESSAGES)
        sent = copy.deepcopy(body)
        for block in draw(st.lists(st.sampled_from(marked_blocks(sent)), max_size=3)):
            block["cache_control"] = {"type": "ephemeral"}
        at = datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=now)
        records.append(record(sent, at, cache.answer(sent, now), number))
    return records, cache.hits


def requests_of(records: list[JsonBody]) -> list[Request]:
    """Native records as requests, through the reader."""
    source = Source("-", BytesIO("".join(json.dumps(row) + "\n" for row in records).encode()))
    found = list(FORMATS["native"].read(source))
    assert all(isinstance(item, Request) for item in found)
    return [item for item in found if isinstance(item, Request)]


@settings(max_examples=60)
@given(logs())
def test_read_written_and_uncached_are_the_whole_input(
    log: tuple[list[JsonBody], list[int]],
) -> None:
    for case in iter_cases(requests_of(log[0])):
        usage = case.outcome.usage
        assert usage.cache_read + usage.cache_write + usage.uncached == case.after.sizes.total
        assert min(usage.cache_read, usage.cache_write_5m, usage.cache_write_1h) >= 0


@settings(max_examples=60)
@given(logs())
def test_the_replay_hits_what_an_independent_cache_hits(
    log: tuple[list[JsonBody], list[int]],
) -> None:
    """Same entry, same reach, same lifetime: the same number of leading blocks is read."""
    records, hits = log
    for case, blocks in zip(iter_cases(requests_of(records)), hits, strict=True):
        hit = case.outcome.hit
        read = case.after.prefix.segments[: hit + 1] if hit is not None else ()
        assert sum(segment.is_block for segment in read) == blocks


@st.composite
def agents(draw: st.DrawFn) -> list[JsonBody]:
    """Records of conversations that append, edit, branch and pause, with and without counters."""
    cache, now, records = StandIn(minimum=1024), 0.0, []
    bodies = draw(st.lists(BODIES, min_size=1, max_size=3))
    for place, body in enumerate(bodies):
        body["system"] = [{"type": "text", "text": f"agent {place} " + "lorem ipsum dolor " * 300}]
        body["messages"] = [{"role": "user", "content": [{"type": "text", "text": f"go {place}"}]}]
    for number in range(draw(st.integers(2, 8))):
        place = draw(st.integers(0, len(bodies) - 1))
        body = bodies[place]
        now += draw(st.sampled_from([0.5, 20, 299, 301, 3700]))
        more = draw(st.sampled_from(["append", "append", "edit", "system", "drop"]))
        if more == "edit":
            body["messages"][0]["content"][0]["text"] += "!"
        elif more == "system":
            body["system"][0]["text"] = f"at {number} " + body["system"][0]["text"]
        elif more == "drop":
            del body["messages"][1:]
        body["messages"] += [
            {"role": role, "content": [{"type": "text", "text": f"{role} {place} {number} " * 40}]}
            for role in ("assistant", "user")
        ]
        sent = copy.deepcopy(body)
        for block in draw(st.lists(st.sampled_from(marked_blocks(sent)), max_size=3)):
            block["cache_control"] = {"type": "ephemeral"}
        usage = cache.answer(sent, now)
        at = datetime(2026, 11, 2, tzinfo=UTC) + timedelta(seconds=now)
        records.append(record(sent, at, usage if draw(st.booleans()) else None, number))
    return records


@settings(max_examples=60)
@given(agents())
def test_nothing_is_lost_that_was_not_cached(records: list[JsonBody]) -> None:
    """Lost is at most what the earlier request had cached, and where nothing changed at most what both
    have at their start (design 13)."""
    for case in iter_cases(requests_of(records)):
        held = case.before.cached
        assert case.lost <= case.cached
        if held is not None and not case.alone:
            assert case.lost <= max(0, held - case.counters.cache_read)
        if case.divergence is None:
            assert case.lost <= max(0, case.identical - case.counters.cache_read)


@settings(max_examples=60)
@given(agents())
def test_there_is_no_miss_where_all_that_was_cached_was_read(records: list[JsonBody]) -> None:
    for case in iter_cases(requests_of(records)):
        usage = case.before.usage
        if case.alone or usage is None or case.after.usage is None:
            continue
        if case.counters.cache_read >= usage.cache_read + usage.cache_write:
            assert case.lost == 0


@settings(max_examples=40)
@given(agents(), st.integers(0, 8))
def test_a_request_that_shares_nothing_changes_no_verdict(
    records: list[JsonBody], place: int
) -> None:
    place = min(place, len(records))
    stranger = {
        "model": "claude-haiku-4-5",
        "max_tokens": 10,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "What is the capital?"}]}
        ],
    }
    at = records[min(place, len(records) - 1)]["timestamp"]
    other = {"timestamp": at, "request": stranger, "response": None}
    more = [*records[:place], other, *records[place:]]

    def verdicts(rows: list[JsonBody]) -> list[tuple[str, int]]:
        found = []
        for case in iter_cases(requests_of(rows)):
            if case.after.prefix.root != "claude-haiku-4-5":
                found.append((find_causes(case)[0].cause.id, case.lost))
        return found

    assert verdicts(more) == verdicts(records)


@settings(max_examples=40)
@given(agents())
def test_no_number_is_called_reported_that_the_log_does_not_hold(records: list[JsonBody]) -> None:
    """What survives and what is lost are reported where both answers have counters and are just theirs;
    the counters of a replayed request are those of its record."""
    requests = requests_of(records)
    for number in range(2, len(requests) + 1):
        log = Log(requests=tuple(requests[:number]))
        found = diagnose_log(log, (number - 1, number))
        one, two = requests[number - 2].usage, requests[number - 1].usage
        if found.tokens_origin is Origin.REPORTED:
            assert one is not None
            assert two is not None
            assert found.survives == two.cache_read
            assert found.lost in (0, one.cache_read + one.cache_write - two.cache_read)
        else:
            assert one is None or two is None or found.lost != 0
    rows = replay(Log(requests=tuple(requests))).rows
    assert [row.reported for row in rows] == [request.usage for request in requests]
