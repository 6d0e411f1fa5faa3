"""Logs of frameworks and trackers: LiteLLM, OpenAI, flat usage, Inspect, Langfuse, OpenTelemetry."""

from __future__ import annotations

import json
import time
import zipfile
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from ctxdoc.reading.formats import FORMATS
from ctxdoc.reading.formats.shared import tracked_usage, usage
from ctxdoc.reading.formats.shared.answer import read_answer
from ctxdoc.reading.formats.shared.body_kind import OPENAI_BODY
from ctxdoc.reading.load import read_log
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Log, Skipped
from ctxdoc.request.request import Request
from ctxdoc.request.usage import Usage

SAMPLES = Path(__file__).parents[3] / "fixtures" / "formats"
IDS = ("litellm", "openai_chat", "flat", "inspect_ai", "langfuse", "otlp")
NINE = datetime(2026, 11, 20, 9, tzinfo=UTC)
FUNCTION = {"type": "function", "function": {"name": "read_file", "parameters": {}}}
CLAUDE = {"model": "claude-sonnet-4-5", "max_tokens": 9, "system": "You count birds."}
USER = {"role": "user", "content": "How many gulls?"}


def read(form: str, *documents: Any, text: str = "") -> list[Request | Skipped]:
    """What a format reads from a file with these documents, one a line."""
    data = (text or "\n".join(json.dumps(d) for d in documents)).encode()
    return list(FORMATS[form].read(Source("log", BytesIO(data))))


def one(form: str, document: Any) -> Request:
    (found,) = read(form, document)
    assert isinstance(found, Request), found
    return found


def skipped(form: str, document: Any) -> str:
    (found,) = read(form, document)
    assert isinstance(found, Skipped), found
    return found.reason


def claimed(data: bytes) -> str | None:
    """The format that takes a file."""
    return next((f.id for f in FORMATS if f.matches(Source("log", BytesIO(data)))), None)


def parts(found: Usage | None) -> tuple[int, int, int, int, int]:
    assert found is not None
    return (
        found.uncached,
        found.cache_read,
        found.cache_write_5m,
        found.cache_write_1h,
        found.output,
    )


def log_of(form: str) -> Log:
    return read_log([str(next((SAMPLES / form).glob("sample.*")))])


@pytest.mark.parametrize("form", IDS)
def test_a_sample_is_claimed_by_its_own_format(form: str) -> None:
    assert log_of(form).formats == (form,)


@pytest.mark.parametrize(
    ("form", "counters"),
    [
        ("litellm", [(200, 1000, 300, 0, 20)]),
        ("openai_chat", [(476, 1024, 0, 0, 20)]),
        ("flat", [(5, 0, 1200, 0, 20), (5, 1200, 80, 0, 30)]),
        ("inspect_ai", [(5, 1000, 300, 0, 20)]),
        ("langfuse", [(5, 1000, 300, 0, 20)]),
        ("otlp", [(5, 1000, 300, 0, 20), (50, 1300, 0, 0, 30)]),
    ],
)
def test_counters_of_a_sample_do_not_overlap(
    form: str, counters: list[tuple[int, int, int, int, int]]
) -> None:
    assert [parts(request.usage) for request in log_of(form).requests] == counters


@pytest.mark.parametrize("form", [form for form in IDS if form not in ("litellm", "openai_chat")])
def test_a_sample_names_its_session(form: str) -> None:
    assert log_of(form).requests[0].session in ("birds", "Qx7birds")


@pytest.mark.parametrize("form", IDS)
@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.99])
def test_a_cut_file_ends_in_no_exception(form: str, cut: float) -> None:
    data = next((SAMPLES / form).glob("sample.*")).read_bytes()
    found = list(FORMATS[form].read(Source("log", BytesIO(data[: int(len(data) * cut)]))))
    assert any(isinstance(item, Skipped) for item in found)


@pytest.mark.parametrize("form", IDS)
@pytest.mark.parametrize(
    "document", [1, None, "x", [], {}, {"usage": 1}, {"samples": 1}, {"data": [1]}]
)
def test_what_is_no_record_is_skipped(form: str, document: Any) -> None:
    assert all(isinstance(item, Skipped) for item in read(form, document))


@pytest.mark.parametrize("form", IDS)
def test_every_value_of_a_sample_may_be_of_another_kind(form: str) -> None:
    """Each member in turn becomes a number, a text, a list, an object or null."""
    text = next((SAMPLES / form).glob("sample.*")).read_text()
    for line in [text] if text.startswith("{\n") else text.splitlines():
        whole = json.loads(line)
        for holder, key in places(whole):
            kept = holder[key]
            for other in (7, -1, "x", [], {}, [7], {"a": 7}, None, True, 1e300):
                holder[key] = other
                assert read(form, whole)
            holder[key] = kept


def places(value: Any) -> list[tuple[Any, Any]]:
    rows = value.items() if isinstance(value, dict) else enumerate(value)
    return [
        place
        for key, inner in rows
        for place in [(value, key), *(places(inner) if isinstance(inner, dict | list) else [])]
    ]


# --- who claims what


@pytest.mark.parametrize(
    ("document", "form"),
    [
        ({**CLAUDE, "messages": [USER]}, "body"),
        ({"request": {**CLAUDE, "messages": [USER]}}, "native"),
        ({"model": "gpt-4o", "messages": [USER]}, "openai_chat"),
        ({"model": "m", "messages": [{"role": "system", "content": "x"}, USER]}, "openai_chat"),
        ({"model": "m", "messages": [USER], "tools": [FUNCTION]}, "openai_chat"),
        ({"messages": [USER, {"role": "tool", "content": "7"}]}, "openai_chat"),
        ({**CLAUDE, "messages": [{"role": "user", "content": '"role": "tool"'}]}, "body"),
        ({"usage": {"input_tokens": 1}, "model": "m"}, "flat"),
        ({"model": "m", "input_tokens": 1, "output_tokens": 2}, "flat"),
        ({"type": "assistant", "message": {"usage": {"input_tokens": 1}}}, None),
        ({"type": "result", "subtype": "success", "usage": {"input_tokens": 1}}, None),
        ({"request": {"url": "u", "body": {}}, "response": {"usage": {"prompt_tokens": 1}}}, None),
    ],
)
def test_a_format_is_told_by_the_content(document: Any, form: str | None) -> None:
    assert claimed(json.dumps(document).encode()) == form


def test_a_json_line_inside_of_yaml_is_no_openai_log() -> None:
    body = json.dumps({"model": "gpt-4o", "messages": [USER], "tools": [FUNCTION]})
    assert claimed(f"---\nhttp_interactions:\n- body: |\n    {body}\n".encode()) != "openai_chat"


def test_a_log_whose_first_line_is_cut_is_still_claimed() -> None:
    line = json.dumps({"model": "m", "usage": {"input_tokens": 1}})
    assert claimed(f'okens": 7}}}}\n{line}\n'.encode()) == "flat"


# --- litellm


def payload(**more: Any) -> dict[str, Any]:
    """A callback's record, as LiteLLM's page on its logging payload lists the members."""
    return {
        "id": "chatcmpl-1",
        "trace_id": "birds",
        "call_type": "acompletion",
        "model": "claude-sonnet-4-5",
        "startTime": NINE.timestamp(),
        "endTime": NINE.timestamp() + 2,
        "prompt_tokens": 1305,
        "completion_tokens": 20,
        "messages": [USER],
        **more,
    }


ANTHROPIC_AND_TOTAL = {
    "input_tokens": 5,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 1000,
    "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 200},
    "prompt_tokens": 1305,
    "completion_tokens": 20,
}


def test_litellm_counts_the_cached_part_inside_of_prompt_tokens() -> None:
    found = one("litellm", payload(response={"usage": ANTHROPIC_AND_TOTAL}))
    assert parts(found.usage) == (5, 1000, 100, 200, 20)


def test_litellm_counters_may_stand_in_the_metadata() -> None:
    found = one("litellm", payload(metadata={"usage_object": ANTHROPIC_AND_TOTAL}))
    assert parts(found.usage) == (5, 1000, 100, 200, 20)


def test_litellm_totals_alone_know_of_no_cache() -> None:
    assert parts(one("litellm", payload()).usage) == (1305, 0, 0, 0, 20)


def test_litellm_versions_that_leave_the_cached_part_out_contradict_themselves() -> None:
    stated = {**ANTHROPIC_AND_TOTAL, "prompt_tokens": 5}
    found = one("litellm", payload(response={"usage": stated})).usage
    assert found is not None
    assert found.contradiction == (
        "1,000 tokens read and 300 written are more than the prompt of 5"
    )


def test_a_completion_log_notes_the_end_of_the_call() -> None:
    """OpenHands writes `timestamp` when the answer is there; 1795165224.5 is 4.5 s past the hour."""
    (found,) = log_of("litellm").requests
    assert (found.at, found.duration) == (datetime.fromtimestamp(1795165220, UTC), 4.5)


def test_a_completion_log_spells_the_model_in_its_answer() -> None:
    (found,) = log_of("litellm").requests
    assert (found.model, found.cost_reported) == (
        "litellm_proxy/claude-sonnet-4-5",
        Decimal("0.0042"),
    )


def test_litellm_bodies_are_not_those_that_were_sent() -> None:
    found = one("litellm", payload())
    assert (found.body, found.raw, found.notes) == (None, None, (OPENAI_BODY,))


def test_an_answer_from_litellms_own_cache_is_no_call() -> None:
    assert "own cache" in skipped("litellm", payload(cache_hit=True))


@pytest.mark.parametrize("kind", ["aembedding", "image_generation", "rerank"])
def test_litellm_calls_of_other_kinds_are_skipped(kind: str) -> None:
    assert skipped("litellm", payload(call_type=kind)) == f"calls no language model: {kind}"


def test_a_failed_litellm_call_keeps_the_message() -> None:
    failed = payload(status="failure", error_information={"error_message": "overloaded"})
    assert one("litellm", failed).refused == "overloaded"


def test_a_payload_may_stand_inside_of_the_callbacks_arguments() -> None:
    assert one("litellm", {"standard_logging_object": payload()}).session == "birds"


def test_a_completion_log_cut_from_view_is_read_all_the_same() -> None:
    """Its `kwargs` and `response` stand behind more messages than are looked at."""
    long = [{"content": "x" * 100_000, "role": role} for role in ("system", "user", "user")]
    log = {**json.loads((SAMPLES / "litellm/sample.json").read_text()), "messages": long}
    data = json.dumps(log).encode()
    form = claimed(data)
    assert form == "openai_chat"
    (found,) = FORMATS[form].read(Source("log", BytesIO(data)))
    assert isinstance(found, Request)
    assert parts(found.usage) == (200, 1000, 300, 0, 20)


# --- openai_chat


def test_an_openai_body_is_kept_as_bytes_and_not_compared() -> None:
    text = '{"model": "gpt-4o",  "messages": [{"role":"user","content":"hi"}]}'
    (found,) = read("openai_chat", text=text)
    assert isinstance(found, Request)
    assert (found.body, found.notes, found.model) == (None, (OPENAI_BODY,), "gpt-4o")
    assert bytes(found.raw or b"") == text.encode()


def test_an_answer_shows_that_a_body_is_openais() -> None:
    answer = {"usage": {"prompt_tokens": 10, "completion_tokens": 1}}
    pair = {"request": {"model": "m", "messages": [USER]}, "response": answer}
    assert one("openai_chat", pair).body is None


def test_a_messages_body_among_openai_records_is_read_in_full() -> None:
    found = one("openai_chat", {"request": {**CLAUDE, "messages": [USER]}})
    assert found.body is not None


def test_more_cached_than_prompt_tokens_is_kept_and_flagged() -> None:
    answer = {"usage": {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 12}}}
    found = one("openai_chat", {"request": {"messages": [USER]}, "response": answer}).usage
    assert found is not None
    assert (found.uncached, found.cache_read, bool(found.contradiction)) == (0, 12, True)


def test_headers_with_secrets_are_dropped() -> None:
    pair = {"request": {"messages": [USER]}, "headers": {"Authorization": "k", "Host": "h"}}
    assert one("openai_chat", pair).headers == {"host": "h"}


def test_a_refused_call_is_a_request_with_its_error() -> None:
    pair = {
        "request": {"messages": [USER]},
        "response": {"error": {"message": "no"}},
        "status": 400,
    }
    assert one("openai_chat", pair).refused == "no"


# --- flat


def test_flat_fields_of_a_messages_body_are_a_body() -> None:
    tools = [{"name": "b", "input_schema": {"z": 1, "a": 2}}]
    line = {**CLAUDE, "tools": tools, "messages": [USER], "usage": {"input_tokens": 3}}
    found = one("flat", line)
    assert found.body is not None
    assert [json.loads(tool) for tool in map(bytes, found.body.tools or [])] == tools
    assert found.raw is None


def test_flat_fields_of_an_openai_body_are_none() -> None:
    line = {"messages": [USER], "tools": [FUNCTION], "usage": {"prompt_tokens": 3}}
    assert (one("flat", line).body, one("flat", line).notes) == (None, (OPENAI_BODY,))


def test_a_flat_body_that_cannot_be_read_leaves_the_counters() -> None:
    line = {**CLAUDE, "messages": [USER], "tools": 7, "usage": {"input_tokens": 3}}
    found = one("flat", line)
    assert parts(found.usage)[0] == 3
    assert found.notes[0].startswith("body not used")


@pytest.mark.parametrize(("own", "kept"), [("msg_1", "msg_1"), ("birds", None)])
def test_only_the_id_of_an_answer_is_one(own: str, kept: str | None) -> None:
    """Two rows with the same id of another kind would be taken for one call."""
    assert one("flat", {"id": own, "model": "m", "usage": {"input_tokens": 3}}).id == kept


def test_a_broken_counter_is_skipped_with_its_line() -> None:
    good, bad = ({"usage": {"input_tokens": n}} for n in (3, -3))
    found = read("flat", good, bad)
    assert found[1:] == [Skipped("log", 2, "counter 'input_tokens' is no whole number from 0 up")]


# --- inspect_ai


def event(**more: Any) -> dict[str, Any]:
    return {"event": "model", "model": "m", "timestamp": NINE.isoformat(), **more}


def sample(*events: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"id": 3, "epoch": 1, "input": "", "target": "", "messages": []}
    return {**head, "events": list(events), **more}


def counted(**stated: int) -> dict[str, Any]:
    return {"output": {"usage": stated}}


def test_attachments_are_put_back() -> None:
    (found,) = log_of("inspect_ai").requests
    assert found.body is not None
    assert json.loads(bytes(found.body.system))[0]["text"] == "You count birds."


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"input_tokens": 5, "total_tokens": 1325}, (5, 1000, 300, 0, 20)),
        ({"input_tokens": 1305, "total_tokens": 1325}, (5, 1000, 300, 0, 20)),
        ({"input_tokens": 305, "total_tokens": 1325}, (5, 1000, 300, 0, 20)),
        ({"input_tokens": 5}, (5, 1000, 300, 0, 20)),
    ],
)
def test_the_total_tells_what_inspects_input_holds(
    stated: dict[str, int], expected: tuple[int, int, int, int, int]
) -> None:
    cached = {"input_tokens_cache_read": 1000, "input_tokens_cache_write": 300}
    found = one("inspect_ai", sample(event(**counted(**stated, **cached, output_tokens=20))))
    assert parts(found.usage) == expected


def test_an_answer_from_inspects_own_cache_is_no_call() -> None:
    assert "own cache" in skipped("inspect_ai", sample(event(cache="read")))


def test_other_events_are_skipped_by_their_number() -> None:
    found = read("inspect_ai", sample({"event": "tool"}, event(**counted(input_tokens=1))))
    assert [item.line for item in found] == [1, 2]
    assert isinstance(found[0], Skipped)
    assert "'tool'" in found[0].reason


def test_messages_in_the_pool_of_a_sample_are_put_back() -> None:
    call = {"request": CLAUDE, "call_refs": [[0, 1], [2, 3]], "call_key": "messages"}
    messages = [{"role": "user", "content": text} for text in "abc"]
    found = one("inspect_ai", sample(event(call=call), events_data={"calls": messages}))
    assert found.body is not None
    kept = [json.loads(bytes(message))["content"] for message in found.body.messages]
    assert kept == ["a", "c"]


@pytest.mark.parametrize(
    "call",
    [
        {"request": {**CLAUDE, "messages": [{"role": "user", "content": "attachment://gone"}]}},
        {"request": CLAUDE, "call_refs": [[0, 9]]},
        {"request": CLAUDE, "call_refs": [[-1, 1]]},
        {"request": CLAUDE, "call_refs": [7]},
    ],
)
def test_a_request_with_missing_parts_leaves_the_counters(call: dict[str, Any]) -> None:
    found = one("inspect_ai", sample(event(call=call, **counted(input_tokens=3))))
    assert (found.body, parts(found.usage)[0]) == (None, 3)
    assert found.notes[0].startswith("request not used")


def test_an_attachment_named_often_does_not_fill_the_memory() -> None:
    many = [{"role": "user", "content": "attachment://a"}] * 20_000
    call = {"request": {**CLAUDE, "messages": many}}
    start = time.monotonic()
    bomb = sample(event(call=call, **counted(input_tokens=3)), attachments={"a": "x" * 100_000})
    found = one("inspect_ai", bomb)
    assert (found.body, time.monotonic() - start < 20) == (None, True)


def test_an_archive_has_a_sample_in_each_member(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        for name, document in {
            "header.json": {"version": 2, "eval": {"task": "t", "model": "m"}},
            "samples/1_epoch_1.json": sample(event(**counted(input_tokens=3)), uuid="u1"),
            "samples/2_epoch_1.json": sample(event(**counted(input_tokens=4))),
            "summaries.json": [{"id": 3, "epoch": 1, "input": "", "target": ""}],
        }.items():
            archive.writestr(name, json.dumps(document))
    log = read_log([str(path)])
    assert [request.session for request in log.requests] == ["u1", "sample 3 epoch 1"]
    assert log.requests[0].source == f"{path}::samples/1_epoch_1.json"
    assert [item.reason for item in log.skipped] == [
        "a log's head or summary: it holds no events"
    ] * 2


# --- langfuse


def row(**more: Any) -> dict[str, Any]:
    head = {"id": "o", "traceId": "t", "type": "GENERATION", "startTime": NINE.isoformat()}
    return {**head, "usageDetails": {"input": 3, "output": 1}, **more}


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"input": 86, "input_cached_tokens": 17817, "output": 188, "total": 18091},
         (86, 17817, 0, 0, 188)),
        ({"input": 17903, "input_cached_tokens": 17817, "output": 188, "total": 18091},
         (86, 17817, 0, 0, 188)),
        ({"input": 305, "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 300,
          "output": 20, "total": 1325}, (5, 1000, 300, 0, 20)),
        ({"input": 5, "input_cache_creation_5m": 100, "input_cache_creation_1h": 200,
          "output": 20}, (5, 0, 100, 200, 20)),
        ({"input": 5, "input_audio_tokens": 7, "output": 20, "output_reasoning_tokens": 30},
         (12, 0, 0, 0, 50)),
        ({"input": 5, "output": 50, "output_reasoning_tokens": 30, "total": 55},
         (5, 0, 0, 0, 50)),
        ({"input": 5, "output": 2, "searches": 10, "total": 17}, (5, 0, 0, 0, 2)),
        ({"input_tokens": 5, "cache_read_input_tokens": 1000, "output_tokens": 2},
         (5, 1000, 0, 0, 2)),
    ],
)  # fmt: skip
def test_langfuse_buckets_stand_apart_unless_their_total_says_otherwise(
    stated: dict[str, int], expected: tuple[int, int, int, int, int]
) -> None:
    found = one("langfuse", row(usageDetails=stated)).usage
    assert parts(found) == expected
    assert found is not None
    assert not found.contradiction


def test_a_langfuse_total_that_nothing_adds_up_to_is_flagged() -> None:
    found = one("langfuse", row(usageDetails={"input": 5, "output": 2, "total": 9})).usage
    assert found is not None
    assert found.contradiction == "total 9 is not the sum of its parts 7"


@pytest.mark.parametrize(
    ("unit", "counters"), [("TOKENS", (5, 0, 0, 0, 2)), ("CHARACTERS", None), (None, None)]
)
def test_old_langfuse_counters_have_a_unit_and_costs_beside_them(
    unit: str | None, counters: tuple[int, ...] | None
) -> None:
    """Counters of another unit are none of tokens."""
    costs = {"inputCost": 0.1, "outputCost": None, "totalCost": 0.1}
    stated = {"input": 5, "output": 2, "total": 7, "unit": unit, **costs}
    (found,) = read("langfuse", row(usageDetails=None, usage=stated))
    if counters is None:
        assert isinstance(found, Skipped)
    else:
        assert isinstance(found, Request)
        assert parts(found.usage) == counters


def test_a_blob_storage_row_has_snake_case_names_and_utc_times() -> None:
    stated = {
        "id": "o",
        "trace_id": "t",
        "type": "GENERATION",
        "start_time": "2026-11-20 09:00:00.000000",
        "end_time": "2026-11-20 09:00:02.000000",
        "session_id": "birds",
        "provided_model_name": "claude-sonnet-4-5",
        "usage_details": {"input": 3, "output": 1, "total": 4},
        "cost_details": {},
        "total_cost": 0.5,
    }
    assert claimed(json.dumps(stated).encode()) == "langfuse"
    found = one("langfuse", stated)
    assert (found.at, found.duration, found.session) == (NINE, 2.0, "birds")
    assert (found.model, found.cost_reported) == ("claude-sonnet-4-5", Decimal("0.5"))


def test_a_page_with_the_newest_first_is_turned_round() -> None:
    late, early = row(id="b", startTime="2026-11-20T10:00:00Z"), row(id="a")
    found = read("langfuse", {"data": [late, early], "meta": {}})
    assert [(item.id, item.line) for item in found if isinstance(item, Request)] == [
        ("a", 2),
        ("b", 1),
    ]


def test_a_trace_gives_its_session_to_its_observations() -> None:
    trace = {"id": "t", "sessionId": "birds", "observations": [row()]}
    assert claimed(json.dumps(trace).encode()) == "langfuse"
    assert one("langfuse", trace).session == "birds"


def test_other_observations_are_skipped() -> None:
    reason = "an observation of the type SPAN, no call of a model"
    assert skipped("langfuse", row(type="SPAN")) == reason


def test_a_whole_body_given_as_input_is_used() -> None:
    found = one("langfuse", row(input=json.dumps({**CLAUDE, "messages": [USER]})))
    assert found.body is not None


def test_a_list_of_messages_given_as_input_is_no_body() -> None:
    found = one("langfuse", row(input=[USER]))
    assert (found.body, len(found.notes)) == (None, 1)


# --- otlp


def export(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def span(id: str = "1", parent: str = "", **stated: Any) -> dict[str, Any]:  # noqa: A002
    def value(it: Any) -> dict[str, Any]:
        return {"intValue": str(it)} if isinstance(it, int) else {"stringValue": it}

    rows = [{"key": name.replace("__", "."), "value": value(it)} for name, it in stated.items()]
    return {"spanId": id, "parentSpanId": parent, "name": "call", "attributes": rows}


TOKENS = {"gen_ai.usage.input_tokens": 1305, "gen_ai.usage.output_tokens": 20}


@pytest.mark.parametrize("read_name", tracked_usage.OTEL_READ)
@pytest.mark.parametrize("written_name", tracked_usage.OTEL_WRITTEN)
def test_the_otel_input_holds_both_cached_parts(read_name: str, written_name: str) -> None:
    found = one("otlp", export(span(**TOKENS, **{read_name: 1000, written_name: 300})))
    assert parts(found.usage) == (5, 1000, 300, 0, 20)


def test_anthropics_own_input_in_a_trace_is_flagged() -> None:
    stated = {**TOKENS, "gen_ai.usage.input_tokens": 5, "gen_ai.usage.cache_read.input_tokens": 9}
    found = one("otlp", export(span(**stated))).usage
    assert found is not None
    assert found.contradiction == "9 tokens read are more than the prompt of 5"


def test_otlp_numbers_may_be_numbers() -> None:
    stated = {"key": "gen_ai.usage.input_tokens", "value": {"intValue": 7}}
    found = one("otlp", export({"spanId": "1", "attributes": [stated]}))
    assert parts(found.usage)[0] == 7


def test_a_trace_span_around_calls_is_their_sum() -> None:
    """The outer one names no operation; the step between has no counters."""
    found = read("otlp", export(span("1", **TOKENS), span("2", "1"), span("3", "2", **TOKENS)))
    assert [isinstance(item, Request) for item in found] == [False, False, True]
    assert isinstance(found[0], Skipped)
    assert "their sum" in found[0].reason


@pytest.mark.parametrize("operation", ["invoke_agent", "execute_tool", "embeddings"])
def test_other_operations_are_skipped(operation: str) -> None:
    stated = {"gen_ai.operation.name": operation, **TOKENS}
    assert skipped("otlp", export(span(**stated))) == f"no call of a model: {operation}"


def test_trace_spans_that_name_each_other_as_parents_end() -> None:
    found = read("otlp", export(span("1", "2", **TOKENS), span("2", "1", **TOKENS)))
    assert len(found) == 2


def test_times_of_a_trace_span_are_nanoseconds() -> None:
    found = log_of("otlp").requests[0]
    assert (found.at, found.duration) == (datetime.fromtimestamp(1795165200, UTC), 2.0)


def test_a_trace_without_conversation_is_its_own_session() -> None:
    assert one("otlp", export({**span(**TOKENS), "traceId": "t"})).session == "t"


def test_a_failed_trace_span_keeps_the_message() -> None:
    failed = {**span(**{"gen_ai.operation.name": "chat"}), "status": {"code": 2, "message": "no"}}
    assert one("otlp", export(failed)).refused == "no"


def test_messages_of_the_convention_are_no_body() -> None:
    found = log_of("otlp").requests[0]
    assert (found.body, len(found.notes)) == (None, 1)


def test_a_whole_body_in_an_attribute_is_used() -> None:
    stated = {"input.value": json.dumps({**CLAUDE, "messages": [USER]}), **TOKENS}
    assert one("otlp", export(span(**stated))).body is not None


def test_a_number_of_more_than_64_bits_is_skipped() -> None:
    stated = {"gen_ai.usage.input_tokens": 10**30}
    assert "64 bits" in skipped("otlp", export(span(**stated)))


def test_trace_spans_are_numbered_through_the_lines() -> None:
    found = read("otlp", export(span(**TOKENS), span("2", **TOKENS)), export(span("3", **TOKENS)))
    assert [item.line for item in found] == [1, 2, 3]


def usage_parts(**stated: Any) -> tuple[int, ...]:
    found = usage.any_of(stated)
    assert found is not None
    return parts(found)


@pytest.mark.parametrize(
    "stated",
    [
        # 8,192 of 9,000 were read, wherever it stands (providers' pages, 2026-11-30)
        {"prompt_tokens": 9000, "completion_tokens": 7, "cached_tokens": 8192},
        {
            "prompt_tokens": 9000,
            "completion_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 8192},
        },
        {
            "prompt_tokens": 9000,
            "completion_tokens": 7,
            "prompt_cache_hit_tokens": 8192,
            "prompt_cache_miss_tokens": 808,
        },
        {"completion_tokens": 7, "prompt_cache_hit_tokens": 8192, "prompt_cache_miss_tokens": 808},
        {"prompt_tokens": 9000, "completion_tokens": 7, "num_cached_tokens": 8192},
        {"input_tokens": 9000, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 8192}},
        {
            "input_tokens": 9000,
            "output_tokens": 7,
            "prompt_tokens_details": {"cached_tokens": 8192},
        },
        {"promptTokenCount": 9000, "candidatesTokenCount": 7, "cachedContentTokenCount": 8192},
        {"total_input_tokens": 9000, "total_output_tokens": 7, "total_cached_tokens": 8192},
        {"inputTokens": 9000, "outputTokens": 7, "cachedInputTokens": 8192},
        {"inputTokens": 9000, "outputTokens": 7, "inputTokenDetails": {"cacheReadTokens": 8192}},
        {"tokens": {"input_tokens": 9000, "output_tokens": 7}, "cached_tokens": 8192},
        # both spellings of one number
        {
            "prompt_tokens": 9000,
            "completion_tokens": 7,
            "cached_tokens": 8192,
            "prompt_tokens_details": {"cached_tokens": 8192},
        },
        # beside the input: Anthropic, and Bedrock's Converse
        {"input_tokens": 808, "output_tokens": 7, "cache_read_input_tokens": 8192},
        {"inputTokens": 808, "outputTokens": 7, "cacheReadInputTokens": 8192},
    ],
    ids=" ".join,
)
def test_the_cached_part_is_found_where_each_provider_keeps_it(stated: dict[str, Any]) -> None:
    assert usage_parts(**stated) == (808, 8192, 0, 0, 7)


def test_writes_of_an_explicit_cache_are_inside_the_prompt() -> None:
    """Qwen: 1,500 of 2,000 were written for five minutes."""
    details = {
        "cached_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 1500},
        "cache_creation_input_tokens": 1500,
    }
    assert usage_parts(prompt_tokens=2000, completion_tokens=7, prompt_tokens_details=details) == (
        500,
        0,
        1500,
        0,
        7,
    )


def test_a_stream_may_keep_its_counters_in_the_choice() -> None:
    """Kimi's last event."""
    stated = {"prompt_tokens": 9000, "completion_tokens": 7, "cached_tokens": 8192}
    events = [{"id": "c", "choices": [{"delta": {}}]}, {"choices": [{"usage": stated}]}]
    response = read_answer("".join(f"data: {json.dumps(event)}\n\n" for event in events))
    assert response is not None
    assert response.usage is not None
    assert parts(response.usage) == (808, 8192, 0, 0, 7)


def test_more_read_than_the_prompt_has_is_flagged_and_kept() -> None:
    found = usage.any_of(
        {
            "prompt_tokens": 249,
            "completion_tokens": 4,
            "prompt_tokens_details": {"cached_tokens": 416},
        }
    )
    assert found is not None
    assert (found.cache_read, found.contradiction) == (
        416,
        "416 tokens read are more than the prompt of 249",
    )
