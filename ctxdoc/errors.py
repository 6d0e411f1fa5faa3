"""The errors that end a command, each with its exit code."""

from __future__ import annotations


class CtxdocError(Exception):
    """What went wrong and what to do about it."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        """One sentence without a final period."""
        self.hint = hint
        """An action the reader can take; may be empty."""


class InputError(CtxdocError):
    """A file, an argument or a configuration that cannot be read (exit code 2)."""


class NoRequestError(CtxdocError):
    """The input was read and holds no usable request (exit code 3)."""

    exit_code = 3


class UncheckedError(CtxdocError):
    """What a gate was asked to check could not be checked (exit code 3)."""

    exit_code = 3


MANY = 12
"""Names beyond so many are not listed in a message."""


class UnknownNameError(InputError):
    """A name outside a closed set, with the nearest names as the hint."""

    def __init__(self, what: str, name: str, near: list[str], every: list[str]) -> None:
        parts = [known for known in every if name and name in known]
        found = list(dict.fromkeys([*near, *parts]))[:5]
        hint = f"did you mean {', '.join(found)}?" if found else f"known: {', '.join(every)}"
        if not found and len(every) > MANY:
            hint = "run 'ctxdoc explain' to list the names"
        super().__init__(f"no {what} named '{name}'", hint)
