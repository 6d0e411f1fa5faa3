"""How a session grows: the law n·P + a·n²/2, fitted to each stretch that only appends.

Turn k of a stretch sends S_k = P + a·k tokens. n turns send n·P + a·n(n+1)/2 exactly; the law leaves
the half turn away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

SHORTER = 0.97
"""A prompt under this share of the one before it starts a stretch of its own."""
TOLERANCE_TOKENS = 20
LONGER = 4.0
"""So is one that is this many times as long as the one before it: another prefix."""


class Turn(Struct, frozen=True, gc=False):
    """One request of a session: its number from 1, and its whole prompt in tokens."""

    number: int
    tokens: int
    starts: bool = False
    """Whether something is known to have replaced the prompt: a compaction, another model."""


class Growth(Struct, frozen=True, kw_only=True):
    """One stretch of a session that only appends."""

    first: int
    """Number of its first request in the session, from 1."""
    last: int
    prefix: float
    """P, tokens."""
    per_turn: float | None
    """a, tokens; None where there is one request only."""
    recorded: int
    """Sum of the prompts."""
    r2: float | None
    """Share of the variance that the line explains; None for fewer than three requests."""
    latest: int
    """Tokens of the last prompt."""

    @property
    def turns(self) -> int:
        """n."""
        return self.last - self.first + 1

    @property
    def law(self) -> float:
        """n·P + a·n²/2, tokens."""
        return self.turns * self.prefix + (self.per_turn or 0.0) * self.turns**2 / 2

    @property
    def exact(self) -> float:
        """n·P + a·n(n+1)/2, tokens."""
        return self.turns * self.prefix + (self.per_turn or 0.0) * self.turns * (self.turns + 1) / 2

    @property
    def square_overtakes_at(self) -> float | None:
        """The n from which a·n²/2 is more than n·P; None where nothing grows."""
        if not self.per_turn or self.per_turn <= 0:
            return None
        return max(0.0, 2 * self.prefix / self.per_turn)

    def turns_left(self, window: int) -> int | None:
        """Turns until the window is full; None where nothing grows."""
        if not self.per_turn or self.per_turn <= 0:
            return None
        return max(0, int((window - self.latest) / self.per_turn))


def iter_growth(turns: Iterable[Turn]) -> Iterator[Growth]:
    """The stretches of one session, in order."""
    stretch: list[Turn] = []
    for turn in turns:
        if stretch and (turn.starts or _is_other(stretch[-1], turn)):
            yield fit(stretch)
            stretch = []
        stretch.append(turn)
    if stretch:
        yield fit(stretch)


def _is_other(before: Turn, after: Turn) -> bool:
    if after.tokens < min(SHORTER * before.tokens, before.tokens - TOLERANCE_TOKENS):
        return True
    return before.tokens > 0 and after.tokens > LONGER * before.tokens


def fit(stretch: Sequence[Turn]) -> Growth:
    """The line of least squares through the prompts of at least one request."""
    n = len(stretch)
    sizes = [turn.tokens for turn in stretch]
    total = sum(sizes)
    prefix, slope, r2 = float(sizes[0]), None, None
    if n > 1:
        mean_k, mean = (n + 1) / 2, total / n
        spread = n * (n * n - 1) / 12
        slope = sum((k - mean_k) * s for k, s in enumerate(sizes, start=1)) / spread
        prefix = mean - slope * mean_k
        if prefix < 0:
            # No prompt is smaller than nothing: the line goes through zero.
            prefix = 0.0
            slope = (
                sum(k * s for k, s in enumerate(sizes, start=1)) * 6 / (n * (n + 1) * (2 * n + 1))
            )
        varied = sum((s - mean) ** 2 for s in sizes)
        if n > 2:
            off = sum((prefix + slope * k - s) ** 2 for k, s in enumerate(sizes, start=1))
            r2 = 1.0 if not varied else max(0.0, 1 - off / varied)
    return Growth(
        first=stretch[0].number,
        last=stretch[-1].number,
        prefix=prefix,
        per_turn=slope,
        recorded=total,
        r2=r2,
        latest=sizes[-1],
    )
