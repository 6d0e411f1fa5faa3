"""Clients of the API: the one place that makes them, with a sentence where there is no key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from ctxdoc.errors import InputError
from ctxdoc.live.count_tokens import TokenCounter, cache_path

if TYPE_CHECKING:
    import anthropic


def client_for(option: str) -> anthropic.Anthropic:
    """A client with the key of the environment; ctxdoc never sees it, and retries by itself.

    Raises InputError, naming the option that needs it, where there is no key.
    """
    import anthropic

    try:
        return anthropic.Anthropic(max_retries=0)
    except anthropic.AnthropicError as error:
        raise InputError(f"{option}: there is no key", "set ANTHROPIC_API_KEY") from error


@contextmanager
def token_counter() -> Iterator[TokenCounter]:
    """A counter at the API, with the counts that are on disk.

    Raises InputError where there is no key.
    """
    client = client_for("--count-tokens")
    with client, closing(TokenCounter(client, cache_path())) as counter:
        yield counter
