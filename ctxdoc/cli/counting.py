"""Counting by the API for --count-tokens, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from ctxdoc.cli.writing import warn

if TYPE_CHECKING:
    from ctxdoc.live.count_tokens import TokenCounter


@contextmanager
def counting(
    wanted: bool, tell: Callable[[TokenCounter], object]
) -> Iterator[TokenCounter | Literal[False]]:
    """A counter, if that is wanted; `tell` is given it at the end, whatever came of the rest."""
    if not wanted:
        yield False
        return
    from ctxdoc.live.client import token_counter

    with token_counter() as counter:
        try:
            yield counter
        finally:
            # Also where the rest fails: what was asked was asked, and why it stopped may be why.
            tell(counter)


def tell_prompts(counter: TokenCounter, *, quiet: bool) -> None:
    """Says how many prompts were counted, and what was not possible, which --quiet does not hide: other numbers
    stand in the report."""
    if counter.stopped:
        text = f"--count-tokens stopped: {counter.stopped}; estimates stand for the rest"
        warn(text, quiet=False)
    refused = f", {counter.refused:,} not counted by the API" if counter.refused else ""
    asked = f"{counter.asked:,} prompts asked, {counter.known:,} known from before"
    warn(f"--count-tokens: {asked}{refused}", quiet=quiet)


def tell_images(counter: TokenCounter) -> None:
    """Says why images were not counted."""
    if counter.stopped:
        warn(f"--count-tokens stopped: {counter.stopped}", quiet=False)
