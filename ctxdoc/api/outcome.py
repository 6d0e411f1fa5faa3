"""Outcomes: what every function gives back, and the command's document of it."""

from __future__ import annotations

import gc
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ctxdoc.errors import CtxdocError, InputError
from ctxdoc.outputs import OUTPUTS, Style
from ctxdoc.outputs.report import Picture, Report
from ctxdoc.reports.json.second import second_of
from ctxdoc.request.codec import Json
from ctxdoc.request.log import Log

if TYPE_CHECKING:
    from ctxdoc.api.rows import Row

Names: TypeAlias = str | Sequence[str]
"""One, or several."""
PICTURES = ("png", "svg")


class Outcome(Struct, frozen=True, kw_only=True, dict=True):
    """A value with its rows and findings as tables, and the document that the command prints."""

    warnings: tuple[str, ...] = ()
    """What was passed over, as the command says it on standard error."""

    @property
    @abstractmethod
    def rows(self) -> list[Row]:
        """One flat dict for each request, strategy, finding or image, all with the same keys."""

    @property
    @abstractmethod
    def findings(self) -> list[Row]:
        """What is wrong, one flat dict each."""

    @abstractmethod
    def report(self, *, excerpts: bool = True) -> Report:
        """What all outputs write; without `excerpts` no text of the requests is in it."""

    def to_dict(self, *, excerpts: bool = True, schema: int = 1) -> dict[str, Json]:
        """The document of `--format json`; money is a decimal string. In schema 2 shares, ratios and
        percentages are numbers."""
        return self._of_schema(schema, excerpts=excerpts).data

    def to_json(self, *, excerpts: bool = True, schema: int = 1) -> str:
        """The same as text, equal to the command's to the byte."""
        return OUTPUTS["json"].write(self._of_schema(schema, excerpts=excerpts), Style())

    def _of_schema(self, schema: int, *, excerpts: bool) -> Report:
        report = self.report(excerpts=excerpts)
        return second_of(report) if schema == 2 else report

    def to_text(self, *, excerpts: bool = True, width: int = 100) -> str:
        """The report for people, without colour; `width` is in columns."""
        return OUTPUTS["text"].write(self.report(excerpts=excerpts), Style(width=width))


def drawn(picture: Picture, kind: str) -> bytes:
    """A picture as a file of that kind.

    Raises InputError for a kind that is not drawn.
    """
    if kind not in PICTURES:
        raise InputError(f"no picture is drawn as '{kind}'", f"known: {', '.join(PICTURES)}")
    # The plotting library takes longer to load than most logs to be replayed.
    from ctxdoc.outputs.plot import write_picture

    return write_picture(picture, kind)


def skipped_lines(log: Log) -> tuple[str, ...]:
    """What was passed over, in one line; nothing where nothing was."""
    skipped = [item for item in log.skipped if not item.other]
    if not skipped:
        return ()
    first = skipped[0]
    records = "1 record" if len(skipped) == 1 else f"{len(skipped)} records"
    return (f"{records} skipped, the first: {first.source}, line {first.line}: {first.reason}",)


def several(names: Names) -> tuple[str, ...]:
    """Names as a tuple, where one may stand alone."""
    return (names,) if isinstance(names, str) else tuple(names)


@contextmanager
def noting(lines: Iterable[str]) -> Iterator[None]:
    """Work whose errors tell as notes what was passed over before: it may be why nothing is left."""
    try:
        yield
    except CtxdocError as error:
        for line in lines:
            error.add_note(line)
        raise


@contextmanager
def collector_paused() -> Iterator[None]:
    """Work without the cyclic collector, which is put back as it was.

    What is read and replayed refers to itself in no circle; on a log of a gigabyte the collector would take a
    third of the time looking for what does.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
