"""What the API takes of images."""

from __future__ import annotations

MOST_SIDE = 8_000
"""Pixels of a side that the API takes (vision page, 2026-08-22)."""


MANY = 20


MANY_SIDE = 2_000
"""Pixels of a side where a request holds more than `MANY` images (vision page, 2026-08-22)."""


MOST_REQUEST = 32_000_000
"""Bytes of a request (vision page, 2026-08-22)."""
