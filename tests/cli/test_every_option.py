"""Every option of every command has a test that shows what it does."""

from __future__ import annotations

from importlib import import_module

import typer

from ctxdoc.cli.app import COMMANDS
from tests.support.options import (
    SHOWN,
)

MODULES = (
    "advise", "common_options", "diagnose", "simulate_options", "image", "gate", "record",
)  # fmt: skip
"""Tests that show options: they say so when they are loaded."""


def test_every_option_of_every_command_is_shown() -> None:
    for name in MODULES:
        import_module(f"tests.cli.test_{name}")
    every = set()
    for name in COMMANDS:
        command = typer.main.get_command(import_module(f"ctxdoc.cli.{name}").app)
        words = {word for parameter in command.params for word in parameter.opts}
        every |= {f"{name} {word}" for word in words if word.startswith("--")}
    assert every == SHOWN
