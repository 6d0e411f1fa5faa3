"""Zstandard frames as a stream of plain bytes; loaded only where a file is compressed so."""

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PIECE = 1 << 10
"""Compressed bytes that are unpacked at once: four of them may stand for a block of 128 kB."""


class DamagedZstdError(OSError):
    """A zstd file that is cut, or whose bytes are no frame."""


class ZstdStream(io.RawIOBase):
    """The content of one frame after the other."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._is_open = False
        """Whether a frame has begun and not ended."""
        self._plain = memoryview(b"")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fills the buffer as far as it goes; raises DamagedZstdError."""
        while not self._plain and (piece := self._packed.read(PIECE)):
            self._plain = memoryview(self._unpacked(piece))
        if not self._plain and self._is_open:
            raise DamagedZstdError("the zstd data is cut")
        target = memoryview(buffer)
        size = min(len(target), len(self._plain))
        target[:size] = self._plain[:size]
        self._plain = self._plain[size:]
        return size

    def _unpacked(self, piece: bytes) -> bytes:
        """What a piece holds: the end of one frame, and whole ones behind it."""
        found = []
        while piece:
            try:
                found.append(self._frame.decompress(piece))
            except zstandard.ZstdError as error:
                raise DamagedZstdError(f"damaged zstd data: {error}") from error
            self._is_open = not self._frame.eof
            piece = b"" if self._is_open else self._frame.unused_data
            # An object reads one frame, and a file that was appended to has several.
            if not self._is_open:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
        return b"".join(found)
