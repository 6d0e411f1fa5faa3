"""`ctxdoc explain`: the page of a cause, a format, a strategy, a placement or a topic."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated

import typer

from ctxdoc.cli.command import Command
from ctxdoc.cli.pages import TOPICS
from ctxdoc.cli.writing import emit
from ctxdoc.diagnosis.causes import CAUSES, Group
from ctxdoc.errors import UnknownNameError
from ctxdoc.reading.formats import FORMATS
from ctxdoc.simulation.placements import PLACEMENTS
from ctxdoc.simulation.strategies import STRATEGIES

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


def _every_name() -> list[str]:
    return [*CAUSES.names, *FORMATS.names, *STRATEGIES.names, *PLACEMENTS.names, *TOPICS]


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help="A cause, a format, a strategy, a placement or a topic.",
            autocompletion=_every_name,
        ),
    ] = "",
) -> None:
    """Explain a cause, a format, a strategy, a placement or a topic; without a name, list them.

    \b
    Examples:
      ctxdoc explain
      ctxdoc explain json_key_order
      ctxdoc explain clear
    """
    text = _page(name) if name else _list()
    emit(text + "\n")


def _page(name: str) -> str:
    found = list(_pages(name))
    if found:
        return "\n\n".join(found)
    every = _every_name()
    near = get_close_matches(name.replace("-", "_"), every, n=3, cutoff=0.6)
    words = {word for known in every for word in known.split("_")}
    for word in get_close_matches(name, words, n=2, cutoff=0.8):
        near += [known for known in every if word in known.split("_")]
    raise UnknownNameError("page", name, near, every)


def _pages(name: str) -> Iterator[str]:
    """The pages of that name: a cause and a placement may share one."""
    if name in CAUSES:
        yield f"{CAUSES[name].id} ({CAUSES[name].group})\n\n{CAUSES.page(name).strip()}"
    if name in FORMATS:
        traits = ", ".join(sorted(FORMATS[name].traits))
        yield f"{name} (log format; carries: {traits})\n\n{FORMATS.page(name).strip()}"
    if name in STRATEGIES:
        yield f"{STRATEGIES[name].id} (strategy)\n\n{STRATEGIES.page(name).strip()}"
    if name in PLACEMENTS:
        yield f"{PLACEMENTS[name].id} (placement)\n\n{PLACEMENTS.page(name).strip()}"
    if name in TOPICS:
        yield TOPICS[name]


def _list() -> str:
    lines = []
    for group in Group:
        lines += [f"Causes: {group}"]
        lines += [f"  {cause.id:<34} {cause.title}" for cause in CAUSES if cause.group is group]
        lines += [""]
    lines.pop()
    lines += ["", "Log formats"]
    lines += [f"  {form.id:<34} {form.title}" for form in FORMATS]
    lines += ["", "Strategies of simulate"]
    lines += [f"  {each.id:<34} {each.title}" for each in STRATEGIES]
    lines += ["", "Placements of breakpoints"]
    lines += [f"  {each.id:<34} {each.title}" for each in PLACEMENTS]
    lines += ["", "Topics"]
    lines += [f"  {name:<34} {text.splitlines()[0]}" for name, text in TOPICS.items()]
    return "\n".join(lines)
