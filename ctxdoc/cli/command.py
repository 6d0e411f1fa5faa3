"""The command class: Typer's own, without the import that checks values which need no check, and with the
names of parts in its help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import typer
from typer.core import TyperCommand

from ctxdoc.cli.names import with_names

if TYPE_CHECKING:
    from typer._click import HelpFormatter, Parameter

P = TypeVar("P")


class UncheckedValue:
    """Takes texts and flags as they were typed."""

    def coerce(self, value: object, param: object, ctx: object) -> object:
        """The value itself; a list where the parameter takes several."""
        del ctx
        if getattr(param, "multiple", False) or getattr(param, "nargs", 1) == -1:
            return list(value) if isinstance(value, (list, tuple)) else []
        return value


def without_checks(parameters: list[P]) -> list[P]:
    """The parameters, of which texts and flags are taken as they were typed.

    Typer would check each through pydantic, whose import takes as long as a whole diagnosis.
    """
    for parameter in parameters:
        descriptor = getattr(parameter, "type_descriptor", None)
        if getattr(descriptor, "annotation", None) in (str, bool, list[str]):
            parameter._runtime_param = UncheckedValue()  # type: ignore[attr-defined]
    return parameters


class Command(TyperCommand):
    """A command of ctxdoc."""

    def get_params(self, ctx: typer.Context) -> list[Parameter]:  # type: ignore[override]
        """Every parameter, the help option too."""
        parameters = without_checks(super().get_params(ctx))
        if ctx.resilient_parsing:
            # A shell that completes shows the help of each option.
            _name_parts(parameters)
        return parameters

    def format_help(self, ctx: typer.Context, formatter: HelpFormatter) -> None:  # type: ignore[override]
        """Writes the help; the names of parts are looked up here, so that no other call loads them."""
        self.help = with_names(self.help or "")
        _name_parts(self.get_params(ctx))
        super().format_help(ctx, formatter)


def _name_parts(parameters: Sequence[Parameter]) -> None:
    for parameter in parameters:
        text = getattr(parameter, "help", None)
        if text:
            parameter.help = with_names(text)  # type: ignore[attr-defined]
