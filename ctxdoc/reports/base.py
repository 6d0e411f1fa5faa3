"""The parts of a report, and the spelling of numbers that all reports share."""

from __future__ import annotations

from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct

from ctxdoc.canonical import Json


class Headline(Struct, frozen=True):
    """The verdict: one word, its tone, one sentence."""

    word: str
    tone: str
    """good, bad, warn or plain."""
    text: str
    under: str = ""
    """What was looked at."""


class Row(Struct, frozen=True):
    """A label and what there is to say of it."""

    label: str
    text: str
    strong: bool = False


class Fields(Struct, frozen=True):
    """Labelled lines."""

    rows: tuple[Row, ...]


class Snippet(Struct, frozen=True):
    """Two texts around the first character in which they differ."""

    label: str
    before: str
    after: str
    mark: int
    """Column of the first differing character in both."""


class Table(Struct, frozen=True):
    """Rows under a title."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Notes(Struct, frozen=True):
    """A titled list of sentences."""

    title: str
    lines: tuple[str, ...]


Part: TypeAlias = Headline | Fields | Snippet | Table | Notes


class Report(Struct, frozen=True):
    """A view of results: the parts in order, and the same as data."""

    parts: tuple[Part, ...]
    data: dict[str, Json]
    """The JSON document of this report, with its schema."""


def tokens_text(value: int | None) -> str:
    """A token count, or a dash where it is unknown."""
    return "-" if value is None else f"{value:,}"


def money_text(value: Decimal | None) -> str:
    """USD with as many places as it takes to see it, or a dash where it is unknown."""
    if value is None:
        return "-"
    if value and abs(value) < Decimal("0.0001"):
        return f"${value:.6f}"
    return f"${value:.4f}"


def money_json(value: Decimal | None) -> str | None:
    """USD as a decimal string, or null."""
    return None if value is None else f"{value.normalize():f}"
