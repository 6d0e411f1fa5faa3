"""What every registered format has to do: be found, be explained, and survive hostile input."""

from __future__ import annotations

import gzip
import io
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ctxdoc.errors import CtxdocError
from ctxdoc.reading.formats import FORMATS
from ctxdoc.reading.load import read_log
from ctxdoc.reading.source import Source
from ctxdoc.request.log import Log, Skipped
from ctxdoc.request.request import Request

SAMPLES = Path(__file__).parents[3] / "fixtures" / "formats"
CUTS = 100


def sample_of(name: str) -> Path:
    """The sample of a format: a file, or a folder where the format is one."""
    found = sorted((SAMPLES / name).glob("sample*"))
    assert found, f"fixtures/formats/{name} has no sample"
    return found[0]


def main_file(name: str) -> Path:
    """The file of a sample that carries the format."""
    sample = sample_of(name)
    if sample.is_file():
        return sample
    files = [path for path in sorted(sample.rglob("*")) if path.is_file()]
    return next(path for path in files if _is_of(name, path.read_bytes(), path.parent))


def _is_of(name: str, data: bytes, folder: Path | None = None) -> bool:
    return FORMATS[name].matches(Source("x", io.BytesIO(data), folder))


def items_of(name: str, data: bytes) -> list[Request | Skipped]:
    """What a format makes of some bytes."""
    return list(FORMATS[name].read(Source("x", io.BytesIO(data))))


def read_or_refused(path: Path) -> Log | None:
    """The log, or None where it is refused."""
    try:
        return read_log([str(path)])
    except CtxdocError:
        return None


NAMES = pytest.mark.parametrize("name", FORMATS.names)


@NAMES
def test_a_sample_is_found_by_its_content_whatever_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    data = main_file(name).read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if data[:4] == b"PK\x03\x04" or sample_of(name).is_dir():
        log = read_log([str(sample_of(name))])
    else:
        path.write_bytes(data)
        log = read_log([str(path)])
    assert name in log.formats


@NAMES
def test_a_sample_holds_requests_with_a_place(name: str) -> None:
    log = read_log([str(sample_of(name))])
    assert log.requests
    for request in log.requests:
        assert request.source
        assert request.line >= 1
        assert request.body is not None or request.usage is not None


@NAMES
@pytest.mark.parametrize("heading", ["How to get one", "Privacy"])
def test_the_page_says_how_to_get_one_and_what_is_private(name: str, heading: str) -> None:
    page = FORMATS.page(name)
    assert any(line.strip().startswith(heading) for line in page.splitlines())


@NAMES
def test_a_format_says_what_it_carries_and_where_it_stands(name: str) -> None:
    form = FORMATS[name]
    assert form.id == name
    assert form.title
    assert form.example
    assert form.traits


@NAMES
def test_no_format_claims_another_ones_sample(name: str) -> None:
    """Those behind it in the registry may: the order is the precedence."""
    data = main_file(name).read_bytes()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    if data[:4] == b"PK\x03\x04":
        pytest.skip("an archive has no format of its own")
    ahead = FORMATS.names[: FORMATS.names.index(name)]
    assert [other for other in ahead if _is_of(other, data)] == []


def _damaged(data: bytes) -> Iterator[bytes]:
    """The sample cut, and with a byte flipped, at seeded places."""
    rng = random.Random(len(data))
    for _ in range(CUTS):
        place = rng.randrange(len(data))
        yield data[:place]
        yield data[:place] + bytes([data[place] ^ (1 << rng.randrange(8))]) + data[place + 1 :]


@NAMES
def test_a_cut_or_flipped_sample_is_read_or_named(name: str) -> None:
    for broken in _damaged(main_file(name).read_bytes()):
        for item in items_of(name, broken):
            assert isinstance(item, Request) or item.reason


@NAMES
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_named(name: str, data: bytes) -> None:
    for item in items_of(name, data):
        assert isinstance(item, Request) or item.reason


@NAMES
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([b"{", b"[", b'{"a":', b"- ", b"a: &a [*a]\n", b'{"request":', b"[["]),
    st.integers(1, 400),
)
def test_deep_nesting_is_read_or_named(name: str, opener: bytes, levels: int) -> None:
    for item in items_of(name, opener * levels):
        assert isinstance(item, Request) or item.reason


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % ((c, c, *([c - 1] * 9)))
    for c in range(ord("b"), ord("k"))
)
"""Nine to the tenth nodes when it is expanded."""


@NAMES
def test_an_alias_bomb_is_read_or_named(name: str) -> None:
    for prefix in (b"", b"interactions:\n- ", b"http_interactions:\n- "):
        for item in items_of(name, prefix + BOMB):
            assert isinstance(item, Request) or item.reason


@pytest.mark.parametrize("kind", ["gzip", "zip"])
def test_an_archive_that_unpacks_to_gigabytes_is_bounded(kind: str, tmp_path: Path) -> None:
    """Blank bytes, and one document without an end; neither is held in memory."""
    path = tmp_path / "bomb"
    zeros = bytes(1 << 20)
    if kind == "gzip":
        with gzip.open(path, "wb", compresslevel=1) as stream:
            stream.write(b'{"messages":["')
            for _ in range(300):
                stream.write(zeros)
    else:
        with (
            zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("x.json", "w") as inside,
        ):
            inside.write(b'{"messages":["')
            for _ in range(300):
                inside.write(zeros)
    assert read_or_refused(path) is None
