"""A recipe: what to write in code so that a way of managing the context is in force."""

from __future__ import annotations

from msgspec import Struct

from ctxdoc.request import codec
from ctxdoc.request.codec import Json


class Recipe(Struct, frozen=True, kw_only=True):
    """What to write, and how the next log shows that it works."""

    do: str
    """A sentence that begins with a verb."""
    code: str = ""
    """A part of a request body as JSON, to paste; empty where it is done in the program alone."""
    beta: str = ""
    """The beta header that the API asks for."""
    caution: str = ""
    """What the model lacks beside what is counted as hidden."""
    proof: str
    """What the next log shows."""


def pasted(value: dict[str, Json]) -> str:
    """A part of a body as it is pasted."""
    return codec.encode(value).decode()
