"""The list of registries: from it explain, its completion and its help are made, and the contract of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from msgspec import Struct

from ctxdoc.diagnosis.causes import CAUSES, Cause, Group
from ctxdoc.outputs import OUTPUTS, Output
from ctxdoc.providers import PROVIDERS
from ctxdoc.providers.rules import Provider
from ctxdoc.reading.formats import FORMATS, Format
from ctxdoc.registry import Registry
from ctxdoc.simulation.placements import PLACEMENTS, Placement
from ctxdoc.simulation.strategies import STRATEGIES, Definition

T = TypeVar("T")


class PartKind(Struct, Generic[T], frozen=True, kw_only=True):
    """A kind of parts, and how explain names one."""

    registry: Registry[T]
    noun: str
    """One of them in a sentence, with its article."""
    heading: str
    """What stands over their list."""
    title: Callable[[T], str]
    note: Callable[[T], str]
    """What stands behind the name on the page of one."""

    def page(self, name: str) -> str:
        """The page of a part: its name, what it is, and the docstring of its module."""
        part = self.registry[name]
        shown = name.replace("-", "_")
        return f"{shown} ({self.note(part)})\n\n{self.registry.page(name).strip()}"

    def list(self) -> str:
        """The heading, and a line for each part."""
        return _section(self.heading, ((name, self.title(self.registry[name])) for name in self))

    def __iter__(self) -> Iterator[str]:
        return iter(self.registry.names)


class CauseKind(PartKind[Cause], frozen=True, kw_only=True):
    """Causes are listed by their groups."""

    def list(self) -> str:
        """A heading for each group, and a line for each cause."""
        return "\n\n".join(
            _section(
                f"{self.heading}: {group}",
                ((cause.id, self.title(cause)) for cause in self.registry if cause.group is group),
            )
            for group in Group
        )


def _section(heading: str, rows: Iterator[tuple[str, str]]) -> str:
    return "\n".join([heading, *(f"  {name:<34} {title}" for name, title in rows)])


def _carried(form: Format) -> str:
    return f"log format; carries: {', '.join(sorted(form.traits))}"


def _first_line(provider: Provider) -> str:
    return PROVIDERS.page(provider.id).strip().splitlines()[0]


# Any: each kind has parts of its own type, and the list takes all of them.
PARTS: tuple[PartKind[Any], ...] = (
    CauseKind(
        registry=CAUSES,
        noun="a cause",
        heading="Causes",
        title=lambda cause: cause.title,
        note=lambda cause: str(cause.group),
    ),
    PartKind[Format](
        registry=FORMATS,
        noun="a format",
        heading="Log formats",
        title=lambda form: form.title,
        note=_carried,
    ),
    PartKind[Definition](
        registry=STRATEGIES,
        noun="a strategy",
        heading="Strategies of simulate",
        title=lambda strategy: strategy.title,
        note=lambda _: "strategy",
    ),
    PartKind[Placement](
        registry=PLACEMENTS,
        noun="a placement",
        heading="Placements of breakpoints",
        title=lambda placement: placement.title,
        note=lambda _: "placement",
    ),
    PartKind[Output](
        registry=OUTPUTS,
        noun="an output",
        heading="Outputs of reports",
        title=lambda output: output.title,
        note=lambda _: "output",
    ),
    PartKind[Provider](
        registry=PROVIDERS,
        noun="a provider",
        heading="Providers",
        title=_first_line,
        note=lambda _: "provider",
    ),
)
