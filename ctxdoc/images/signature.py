"""Signatures of images: whether a word names an image, or a log."""

from __future__ import annotations

import sys
from pathlib import Path

from ctxdoc.images.ask import PICTURE_NAMES, SIZE

SIGNATURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"%PDF", b"BM", b"II*\0", b"MM\0*")
"""Beginnings of files that are images or PDF, be it of kinds that the API does not take."""
LONGEST = 16
"""Bytes that are looked at."""


def is_image(what: str) -> bool:
    """Whether it is a size, a data URL, or a file that is or claims to be an image; `-` is standard
    input."""
    if SIZE.match(what) or what.startswith("data:"):
        return True
    if what == "-":
        return _stdin_head().startswith(SIGNATURES)
    path = Path(what)
    return path.suffix.lower() in PICTURE_NAMES or _head(path).startswith(SIGNATURES)


def _stdin_head() -> bytes:
    """The beginning of standard input, which stays to be read by whoever reads it all."""
    stream = sys.stdin.buffer
    return stream.peek(LONGEST) if hasattr(stream, "peek") else b""


def _head(path: Path) -> bytes:
    # Opening a pipe takes from it what its reader needs; only what can be read twice is looked into.
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as stream:
            return stream.read(LONGEST)
    except OSError:
        return b""
