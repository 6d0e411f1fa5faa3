"""`ctxdoc record`: a log of what an agent sends, without a change to it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from ctxdoc.cli.command import Command
from ctxdoc.cli.options import DebugOption, QuietOption
from ctxdoc.cli.writing import warn
from ctxdoc.errors import InputError

if TYPE_CHECKING:
    from ctxdoc.record.writer import Recorder

OFFICIAL = "https://api.anthropic.com"
VARIABLES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL", "ANTHROPIC_API_BASE")
"""The Anthropic SDKs and Claude Code; langchain-anthropic; litellm."""
DIRECT = ("NO_PROXY", "no_proxy")
LOOPBACK = ("127.0.0.1", "localhost", "::1")

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)


@app.command(cls=Command, context_settings={"help_option_names": ["-h", "--help"]})
def record(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- CMD...", help="The program to run, behind --.", show_default=False
        ),
    ] = None,
    out: Annotated[
        str, typer.Option("--out", metavar="LOG", help="The log; one that is there is added to.")
    ] = "ctxdoc.jsonl",
    port: Annotated[
        int, typer.Option("--port", metavar="N", help="Listen here; 0 takes a free one.", min=0)
    ] = 0,
    upstream: Annotated[
        str,
        typer.Option(
            "--upstream",
            metavar="URL",
            help="Where requests go; without it ANTHROPIC_BASE_URL, else the API itself.",
        ),
    ] = "",
    listen: Annotated[
        bool, typer.Option("--listen", help="Run without a program, until Ctrl-C.")
    ] = False,
    redact: Annotated[
        str, typer.Option("--redact", metavar="none|text", help="text: hashes instead of text.")
    ] = "none",
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> None:
    """Record what a program sends to the Messages API, by a proxy on loopback.

    The program is told by ANTHROPIC_BASE_URL and the names that other clients read. Everything passes
    through byte for byte, streams unbuffered; a line is written when a response ends. Keys, cookies and
    other headers that can hold a secret never reach the disk. Exits with the program's code.

    \b
    Examples:
      ctxdoc record -- python agent.py
      ctxdoc record --out agent.jsonl --redact text -- claude -p 'fix the test'
      ctxdoc record --listen --port 8787
    """
    del debug
    words = list(command or [])
    if listen == bool(words):
        raise InputError(
            "--listen runs without a program" if listen else "there is no program to run",
            "write ctxdoc record -- python agent.py, or ctxdoc record --listen",
        )
    url = upstream or _gateway() or OFFICIAL
    _check_upstream(url, port)
    if port > MOST_PORT:
        raise InputError(f"--port {port} is over {MOST_PORT}", "0 takes a free one")
    from ctxdoc.record.writer import Recorder

    recorder = Recorder(out, redact=redact, tell=lambda text: warn(text, quiet=False))
    try:
        code = asyncio.run(_run(words, url, port, recorder, quiet=quiet))
    finally:
        recorder.close()
    _summarize(recorder, words, quiet=quiet)
    if code:
        raise typer.Exit(code)


MOST_PORT = 65_535


def _gateway() -> str:
    """Where the environment sends requests now.

    Raises InputError where its names differ.
    """
    found = {os.environ[name] for name in VARIABLES if os.environ.get(name)}
    if len(found) > 1:
        raise InputError(
            f"{', '.join(VARIABLES)} are set and differ",
            "say which one is meant with --upstream URL",
        )
    return next(iter(found), "")


def _check_upstream(url: str, port: int) -> None:
    """Raises InputError for what is no address of an API."""
    hint = f"write --upstream {OFFICIAL}"
    try:
        parts = urlsplit(url)
        number = parts.port
    except ValueError as error:
        raise InputError("the upstream is no URL", hint) from error
    # First what is secret: no later message may repeat it.
    if "@" in parts.netloc:
        raise InputError(
            "the upstream holds a name or a password",
            "give it to the program, as a header or a key",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"the upstream '{url}' is no URL", hint)
    if parts.query or parts.fragment:
        raise InputError("the upstream has a query or a fragment", hint)
    if (parts.hostname, number) in {(host, port) for host in LOOPBACK}:
        raise InputError(
            f"the upstream {url} is the proxy itself", "unset it, or take another --port"
        )


async def _run(
    words: Sequence[str], upstream: str, port: int, recorder: Recorder, *, quiet: bool
) -> int:
    from ctxdoc.record.proxy import HOST, Proxy

    proxy = Proxy(upstream, recorder)
    try:
        async with proxy.running(port) as bound:
            url = f"http://{HOST}:{bound}"
            if not words:
                done = _interrupted()
                warn(f"recording to {recorder.path}; set {VARIABLES[0]}={url}", quiet=quiet)
                await done.wait()
                return 0
            return await _child(words, url)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot listen on port {port}: {reason}", "--port 0 takes a free one"
        ) from error


def _interrupted() -> asyncio.Event:
    """Set when the user ends it."""
    done = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, done.set)
    return done


async def _child(words: Sequence[str], url: str) -> int:
    """Runs the program; its exit code as a shell has it."""
    try:
        process = await asyncio.create_subprocess_exec(*words, env=_environment(url))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(
            f"cannot start {words[0]}: {reason}", "check the name behind --"
        ) from error
    loop = asyncio.get_running_loop()
    # Ctrl-C reaches the program by its terminal; other signals are passed on to it.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    loop.add_signal_handler(signal.SIGTERM, lambda: _end(process))
    code = await process.wait()
    return code if code >= 0 else 128 - code


def _end(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.terminate()


def _environment(url: str) -> Mapping[str, str]:
    # Both spellings are read, by one program or the other.
    known = next((os.environ[name] for name in DIRECT if os.environ.get(name)), "")
    direct = known if "*" in known.split(",") else ",".join(filter(None, (known, "127.0.0.1")))
    return {**os.environ, **dict.fromkeys(VARIABLES, url), **dict.fromkeys(DIRECT, direct)}


def _summarize(recorder: Recorder, words: Sequence[str], *, quiet: bool) -> None:
    if recorder.stopped:
        # That was said when it happened.
        return
    if not recorder.messages:
        which = words[0] if words else "the client"
        text = (
            f"no request came through: {which} does not read {VARIABLES[0]}, or sent nothing; "
            "'ctxdoc explain record' says how clients are told"
        )
        others = f" ({recorder.others} calls of other paths did)" if recorder.others else ""
        warn(text + others, quiet=False)
        return
    others = f" and {recorder.others} calls of other paths" if recorder.others else ""
    requests = "1 request" if recorder.messages == 1 else f"{recorder.messages:,} requests"
    warn(f"{requests}{others} recorded; ctxdoc replay {recorder.path}", quiet=quiet)
    sys.stderr.flush()
