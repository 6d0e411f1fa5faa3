"""Image tokens: pixels, after the API's own resizing, in patches of 28 by 28.

Vision and vision-coordinates pages, 2026-08-22.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

PATCH = 28


TIERS = {"standard": (1568, 1568), "high": (2576, 4784)}
"""Long edge in pixels and budget in tokens."""


UNKNOWN_SIZE_TOKENS = 1568
"""Assumed for an image whose size cannot be read: the standard tier's budget."""


def image_tokens(width: int, height: int, tier: str) -> int:
    """Tokens of an image of that size, after resizing to what its tier allows."""
    width, height = resized(width, height, tier)
    return patches(width) * patches(height)


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
    columns, rows = patches(width), patches(height)
    return columns * PATCH <= edge and rows * PATCH <= edge and columns * rows <= budget


def patches(side: int) -> int:
    """Patches along a side."""
    return -(-side // PATCH)


OLD_RULE = 750
"""The rule of pages up to early 2026: width times height by this many, an approximation."""


SMALLER = (0.1, 0.25, 0.5)
"""Shares of the tokens that suggested sizes save at least."""


MOST_BASE64 = 10_000_000
"""Bytes of one image as base64; half of it on Bedrock and Google Cloud (vision page, 2026-08-22)."""


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
    whole = patches(width) * patches(height)
    found: list[Smaller] = []
    for share in SMALLER:
        best = next((s for s in _steps(width, height) if s.tokens <= (1 - share) * whole), None)
        if best is not None and best not in found:
            found.append(best)
    return found


def next_step(width: int, height: int, tier: str) -> Smaller | None:
    """The first smaller size of the same aspect that costs less at all; None for one patch."""
    width, height = resized(width, height, tier)
    whole = patches(width) * patches(height)
    return next((size for size in _steps(width, height) if size.tokens < whole), None)


def _steps(width: int, height: int) -> Iterator[Smaller]:
    """The sizes at which a step is crossed, the largest first: each side in turn at a multiple of 28."""
    long, short = max(width, height), min(width, height)
    sides = {PATCH * count for count in range(1, patches(long))}
    # Where the short side reaches a multiple, the long one is the largest that still rounds to it.
    for count in range(1, patches(short)):
        side = (2 * PATCH * count + 1) * long // (2 * short) + 1
        while side > 1 and short_side(side, long, short) > PATCH * count:
            side -= 1
        sides.add(side)
    for side in sorted((side for side in sides if side < long), reverse=True):
        other = short_side(side, long, short)
        wide, high = (side, other) if width >= height else (other, side)
        yield Smaller(wide, high, patches(wide) * patches(high))
