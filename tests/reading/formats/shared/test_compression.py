"""Compressed bodies: told by their first bytes, bounded, and named where they are damaged."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from ctxdoc.reading.formats.shared import compression
from ctxdoc.reading.formats.shared.compression import unpacked

KINDS: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, zlib.compress, zstandard.compress)
MAGIC = (b"\x1f\x8b", b"\x78", b"\x28\xb5\x2f\xfd")


@pytest.mark.parametrize("pack", KINDS)
@given(data=st.binary(max_size=2000))
def test_what_is_packed_comes_back(pack: Callable[[bytes], bytes], data: bytes) -> None:
    assert unpacked(pack(data)) == data


@given(st.binary(max_size=200).filter(lambda data: not data.startswith(MAGIC)))
def test_what_is_not_packed_stays(data: bytes) -> None:
    assert unpacked(data) == data


@pytest.mark.parametrize("text", [b"x", b"x\x01 marks the spot", b"x-ray"])
def test_a_text_that_begins_like_zlib_stays(text: bytes) -> None:
    assert unpacked(text) == text


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"\x28\xb5\x2f\xfd"])
def test_damaged_data_is_a_value_error(magic: bytes) -> None:
    with pytest.raises(ValueError, match="damaged compressed data"):
        unpacked(magic + b"\xff" * 30)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@pytest.mark.parametrize(("size", "fits"), [(99, True), (100, True), (101, False), (5000, False)])
def test_more_than_a_document_is_refused(
    pack: Callable[[bytes], bytes], size: int, fits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compression, "MAX_DOCUMENT", 100)
    if fits:
        assert unpacked(pack(b"a" * size)) == b"a" * size
        return
    with pytest.raises(ValueError, match="more than a request can be"):
        unpacked(pack(b"a" * size))
