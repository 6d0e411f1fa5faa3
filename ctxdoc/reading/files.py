"""Files, folders and archives as the sources inside of them; nothing is written to disk."""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from ctxdoc.errors import InputError
from ctxdoc.reading.source import MAX_DOCUMENT, Source, Walk

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

ZIP = b"PK\x03\x04"
GZIP = b"\x1f\x8b"
ZSTD = b"\x28\xb5\x2f\xfd"
BUFFER = 256 << 10
MAX_MEMBERS = 100_000
SKIPPED_FOLDERS = frozenset({".git", "node_modules", "__pycache__", ".venv"})


def iter_sources(path: str) -> Iterator[Source]:
    """The logs under a path: a file, every file of a folder, the members of an archive, or `-`.

    Raises OSError and InputError for what cannot be opened.
    """
    if not path:
        raise InputError("the name of a file is empty", "is a shell variable unset?")
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", "name a file")
        yield from _opened("-", sys.stdin.buffer, None)
        return
    walk = None
    walked = os.path.isdir(path)  # noqa: PTH112
    for name in _files(path):
        folder = Path(name).parent
        if walked and (walk is None or walk.folder != folder):
            walk = Walk(folder)
        with Path(name).open("rb", buffering=BUFFER) as stream:
            yield from _opened(shown(name), stream, folder, walk)


def unreadable() -> tuple[type[Exception], ...]:
    """Errors of a file that cannot be opened, or is damaged; asked for when one is raised."""
    from zipfile import BadZipFile  # a slow import, for few logs

    return OSError, EOFError, zlib.error, BadZipFile


def size_of(paths: Iterable[str]) -> int:
    """Bytes on disk of all files under the paths; standard input counts as nothing."""
    total = 0
    for path in paths:
        if path and path != "-":
            for name in _files(path):
                try:
                    total += os.path.getsize(name)  # noqa: PTH202
                except OSError:
                    continue
    return total


def shown(path: str) -> str:
    """A path as it can be written anywhere: bytes that are no UTF-8 are escaped."""
    return path.encode("utf-8", "backslashreplace").decode() or "''"


def _files(path: str) -> Iterator[str]:
    """The path itself, or the files below it, sorted."""
    if not os.path.isdir(path):  # noqa: PTH112
        yield path
        return
    for folder, below, names in os.walk(path):
        # In place, so that the walk follows the order and leaves them out.
        below[:] = sorted(name for name in below if name not in SKIPPED_FOLDERS)
        for name in sorted(names):
            full = os.path.join(folder, name)  # noqa: PTH118
            if os.path.isfile(full):  # noqa: PTH113
                yield full


def _opened(
    name: str, stream: IO[bytes], folder: Path | None, walk: Walk | None = None
) -> Iterator[Source]:
    with ExitStack() as stack:
        if not hasattr(stream, "peek"):
            stream = stack.enter_context(io.BufferedReader(cast("io.RawIOBase", stream)))
        # What a file is packed in is told by its content: names lie, and standard input has none.
        head = cast("io.BufferedReader", stream).peek(4)[:4]
        # Else it would be told as no JSON, which names no way out.
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{name} is UTF-16", "save it as UTF-8: iconv -f utf-16 -t utf-8")
        if head.startswith(GZIP):
            from gzip import GzipFile  # few logs are packed

            plain = cast("IO[bytes]", stack.enter_context(GzipFile(fileobj=stream)))
            yield Source(name, plain, folder, walk, stream)
        elif head == ZSTD:
            from ctxdoc.reading.zstd_stream import ZstdStream

            unpacked = stack.enter_context(io.BufferedReader(ZstdStream(stream), BUFFER))
            yield Source(name, unpacked, folder, walk, stream)
        elif head == ZIP:
            yield from _members(name, stream)
        else:
            yield Source(name, stream, folder, walk, stream)


def _members(name: str, stream: IO[bytes]) -> Iterator[Source]:
    """The members of a zip archive, each read in place and bounded."""
    import zipfile  # few logs are packed

    # The directory of an archive stands at its end.
    data = stream if stream.seekable() else io.BytesIO(stream.read(MAX_DOCUMENT))
    try:
        archive = zipfile.ZipFile(data)
    except zipfile.BadZipFile as error:
        raise InputError(
            f"{name}: {error}", "the archive is cut or damaged: unzip -t tests it"
        ) from error
    with archive:
        for member in archive.infolist()[:MAX_MEMBERS]:
            if not member.is_dir():
                inner = f"{name}::{shown(member.filename)}"
                with _member(archive, member, inner) as inside:
                    yield Source(inner, inside, file=data)


def _member(archive: ZipFile, member: ZipInfo, name: str) -> IO[bytes]:
    try:
        return archive.open(member)
    except (NotImplementedError, RuntimeError) as error:
        # The one for a compression that Python has not, the other for a password.
        raise InputError(f"cannot read {name}: {error}", "unpack the archive first") from error
