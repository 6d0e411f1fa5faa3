"""`ctxdoc explain`: the page of a part or of a topic."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from itertools import chain
from typing import Annotated

import typer

from ctxdoc.cli.command import Command
from ctxdoc.cli.pages import TOPICS
from ctxdoc.cli.parts import PARTS
from ctxdoc.cli.writing import emit
from ctxdoc.errors import UnknownNameError
from ctxdoc.registry import any_of

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)

KINDS = any_of([*(kind.noun for kind in PARTS), "a topic"])
"""What there are pages of."""
HELP = f"""Explain {KINDS}; without a name, list them.

\b
Examples:
  ctxdoc explain
  ctxdoc explain json_key_order
  ctxdoc explain clear
"""


def _every_name() -> list[str]:
    return [*chain.from_iterable(PARTS), *TOPICS]


@app.command(cls=Command, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="[NAME]",
            help=f"{KINDS[0].upper()}{KINDS[1:]}.",
            autocompletion=_every_name,
        ),
    ] = "",
) -> None:
    """The page of a part or of a topic."""
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
    yield from (kind.page(name) for kind in PARTS if name in kind.registry)
    if name in TOPICS:
        yield TOPICS[name]


def _list() -> str:
    topics = [f"  {name:<34} {text.splitlines()[0]}" for name, text in TOPICS.items()]
    return "\n\n".join([*(kind.list() for kind in PARTS), "\n".join(["Topics", *topics])])
