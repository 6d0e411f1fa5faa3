"""The program: its commands, and the one place where errors become text."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ctxdoc import __version__
from ctxdoc.cli.command import without_checks
from ctxdoc.errors import CtxdocError

if TYPE_CHECKING:
    from typer._click import Context, Parameter

COMMANDS = {
    "diagnose": "Why the cache was not read: the byte, the price, the fix.",
    "replay": "What a log cost, how it grows, what was missed, what to do.",
    "simulate": "What other ways to manage the context would cost under caching.",
    "advise": "The session in hand: go on, compact, hand off, or wait.",
    "image": "What images cost by their size, and what shrinking saves.",
    "gate": "Hold the prefix stable in CI: logs, programs, functions.",
    "record": "Record what a program sends, by a proxy on loopback.",
    "formats": "List the log formats that can be read.",
    "explain": "Explain a cause, a format, a strategy or a topic.",
}
"""Each is a module of this package with an `app`; the text is its line in the help."""

FAULT = 70
INTERRUPTED = 130


class DeferredCommand(TyperCommand):
    """A name and a line of help; the command itself is loaded when it is called or completed."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Context | None = None, **extra: Any
    ) -> Context:
        """The context of the command that the name stands for."""
        module = import_module(f"ctxdoc.cli.{self.name}")
        # The context is that of the loaded command, so that parsing, help and completion are its own.
        command = typer.main.get_command(module.app)
        command.name = self.name
        return command.make_context(info_name, args, parent, **extra)


class CommandGroup(TyperGroup):
    """The commands of ctxdoc, none of them loaded."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: DeferredCommand(name, help=text) for name, text in COMMANDS.items()}

    def get_params(self, ctx: typer.Context) -> list[Parameter]:  # type: ignore[override]
        """Every parameter, the help option too."""
        return without_checks(super().get_params(ctx))


app = typer.Typer(
    cls=CommandGroup,
    rich_markup_mode=None,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ctxdoc {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Find out why a prompt cache is dead: the byte, the cause, the price and the fix.

    \b
    Examples:
      ctxdoc diagnose before.json after.json
      ctxdoc diagnose agent.jsonl --pair 7,8
      ctxdoc simulate agent.jsonl
      ctxdoc advise agent.jsonl
      ctxdoc gate agent.jsonl
      ctxdoc record -- python agent.py
      ctxdoc explain timestamp_in_prefix

    Exit codes: 0 done; 1 a limit of the gate is broken, or --exit-code was given and the cache is not
    alive; 2 wrong arguments or unreadable input; 3 no usable request in the input, or the gate could not
    check; 70 a fault in ctxdoc.
    """
    del version


def main(arguments: list[str] | None = None) -> None:
    """Runs the program and exits with its code."""
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(_guarded(lambda: app(words, prog_name="ctxdoc"), words))


def _guarded(run: Callable[[], object], words: Sequence[str]) -> int:
    """The exit code of a run; what was typed may have failed to be read as options, so it is looked through."""
    try:
        run()
    except CtxdocError as error:
        _say(error, quiet="--quiet" in words)
        return error.exit_code
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    except SystemExit as end:
        # Typer ends so, with its own code for wrong arguments.
        return end.code if isinstance(end.code, int) else 2
    except Exception as error:
        _say_fault(error, debug="--debug" in words)
        return FAULT
    return 0


def _say(error: CtxdocError, *, quiet: bool) -> None:
    notes = [] if quiet else getattr(error, "__notes__", [])
    lines = [f"ctxdoc: {note}" for note in notes]
    lines.append(f"ctxdoc: nothing was analysed: {error.message}")
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    _write_error("\n".join(lines))


def _say_fault(error: Exception, *, debug: bool) -> None:
    """No traceback unless asked for: its lines may hold parts of a prompt."""
    if debug:
        import traceback

        traceback.print_exception(error)
    name = type(error).__name__
    _write_error(
        f"ctxdoc: nothing was analysed: a fault in ctxdoc itself ({name})\n"
        "  hint: run it again with --debug and report what it prints"
    )


def _write_error(text: str) -> None:
    from ctxdoc.outputs.printable import harmless  # help and version write no error

    # A closed or full standard error must not change the exit code.
    with suppress(OSError, AttributeError):
        sys.stderr.write(harmless(text) + "\n")
