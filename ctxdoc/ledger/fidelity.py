"""How the simulated counters of a request stand to the reported ones."""

from __future__ import annotations

from enum import StrEnum

from ctxdoc.diagnosis.case import TOLERANCE_SHARE, TOLERANCE_TOKENS
from ctxdoc.request.usage import Usage


class Fidelity(StrEnum):
    """How the simulated counters stand to the reported ones."""

    WITHIN = "within"
    """Each part within 3 % or 20 tokens."""
    WARMED = "warmed outside"
    """More was read than the log has written: calls that are not in it warmed the prefix."""
    LESS = "read less"
    """The rules let more be read than was."""
    PASSES = "several passes"
    """Server tools ran, and the counters add up several passes over the prompt."""
    OTHER = "other split"
    """As much was read; what was written and what paid in full differ."""


def fidelity_of(reported: Usage, simulated: Usage) -> Fidelity:
    """Whether the model reproduces what was billed, and if not, in which way."""
    pairs = (
        (reported.cache_read, simulated.cache_read),
        (reported.cache_write, simulated.cache_write),
        (reported.uncached, simulated.uncached),
    )
    if all(_same(one, two) for one, two in pairs):
        return Fidelity.WITHIN
    if _same(*pairs[0]):
        return Fidelity.OTHER
    more = reported.cache_read > simulated.cache_read
    return Fidelity.WARMED if more else Fidelity.LESS


def _same(reported: int, simulated: int) -> bool:
    return abs(reported - simulated) <= max(TOLERANCE_TOKENS, TOLERANCE_SHARE * reported)
