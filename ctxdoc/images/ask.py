"""Images as they are asked about: a size, a file, a data URL, a PDF."""

from __future__ import annotations

import re
import sys
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.images.file import Picture, blank_picture, read_picture
from ctxdoc.images.limits import MANY, MANY_SIDE, MOST_REQUEST, MOST_SIDE
from ctxdoc.images.size import MOST_BASE64
from ctxdoc.providers import ModelRule
from ctxdoc.request.codec import Json

MOST_IMAGES = {False: 100, True: 600}
"""Images, and PDF pages, of one request, by whether the model has the larger window (vision and
pdf-support pages, 2026-08-22)."""


SIZE = re.compile(r"^([0-9]{1,7})[x×X*]([0-9]{1,7})$")


DATA_URL = re.compile(r"^data:(image/[\w.+-]+|application/pdf)?[^,]*,", re.ASCII)


EXTENSIONS = {"PNG": {".png"}, "JPEG": {".jpg", ".jpeg"}, "GIF": {".gif"}, "WEBP": {".webp"}}


PICTURE_NAMES = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".bmp", ".tif", ".tiff"}
)


MOST_BYTES = 100_000_000
"""Of a file: far more than any request takes."""


class AskedImage(Struct, frozen=True, kw_only=True):
    """An image that was asked about."""

    source: str
    """The size or the file as it was given."""
    width: int = 0
    height: int = 0
    picture: Picture | None = None
    """None for a size."""
    warnings: tuple[str, ...] = ()
    """What the API would refuse."""
    notes: tuple[str, ...] = ()
    """How it was counted."""
    counted: int | None = None
    """Tokens by the API's own count; None where it was not asked, or did not tell."""
    pages: int | None = None
    """Of a PDF, which has no size."""


def asked_of(what: str, rule: ModelRule) -> AskedImage:
    """A size, a data URL or a file.

    Raises InputError for what is none, or cannot be read.
    """
    size = SIZE.match(what)
    if size:
        picture = Picture(int(size[1]), int(size[2]), "", 0)
        if not picture.width or not picture.height:
            raise InputError(f"{what}: an image has at least one pixel", "write 1920x1080")
        return AskedImage(
            source=what,
            width=picture.width,
            height=picture.height,
            warnings=tuple(faults_of(picture)),
        )
    data, name = _data(what)
    try:
        if data.startswith(b"%PDF"):
            return _pdf(data, name, rule)
        found = read_picture(data)
    except InputError as error:
        raise InputError(f"{name}: {error.message}", error.hint) from error
    return AskedImage(
        source=name,
        width=found.width,
        height=found.height,
        picture=found,
        warnings=tuple(faults_of(found)),
        notes=tuple(_notes(found, name)),
    )


def image_block(each: AskedImage, what: str) -> dict[str, Json] | None:
    """An image as a block of a message; of a size a picture of one colour. None for a PDF, and for what the
    API would refuse."""
    if each.pages is not None or each.warnings or what == "-":
        return None
    if each.picture is None:
        data, kind = blank_picture(each.width, each.height, what), "png"
    else:
        data, kind = b64encode(_data(what)[0]).decode(), each.picture.kind.lower()
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": f"image/{kind}", "data": data},
    }


def _data(what: str) -> tuple[bytes, str]:
    """The bytes of a file or a data URL, and how to name it."""
    if what.startswith("data:"):
        match = DATA_URL.match(what)
        if match is None:
            raise InputError("the data URL holds no image", "write data:image/png;base64,…")
        rest = what[match.end() :]
        name = f"{match[0][:40]}…"
        if ";base64" not in match[0]:
            return unquote_to_bytes(rest), name
        try:
            return b64decode(rest, validate=False), name
        except (Base64Error, ValueError) as error:
            raise InputError(f"{name}: no base64") from error
    if what == "-":
        return sys.stdin.buffer.read(MOST_BYTES + 1), what
    path = Path(what)
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{what}: over {MOST_BYTES:,} bytes, more than any request takes")
        return path.read_bytes(), what
    except OSError as error:
        raise InputError(
            f"cannot read {what}: {error.strerror or error}", "check the path"
        ) from error


def _notes(found: Picture, name: str) -> Iterator[str]:
    suffix = Path(name).suffix.lower()
    if suffix in PICTURE_NAMES and suffix not in EXTENSIONS[found.kind]:
        yield f"named {suffix}, but it is a {found.kind}"
    if found.moves:
        yield "it moves: counted as one image of the size of the whole, the first frame"
    if found.turned:
        yield (
            "its EXIF data turn it by a quarter: counted as it is stored; the count is the same either way"
        )


def _pdf(data: bytes, name: str, rule: ModelRule) -> AskedImage:
    import logging

    from pypdf import PdfReader
    from pypdf.errors import PyPdfError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        pages = len(PdfReader(BytesIO(data)).pages)
    except (PyPdfError, ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise InputError("no PDF that can be read") from error
    most = MOST_IMAGES[rule.has_large_window]
    notes = (f"more than the {most} pages that the API takes of {rule.id}",) if pages > most else ()
    return AskedImage(source=name, pages=pages, warnings=notes)


def faults_of(picture: Picture) -> Iterator[str]:
    """What the API would refuse of one image (vision page, 2026-08-22)."""
    if max(picture.width, picture.height) > MOST_SIDE:
        yield f"a side is over {MOST_SIDE:,} pixels: the API refuses it"
    if picture.width < 1 or picture.height < 1:
        yield "it has no pixels"
    encoded = _encoded(picture)
    if encoded > MOST_BASE64:
        yield f"{encoded:,} bytes as base64 are over {MOST_BASE64:,}"
    elif encoded > MOST_BASE64 // 2:
        yield f"{encoded:,} bytes as base64 are over the {MOST_BASE64 // 2:,} of Bedrock and Google Cloud"


def _encoded(picture: Picture) -> int:
    """Bytes as base64."""
    return -(-picture.size // 3) * 4


def faults_of_many(pictures: list[Picture], large_window: bool) -> Iterator[str]:
    """What the API would refuse of images that one request holds."""
    most = MOST_IMAGES[large_window]
    if len(pictures) > most:
        yield f"{len(pictures):,} images in one request are over {most}"
    encoded = sum(map(_encoded, pictures))
    if encoded > MOST_REQUEST:
        yield f"{encoded:,} bytes of images as base64 are over the {MOST_REQUEST:,} of a request"
    if len(pictures) > MANY and any(max(p.width, p.height) > MANY_SIDE for p in pictures):
        yield f"more than {MANY} images, and a side of one is over {MANY_SIDE:,} pixels"
