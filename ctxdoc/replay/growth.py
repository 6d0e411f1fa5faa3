"""How a session grows: the law n·P + a·n²/2, fitted to each stretch that only appends.

Turn k of a stretch sends S_k = P + a·k tokens. n turns send n·P + a·n(n+1)/2 exactly; the law leaves
the half turn away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

SHORTER = 0.97
"""A prompt under this share of the one before it starts a stretch of its own."""
TOLERANCE_TOKENS = 20
MOST_TURNS = 10_000
"""Turns beyond which nobody can say when a window is full."""
LEAST_R2 = 0.98
"""Under this share of the variance a line does not fit."""
MOST_ERROR = 0.1
"""Nor does one that is off by more than this share of a prompt."""
FEWEST = 5
"""Prompts from which on a bend can be told from chance."""
BENT = 0.8
"""Share of what a line leaves that a parabola explains, from which on it is a bend,"""
TURNED = 0.25
"""and how much the slope changes from end to end, as a share of its mean."""
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
    largest_error: float = 0.0
    """Tokens by which the line is off where it is off most."""
    largest_share: float = 0.0
    """The largest error as a share of its prompt."""
    bends: bool = False
    """Whether what the line leaves is a curve: each turn adds more than the one before, or less."""

    @property
    def fits(self) -> bool | None:
        """Whether the line describes the stretch; None where it has too few requests to tell."""
        if self.r2 is None:
            return None
        # Sizes that hardly vary have no variance to explain.
        explained = self.r2 >= LEAST_R2 or self.largest_error <= TOLERANCE_TOKENS
        return explained and self.largest_share <= MOST_ERROR

    @property
    def foretells(self) -> bool:
        """Whether the line may be drawn on beyond the last request."""
        return self.fits is not False and not self.bends

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
        """Turns until the window is full; None where nothing grows, or where it would take too many to say."""
        if not self.per_turn or self.per_turn <= 0:
            return None
        left = max(0, int((window - self.latest) / self.per_turn))
        return left if left <= MOST_TURNS else None


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
    sizes = [turn.tokens for turn in stretch]
    line = _line(sizes) if len(sizes) > 1 else _Line(float(sizes[0]), None)
    return Growth(
        first=stretch[0].number,
        last=stretch[-1].number,
        prefix=line.prefix,
        per_turn=line.slope,
        recorded=sum(sizes),
        r2=line.r2,
        latest=sizes[-1],
        largest_error=line.off,
        largest_share=line.share,
        bends=line.bends,
    )


class _Line(NamedTuple):
    """A line through the sizes of prompts, and how well it describes them."""

    prefix: float
    slope: float | None
    r2: float | None = None
    off: float = 0.0
    share: float = 0.0
    bends: bool = False


def _line(sizes: Sequence[int]) -> _Line:
    """The line through at least two prompts."""
    n = len(sizes)
    mean_k, mean = (n + 1) / 2, sum(sizes) / n
    # The sum of (k - mean)² over 1, 2 … n, in closed form.
    spread = n * (n * n - 1) / 12
    slope = sum((k - mean_k) * s for k, s in enumerate(sizes, start=1)) / spread
    prefix = mean - slope * mean_k
    # Asked of the free line: one that is forced through zero leaves a curve of its own.
    bends = n >= FEWEST and _bends(sizes, prefix, slope)
    if prefix < 0:
        # No prompt is smaller than nothing: the line goes through zero.
        prefix = 0.0
        slope = sum(k * s for k, s in enumerate(sizes, start=1)) * 6 / (n * (n + 1) * (2 * n + 1))
    errors = [abs(prefix + slope * k - s) for k, s in enumerate(sizes, start=1)]
    share = max(error / size for error, size in zip(errors, sizes, strict=True) if size)
    # Two points lie on their line always, which explains nothing.
    r2 = _explained(sizes, errors) if n > 2 else None
    return _Line(prefix, slope, r2, max(errors), share, bends)


def _explained(sizes: Sequence[int], errors: Sequence[float]) -> float:
    """The share of the variance of the sizes that a line with these errors explains."""
    mean = sum(sizes) / len(sizes)
    varied = sum((s - mean) ** 2 for s in sizes)
    left = sum(error * error for error in errors)
    return 1.0 if not varied else max(0.0, 1 - left / varied)


def _bends(sizes: Sequence[int], prefix: float, slope: float) -> bool:
    """Whether a parabola explains most of what the line of least squares leaves."""
    n, middle = len(sizes), (len(sizes) + 1) / 2
    left = [s - prefix - slope * k for k, s in enumerate(sizes, start=1)]
    rest = sum(error * error for error in left)
    if max(map(abs, left)) <= TOLERANCE_TOKENS:
        return False
    # The second polynomial that is orthogonal to every line over 1, 2 … n.
    second = [(k - middle) ** 2 - (n * n - 1) / 12 for k in range(1, n + 1)]
    size = sum(p * p for p in second)
    curve = sum(p * error for p, error in zip(second, left, strict=True)) / size
    turned = abs(2 * curve * (n - 1))
    return curve * curve * size > BENT * rest and turned > TURNED * abs(slope)
