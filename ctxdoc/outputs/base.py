"""What an output is."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ctxdoc.outputs.report import Report


class Style(Struct, frozen=True, kw_only=True):
    """What a person's screen allows."""

    width: int = 100
    color: bool = False


class Output(Struct, frozen=True, kw_only=True):
    """A way to write a report."""

    id: str
    title: str
    write: Callable[[Report, Style], str]
