"""The chain of keys: a hash for every beginning of a prompt, so that equal keys mean equal beginnings."""

from __future__ import annotations

from ctxdoc.prompt.segments import Segment
from ctxdoc.request.digest import blake2b
from ctxdoc.request.request import Section


def root_key(root: str) -> bytes:
    """The key of the empty beginning; entries belong to one model, which is the root."""
    return blake2b(root.encode(), digest_size=16).digest()


def next_key(key: bytes, digest: bytes, role: str | None = None) -> bytes:
    """The key of a beginning that is one block longer; `role` is that of a message that the block
    opens.

    The role stands in the rendered prompt once for each message, so the same blocks in one message
    or in two are two prompts.
    """
    opening = b"" if role is None else role.encode() + b"\0"
    return blake2b(key + opening + digest, digest_size=16).digest()


def chained(
    root: str, segments: tuple[Segment, ...], known: tuple[bytes, ...]
) -> tuple[bytes, ...]:
    """The keys of a prompt, of which those of the first beginnings are known."""
    shared = len(known)
    keys = list(known)
    key = keys[-1] if keys else root_key(root)
    message = segments[shared - 1].rank[:2] if shared else None
    for segment in segments[shared:]:
        role = None
        if segment.section is Section.MESSAGES and segment.rank[:2] != message:
            role, message = segment.role, segment.rank[:2]
        key = next_key(key, segment.digest, role)
        keys.append(key)
    return tuple(keys)
