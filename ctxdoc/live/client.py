"""Clients of the API: the one place that makes them, with a sentence where there is no key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NoReturn

from ctxdoc.errors import InputError
from ctxdoc.live.count_tokens import TokenCounter, cache_path
from ctxdoc.live.double_send import Client


class KeylessClient:
    """The client of somebody without a key: whoever asks it is told so.

    Counts that are on disk need no key, and a log with counters asks nothing, so that its making is no error.
    """

    def __init__(self, option: str) -> None:
        self.option = option

    def post(self, path: str, *, cast_to: Any, body: object, options: Any) -> NoReturn:
        """Raises InputError, naming the option that needs a key."""
        del path, cast_to, body, options
        raise InputError(f"{self.option}: there is no key", "set ANTHROPIC_API_KEY")


@contextmanager
def client_for(option: str) -> Iterator[Client]:
    """A client with the key of the environment; ctxdoc never sees it, and the SDK repeats nothing by itself.

    Where there is no key, asking it raises InputError.
    """
    import anthropic

    try:
        client = anthropic.Anthropic(max_retries=0)
    except anthropic.AnthropicError:
        yield KeylessClient(option)
        return
    with client:
        # The SDK makes a client without a key as well, and says so by a TypeError at the first request.
        keys = (client.api_key, client.auth_token, client.credentials)
        yield client if any(key is not None for key in keys) else KeylessClient(option)


@contextmanager
def token_counter() -> Iterator[TokenCounter]:
    """A counter at the API, with the counts that are on disk."""
    with (
        client_for("--count-tokens") as client,
        closing(TokenCounter(client, cache_path())) as counter,
    ):
        yield counter
