"""Requests, responses and counters: what they say of themselves."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from ctxdoc.request.log import HEADERS, Log, Trait, missing_of
from ctxdoc.request.request import KEPT_HEADERS, Body, Event, MarkedMessage, Request, platform_of
from ctxdoc.request.response import NULL, Response, has_server_blocks, is_server_block
from ctxdoc.request.usage import Pass, Usage

BODY = Body(messages=(Raw(b'{"role":"user","content":"x"}'),))
COUNT = st.integers(0, 10**10)


def request(**more: Any) -> Request:
    return Request(**{"source": "a", "line": 1, "model": "m", "body": None, **more})


def usage(uncached: int = 1, read: int = 2, written: int = 3, output: int = 0) -> Usage:
    return Usage(
        uncached=uncached, cache_read=read, cache_write_5m=written, cache_write_1h=0, output=output
    )


@given(COUNT, COUNT, COUNT, COUNT)
def test_the_input_is_the_sum_of_parts_that_do_not_overlap(
    uncached: int, read: int, short: int, long: int
) -> None:
    one = Usage(uncached=uncached, cache_read=read, cache_write_5m=short, cache_write_1h=long)
    assert one.input == uncached + read + short + long
    assert one.input == sum(one.prompt_parts)
    assert one.cache_write == short + long


@pytest.mark.parametrize(
    ("kind", "extra"),
    [("message", False), ("fallback_message", False), ("compaction", True), ("advisor_message", True)],
)  # fmt: skip
def test_passes_of_other_models_are_outside_of_the_counters(kind: str, extra: bool) -> None:
    one = Pass(kind=kind, usage=usage())
    assert one.is_extra is extra
    found = Response(passes=(one,))
    assert found.extra_passes == ((one,) if extra else ())
    assert found.prompt_passes == ((one.usage,) if kind == "message" else ())


class TestSameResponse:
    """Two records of one response."""

    ONE = request(response=Response(id="msg_1", usage=usage()))

    def test_the_id_tells(self) -> None:
        assert self.ONE.is_same_response(self.ONE)
        other = replace(self.ONE, response=Response(id="msg_2", usage=usage()))
        assert not self.ONE.is_same_response(other)

    @pytest.mark.parametrize("name", ["", "msg_REDACTED", "<redacted>"])
    def test_an_id_that_names_none_does_not(self, name: str) -> None:
        one = replace(self.ONE, response=Response(id=name, usage=usage()))
        assert not one.is_same_response(one)

    @pytest.mark.parametrize(
        ("source", "body", "same"),
        [
            # A transcript counts up while the answer streams; two files or two bodies are two calls.
            ("a", None, True),
            ("b", None, False),
            ("a", BODY, False),
            ("b", BODY, False),
        ],
    )
    def test_other_counters_make_another_one_but_in_a_transcript(
        self, source: str, body: Body | None, same: bool
    ) -> None:
        one = replace(self.ONE, body=body)
        for part in range(3):
            parts = [1, 2, 3]
            parts[part] += 1
            answer = Response(id="msg_1", usage=usage(*parts))
            assert one.is_same_response(replace(one, source=source, response=answer)) is same

    @pytest.mark.parametrize("source", ["a", "b"])
    def test_the_output_and_missing_counters_tell_nothing(self, source: str) -> None:
        for counters in (usage(output=9), None):
            other = request(source=source, response=Response(id="msg_1", usage=counters))
            assert self.ONE.is_same_response(other)
            assert other.is_same_response(self.ONE)


@given(st.lists(st.sampled_from(Event)))
def test_the_weightiest_event_is_the_one_that_stands_first(events: list[Event]) -> None:
    order = list(Event)
    wanted = min(events, key=order.index) if events else None
    assert request(events=tuple(events)).event is wanted


@given(st.binary(max_size=20), st.binary(max_size=5), st.integers(0, 20))
def test_a_marked_message_is_put_together_as_it_was_sent(data: bytes, mark: bytes, at: int) -> None:
    at = min(at, len(data))
    assert bytes(MarkedMessage(data, at, mark)) == data[:at] + mark + data[at:]


@pytest.mark.parametrize(
    ("model", "platform"),
    [
        ("claude-sonnet-4-5", "Claude API"),
        ("claude-opus-4-1@20250805", "Google Cloud"),
        ("anthropic.claude-sonnet-4-5-20250929-v1:0", "Bedrock"),
        ("eu.anthropic.claude-sonnet-4-5", "Bedrock"),
        ("arn:aws:bedrock:eu-central-1::x", "Bedrock"),
        ("gpt-5", ""),
        ("", ""),
    ],
)
def test_the_platform_is_told_by_the_spelling_of_the_model(model: str, platform: str) -> None:
    assert platform_of(model) == platform
    headers = {"host": "h", "anthropic-beta": "b"}
    known = (("platform", platform),) if platform else ()
    assert request(model=model, headers=headers).scope == (*known, ("host", "h"))


def test_no_kept_header_can_hold_a_secret() -> None:
    words = ("key", "auth", "cookie", "token", "secret")
    assert not [name for name, word in product(KEPT_HEADERS, words) if word in name]


def test_what_a_simulation_wrote_is_never_taken_for_the_apis() -> None:
    simulated = Response(usage=usage())
    alone = request(simulated=simulated)
    assert (alone.usage, alone.simulated_usage) == (None, simulated.usage)
    beside = request(simulated=simulated, response=Response())
    assert (beside.usage, beside.simulated_usage) == (None, None)


@pytest.mark.parametrize(
    ("kind", "is_server"),
    [
        ("text", False),
        ("tool_use", False),
        ("tool_result", False),
        ("server_tool_use", True),
        ("mcp_tool_use", True),
        ("mcp_tool_result", True),
        ("web_search_tool_result", True),
        ("compaction", True),
    ],
)
def test_blocks_of_the_api_itself_are_told_by_their_type(kind: str, is_server: bool) -> None:
    assert is_server_block(kind) is is_server
    assert has_server_blocks(Raw(f'[{{"type":"text"}},{{"type":"{kind}"}}]'.encode())) is is_server
    inside = f'[{{"type":"text","text":"\\"{kind}\\""}}]'
    assert not has_server_blocks(Raw(inside.encode()))


@pytest.mark.parametrize(
    "content", [b"null", b"[]", b"{}", b'"compaction"', b'["compaction"]', b"["]
)
def test_what_is_no_list_of_blocks_has_none_of_the_apis(content: bytes) -> None:
    assert not has_server_blocks(Raw(content))


class TestMissing:
    """What a log cannot tell, in a line each."""

    WHOLE = request(
        body=BODY, raw=Raw(b"{}"), at=None, response=Response(usage=usage(), content=NULL)
    )

    def lines(self, *requests: Request, traits: frozenset[Trait] = frozenset()) -> tuple[str, ...]:
        return missing_of(Log(requests=requests, traits=traits))

    def test_headers_are_missing_unless_every_format_has_them(self) -> None:
        assert self.lines(self.WHOLE)[0] == HEADERS
        assert HEADERS not in self.lines(self.WHOLE, traits=frozenset({Trait.HEADERS}))

    @pytest.mark.parametrize(("lacking", "whole"), [(1, 1), (1, 3), (2, 3), (0, 2)])
    def test_the_number_of_requests_is_said_where_some_have_it(
        self, lacking: int, whole: int
    ) -> None:
        without = replace(self.WHOLE, response=None)
        found = self.lines(*[without] * lacking, *[self.WHOLE] * (whole - lacking))
        lines = [line for line in found if "no counters" in line]
        assert len(lines) == (lacking > 0)
        counted = f"{lacking} of {whole} requests: " if lacking < whole else ""
        assert all(line.startswith(f"{counted}no counters") for line in lines)

    def test_a_body_as_the_recorder_parsed_it_is_not_the_exact_one(self) -> None:
        parsed = replace(self.WHOLE, raw=None)
        assert any("bodies as the recorder parsed them" in line for line in self.lines(parsed))
        for exact in (self.WHOLE, replace(parsed, exact=True), replace(parsed, body=None)):
            assert not any("as the recorder parsed" in line for line in self.lines(exact))

    def test_the_five_most_frequent_notes_stand_at_the_end(self) -> None:
        notes = [("a",) * 3, ("b", "a"), ("c", "d", "e", "f", "b")]
        found = self.lines(*(replace(self.WHOLE, notes=each) for each in notes))
        assert found[-5:-3] == ("4 x a", "2 x b")
        assert [line[:4] for line in found[-3:]] == ["1 x "] * 3
