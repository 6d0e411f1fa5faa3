"""`ctxdoc.read`: a log of any known format."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec.structs import replace

from ctxdoc.errors import InputError, UnknownNameError
from ctxdoc.providers import PROVIDERS
from ctxdoc.reading.files import size_of
from ctxdoc.reading.load import read_log
from ctxdoc.request.log import Log
from ctxdoc.request.request import Request

if TYPE_CHECKING:
    from ctxdoc.live.count_tokens import TokenCounter

Source: TypeAlias = str | os.PathLike[str] | Log
Progress: TypeAlias = Callable[[str, int], Callable[[int], None]]
NEAREST = 8
"""Models that are named where none is like the one that was given."""


def read(
    *logs: Source,
    model: str = "",
    strict: bool = False,
    count_tokens: bool | TokenCounter = False,
    condense: bool = False,
    progress: Progress | None = None,
) -> Log:
    """A log: its requests in order, and what was skipped.

    Files, folders and archives of any known format can be mixed; `-` is standard input. A log that is read
    already is taken as it is, with another model or counted if that is asked for. `condense` holds equal
    parts of bodies once and no body as a whole: for logs of gigabytes. `diagnose` then compares no whole
    bodies, and nothing can be sent live.

    Raises InputError for what cannot be read, UnknownNameError for a model without rules, NoRequestError where
    nothing usable is left.

        log = ctxdoc.read("agent.jsonl")
        len(log.requests), log.skipped
    """
    check_model(model)
    log = _read(logs, strict=strict, condense=condense, progress=progress)
    if model:
        log = replace(log, requests=tuple(_sent_to(model, each) for each in log.requests))
    return _counted(log, count_tokens)


def names_of(logs: Sequence[Source]) -> tuple[str, ...]:
    """The paths as they were given; of a log that is read already the files that its requests stand in."""
    names: dict[str, None] = {}
    for each in logs:
        found = [r.source for r in each.requests] if isinstance(each, Log) else [os.fspath(each)]
        names.update(dict.fromkeys(found))
    return tuple(names)


def check_model(name: str) -> None:
    """Raises UnknownNameError for a model that no provider has rules for."""
    if not name or any(provider.find_model(name).known for provider in PROVIDERS):
        return
    every = [known for provider in PROVIDERS for known in provider.models]
    near = get_close_matches(name, every, n=3)
    raise UnknownNameError("model", name, near or every[:NEAREST], every)


def _read(
    logs: Sequence[Source], *, strict: bool, condense: bool, progress: Progress | None
) -> Log:
    paths = [os.fspath(each) for each in logs if not isinstance(each, Log)]
    if len(logs) == 1 and isinstance(logs[0], Log):
        return logs[0]
    # Records of one response may stand in two files: only what is read at once is merged.
    if len(paths) < len(logs):
        raise InputError("a log that is read already stands alone", "read all paths at once")
    if not paths:
        raise InputError("there is no log", "name a file, or - for standard input")
    tell = progress("reading", size_of(paths)) if progress else None
    return read_log(paths, strict=strict, condense=condense, progress=tell)


def _sent_to(model: str, request: Request) -> Request:
    """A request as if it had been sent to another model, and answered by it."""
    # The model that answered is the one whose rules and prices hold.
    response = replace(request.response, model=model) if request.response else None
    return replace(request, model=model, response=response)


def _counted(log: Log, count_tokens: bool | TokenCounter) -> Log:
    if count_tokens is False:
        return log
    # The client of the API is loaded by those who ask it, and by nobody else.
    from ctxdoc.live.count_tokens import with_counts

    with asked_counter(count_tokens) as counter:
        return with_counts(log, counter)


@contextmanager
def asked_counter(given: Literal[True] | TokenCounter) -> Iterator[TokenCounter]:
    """The counter that was given, else one of its own: then a Python warning says why counting stopped."""
    if given is not True:
        yield given
        return
    from ctxdoc.live.client import token_counter

    with token_counter() as counter:
        yield counter
        if counter.stopped:
            warnings.warn(
                f"ctxdoc: counting stopped: {counter.stopped}; the rest is estimated", stacklevel=2
            )
