"""Requests and prompts made in a line, for tests of what is rendered, cached and measured."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec

from ctxdoc.prompt.prefix import Prefix
from ctxdoc.prompt.render import render
from ctxdoc.prompt.segments import Segment
from ctxdoc.request.request import Body, Request, Section
from ctxdoc.request.response import Response
from ctxdoc.request.usage import Origin, Usage
from ctxdoc.tokens.ledger import Sizes
from tests.support.sessions import START

MODEL = "claude-sonnet-4-5"
"""Its smallest cacheable prompt is 1,024 tokens (facts 1.6)."""


def sent(
    messages: list[dict[str, Any]], *, seconds: float | None = 0, usage: Usage | None = None,
    session: str = "", source: str = "log", agent: str = "", **more: Any,
) -> Request:  # fmt: skip
    """A request with a body of these messages, so many seconds after the start of the log."""
    body = {"model": MODEL, "messages": messages, **more}
    at: datetime | None = None if seconds is None else START + timedelta(seconds=seconds)
    return Request(
        source=source,
        line=1,
        model=body["model"],
        body=msgspec.json.decode(json.dumps(body), type=Body),
        at=at,
        session=session,
        headers={"user-agent": agent} if agent else {},
        response=Response(usage=usage) if usage is not None else None,
    )


def said(role: str, *texts: str) -> dict[str, Any]:
    """A message of text blocks."""
    return {"role": role, "content": [{"type": "text", "text": text} for text in texts]}


def talk(*texts: str) -> list[dict[str, Any]]:
    """Messages of one text each, of the user and the assistant in turn."""
    return [said(("user", "assistant")[i % 2], text) for i, text in enumerate(texts)]


def prompt(messages: list[dict[str, Any]], **more: Any) -> Prefix:
    """The prompt of such a request."""
    return render(sent(messages, **more))


def block(kind: str, index: int, ttl: str | None = None) -> Segment:
    """A block of a kind, or a setting, in a message of its own."""
    return Segment(
        section=Section.SETTINGS if kind == "setting" else Section.MESSAGES,
        level=Section.MESSAGES,
        kind=kind,
        pointer=f"$.messages[{index}]",
        rank=(13, index, 0),
        digest=b"%d" % index,
        size=1,
        ttl=ttl,
    )


def sizes(*upto: int) -> Sizes:
    """Tokens up to each segment, as if they were known."""
    return Sizes(upto=upto, total=upto[-1], origin=Origin.REPORTED)


def counters(read: int, written: int, rest: int, hour: int = 0) -> Usage:
    """The counters of an answer."""
    return Usage(uncached=rest, cache_read=read, cache_write_5m=written, cache_write_1h=hour)
