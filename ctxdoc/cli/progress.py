"""A progress bar on standard error, for a person who waits."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ctxdoc.reading.files import size_of

LARGE = 20_000_000
"""Bytes from which on reading takes long enough to be shown."""

Tell = Callable[[int], None]


@contextmanager
def shown_progress(
    logs: Sequence[str], *, quiet: bool
) -> Iterator[Callable[[str, int], Tell] | None]:
    """Starts a bar with a title and its total, and hands back what moves it on.

    None where no person waits: standard error is no terminal, the log is small, or --quiet.
    """
    if quiet or sys.stderr is None or not sys.stderr.isatty() or size_of(logs) < LARGE:
        yield None
        return
    # Only a person who waits pays for the import.
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:

        def begin(title: str, total: int) -> Tell:
            task = progress.add_task(title, total=total)
            return lambda steps: progress.advance(task, steps)

        yield begin
