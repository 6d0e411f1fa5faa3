"""A cause: how it is recognised, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from ctxdoc.diagnosis.case import Case, Confidence, Part


class Group(StrEnum):
    """What kind of thing a cause is."""

    CONTENT = "content"
    SETTINGS = "settings"
    MARKERS = "markers"
    TIME_AND_PLACE = "time and place"
    ACCOUNTING = "accounting"
    HEALTHY = "healthy"


class Match(Struct, frozen=True, kw_only=True):
    """What a cause found in a case."""

    explanation: str
    """One or two sentences about this case."""
    confidence: Confidence
    pointer: str = ""
    """Where it was seen; empty for what is no place in the body."""
    leading: bool = True
    """Whether it explains the first difference at that place, and not a later one."""
    fix: str = ""
    """What to change in this case, where it is not what the cause says."""
    avoidable: bool = True
    """Whether this case could be avoided, where the cause can."""


class Cause(Struct, frozen=True, kw_only=True):
    """A named reason for which tokens that could have been read were not."""

    id: str
    title: str
    group: Group
    parts: frozenset[Part]
    """The parts of a loss that it can explain."""
    fix: str
    """What to change, in one or two sentences."""
    match: Callable[[Case], Match | None]
    avoidable: bool = True
    fallback: bool = False
    """Whether it stands for what no other cause explains."""
    by_counters: bool = False
    """Whether only a log without bodies shows it."""
    unstable: bool = False
    """Whether it is a prefix that nobody meant to change: a gate breaks on it unless it is allowed."""
    is_fork: bool = False
    """Whether it is a side call that cannot share the prefix of the conversation beside it."""
    is_idle: bool = False
    """Whether it is a pause: a longer lifetime would have helped, and nothing else."""
    is_clock: bool = False
    """Whether it is a value that a clock writes: one that holds a day alone changes at midnight only."""
    replaces_history: bool = False
    """Whether the conversation goes on with a shorter prompt."""
    rests_on_one_pass: bool = False
    """Whether it rests on counters alone: those of several passes over a prompt prove nothing of it."""
    every_time: bool = False
    """Whether it tells of one agent even where every conversation begins with another prefix."""
    holds_for_builders: bool = False
    """Whether it holds for two runs of a program as it does for two requests of a session."""
    general: bool = False
    """Whether it says no more than that a place changed: not worth repeating beside a cause that
    knows how."""


def capped(proof: Confidence, ceiling: Confidence) -> Confidence:
    """The weaker of a proof and a ceiling."""
    return min(proof, ceiling)
