"""The command line called in this process: what it printed, and with which code it ended."""

from __future__ import annotations

import gc
import io
import os
import subprocess
from contextlib import chdir
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from ctxdoc.cli.app import main
from tests.support.sessions import ROOT


class Ended(NamedTuple):
    """How a call ended."""

    code: int
    out: str
    err: str


class Piped(io.TextIOWrapper):
    """A standard stream that is a pipe."""

    def __init__(self, data: bytes = b"") -> None:
        self.bytes = io.BytesIO(data)
        super().__init__(io.BufferedReader(self.bytes) if data else self.bytes, "utf-8")  # type: ignore[type-var]


def call(*words: str | Path, stdin: bytes = b"", **environment: str) -> Ended:
    """Calls ctxdoc with an environment that says nothing about the person who tests."""
    out, err = Piped(), Piped()
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    was_on = gc.isenabled()
    try:
        with (
            mock.patch.dict(os.environ, {**kept, **environment}, clear=True),
            mock.patch("sys.stdin", Piped(stdin)),
            mock.patch("sys.stdout", out),
            mock.patch("sys.stderr", err),
            pytest.raises(SystemExit) as end,
        ):
            main(list(map(str, words)))
    finally:
        # The commands switch it off: their process ends soon, this one does not.
        if was_on:
            gc.enable()
    out.flush()
    err.flush()
    assert isinstance(end.value.code, int)
    return Ended(end.value.code, out.bytes.getvalue().decode(), err.bytes.getvalue().decode())


def run(*words: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Calls ctxdoc in the folder of the project, and hands back what a process of its own would."""
    with chdir(ROOT):
        code, out, err = call(*words, stdin=stdin, **environment)
    return subprocess.CompletedProcess(words, code, out.encode(), err.encode())
