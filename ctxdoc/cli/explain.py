"""`ctxdoc explain`: the page of a cause, a format, a strategy, a placement or a topic."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from msgspec import Struct

from ctxdoc.cli.command import Command
from ctxdoc.cli.pages import TOPICS
from ctxdoc.cli.writing import emit
from ctxdoc.diagnosis.causes import CAUSES, Group
from ctxdoc.errors import UnknownNameError
from ctxdoc.outputs import OUTPUTS
from ctxdoc.providers import PROVIDERS
from ctxdoc.reading.formats import FORMATS
from ctxdoc.registry import Registry
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.strategies import STRATEGIES

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


class Kind(Struct, frozen=True):
    """A kind of parts that have pages."""

    title: str
    """Over its list."""
    what: str
    """One of it, as its page is headed."""
    parts: Registry[Any]


KINDS = (
    Kind("Causes", "cause", CAUSES),
    Kind("Log formats", "log format", FORMATS),
    Kind("Strategies of simulate", "strategy", STRATEGIES),
    Kind("Placements of breakpoints", "placement", PLACEMENTS),
    Kind("Outputs of --format", "output", OUTPUTS),
    Kind("Providers", "provider", PROVIDERS),
)


def _every_name() -> list[str]:
    return [*(name for kind in KINDS for name in kind.parts.names), *TOPICS]


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help="A cause, a format, a strategy, a placement, an output, a provider or a topic.",
            autocompletion=_every_name,
        ),
    ] = "",
) -> None:
    """Explain a cause, a format, a strategy, a placement, an output, a provider or a topic; without a name,
    list them.

    \b
    Examples:
      ctxdoc explain
      ctxdoc explain json_key_order
      ctxdoc explain clear
    """
    text = _page(name) if name else "\n".join(_list())
    emit(text + "\n")


def _page(name: str) -> str:
    found = list(_pages(name))
    if not found:
        raise UnknownNameError("page", name, list(_near(name)), _every_name())
    return "\n\n".join(found)


def _pages(name: str) -> Iterator[str]:
    """The pages of that name: a cause and a placement may share one."""
    for kind in KINDS:
        if name in kind.parts:
            part = kind.parts[name]
            yield f"{part.id} ({_heading(kind, part)})\n\n{kind.parts.page(name).strip()}"
    if name in TOPICS:
        yield TOPICS[name]


def _heading(kind: Kind, part: Any) -> str:
    """What a part is: of a cause its group, of a format also what it carries."""
    match kind.parts:
        case found if found is CAUSES:
            return str(part.group)
        case found if found is FORMATS:
            return f"{kind.what}; carries: {', '.join(sorted(part.traits))}"
        case _:
            return kind.what


def _near(name: str) -> Iterator[str]:
    """Names that are spelled like it, and those with a word that is."""
    every = _every_name()
    yield from get_close_matches(name.replace("-", "_"), every, n=3, cutoff=0.6)
    # "expried" is near no whole name, and near a word of ttl_expired.
    words = {word for known in every for word in known.split("_")}
    for word in get_close_matches(name, words, n=2, cutoff=0.8):
        yield from (known for known in every if word in known.split("_"))


def _list() -> Iterator[str]:
    for group in Group:
        # Causes are many: each group has a list of its own, with nothing between them but a line.
        lines = [_line(cause.id, cause.title) for cause in CAUSES if cause.group is group]
        yield from (f"Causes: {group}", *lines, "")
    for kind in KINDS[1:]:
        yield from (kind.title, *(_line(part.id, _title(kind, part)) for part in kind.parts), "")
    yield "Topics"
    yield from (_line(name, text.splitlines()[0]) for name, text in TOPICS.items())


def _line(name: str, title: str) -> str:
    return f"  {name:<34} {title}"


def _title(kind: Kind, part: Any) -> str:
    """Its title, or the first line of its page."""
    title: str = getattr(part, "title", "") or kind.parts.page(part.id).strip().splitlines()[0]
    return title
