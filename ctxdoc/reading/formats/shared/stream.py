"""Streamed answers: the events of one, put together as it would have come in one piece."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ctxdoc.reading.formats.shared.blocks import Blocks

DATA = re.compile(r"^data:[ \t]?(.*)$", re.MULTILINE)
Values = Mapping[str, Any]
STATED = (
    "id",
    "model",
    "error",
    "diagnostics",
    "context_management",
    "input_transformations",
)
"""Members of a streamed answer that stand in its first or in its last event."""


def merged_answer(data: bytes) -> dict[str, Any] | None:
    """An answer, whole or streamed, as one object; None for a stream without any event.

    Raises ValueError for what is neither JSON nor a stream of events.
    """
    if data.lstrip()[:1] == b"{":
        found = msgspec.json.decode(data)
        return found if isinstance(found, dict) else None
    return merged(events_of(data.decode("utf-8", "replace")))


def events_of(text: str) -> Iterator[Values]:
    """The events of a stream that are objects; raises ValueError for what is no stream."""
    if not DATA.search(text):
        raise ValueError("the answer is neither JSON nor a stream of events")
    return _events(text)


def _events(text: str) -> Iterator[Values]:
    for found in DATA.finditer(text.replace("\r\n", "\n")):
        if found[1].startswith("{"):
            try:
                event = msgspec.json.decode(found[1])
            # A recording that was broken off ends in half an event.
            except msgspec.DecodeError:
                continue
            if isinstance(event, dict):
                yield event


def merged(events: Iterable[Values]) -> dict[str, Any] | None:
    """The events as one answer; None where they say nothing."""
    stream = _Stream()
    for event in events:
        stream.add(event)
    return stream.answer()


class _Stream:
    """An answer, as far as its events have come."""

    def __init__(self) -> None:
        self._whole: dict[str, Any] = {}
        self._counters: dict[str, Any] = {}
        self._blocks = Blocks()

    def add(self, event: Values) -> None:
        """Takes an event in: the last value that is not null wins."""
        self._blocks.add(event)
        part = _part(event)
        # The type of an event is not that of the answer, but for an error, which is both.
        names = STATED if part is event else (*STATED, "type")
        self._whole.update((name, part[name]) for name in names if part.get(name) is not None)
        # A stream may fail after its start: what was counted up to there is billed.
        if event.get("type") == "error":
            self._whole["type"] = "error"
        # message_delta repeats totals and has no split by lifetime: that of the start stays (facts).
        for stated in (*_counters(part), *_counters(event)):
            self._counters.update((k, v) for k, v in stated.items() if v is not None)
        bedrock = event.get("amazon-bedrock-invocationMetrics")
        if isinstance(bedrock, Mapping) and not self._counters:
            self._whole["metrics"] = bedrock

    def answer(self) -> dict[str, Any] | None:
        """The whole answer."""
        if not self._whole and not self._counters:
            return None
        return {**self._whole, "usage": self._counters, "content": self._blocks.content()}


def _part(event: Values) -> Values:
    """The answer that an event holds: Anthropic's first one, and those of OpenAI's responses."""
    for name in ("message", "response"):
        if isinstance(event.get(name), dict):
            inner: dict[str, Any] = event[name]
            return inner
    return event


def _counters(holder: Values) -> Iterator[Values]:
    for stated in (holder.get("usage") or usage_of_choice(holder), holder.get("usageMetadata")):
        if isinstance(stated, Mapping):
            yield stated


def usage_of_choice(answer: Values) -> Any:
    """The counters in the first choice, where a stream of Kimi's has them."""
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first.get("usage") if isinstance(first, Mapping) else None
