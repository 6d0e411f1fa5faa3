"""Headers as recorders keep them: three ways to write one thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.reading.formats.shared.headers import header, kept_headers, session_of
from ctxdoc.request.request import KEPT_HEADERS

NAMES = st.sampled_from(
    [*sorted(KEPT_HEADERS), "X-Api-Key", "Authorization", "Cookie", "Date", "HOST", "set-cookie"]
)
PLAIN = st.dictionaries(NAMES, st.text(max_size=9), max_size=5).filter(
    lambda headers: len({name.lower() for name in headers}) == len(headers)
)


def spellings(headers: dict[str, str]) -> list[Any]:
    """The same headers in each of the ways."""
    return [
        headers,
        {name: [value, "another"] for name, value in headers.items()},
        [[name, value] for name, value in headers.items()],
        [{"name": name, "value": value} for name, value in headers.items()],
    ]


@given(PLAIN)
def test_each_spelling_keeps_the_same_headers(headers: dict[str, str]) -> None:
    kept = {n.lower(): v for n, v in headers.items() if n.lower() in KEPT_HEADERS}
    for spelled in spellings(headers):
        assert kept_headers(spelled) == kept


@given(PLAIN, NAMES)
def test_each_spelling_gives_the_same_header(headers: dict[str, str], name: str) -> None:
    wanted = {n.lower(): v for n, v in headers.items()}.get(name.lower(), "")
    for spelled in spellings(headers):
        assert header(spelled, name.lower()) == wanted


@pytest.mark.parametrize("name", ["x-api-key", "authorization", "cookie", "set-cookie"])
def test_no_header_with_a_secret_is_kept(name: str) -> None:
    for spelled in spellings({name: "s3cr3t", name.title(): "s3cr3t"}):
        assert kept_headers(spelled) == {}


@pytest.mark.parametrize(
    "odd",
    [None, 5, "host: a", [1], [["host"]], [["host", "a", "b"]], [{"name": 5, "value": "a"}],
     [{"value": "a"}], {"host": 5}, {"host": []}, {"host": [None]}, [None], [[["host"], "a"]]],
)  # fmt: skip
def test_what_is_no_header_is_passed_over(odd: Any) -> None:
    assert kept_headers(odd) == {}
    assert header(odd, "host") == ""


@pytest.mark.parametrize(
    ("headers", "user", "session"),
    [
        ({"X-Claude-Code-Session-Id": "h"}, "user_1_session_u", "h"),
        ({}, "user_1_account__session_u", "u"),
        ({}, '{"device_id": "d", "session_id": "j"}', "j"),
        ({}, '{"device_id": "d"}', ""),
        ({}, "somebody", ""),
        ({}, 5, ""),
        (None, None, ""),
    ],
)
def test_claude_code_names_its_session(headers: Any, user: Any, session: str) -> None:
    assert session_of(headers, {"metadata": {"user_id": user}}) == session


@pytest.mark.parametrize("values", [None, [], "x", {}, {"metadata": None}, {"metadata": []}])
def test_a_body_without_metadata_names_no_session(values: Any) -> None:
    assert session_of({}, values) == ""
