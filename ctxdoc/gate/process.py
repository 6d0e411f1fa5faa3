"""A request builder run as a process of its own: bounded in time and output, its bodies taken apart."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from ctxdoc.errors import CtxdocError, InputError, UncheckedError
from ctxdoc.reading.load import read_bodies
from ctxdoc.request.request import Request

MOST_BYTES = 64_000_000
"""Of what a builder prints."""


TELL_SECONDS = 0.02
"""Between two looks at a running builder."""


LAST_WORDS = 100
"""Characters of a builder's error that are repeated."""


class Scene(Struct, frozen=True, kw_only=True):
    """What a program finds when it is started."""

    environment: dict[str, str]
    folder: Path
    wait: bool = False
    """Whether a second passes before."""


class Run(Struct, frozen=True):
    """The bodies that a builder printed."""

    requests: tuple[Request, ...]


class Failed(Struct, frozen=True):
    """A builder that gave none."""

    why: str


class Builder:
    """A program that prints the body of a request, or several, a line each."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout: float,
        folder: Path,
        paths: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """`paths` are search paths of its environment."""
        self.command = tuple(command)
        self.timeout = timeout
        self.folder = folder
        self.paths = {name: os.pathsep.join(parts) for name, parts in (paths or {}).items()}

    @property
    def scene(self) -> Scene:
        """The surroundings as they are, with Python's hash function fixed."""
        environment = {**os.environ, **self.paths, "PYTHONHASHSEED": "0"}
        # With another HOME, what the user installed is still found.
        environment.setdefault("PYTHONUSERBASE", str(Path("~/.local").expanduser()))
        return Scene(environment=environment, folder=self.folder)

    def reference(self) -> Run:
        """The first run.

        Raises InputError for a program that cannot be started, UncheckedError for one that fails, hangs or
        prints no body.
        """
        return self._run(self.scene)

    def run(self, scene: Scene) -> Run | Failed:
        """A further run."""
        if scene.wait:
            wait_a_second()
        try:
            return self._run(scene)
        except CtxdocError as error:
            return Failed(error.message)

    def _run(self, scene: Scene) -> Run:
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as complained:
            code = self._wait(self._started(scene, said, complained), (said, complained))
            if code:
                why = f"the builder ended with {_code(code)}{_last_words(complained)}"
                raise UncheckedError(why, "run it by hand; it has to give a request body")
            said.seek(0)
            data = said.read()
        if not data.strip():
            raise UncheckedError("the builder printed nothing", "it has to print a request body")
        try:
            return Run(read_bodies(data, "builder"))
        except CtxdocError as error:
            raise UncheckedError(
                f"the builder printed no request body ({error.message})",
                "it has to print one body as JSON, or one a line, and nothing else",
            ) from error

    def _started(
        self, scene: Scene, said: IO[bytes], complained: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.command,
                cwd=scene.folder,
                env=scene.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"cannot start {self.command[0]}: {reason}",
                "no shell runs the command: for && and variables write --command \"sh -c '…'\"",
            ) from error

    def _wait(self, process: subprocess.Popen[bytes], outputs: Sequence[IO[bytes]]) -> int:
        """Its exit code; ends it when it takes too long or prints too much."""
        end = time.monotonic() + self.timeout
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.wait(TELL_SECONDS)
                if time.monotonic() > end:
                    raise UncheckedError(
                        f"the builder did not end in {self.timeout:g} s", "--timeout allows more"
                    )
                if any(os.fstat(output.fileno()).st_size > MOST_BYTES for output in outputs):
                    raise UncheckedError(f"the builder printed over {MOST_BYTES:,} bytes")
        finally:
            # Whatever it started ends with it.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_a_second() -> None:
    """Waits until the clock shows another second, and a little longer."""
    time.sleep(1.1 - time.time() % 1)


def called(build: Callable[[], Any], *, wait: bool = False) -> Run:
    """The bodies that a function of this process returns; with `wait` a second later.

    Raises UncheckedError for a function that fails or returns none.
    """
    from ctxdoc.gate.child import bodies_of

    if wait:
        wait_a_second()
    try:
        texts = bodies_of(build())
    except Exception as error:
        raise UncheckedError(
            f"the builder failed: {type(error).__name__}", "call it by hand"
        ) from error
    try:
        return Run(read_bodies("\n".join(texts).encode("utf-8", "surrogatepass"), "builder"))
    except CtxdocError as error:
        raise UncheckedError(
            f"the builder returned no request body ({error.message})",
            "it has to return one body as a dict, or a list of them",
        ) from error


def _code(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _last_words(complained: IO[bytes]) -> str:
    """The end of its error output, short, and without what may be a key."""
    size = complained.seek(0, os.SEEK_END)
    complained.seek(max(0, size - 4096))
    lines = complained.read().decode("utf-8", "replace").strip().splitlines()
    if not lines:
        return ""
    said = next((line for line in reversed(lines) if ERROR.match(line)), lines[-1])
    words = [word if len(word) < 20 or not _is_random(word) else "[…]" for word in said.split()]
    text = SECRET.sub(lambda found: f"{found[1] or ''} […]".strip(), " ".join(words))
    return f": {text[:LAST_WORDS]}{'…' if len(text) > LAST_WORDS else ''}"


ERROR = re.compile(r"[\w.]*(?:Error|Exception|Exit|Interrupt)\b")
"""The line of a traceback that names the error; its text may take several lines."""


SECRET = re.compile(
    r"(?i)\b(bearer|authorization|passw\w*|secret\w*|token|\w*key)\W{1,3}(?:bearer\s+)?(?!\[…)\S+|AKIA\w+"
)


def _is_random(word: str) -> bool:
    """Whether a long word may be a key: it has digits, or no vowels to speak of."""
    return any(c.isdigit() for c in word) or sum(c in "aeiou" for c in word.lower()) * 5 < len(word)


def split_command(text: str) -> list[str]:
    """A command as a shell would split it; no shell runs it.

    Raises InputError for quotes that do not end.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"--command cannot be split: {error}", "check its quotes") from error
    if not words:
        raise InputError("--command is empty", "write --command 'python build.py'")
    return words


def import_command(target: str) -> list[str]:
    """The command that calls `pkg.mod:function` in a fresh interpreter and prints what it returns.

    Raises InputError for what names no function.
    """
    module, colon, function = target.partition(":")
    if not (module and colon and function):
        raise InputError(f"--import '{target}' names no function", "write pkg.mod:function")
    return [sys.executable, "-m", "ctxdoc.gate.child", target]
