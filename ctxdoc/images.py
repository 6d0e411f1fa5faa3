"""Image tokens: pixels, after the API's own resizing, in patches of 28 by 28.

Vision and vision-coordinates pages, 2026-08-22.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from io import BytesIO

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
        if _fits(middle, _short_side(middle, long, short), edge, budget):
            low = middle
        else:
            high = middle - 1
    side = _short_side(low, long, short)
    return (low, side) if width >= height else (side, low)


def _short_side(side: int, long: int, short: int) -> int:
    return max(1, (2 * side * short + long) // (2 * long))


def _fits(width: int, height: int, edge: int, budget: int) -> bool:
    columns, rows = _patches(width), _patches(height)
    return columns * PATCH <= edge and rows * PATCH <= edge and columns * rows <= budget


def _patches(side: int) -> int:
    return -(-side // PATCH)


def read_size(data: str) -> tuple[int, int] | None:
    """Width and height from the header of base64 image data, without decoding the pixels.

    Pillow reads the header: it is there for matplotlib and knows every type that the API takes.
    """
    from PIL import Image

    try:
        with Image.open(BytesIO(b64decode(data, validate=False))) as image:
            return image.size
    except (OSError, ValueError, Base64Error, Image.DecompressionBombError):
        return None
