"""Threads: requests of one session that go on from each other."""

from __future__ import annotations

from msgspec import Struct


class Thread(Struct, eq=False, gc=False):
    """Requests that go on from each other; two of them are one only if they are the same value."""

    number: int
    """In the order in which threads began, from 0."""
    session: str


class Threads:
    """The threads of a log: what a request goes on from is told by bodies, or by counters alone."""

    def __init__(self) -> None:
        self._of_request: dict[int, Thread] = {}
        self._by_counters: dict[tuple[str, int], Thread] = {}
        self._count = 0

    def go_on(
        self, index: int, session: str, earlier: int | None, *, begins: bool = False
    ) -> tuple[Thread, bool]:
        """The thread of a request, and whether it begins with it: that of the earlier one where both are
        of one session. With `begins` it is known to begin one."""
        found = self._of_request.get(earlier) if earlier is not None else None
        fresh = found is None or found.session != session or begins
        if found is None or fresh:
            found = self._new(session)
        self._of_request[index] = found
        return found, fresh

    def counted(self, index: int, session: str, number: int) -> tuple[Thread, bool]:
        """The thread of a request without a body, by its number among those of its session; and whether
        it begins with it."""
        found = self._by_counters.get((session, number))
        fresh = found is None
        if found is None:
            found = self._by_counters[session, number] = self._new(session)
        self._of_request[index] = found
        return found, fresh

    def _new(self, session: str) -> Thread:
        self._count += 1
        return Thread(self._count - 1, session)
