"""Keys of the beginnings of a prompt that is put together anew for each request, made when asked for.

A strategy that drops the oldest message makes every beginning a new one. The cache looks at those in
reach of a breakpoint only, so that all others need no key: a key is a hash over all blocks at once, not
over the key before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import overload

from msgspec import Struct

from ctxdoc.prompt.chain import root_key

REACH = 64
"""Beginnings whose keys are made together, ahead of the one that was asked for: about what a lookback
looks at."""


EACH = 256
"""Blocks after which the state of the hash is kept."""
TAKEN_OVER = 1_024
"""Keys that a prompt takes over from the one before it: those that a lookback reaches stand near its end, and
copying all of them for each edit would cost more than making an old one anew."""


class Known(Struct, frozen=True, eq=False, gc=False):
    """What was hashed of a beginning."""

    keys: dict[int, bytes] = {}
    """By the index of the block."""
    states: dict[int, blake2b] = {}
    """The hash over so many blocks, a multiple of `EACH`."""

    def upto(self, end: int) -> Known:
        """What holds for the first blocks alone."""
        last = range(max(0, end - TAKEN_OVER), end)
        return Known(
            keys={index: self.keys[index] for index in last if index in self.keys},
            states={count: state for count, state in self.states.items() if count <= end},
        )


class Keys(Sequence[bytes]):
    """The keys of one prompt; equal keys mean equal beginnings."""

    def __init__(self, root: str, parts: list[bytes], known: Known) -> None:
        """`parts` are what each block adds, with the role of a message that it opens; `known` is what
        an earlier prompt of the same beginning has hashed."""
        self._root, self._parts, self._known, self._states = root, parts, known.keys, known.states
        self._count = len(parts)
        self._reach = REACH

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return [self[each] for each in reversed(range(self._count)[index])][::-1]
        found = self._known.get(index)
        return self._made(range(self._count)[index]) if found is None else found

    def _made(self, index: int) -> bytes:
        """The key of a beginning, with those of some shorter ones."""
        if index in self._known:
            return self._known[index]
        start = max(0, index + 1 - self._reach)
        # Who goes on asking wants all of them.
        self._reach *= 2
        state = self._state(start)
        for each in range(start, index + 1):
            state.update(self._parts[each])
            if each not in self._known:
                self._known[each] = state.copy().digest()
        return self._known[index]

    def _state(self, count: int) -> blake2b:
        """The hash over the first blocks."""
        done = count - count % EACH
        while done and done not in self._states:
            done -= EACH
        state = self._states[done].copy() if done else blake2b(root_key(self._root), digest_size=16)
        for start in range(done, count, EACH):
            end = min(start + EACH, count)
            state.update(b"".join(self._parts[start:end]))
            if end % EACH == 0:
                self._states[end] = state.copy()
        return state
