"""Strategies as they are typed."""

from __future__ import annotations

from ctxdoc.errors import InputError
from ctxdoc.simulation.strategies import STRATEGIES, Spec, made


def parse_specs(text: str) -> tuple[Spec, ...]:
    """`offload+compact:trigger=60000,keep_recent=2` as strategies in a row.

    Raises UnknownNameError and InputError for what is none.
    """
    specs = []
    for part in text.split("+"):
        name, _, rest = part.strip().partition(":")
        definition = STRATEGIES[name.strip()]
        given: dict[str, str] = {}
        for pair in filter(None, (pair.strip() for pair in rest.split(","))):
            key, equals, value = pair.partition("=")
            if not equals:
                raise InputError(
                    f"'{pair}' in '{text}' is no key=value",
                    f"write {name}:key=value,key=value; 'ctxdoc explain {name}' lists the keys",
                )
            given[key] = value
        specs.append(Spec(definition, tuple(given.items()), made(definition, given)))
    return tuple(specs)


def by_server(spec: Spec) -> bool:
    """Whether the API does it, and the body stays as it is."""
    return getattr(spec.strategy, "by", "client") == "server"
