"""Image tokens: pixels, after the API's own resizing, in patches of 28 by 28.

Vision and vision-coordinates pages, 2026-08-22.
"""

from __future__ import annotations

import struct
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import blake2b
from io import BytesIO
from typing import NamedTuple

from ctxdoc.errors import InputError
from ctxdoc.request.codec import Json

PATCH = 28
TIERS = {"standard": (1568, 1568), "high": (2576, 4784)}
"""Long edge in pixels and budget in tokens."""
UNKNOWN_SIZE_TOKENS = 1568
"""Assumed for an image whose size cannot be read: the standard tier's budget."""


def image_tokens(width: int, height: int, tier: str) -> int:
    """Tokens of an image of that size, after resizing to what its tier allows."""
    width, height = resized(width, height, tier)
    return _patches(width) * _patches(height)


def resized(width: int, height: int, tier: str) -> tuple[int, int]:
    """The largest size of the same aspect whose padded sides and tokens the tier allows."""
    edge, budget = TIERS[tier]
    if _fits(width, height, edge, budget):
        return width, height
    long, short = max(width, height), min(width, height)
    low, high = 1, long
    while low < high:
        middle = (low + high + 1) // 2
        if _fits(middle, short_side(middle, long, short), edge, budget):
            low = middle
        else:
            high = middle - 1
    side = short_side(low, long, short)
    return (low, side) if width >= height else (side, low)


def short_side(side: int, long: int, short: int) -> int:
    """The short side where the long one becomes `side`, rounded half up."""
    return max(1, (2 * side * short + long) // (2 * long))


def _fits(width: int, height: int, edge: int, budget: int) -> bool:
    columns, rows = _patches(width), _patches(height)
    return columns * PATCH <= edge and rows * PATCH <= edge and columns * rows <= budget


def _patches(side: int) -> int:
    return -(-side // PATCH)


def read_size(data: str) -> tuple[int, int] | None:
    """Width and height from the header of base64 image data, without decoding the pixels."""
    found = picture_of(data)
    return (found.width, found.height) if found else None


OLD_RULE = 750
"""The rule of pages up to early 2026: width times height by this many, an approximation."""
SMALLER = (0.1, 0.25, 0.5)
"""Shares of the tokens that suggested sizes save at least."""
MOST_SIDE = 8_000
"""Pixels of a side that the API takes (vision page, 2026-08-22)."""
MANY = 20
MANY_SIDE = 2_000
"""Pixels of a side where a request holds more than `MANY` images (vision page, 2026-08-22)."""
MOST_BASE64 = 10_000_000
"""Bytes of one image as base64; half of it on Bedrock and Google Cloud (vision page, 2026-08-22)."""
MOST_REQUEST = 32_000_000
"""Bytes of a request (vision page, 2026-08-22)."""
PDF_TEXT = (1_500, 3_000)
"""Tokens of the text of a PDF page, which is sent as an image as well (pdf-support page, 2026-08-22)."""


class Smaller(NamedTuple):
    """A size of the same aspect that crosses a step."""

    width: int
    height: int
    tokens: int


def old_tokens(width: int, height: int) -> int:
    """What the old rule says of the size as it is."""
    return (2 * width * height + OLD_RULE) // (2 * OLD_RULE)


def smaller_sizes(width: int, height: int, tier: str) -> list[Smaller]:
    """The largest sizes of the same aspect that save 10, 25 and 50 % of the tokens as they are sent.

    Each lies at a step of 28 pixels: between two steps a smaller image costs as much.
    """
    width, height = resized(width, height, tier)
    whole = _patches(width) * _patches(height)
    found: list[Smaller] = []
    for share in SMALLER:
        best = next((s for s in _steps(width, height) if s.tokens <= (1 - share) * whole), None)
        if best is not None and best not in found:
            found.append(best)
    return found


def next_step(width: int, height: int, tier: str) -> Smaller | None:
    """The first smaller size of the same aspect that costs less at all; None for one patch."""
    width, height = resized(width, height, tier)
    whole = _patches(width) * _patches(height)
    return next((size for size in _steps(width, height) if size.tokens < whole), None)


def _steps(width: int, height: int) -> Iterator[Smaller]:
    """The sizes at which a step is crossed, the largest first: each side in turn at a multiple of 28."""
    long, short = max(width, height), min(width, height)
    sides = {PATCH * count for count in range(1, _patches(long))}
    # Where the short side reaches a multiple, the long one is the largest that still rounds to it.
    for count in range(1, _patches(short)):
        side = (2 * PATCH * count + 1) * long // (2 * short) + 1
        while side > 1 and short_side(side, long, short) > PATCH * count:
            side -= 1
        sides.add(side)
    for side in sorted((side for side in sides if side < long), reverse=True):
        other = short_side(side, long, short)
        wide, high = (side, other) if width >= height else (other, side)
        yield Smaller(wide, high, _patches(wide) * _patches(high))


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
        return _patches(edge) * _patches(short_side(edge, long, short))

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
