"""The names of strategies in a report."""

from __future__ import annotations

from ctxdoc.outputs.numbers import short_text
from ctxdoc.simulation.compare import Comparison
from ctxdoc.simulation.result import Result
from ctxdoc.simulation.strategies import Spec

MANY = 3
"""Names of a parameter that are shown; of more, their number."""


def named(row: Result, comparison: Comparison) -> str:
    """A strategy, with its placement where that is another one."""
    own = row.placement is comparison.placement
    return label_of(row) + ("" if own else f" @{row.placement.id}")


def label_of(row: Result) -> str:
    """A strategy with the parameters that were set, in words that can be broken into lines."""
    return " + ".join(map(_spec_text, row.specs))


def _spec_text(spec: Spec) -> str:
    return " ".join([spec.definition.id, *(f"{key}={_given(value)}" for key, value in spec.given)])


def _given(value: str) -> str:
    names = value.split("|")
    if len(names) > MANY:
        return f"{len(names)} names"
    return short_text(int(value)) if value.isdecimal() and int(value) >= 10_000 else value
