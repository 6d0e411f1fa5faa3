"""Token counts from the API, for prompts of which a log has no counters; kept on disk by a hash of what was
counted.

Counting is free and has a limit of its own a minute (token-counting page, 2026-10-08); it is an estimate of the
API's, and closer than characters. The anthropic SDK sends; it reads the key from the environment.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ctxdoc.live.double_send import Client
from ctxdoc.providers import are_rules_known
from ctxdoc.request import codec
from ctxdoc.request.codec import Json
from ctxdoc.request.log import Log
from ctxdoc.request.request import Body, Request

PATH = "/v1/messages/count_tokens"
PER_MINUTE = 1_000
"""Requests: half of the smallest limit."""
TRIES = 3
LONGEST_WAIT = 120.0
"""Seconds that a Retry-After is obeyed."""
USUAL_WAIT = 5.0
COUNTED = ("system", "tools", "tool_choice", "thinking", "mcp_servers", "output_config")
"""What counts beside model and messages."""


def cache_path() -> Path:
    """Where counts are kept: no text, hashes and numbers."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "ctxdoc" / "token_counts.sqlite"


class TokenCounter:
    """Asks the API how many tokens a prompt has, once for each prompt."""

    def __init__(
        self,
        client: Client,
        path: Path,
        *,
        per_minute: int = PER_MINUTE,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Opens the counts on disk; where that is not possible they are kept for this run only."""
        self._client = client
        self._sleep, self._clock = sleep, clock
        self._apart = 60.0 / per_minute
        self._next = 0.0
        self.asked = 0
        self.known = 0
        """Counts that were on disk."""
        self.refused = 0
        """Prompts that the API does not count."""
        self.stopped = ""
        """Why nothing more is asked; empty while it is."""
        self._unknown: set[str] = set()
        """Models that the API does not know."""
        self._failures = 0
        self._store = _opened(path)

    def close(self) -> None:
        """Closes the counts on disk."""
        self._store.close()

    def count(self, body: dict[str, Any], beta: str = "") -> int | None:
        """Tokens of a prompt, with the `anthropic-beta` header that it was sent with; None where the API does
        not tell."""
        key = blake2b(codec.encode([beta, _unmarked(body)]), digest_size=20).digest()
        known = self._kept(key)
        if known is not None:
            self.known += 1
            return known
        if self.stopped or body.get("model") in self._unknown:
            return None
        tokens = self._ask(body, beta)
        if tokens is not None:
            with suppress(sqlite3.Error):
                self._store.execute("INSERT OR REPLACE INTO counts VALUES (?, ?)", (key, tokens))
                self._store.commit()
        return tokens

    def _kept(self, key: bytes) -> int | None:
        try:
            row = self._store.execute("SELECT tokens FROM counts WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error:
            # A damaged file, or another program's.
            self._store.close()
            self._store = _in_memory()
            return None
        return int(row[0]) if row is not None else None

    def _ask(self, body: dict[str, Any], beta: str) -> int | None:
        import anthropic

        for number in range(TRIES):
            pause = self._next - self._clock()
            if pause > 0:
                self._sleep(pause)
            self._next = self._clock() + self._apart
            try:
                self.asked += 1
                headers = {"anthropic-beta": beta} if beta else {}
                answer = self._client.post(
                    PATH, cast_to=object, body=body, options={"headers": headers}
                )
                self._failures = 0
                tokens = answer.get("input_tokens") if isinstance(answer, dict) else None
                return tokens if type(tokens) is int and tokens >= 0 else None
            except anthropic.APIStatusError as error:
                if error.status_code in (429, 529) and number < TRIES - 1:
                    self._sleep(_wait_of(error))
                    continue
                self._note(error.status_code, str(body.get("model")))
            except anthropic.APIConnectionError:
                self.stopped = "the API was not reached"
            return None
        return None

    def _note(self, status: int, model: str) -> None:
        """What a failure says of the prompts to come: nothing, of those of a model, or of all."""
        self.refused += 1
        self._failures += 1
        if status == 404:
            self._unknown.add(model)
        elif status in (401, 403, 429) or (status != 400 and self._failures >= TRIES):
            self.stopped = f"the API answered with status {status}"


def _wait_of(error: Any) -> float:
    said = error.response.headers.get("retry-after", "")
    try:
        return min(LONGEST_WAIT, max(0.0, float(said)))
    except ValueError:
        return USUAL_WAIT


def _opened(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        store = sqlite3.connect(path, timeout=10)
        store.execute("CREATE TABLE IF NOT EXISTS counts (key BLOB PRIMARY KEY, tokens INTEGER)")
    except (OSError, sqlite3.Error):
        return _in_memory()
    return store


def _in_memory() -> sqlite3.Connection:
    store = sqlite3.connect(":memory:")
    store.execute("CREATE TABLE counts (key BLOB PRIMARY KEY, tokens INTEGER)")
    return store


def _unmarked(value: Any) -> Json:
    """A body without breakpoints: they count nothing, and move from request to request."""
    if isinstance(value, dict):
        return {k: _unmarked(v) for k, v in value.items() if k != "cache_control"}
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    return value  # type: ignore[no-any-return]


def count_body(request: Request) -> dict[str, Any] | None:
    """What is counted of a request; None where it has no body that could be."""
    body = request.body
    if body is None or not body.messages or not are_rules_known(request.model):
        return None
    found: dict[str, Any] = {"model": request.model, "messages": _values(body.messages)}
    for name in COUNTED:
        value = _values(body.tools) if name == "tools" else _value(body, name)
        if value:
            found[name] = value
    return found


def _values(parts: Any) -> list[Any]:
    return [msgspec.json.decode(bytes(part)) for part in parts or ()]


def _value(body: Body, name: str) -> Any:
    return msgspec.json.decode(bytes(getattr(body, name)))


def with_counts(log: Log, counter: TokenCounter) -> Log:
    """The log, of which requests without counters have their prompts counted."""
    return replace(log, requests=tuple(_counted(request, counter) for request in log.requests))


def _counted(request: Request, counter: TokenCounter) -> Request:
    if request.usage is not None:
        return request
    try:
        body = count_body(request)
    except (msgspec.DecodeError, RecursionError):
        return request
    beta = request.headers.get("anthropic-beta", "")
    tokens = counter.count(body, beta) if body is not None else None
    return request if tokens is None else replace(request, counted=tokens)
