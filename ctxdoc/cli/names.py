"""Names of parts, for help and completion: taken from the registries when they are shown, never by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence


def strategies() -> list[str]:
    """Ids of the strategies."""
    from ctxdoc.simulation.strategies import STRATEGIES

    return list(STRATEGIES.names)


def placements() -> list[str]:
    """Ids of the placements."""
    from ctxdoc.simulation.placements import PLACEMENTS

    return list(PLACEMENTS.names)


def causes() -> list[str]:
    """Ids of the causes."""
    from ctxdoc.diagnosis.causes import CAUSES

    return list(CAUSES.names)


def surroundings() -> list[str]:
    """Ids of what changes around a builder; several of one kind by their common name, which --skip takes."""
    from ctxdoc.gate.surroundings import SURROUNDINGS

    ids = [each.id for each in SURROUNDINGS]
    # "hash_seed_1" and "hash_seed_2" are one kind; "home" and "working_folder" are each their own.
    kinds = Counter(name.rpartition("_")[0] for name in ids)
    grouped = (
        name if kinds[kind := name.rpartition("_")[0]] < 2 or not kind else kind for name in ids
    )
    return list(dict.fromkeys(grouped))


def outputs() -> list[str]:
    """Ids of the outputs that write any report."""
    from ctxdoc.outputs import Takes, names_that_take

    return names_that_take(Takes.ALL)


def outputs_of_rows() -> list[str]:
    """Ids of the outputs that write a report with rows."""
    from ctxdoc.outputs import Takes, names_that_take

    return names_that_take(Takes.ALL, Takes.ROWS)


def outputs_of_checks() -> list[str]:
    """Ids of the outputs that write a report with checks."""
    from ctxdoc.outputs import Takes, names_that_take

    return names_that_take(Takes.ALL, Takes.CHECKS)


def pictures() -> list[str]:
    """Ends of the names of pictures."""
    from ctxdoc.api.outcome import PICTURES

    return [f".{kind}" for kind in PICTURES]


NAMES: Mapping[str, Callable[[], Sequence[str]]] = {
    "{strategies}": strategies,
    "{placements}": placements,
    "{surroundings}": surroundings,
    "{outputs}": outputs,
    "{outputs_of_rows}": outputs_of_rows,
    "{outputs_of_checks}": outputs_of_checks,
    "{pictures}": pictures,
}
"""What stands in a help text for the names of all parts of a kind."""


def with_names(text: str) -> str:
    """A help text with the names that it stands for."""
    for mark, names in NAMES.items():
        if mark in text:
            *most, last = names()
            text = text.replace(mark, f"{', '.join(most)} or {last}" if most else last)
    return text
