"""The one model of the prompt cache: entries, lookup, lifetimes, reads and writes.

Every rule is from the prompt-caching page as of 2026-10-08 unless it names another source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.prompt.prefix import Breakpoint, Prefix
from ctxdoc.request.usage import Usage
from ctxdoc.tokens.ledger import Sizes

FIRST_RESPONSE_SECONDS = 1.0
"""Assumed time from the start of a request to the start of its response, where the log has no
time for it: an entry can be read only once the response that writes it has begun."""


FIRST_RESPONSE = timedelta(seconds=FIRST_RESPONSE_SECONDS)


class Step(Struct, frozen=True, kw_only=True):
    """One request as the cache meets it."""

    prefix: Prefix
    sizes: Sizes
    marks: tuple[Breakpoint, ...]
    """The breakpoints, from the first block to the last."""
    at: datetime | None = None
    began: datetime | None = None
    """When its response began; None where unknown."""
    place: tuple[tuple[str, str], ...] = ()

    def readable(self, index: int | None) -> int:
        """Tokens that can be read of the beginning that ends with a segment; 0 for None."""
        return self.prefix.rule.rules.readable(self.sizes.at(index))


class Entry(Struct, frozen=True, kw_only=True):
    """A stored prefix."""

    ttl: str
    expires: datetime | None
    visible: datetime | None
    """Readable from then on."""
    place: tuple[tuple[str, str], ...]
    used: bool = False
    """Whether it was read."""


class Relax(IntEnum):
    """Which rules a lookup leaves aside, each with those before it: what a loss is due to."""

    NOTHING = 0
    VISIBILITY = 1
    EXPIRY = 2
    PLACE = 3
    REACH = 4
    """Neither lookback nor breakpoints limit the lookup."""


class Outcome(Struct, frozen=True, kw_only=True):
    """What the cache does for one request."""

    usage: Usage
    hit: int | None
    """Index of the segment up to which the prompt is read."""
    could_read: tuple[int, ...]
    """Tokens that could be read with each of `Relax`, in that order."""


class Cache:
    """The entries of every model and place; the only state of a replay."""

    def __init__(self) -> None:
        self._entries: dict[bytes, tuple[Entry, ...]] = {}
        """Of one prefix, an entry for each place."""

    def send(self, step: Step, *, stores: bool = True) -> Outcome:
        """Looks a request up, then stores what it writes, unless it is known that it wrote nothing."""
        hits = self._hits(step)
        hit = hits[0]
        usage = self._settle(step, hit) if stores else _usage(step, hit)
        return Outcome(usage=usage, hit=hit, could_read=tuple(map(step.readable, hits)))

    def bill(self, step: Step) -> Usage:
        """The same where nobody asks what could have been read."""
        return self._settle(step, self._look(step, Relax.NOTHING))

    def _settle(self, step: Step, hit: int | None) -> Usage:
        """Stores what a request writes, and renews what it reads."""
        if hit is not None:
            self._renew(step, hit)
        for mark in _written(step):
            if _cacheable(step, mark.index) and (hit is None or mark.index > hit):
                self.store(step, mark)
        return _usage(step, hit)

    def longest_live(self, prefix: Prefix, step: Step) -> int | None:
        """The longest prefix of another prompt that could be read at the time and place of a request."""
        for index in range(len(prefix.keys) - 1, -1, -1):
            entries = self._entries.get(prefix.keys[index], ())
            if any(_live(entry, step, Relax.NOTHING) for entry in entries):
                return index
        return None

    def _hits(self, step: Step) -> list[int | None]:
        """The longest entry with each of `Relax`; when all rules find what none limits, that is all
        of them."""
        most = self._look(step, Relax.REACH)
        least = self._look(step, Relax.NOTHING) if most is not None else None
        if most == least:
            return [most] * len(Relax)
        between = [self._look(step, relax) for relax in list(Relax)[1:-1]]
        return [least, *between, most]

    def _look(self, step: Step, relax: Relax) -> int | None:
        """The longest live entry in reach of a breakpoint, as a segment index."""
        keys, entries = step.prefix.keys, self._entries
        for index in _candidates(step, relax):
            if keys[index] in entries:
                for entry in entries[keys[index]]:
                    if _live(entry, step, relax):
                        return index
        return None

    def _renew(self, step: Step, index: int) -> None:
        """A hit renews its own entry; those of shorter prefixes keep their time."""
        key = step.prefix.keys[index]
        self._entries[key] = tuple(
            _aged(entry, step, used=True) if _live(entry, step, Relax.NOTHING) else entry
            for entry in self._entries[key]
        )

    def show(self, keys: Iterable[bytes], at: datetime) -> None:
        """Makes the entries of some prefixes readable from a time on, where they would not be yet."""
        for key in keys:
            entries = self._entries.get(key, ())
            if any(entry.visible is not None and entry.visible > at for entry in entries):
                self._entries[key] = tuple(
                    replace(entry, visible=at)
                    if entry.visible is not None and entry.visible > at
                    else entry
                    for entry in entries
                )

    def is_used(self, key: bytes) -> bool:
        """Whether an entry of a prefix was read."""
        return any(entry.used for entry in self._entries.get(key, ()))

    def store(self, step: Step, mark: Breakpoint) -> None:
        """Stores the entry that a breakpoint asks for."""
        visible = step.began
        if visible is None and step.at is not None:
            visible = step.at + FIRST_RESPONSE
        entry = Entry(ttl=mark.ttl, expires=None, visible=visible, place=step.place)
        key = step.prefix.keys[mark.index]
        others = (other for other in self._entries.get(key, ()) if other.place != step.place)
        self._entries[key] = (*others, _aged(entry, step))


def _aged(entry: Entry, step: Step, *, used: bool = False) -> Entry:
    """The clock starts with the request that wrote or read the entry."""
    lives = timedelta(seconds=step.prefix.rule.rules.seconds(entry.ttl))
    expires = step.at + lives if step.at else None
    return Entry(
        ttl=entry.ttl,
        expires=expires,
        visible=entry.visible,
        place=entry.place,
        used=used or entry.used,
    )


def _live(entry: Entry, step: Step, relax: Relax) -> bool:
    if relax < Relax.PLACE and entry.place != step.place and places_differ(entry.place, step.place):
        return False
    if step.at is None:
        return True
    if relax < Relax.VISIBILITY and entry.visible is not None and step.at < entry.visible:
        return False
    return not (relax < Relax.EXPIRY and entry.expires is not None and step.at >= entry.expires)


def places_differ(before: tuple[tuple[str, str], ...], after: tuple[tuple[str, str], ...]) -> bool:
    """Whether two requests are known to have been served at different places."""
    known = dict(before)
    return any(name in known and known[name] != value for name, value in after)


def _candidates(step: Step, relax: Relax) -> Iterable[int]:
    """Segments to look at, longest prefix first."""
    if relax >= Relax.REACH or step.prefix.rule.rules.automatic:
        return range(len(step.prefix.segments) - 1, -1, -1)
    return _reached(step.prefix, step.marks)


def _reached(prefix: Prefix, marks: tuple[Breakpoint, ...]) -> Iterator[int]:
    """The segments in reach of the breakpoints.

    A run of blocks of one of some kinds is one position; a setting has that of the block before it.
    """
    segments, rules = prefix.segments, prefix.rule.rules
    lowest = len(segments)
    for mark in reversed(marks):
        seen, last = 1, ""
        for index in range(mark.index, -1, -1):
            kind = segments[index].kind
            if kind != "setting":
                if last and not (kind == last and kind in rules.run_kinds):
                    seen += 1
                last = kind
            elif last and seen == rules.lookback:
                # Ahead of the first of the last position's blocks: the position before it.
                break
            if seen > rules.lookback:
                break
            if index < lowest:
                lowest = index
                yield index


def _written(step: Step) -> Sequence[Breakpoint]:
    """The beginnings of which a request writes an entry: those at its breakpoints; where the provider
    caches every prompt, all of them."""
    rules = step.prefix.rule.rules
    if not rules.automatic:
        return step.marks
    return [Breakpoint(index, rules.default_ttl) for index in range(len(step.prefix.keys))]


def _cacheable(step: Step, index: int) -> bool:
    """The minimum counts the prefix up to the breakpoint, not the block."""
    return step.sizes.at(index) >= step.prefix.rule.minimum


def _usage(step: Step, hit: int | None) -> Usage:
    """Read A, one-hour write B-A, five-minute write C-B (mixed lifetimes)."""
    sizes, rules = step.sizes, step.prefix.rule.rules
    read = rules.readable(sizes.at(hit))
    if not rules.charges_writes:
        return Usage(
            uncached=sizes.total - read, cache_read=read, cache_write_5m=0, cache_write_1h=0
        )
    marks = [m for m in step.marks if _cacheable(step, m.index) and (hit is None or m.index > hit)]
    hours = [mark.index for mark in marks if rules.seconds(mark.ttl) > rules.shortest]
    hour_end = sizes.at(hours[-1]) if hours else read
    end = sizes.at(marks[-1].index) if marks else read
    return Usage(
        uncached=sizes.total - end,
        cache_read=read,
        cache_write_5m=end - hour_end,
        cache_write_1h=hour_end - read,
    )
