"""A Messages API that bills by the published cache rules and shares no code with ctxdoc.

Rules: prompt-caching page, 2026-10-08. Tokens: one for every four characters of a block's compact
JSON, rounded up.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

Body = dict[str, Any]
LIVES = {"5m": 300, "1h": 3600}


def text_of(value: Any) -> str:
    """Compact JSON without breakpoints."""
    return json.dumps(_bare(value), separators=(",", ":"), ensure_ascii=False)


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        return [_bare(v) for v in value]
    return value


def blocks_of(body: Body) -> Iterator[tuple[str, str, dict[str, Any] | None]]:
    """Kind, text and breakpoint of every block in render order."""
    for tool in body.get("tools", []):
        yield "tool", text_of(tool), tool.get("cache_control")
    system = body.get("system", [])
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    for block in system:
        yield "system", text_of(block), block.get("cache_control")
    for message in body["messages"]:
        content = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        for block in content:
            kind = block["type"]
            yield kind, message["role"] + text_of(block), block.get("cache_control")


def sizes_of(body: Body) -> list[tuple[str, int]]:
    """Text and tokens of every block in render order."""
    return [(text, math.ceil(len(text) / 4)) for _, text, _ in blocks_of(body)]


class StandIn:
    """The cache of one account; `answer` bills one request."""

    def __init__(
        self,
        minimum: int = 1024,
        lookback: int = 20,
        ready: float = 1.0,
        count: Callable[[str], int] = lambda text: math.ceil(len(text) / 4),
    ) -> None:
        self.count = count
        self.minimum = minimum
        self.lookback = lookback
        self.ready = ready
        self.hits: list[int] = []
        """Blocks that each request read, in order."""
        self.entries: dict[tuple[str, ...], tuple[float, float, str]] = {}

    def answer(self, body: Body, now: float) -> dict[str, Any]:
        """The usage of a request that starts at `now`, in seconds."""
        rows = list(blocks_of(body))
        keys, ends, places = [], [], []
        total = place = 0
        last = ""
        ahead = len(list(blocks_of({**body, "messages": []})))
        # Images coming or going lose the messages (prompt-caching page, what invalidates the cache).
        pictured = "images" if any('"type":"image"' in text for _, text, _ in rows) else ""
        for kind, text, _ in rows:
            total += self.count(text)
            if kind != last or kind not in ("tool_use", "tool_result"):
                place += 1
            last = kind
            above = pictured if len(keys) >= ahead else ""
            keys.append((body["model"], above, *(t for _, t, _ in rows[: len(keys) + 1])))
            ends.append(total)
            places.append(place)
        marks = [
            (i, (mark.get("ttl") or "5m"))
            for i, (_, _, mark) in enumerate(rows)
            if mark is not None
        ]
        if "cache_control" in body:
            # Automatic caching: the last block that can carry a breakpoint.
            able = [i for i, (kind, _, _) in enumerate(rows) if "thinking" not in kind]
            marks = sorted({*marks, (able[-1], body["cache_control"].get("ttl") or "5m")})
        hit = self._hit(keys, places, [i for i, _ in marks], now)
        self.hits.append(hit + 1)
        read = ends[hit] if hit >= 0 else 0
        if hit >= 0:
            ready, _, ttl = self.entries[keys[hit]]
            self.entries[keys[hit]] = (ready, now + LIVES[ttl], ttl)
        new = [(i, ttl) for i, ttl in marks if i > hit and ends[i] >= self.minimum]
        hours = [ends[i] for i, ttl in new if ttl == "1h"]
        hour_end = max(hours, default=read)
        end = max((ends[i] for i, _ in new), default=read)
        for i, ttl in new:
            self.entries[keys[i]] = (now + self.ready, now + LIVES[ttl], ttl)
        return {
            "input_tokens": total - end,
            "cache_creation_input_tokens": end - read,
            "cache_read_input_tokens": read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": end - hour_end,
                "ephemeral_1h_input_tokens": hour_end - read,
            },
            "output_tokens": 80,
        }

    def _hit(
        self, keys: list[tuple[str, ...]], places: list[int], marks: list[int], now: float
    ) -> int:
        best = -1
        for mark in marks:
            for i in range(mark, -1, -1):
                if places[mark] - places[i] >= self.lookback:
                    break
                ready, end, _ = self.entries.get(keys[i], (0.0, 0.0, ""))
                if ready <= now < end:
                    best = max(best, i)
                    break
        return best
