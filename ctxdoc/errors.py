"""The errors that end a command, each with its exit code."""

from __future__ import annotations


class CtxdocError(Exception):
    """What went wrong, what to do about it, and the page that explains it."""

    exit_code = 2

    def __init__(self, message: str, hint: str = "", page: str = "") -> None:
        super().__init__(message)
        self.message = message
        """One sentence without a final period."""
        self.hint = hint
        """An action the reader can take; may be empty."""
        self.page = page
        """A name that `ctxdoc explain` knows; may be empty."""


class InputError(CtxdocError):
    """A file, an argument or a configuration that cannot be read (exit code 2)."""


class NoRequestError(CtxdocError):
    """The input was read and holds no usable request (exit code 3)."""

    exit_code = 3


class UnknownNameError(InputError):
    """A name outside a closed set, with the nearest names as the hint."""

    def __init__(self, what: str, name: str, near: list[str], every: list[str]) -> None:
        known = ", ".join(near) if near else ", ".join(every)
        super().__init__(
            f"no {what} named '{name}'",
            f"did you mean {known}?" if near else f"known: {known}",
        )
        self.near = near
        """Close matches, best first."""
