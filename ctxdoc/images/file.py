"""Image files and the images of a request: what they are, and smaller ones."""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

from ctxdoc.errors import InputError
from ctxdoc.images.size import patches, short_side
from ctxdoc.request.codec import Json
from ctxdoc.request.digest import blake2b


def read_size(data: str) -> tuple[int, int] | None:
    """Width and height from the header of base64 image data, without decoding the pixels."""
    found = picture_of(data)
    return (found.width, found.height) if found else None


class Picture(NamedTuple):
    """An image as its header tells, without decoding it."""

    width: int
    height: int
    kind: str
    """PNG, JPEG, GIF, WEBP."""
    size: int
    """Bytes."""
    moves: bool = False
    """Whether it has several frames."""
    turned: bool = False
    """Whether its EXIF data says that it is to be shown turned by a quarter."""


KINDS = ("PNG", "JPEG", "GIF", "WEBP")
"""What the API takes (vision page, 2026-08-22)."""


TURNED = frozenset({5, 6, 7, 8})
"""EXIF orientations that exchange the sides."""


_ORIENTATION = 0x0112


def read_picture(data: bytes) -> Picture:
    """The header of an image file. Pillow reads it: it is there for matplotlib, and knows every type that
    the API takes.

    Raises InputError for what is no image that the API takes.
    """
    import warnings

    from PIL import Image

    try:
        with warnings.catch_warnings():
            # Nothing is decoded: a size beyond all limits is what is to be told.
            warnings.simplefilter("ignore")
            most, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, None
            try:
                with Image.open(BytesIO(data)) as image:
                    kind = "JPEG" if image.format == "MPO" else str(image.format)
                    if kind not in KINDS:
                        raise InputError(f"a {kind} file: the API takes {', '.join(KINDS)}")
                    return Picture(
                        width=image.width,
                        height=image.height,
                        kind=kind,
                        size=len(data),
                        moves=bool(getattr(image, "is_animated", False)),
                        turned=kind == "JPEG" and image.getexif().get(_ORIENTATION) in TURNED,
                    )
            finally:
                Image.MAX_IMAGE_PIXELS = most
    except (OSError, ValueError, SyntaxError, struct.error, OverflowError, EOFError) as error:
        raise InputError(
            "no image that can be read", "PNG, JPEG, GIF and WebP files are read"
        ) from error


_SEEN: dict[bytes, Picture | None] = {}
"""Headers by the digest of their data: the data itself is not held."""


def picture_of(data: str) -> Picture | None:
    """The header of base64 image data; None where it cannot be read."""
    key = blake2b(data.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    if key not in _SEEN:
        _SEEN[key] = _picture(data)
    return _SEEN[key]


def _picture(data: str) -> Picture | None:
    try:
        return read_picture(b64decode(data, validate=False))
    except (ValueError, InputError):
        return None


def iter_images(value: Json, path: str = "") -> Iterator[tuple[str, str | None]]:
    """Every image of a block, those inside of tool results too: its path in the block, and its base64
    data; None for a reference."""
    match value:
        case {"type": "image", "source": {"type": "base64", "data": str(data)}}:
            yield path, data
        case {"type": "image"}:
            yield path, None
        case {"type": "tool_result", "content": list(parts)}:
            for place, part in enumerate(parts):
                yield from iter_images(part, f"{path}.content[{place}]")


def shrunk(width: int, height: int, max_edge: int, max_tokens: int) -> tuple[int, int]:
    """The largest size of the same aspect with a long side and patches up to these; 0 is no limit."""
    long, short = max(width, height), min(width, height)
    side = min(long, max_edge) if max_edge else long

    def tokens(edge: int) -> int:
        return patches(edge) * patches(short_side(edge, long, short))

    if max_tokens and tokens(side) > max_tokens:
        low, high = 1, side
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if tokens(middle) <= max_tokens else (low, middle - 1)
        side = low
    other = short_side(side, long, short)
    return (side, other) if width >= height else (other, side)


def blank_picture(width: int, height: int, name: str) -> str:
    """A PNG of one colour with that size, as base64; the name makes it differ from others."""
    from PIL import Image
    from PIL.PngImagePlugin import PngInfo

    note = PngInfo()
    note.add_text("Comment", name)
    stream = BytesIO()
    Image.new("1", (width, height)).save(stream, "PNG", pnginfo=note)
    return b64encode(stream.getvalue()).decode()
