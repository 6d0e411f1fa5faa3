"""Keeps the README's examples what the program prints: `--check` compares, `--write` renews.

An example is a fenced block whose first line is `$ ctxdoc …`; the lines below it are the output. Lines that are
`...` stand for what is left out at the end. A block of Python that begins with `>>>` is run as well,
all of them as one session. Where pandas is not installed, a stand-in takes its place, which checks the rows and
is no data frame (tests/support/frame.py).
"""

from __future__ import annotations

import doctest
import importlib.util
import io
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from tests.support import frame

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
EXAMPLE = re.compile(
    r"(?P<open>```(?:console)?\n)\$ (?P<command>ctxdoc [^\n]*)\n(?P<output>.*?)(?P<close>```)",
    re.DOTALL,
)
SESSION = re.compile(r"(?<=```python\n)>>> .*?(?=```)", re.DOTALL)


def output_of(command: str) -> str:
    """What the program prints, standard error included."""
    words = shlex.split(command)[1:]
    ended = subprocess.run(
        [sys.executable, "-m", "ctxdoc", *words],
        capture_output=True,
        cwd=ROOT,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin", "COLUMNS": "100"},
    )
    return (ended.stdout + ended.stderr).decode()


def renewed(text: str) -> str:
    """The README with every output made anew; one that was cut stays as long as it was."""

    def example(match: re.Match[str]) -> str:
        shown, old = output_of(match["command"]).rstrip("\n"), match["output"].rstrip("\n")
        if old.endswith("\n..."):
            shown = "\n".join(shown.splitlines()[: len(old.splitlines()) - 1]) + "\n..."
        return f"{match['open']}$ {match['command']}\n{shown}\n{match['close']}"

    names: dict[str, Any] = {}
    with chdir(ROOT):
        text = SESSION.sub(lambda match: typed_again(match[0], names), text)
    return EXAMPLE.sub(example, text)


def typed_again(session: str, names: dict[str, Any]) -> str:
    """A session of the interpreter with every output made anew; `names` are what was defined before."""
    shown = []
    with frames():
        for part in doctest.DocTestParser().parse(session):
            if isinstance(part, str):
                shown.append(part)
                continue
            typed = part.source.rstrip("\n").replace("\n", "\n... ")
            with redirect_stdout(io.StringIO()) as said:
                exec(compile(part.source, README.name, "single"), names)
            shown.append(f">>> {typed}\n{said.getvalue()}")
    return "".join(shown)


@contextmanager
def frames() -> Iterator[None]:
    """Somebody who takes rows as pandas does: pandas, or else the stand-in, while this lasts."""
    if importlib.util.find_spec("pandas") is not None:
        yield
        return
    sys.modules["pandas"] = frame
    try:
        yield
    finally:
        del sys.modules["pandas"]


def main() -> int:
    """0 when the README is in step."""
    text = README.read_text(encoding="utf-8")
    new = renewed(text)
    if "--write" in sys.argv:
        README.write_text(new, encoding="utf-8")
        return 0
    if new == text:
        return 0
    sys.stderr.write("README.md: an example is not what the program prints; run: make format\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
