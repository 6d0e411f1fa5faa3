"""Compressed bodies, told by their first bytes and bounded in what they unpack to."""

from __future__ import annotations

import zlib

from ctxdoc.reading.source import MAX_DOCUMENT

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_TOO_LARGE = "unpacks to more than a request can be"


def unpacked(data: bytes) -> bytes:
    """Bytes as they were before compression; the content-encoding header is kept in some recordings
    and dropped in others.

    Raises ValueError for damaged data, or for more than MAX_DOCUMENT.
    """
    if data.startswith(GZIP):
        return _inflated(data, 31)
    if data.startswith(ZSTD):
        return _of_zstd(data)
    if not _may_be_zlib(data):
        return data
    try:
        return _inflated(data, 15)
    except ValueError:
        # Any text may begin with an x and the right second character.
        return data


def _may_be_zlib(data: bytes) -> bool:
    """Whether the first two bytes are those of a zlib stream (RFC 1950, 2.2)."""
    return data[:1] == b"\x78" and len(data) > 1 and int.from_bytes(data[:2], "big") % 31 == 0


def _inflated(data: bytes, kind: int) -> bytes:
    machine = zlib.decompressobj(kind)
    try:
        plain = machine.decompress(data, MAX_DOCUMENT)
    except zlib.error as error:
        raise ValueError(f"damaged compressed data: {error}") from error
    # More would come out than was asked for.
    if machine.unconsumed_tail:
        raise ValueError(_TOO_LARGE)
    return plain


def _of_zstd(data: bytes) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as stream:
            # Read as a stream: the size that a frame states of itself may be any.
            plain = stream.read(MAX_DOCUMENT + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged compressed data: {error}") from error
    if len(plain) > MAX_DOCUMENT:
        raise ValueError(_TOO_LARGE)
    return bytes(plain)
