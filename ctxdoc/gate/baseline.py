"""Baseline of a prompt: a file of fingerprints, and what changed since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path

import msgspec
from msgspec import Struct

from ctxdoc.errors import InputError
from ctxdoc.tokens.fingerprint import Block, Fingerprint

SCHEMA = "ctxdoc/lock/1"


MOST_BYTES = 20_000_000
"""Of a lock file."""


class Lock(Struct, frozen=True, kw_only=True):
    """A lock file."""

    schema: str
    prefixes: tuple[Fingerprint, ...]


class PrefixChange(Struct, frozen=True, kw_only=True):
    """A prefix that is not as the baseline has it."""

    lines: tuple[str, ...]
    """What changed, one line each."""
    invalidates: int | None
    """Estimated tokens of the baseline's prefix from the first changed block on; None for a prefix that
    it does not have."""


def lock_of(prefixes: Iterable[Fingerprint]) -> Lock:
    """The lock of some prefixes, equal ones once."""
    found: list[Fingerprint] = []
    for each in prefixes:
        if each not in found:
            found.append(each)
    return Lock(schema=SCHEMA, prefixes=tuple(sorted(found, key=_order)))


def _order(each: Fingerprint) -> tuple[str, list[str], list[str]]:
    names = [block.name or block.at for block in each.blocks]
    return each.model, names, [block.hash for block in each.blocks]


def write_lock(lock: Lock) -> bytes:
    """The lock file's text."""
    return msgspec.json.format(msgspec.json.encode(lock), indent=2) + b"\n"


def read_lock(path: Path) -> Lock | None:
    """A lock file; None where there is none yet.

    Raises InputError for one that cannot be read.
    """
    try:
        if not path.exists():
            return None
        if path.stat().st_size > MOST_BYTES:
            raise InputError(f"{path} is over {MOST_BYTES:,} bytes: no lock file of ctxdoc")
        lock = msgspec.json.decode(path.read_bytes(), type=Lock)
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise InputError(
            f"cannot read the baseline {path}: {error}", "write it anew with --update"
        ) from error
    if lock.schema != SCHEMA:
        raise InputError(
            f"the baseline {path} is of another version ({lock.schema})",
            f"this ctxdoc reads {SCHEMA}; write it anew with --update",
        )
    return lock


def changes_of(lock: Lock, now: Lock) -> tuple[PrefixChange, ...]:
    """What is not as it was; a prefix of the baseline that was not sent is no change."""
    old = [each for each in lock.prefixes if each not in now.prefixes]
    new = [each for each in now.prefixes if each not in lock.prefixes]
    before = _paired(old, new)
    return tuple(
        _changed(old[before[index]], each)
        if index in before
        else PrefixChange(lines=(_described(each),), invalidates=None)
        for index, each in enumerate(new)
    )


def _paired(old: Sequence[Fingerprint], new: Sequence[Fingerprint]) -> dict[int, int]:
    """For a new prefix, by its index, the old one that it came from; each is the past of one only."""
    alike = ((_alike(one, two), a, b) for a, one in enumerate(old) for b, two in enumerate(new))
    before: dict[int, int] = {}
    # The pairs that are most alike first, over all of them.
    for likeness, a, b in sorted(alike, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if likeness and a not in before.values() and b not in before:
            before[b] = a
    return before


def _described(new: Fingerprint) -> str:
    tools = sum(bool(block.name) for block in new.blocks)
    return f"a prefix for {new.model} with {tools} tools, {new.tokens:,} tokens, is not in it"


def _alike(old: Fingerprint, new: Fingerprint) -> float:
    """How far two prefixes are of one agent, from 0 to 1."""
    one, two = (
        {block.hash for block in each.blocks} | {block.name for block in each.blocks if block.name}
        for each in (old, new)
    )
    if not one | two:
        return 1.0 if old.model == new.model else 0.5
    alike = len(one & two) / len(one | two)
    if not alike and len(old.blocks) == len(new.blocks):
        alike = 0.01
    return alike + (0.001 if alike and old.model == new.model else 0.0)


def _changed(old: Fingerprint, new: Fingerprint) -> PrefixChange:
    count = min(len(old.blocks), len(new.blocks))
    if old.model == new.model and old.blocks[:count] == new.blocks[:count]:
        # The same blocks, and the last breakpoint on another one.
        last = new.blocks[-1].at if new.blocks else "nothing"
        way = "earlier" if len(new.blocks) < len(old.blocks) else "further on"
        return PrefixChange(lines=(f"what is held ends {way} now, with {last}",), invalidates=None)
    first = 0
    if old.model == new.model:
        first = next(i for i in range(count + 1) if old.blocks[i : i + 1] != new.blocks[i : i + 1])
    lost = sum(block.tokens for block in old.blocks[first:])
    return PrefixChange(lines=tuple(_lines(old, new)), invalidates=lost)


def _lines(old: Fingerprint, new: Fingerprint) -> Iterator[str]:
    if old.model != new.model:
        yield f"model {old.model} → {new.model}"
    before = {block.name: block for block in old.blocks if block.name}
    after = {block.name: block for block in new.blocks if block.name}
    yield from _set_lines(before, after)
    yield from _order_lines(before, after)
    yield from _block_lines(old, new)


def _set_lines(before: dict[str, Block], after: dict[str, Block]) -> Iterator[str]:
    """Tools that went, came, or are defined in another way."""
    for name, block in before.items():
        if name not in after:
            yield f"tool `{name}` is gone, {-block.tokens:+,} tokens"
    for name, block in after.items():
        if name not in before:
            yield f"tool `{name}` is new, {block.tokens:+,} tokens"
        elif before[name].hash != block.hash:
            yield from _tool_lines(before[name], block)


def _order_lines(before: dict[str, Block], after: dict[str, Block]) -> Iterator[str]:
    """The first of the tools that both have which stands at another place."""
    pairs = zip(filter(after.__contains__, before), filter(before.__contains__, after), strict=True)
    moved = next((two for one, two in pairs if one != two), None)
    if moved is not None:
        yield f"tools in another order, from `{moved}` on"


def _tool_lines(old: Block, new: Block) -> Iterator[str]:
    changed = False
    for part in dict.fromkeys((*old.parts, *new.parts)):
        one, two = old.parts.get(part), new.parts.get(part)
        if one is not None and two is not None and one.hash == two.hash:
            continue
        changed = True
        tokens = (two.tokens if two else 0) - (one.tokens if one else 0)
        yield f"tool `{new.name}` {part}, {tokens:+,} tokens"
    if not changed:
        yield f"tool `{new.name}`: its members in another order or spelling"


def _block_lines(old: Fingerprint, new: Fingerprint) -> Iterator[str]:
    """Blocks that are no tools, those of one section against each other."""
    sections = dict.fromkeys(_section(block) for block in (*old.blocks, *new.blocks))
    for section in sections:
        one, two = (
            [b for b in each.blocks if not b.name and _section(b) == section] for each in (old, new)
        )
        yield from _section_lines(one, two)


def _section(block: Block) -> str:
    return block.at.removeprefix("$.").partition("[")[0].partition(".")[0]


def _section_lines(one: list[Block], two: list[Block]) -> Iterator[str]:
    matcher = SequenceMatcher(None, [b.hash for b in one], [b.hash for b in two], autojunk=False)
    for kind, start, stop, begin, end in matcher.get_opcodes():
        if kind == "equal":
            continue
        for before, after in zip_longest(one[start:stop], two[begin:end]):
            if before is None:
                yield f"{after.at} is new, {after.tokens:+,} tokens"
            elif after is None:
                yield f"{before.at} is gone, {-before.tokens:+,} tokens"
            else:
                yield f"{after.at}, {after.tokens - before.tokens:+,} tokens"
