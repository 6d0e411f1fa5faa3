"""The one model of the prompt cache: entries, lookup, lifetimes, reads and writes.

Every rule is from the prompt-caching page as of 2026-10-08 unless it names another source.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from ctxdoc.cache.lookback import iter_reached
from ctxdoc.prompt.prefix import Breakpoint, Prefix
from ctxdoc.request.usage import Usage
from ctxdoc.tokens.ledger import Sizes

FIRST_RESPONSE_SECONDS = 1.0
"""Assumed time from the start of a request to the start of its response, where the log has no
time for it: an entry can be read only once the response that writes it has begun."""


FIRST_RESPONSE = timedelta(seconds=FIRST_RESPONSE_SECONDS)


class Lookup(Struct, frozen=True, kw_only=True):
    """One request as the cache meets it."""

    prefix: Prefix
    sizes: Sizes
    marks: tuple[Breakpoint, ...]
    """The breakpoints, from the first block to the last."""
    at: datetime | None = None
    began: datetime | None = None
    """When its response began; None where unknown."""
    scope: tuple[tuple[str, str], ...] = ()
    """Account, workspace and upstream, as far as the log names them."""

    def readable(self, index: int | None) -> int:
        """Tokens that can be read of the beginning that ends with a segment; 0 for None."""
        return self.prefix.rule.rules.readable(self.sizes.at(index))


class Entry(Struct, frozen=True, kw_only=True):
    """A stored prefix."""

    ttl: str
    expires: datetime | None
    visible: datetime | None
    """Readable from then on."""
    scope: tuple[tuple[str, str], ...]
    used: bool = False
    """Whether it was read."""

    def is_visible(self, at: datetime) -> bool:
        """Whether the response that wrote it has begun: before that it cannot be read (facts 1.4)."""
        return self.visible is None or at >= self.visible

    def is_alive(self, at: datetime) -> bool:
        """Whether its time has not run out."""
        return self.expires is None or at < self.expires


class Relax(IntEnum):
    """Which rules a lookup leaves aside, each with those before it: what a loss is due to."""

    NOTHING = 0
    VISIBILITY = 1
    EXPIRY = 2
    SCOPE = 3
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
    """The entries of every model and scope; the only state of a replay."""

    def __init__(self, *, renews_shorter: bool = False) -> None:
        """With `renews_shorter` a read renews the entries of shorter prefixes too: neither is documented
        (facts, additions of 2026-11-30)."""
        self._renews_shorter = renews_shorter
        self._entries: dict[bytes, tuple[Entry, ...]] = {}
        """Of one prefix, an entry for each scope."""

    def send(self, lookup: Lookup, *, stores: bool = True) -> Outcome:
        """Looks a request up, then stores what it writes, unless it is known that it wrote nothing."""
        hits = self._hits(lookup)
        hit = hits[0]
        usage = self._settle(lookup, hit) if stores else _usage(lookup, hit)
        return Outcome(usage=usage, hit=hit, could_read=tuple(map(lookup.readable, hits)))

    def bill(self, lookup: Lookup) -> Usage:
        """The same where nobody asks what could have been read."""
        return self._settle(lookup, self._look(lookup, Relax.NOTHING))

    def _settle(self, lookup: Lookup, hit: int | None) -> Usage:
        """Stores what a request writes, and renews what it reads."""
        if hit is not None:
            self._renew(lookup, hit)
        for mark in _new(lookup, _written(lookup), hit):
            self.store(lookup, mark)
        return _usage(lookup, hit)

    def longest_live(self, prefix: Prefix, lookup: Lookup) -> int | None:
        """The longest prefix of another prompt that could be read at the time and scope of a request."""
        for index in range(len(prefix.keys) - 1, -1, -1):
            entries = self._entries.get(prefix.keys[index], ())
            if any(_live(entry, lookup, Relax.NOTHING) for entry in entries):
                return index
        return None

    def _hits(self, lookup: Lookup) -> list[int | None]:
        """The longest entry with each of `Relax`; when all rules find what none limits, that is all
        of them."""
        # The widest and the narrowest rule first: nearly always they agree, and the ones between lie
        # between them.
        most = self._look(lookup, Relax.REACH)
        least = self._look(lookup, Relax.NOTHING) if most is not None else None
        if most == least:
            return [most] * len(Relax)
        between = [self._look(lookup, relax) for relax in list(Relax)[1:-1]]
        return [least, *between, most]

    def _look(self, lookup: Lookup, relax: Relax) -> int | None:
        """The longest live entry in reach of a breakpoint, as a segment index."""
        keys, entries = lookup.prefix.keys, self._entries
        for index in _candidates(lookup, relax):
            if keys[index] in entries:
                for entry in entries[keys[index]]:
                    if _live(entry, lookup, relax):
                        return index
        return None

    def _renew(self, lookup: Lookup, index: int) -> None:
        """A hit renews its own entry; those of shorter prefixes keep their time, as it is assumed."""
        keys = lookup.prefix.keys[: index + 1] if self._renews_shorter else ()
        for key in (
            *[each for each in keys[:-1] if each in self._entries],
            lookup.prefix.keys[index],
        ):
            self._entries[key] = tuple(
                _aged(entry, lookup, used=True) if _live(entry, lookup, Relax.NOTHING) else entry
                for entry in self._entries[key]
            )

    def show(self, keys: Iterable[bytes], at: datetime) -> None:
        """Makes the entries of some prefixes readable from a time on, where they would not be yet."""
        for key in keys:
            entries = self._entries.get(key, ())
            if not all(entry.is_visible(at) for entry in entries):
                self._entries[key] = tuple(
                    entry if entry.is_visible(at) else replace(entry, visible=at)
                    for entry in entries
                )

    def is_used(self, key: bytes) -> bool:
        """Whether an entry of a prefix was read."""
        return any(entry.used for entry in self._entries.get(key, ()))

    def store(self, lookup: Lookup, mark: Breakpoint) -> None:
        """Stores the entry that a breakpoint asks for."""
        visible = lookup.began
        # Readable only once the response has begun: twins that are sent together both write.
        if visible is None and lookup.at is not None:
            visible = lookup.at + FIRST_RESPONSE
        entry = Entry(ttl=mark.ttl, expires=None, visible=visible, scope=lookup.scope)
        key = lookup.prefix.keys[mark.index]
        # Another scope keeps an entry of its own: neither reads what the other wrote.
        others = (other for other in self._entries.get(key, ()) if other.scope != lookup.scope)
        self._entries[key] = (*others, _aged(entry, lookup))


def _aged(entry: Entry, lookup: Lookup, *, used: bool = False) -> Entry:
    """The clock starts with the request that wrote or read the entry."""
    lives = timedelta(seconds=lookup.prefix.rule.rules.seconds(entry.ttl))
    expires = lookup.at + lives if lookup.at else None
    return Entry(
        ttl=entry.ttl,
        expires=expires,
        visible=entry.visible,
        scope=entry.scope,
        used=used or entry.used,
    )


def _live(entry: Entry, lookup: Lookup, relax: Relax) -> bool:
    """Whether a request can read an entry, by all rules but those that are left aside."""
    if relax < Relax.SCOPE and scopes_differ(entry.scope, lookup.scope):
        return False
    # Without a time nothing says that it had not begun or was gone.
    if lookup.at is None:
        return True
    if relax < Relax.VISIBILITY and not entry.is_visible(lookup.at):
        return False
    return relax >= Relax.EXPIRY or entry.is_alive(lookup.at)


def scopes_differ(before: tuple[tuple[str, str], ...], after: tuple[tuple[str, str], ...]) -> bool:
    """Whether two requests are known to have been served in different scopes."""
    if before == after:
        return False
    # A log that names the workspace of one of them only does not say that they are two.
    known = dict(before)
    return any(name in known and known[name] != value for name, value in after)


def _candidates(lookup: Lookup, relax: Relax) -> Iterable[int]:
    """Segments to look at, longest prefix first."""
    if relax >= Relax.REACH or lookup.prefix.rule.rules.automatic:
        return range(len(lookup.prefix.segments) - 1, -1, -1)
    return iter_reached(lookup.prefix, lookup.marks)


def _written(lookup: Lookup) -> Sequence[Breakpoint]:
    """The beginnings of which a request writes an entry: those at its breakpoints; where the provider
    caches every prompt, all of them."""
    rules = lookup.prefix.rule.rules
    if not rules.automatic:
        return lookup.marks
    return [Breakpoint(index, rules.default_ttl) for index in range(len(lookup.prefix.keys))]


def _new(lookup: Lookup, marks: Iterable[Breakpoint], hit: int | None) -> list[Breakpoint]:
    """Those breakpoints that write: behind what is read, of beginnings that reach the minimum.

    The minimum counts the prefix up to the breakpoint, not the block.
    """
    sizes, least = lookup.sizes, lookup.prefix.rule.minimum
    read = -1 if hit is None else hit
    return [mark for mark in marks if mark.index > read and sizes.at(mark.index) >= least]


def _usage(lookup: Lookup, hit: int | None) -> Usage:
    """Read A, one-hour write B-A, five-minute write C-B (mixed lifetimes)."""
    sizes, rules = lookup.sizes, lookup.prefix.rule.rules
    read = rules.readable(sizes.at(hit))
    # Where a write costs nothing more it has no counter either: it is plain input.
    if not rules.charges_writes:
        return Usage(
            uncached=sizes.total - read, cache_read=read, cache_write_5m=0, cache_write_1h=0
        )
    marks = _new(lookup, lookup.marks, hit)
    hours = [mark for mark in marks if rules.seconds(mark.ttl) > rules.shortest]
    # Everything up to the last one-hour breakpoint is billed for an hour, shorter ones inside too.
    hour_end = sizes.at(hours[-1].index) if hours else read
    end = sizes.at(marks[-1].index) if marks else read
    return Usage(
        uncached=sizes.total - end,
        cache_read=read,
        cache_write_5m=end - hour_end,
        cache_write_1h=hour_end - read,
    )
