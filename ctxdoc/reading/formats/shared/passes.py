"""The passes over the prompt that an answer lists in `usage.iterations`."""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any

import msgspec

from ctxdoc.reading.formats.base import text_of
from ctxdoc.reading.formats.shared import usage as counters
from ctxdoc.request.usage import Pass

PASSES = ("message", "compaction", "advisor_message", "fallback_message")
MOST_PASSES = 1000
"""Passes of one answer that are held."""


def passes_of(usage: Mapping[str, Any], notes: list[str]) -> tuple[Pass, ...]:
    """The passes that an answer lists; none where there was only the one that the usage counts.

    An entry that is none, or whose counters are no counters, is left out with a note.
    """
    entries = usage.get("iterations")
    if not isinstance(entries, list):
        return ()
    if len(entries) > MOST_PASSES:
        notes.append(
            f"{len(entries):,} passes are listed; those after {MOST_PASSES:,} are left out"
        )
    found = [each for entry in entries[:MOST_PASSES] if (each := _pass(entry, notes)) is not None]
    # One pass of the model is what the usage counts already.
    plain = len(found) < 2 and all(each.kind == "message" for each in found)
    return () if plain else tuple(found)


def _pass(entry: Any, notes: list[str]) -> Pass | None:
    kind = entry.get("type") if isinstance(entry, dict) else None
    if kind not in PASSES:
        notes.append("a pass of an unknown kind in usage.iterations is left out")
        return None
    try:
        parts = counters.anthropic(entry)
    except msgspec.ValidationError as error:
        notes.append(f"a pass in usage.iterations is left out: {error}")
        return None
    # An entry without any counter says that there was a pass, and not how large.
    if parts is None:
        return None
    return Pass(kind=kind, usage=parts, model=intern(text_of(entry.get("model"))))
