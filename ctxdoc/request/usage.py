"""Counters of one request, and where a number comes from."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Origin(StrEnum):
    """Where a number comes from."""

    REPORTED = "reported"
    """Stated by the API."""
    CALIBRATED = "calibrated"
    """Shared out inside an interval whose ends were reported."""
    ESTIMATED = "estimated"
    """Made from characters, without any counter."""
    SIMULATED = "simulated"
    """Computed by the cache model."""
    NONE = "none"


class Usage(Struct, frozen=True, kw_only=True, gc=False):
    """The tokens of one request, in parts that do not overlap."""

    uncached: int
    """Input neither read from nor written to the cache."""
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int = 0
    split_known: bool = True
    """Whether the lifetimes of the writes were stated; if not, all count as 5m."""
    contradiction: str = ""
    """How the recorded parts contradict each other, if they do."""

    @property
    def cache_write(self) -> int:
        """Both lifetimes together."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def prompt_parts(self) -> tuple[int, int, int]:
        """The parts of the prompt: uncached, read and written."""
        return self.uncached, self.cache_read, self.cache_write

    @property
    def input(self) -> int:
        """The whole prompt."""
        return self.uncached + self.cache_read + self.cache_write


class Pass(Struct, frozen=True, kw_only=True, gc=False):
    """One pass of a model over a prompt, of an answer that took several (`usage.iterations`)."""

    kind: str
    """`message`, `compaction`, `advisor_message` or `fallback_message`."""
    usage: Usage
    model: str = ""
    """Who ran it, where it is said; else the model that answered."""

    @property
    def is_extra(self) -> bool:
        """Whether its tokens are outside of the counters of the answer (SDK 2.14.0; advisor page,
        2026-08)."""
        return self.kind in EXTRA_PASSES


EXTRA_PASSES = frozenset({"compaction", "advisor_message"})
