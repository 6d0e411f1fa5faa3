"""Digests: short names of bytes, by which equal parts are known again."""

from __future__ import annotations

# The same function as hashlib's, whose import loads OpenSSL: 4 ms and 3 MB of every start.
try:
    from _blake2 import blake2b
except ImportError:
    from hashlib import blake2b

__all__ = ["blake2b"]
