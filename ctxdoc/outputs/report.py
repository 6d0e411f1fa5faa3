"""The values of a report: its parts in order, and what programs read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.request.codec import Json


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
    is_command: bool = False
    """The text is there to be pasted into a shell: no output breaks or alters it."""


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
    optional: tuple[int, ...] = ()
    """Columns that are left out where the page is too narrow, the first ones first."""


class Notes(Struct, frozen=True):
    """A titled list of sentences."""

    title: str
    lines: tuple[str, ...]


class Bar(Struct, frozen=True, kw_only=True, gc=False):
    """One request, or the mean of several in a row, in tokens."""

    at: float
    """Number of the request, from 1 in the order of the chart; the middle one of several."""
    read: float
    written: float
    uncached: float
    law: float | None = None
    """What the fitted law says."""
    stretch: int = 0
    """Which fit that is from: a line joins the requests of one only."""
    mark: str = ""
    """Id of the cause, where the request missed."""


class Line(Struct, frozen=True, kw_only=True):
    """A sum that grows with the requests, in USD."""

    label: str
    values: tuple[float, ...]
    """One for each bar."""


class Chart(Struct, frozen=True, kw_only=True):
    """The context of each request as a stacked bar, and what all of them cost up to there."""

    title: str
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    each: int = 1
    """Requests that a bar stands for."""
    origin: str = ""
    """Where the numbers come from."""


class Curve(Struct, frozen=True, kw_only=True):
    """A line of a panel."""

    label: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]


class Panel(Struct, frozen=True, kw_only=True):
    """Lines over one axis."""

    label: str
    """What the values are."""
    unit: str
    """USD or tokens."""
    curves: tuple[Curve, ...]


class Dot(Struct, frozen=True, kw_only=True):
    """A way by what it hides and what it costs."""

    label: str
    unseen: float
    """Share of the history, from 0 to 1."""
    cost: float
    """USD."""
    curve: int | None = None
    """Which curve of the picture is of the same way, from 0: it has its colour."""
    on_front: bool = False
    is_keep: bool = False


class Front(Struct, frozen=True, kw_only=True):
    """Ways as dots of cost over what is hidden; those that no other one beats are joined by a line."""

    dots: tuple[Dot, ...]
    limit: float
    """Share of the history up to which a way is a choice."""


class Curves(Struct, frozen=True, kw_only=True):
    """Panels of lines, one below the other, over the same axis."""

    title: str
    axis: str
    panels: tuple[Panel, ...]
    steps: bool = False
    """Whether the values were tried one by one: points are shown."""
    front: Front | None = None
    """The same ways by what they hide, below the panels."""


class Heat(Struct, frozen=True, kw_only=True):
    """A value for each pair of two parameters."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    across: str
    """What the columns are."""
    down: str
    values: tuple[tuple[float, ...], ...]
    """USD, row by row."""


Picture: TypeAlias = Chart | Curves | Heat
Part: TypeAlias = Headline | Fields | Snippet | Table | Notes | Chart | Curves | Heat
Cell: TypeAlias = str | int | None


class Records(Struct, frozen=True):
    """Rows for other programs: numbers without separators, nothing where a value is unknown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Rule(Struct, frozen=True, kw_only=True):
    """What an annotation is an instance of."""

    id: str
    title: str
    help: str
    """What it is and what to do about it."""


class Annotation(Struct, frozen=True, kw_only=True):
    """Something to be shown at a place of a file."""

    rule: Rule
    level: str
    """error, warning or note."""
    message: str
    file: str = ""
    """Path as it was given; empty where it is no file."""
    line: int = 1


class CheckResult(Struct, frozen=True, kw_only=True):
    """One check, as test reports have them."""

    name: str
    verdict: str
    """held, broken or unchecked."""
    text: str


class Checks(Struct, frozen=True, kw_only=True):
    """The outcome of checks, for programs that show such."""

    verdict: str
    summary: str
    tested: tuple[CheckResult, ...]
    annotations: tuple[Annotation, ...]


class Report(Struct, frozen=True):
    """A view of results: the parts in order, and the same as data."""

    make_parts: Callable[[], Iterable[Part]]
    """What a person reads, in its order; made where it is asked for."""
    make_data: Callable[[], dict[str, Json]]
    """The JSON document of this report, with its schema; made where it is asked for."""
    make_records: Callable[[], Records] | None = None
    """The same row by row, where the results are rows."""
    make_checks: Callable[[], Checks] | None = None
    """The same as checks, where the results are such."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """What a person reads, in its order."""
        return tuple(self.make_parts())

    @property
    def data(self) -> dict[str, Json]:
        """The JSON document."""
        return self.make_data()

    @property
    def checks(self) -> Checks:
        """The checks.

        Raises InputError where the results are none.
        """
        if self.make_checks is None:
            raise InputError("this report has no checks", "the gate has them: ctxdoc gate")
        return self.make_checks()

    @property
    def records(self) -> Records | None:
        """The rows; None where the results are none."""
        return self.make_records() if self.make_records else None
